"""The values that the Slack connector needs."""

from scout.ports.connector import SetupField

FIELDS = (
    SetupField(name="botToken", question="Bot token of the Slack app (xoxb-…)", secret=True),
    SetupField(
        name="appToken", question="App-level token with the scope connections:write (xapp-…)", secret=True
    ),
    SetupField(name="baseUrl", question="URL of the Web API", default="https://slack.com/api"),
)
