"""The values that the Telegram connector needs."""

from scout.ports.connector import SetupField

FIELDS = (
    SetupField(name="token", question="Token of the bot, from @BotFather", secret=True),
    SetupField(name="baseUrl", question="URL of the Bot API", default="https://api.telegram.org"),
)
