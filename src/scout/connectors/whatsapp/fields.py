"""The values that the WhatsApp connector needs."""

from scout.ports.connector import SetupField

FIELDS = (
    SetupField(name="accessToken", question="Access token of the system user", secret=True),
    SetupField(name="phoneNumberId", question="Phone number ID of the bot (not the number itself)"),
    SetupField(name="appSecret", question="App secret, which signs the webhook", secret=True),
    SetupField(
        name="verifyToken", question="Verify token: any words that you also enter at Meta", secret=True
    ),
    SetupField(
        name="publicHost", question="Public host name of the webhook, such as hook.example.org", default=""
    ),
    SetupField(name="host", question="Address to listen on", default="127.0.0.1"),
    SetupField(name="port", question="Port to listen on", default="7449"),
    SetupField(name="path", question="Path of the webhook", default="/whatsapp"),
    SetupField(name="baseUrl", question="URL of the Graph API", default="https://graph.facebook.com/v25.0"),
)
