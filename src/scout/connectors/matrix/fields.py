"""The values that the Matrix connector needs."""

from scout.ports.connector import SetupField

FIELDS = (
    SetupField(name="baseUrl", question="URL of the homeserver of the bot, such as https://matrix.org"),
    SetupField(
        name="accessToken",
        question="Access token of the bot; empty to log in with a user and a password",
        secret=True,
        default="",
    ),
    SetupField(name="user", question="User of the bot, such as @scout:matrix.org", default=""),
    SetupField(name="password", question="Password of the bot; it is not stored", secret=True, default=""),
    SetupField(
        name="groupInvites",
        question="Whose invitations to group rooms are accepted: user ids separated by commas, or * for all",
        default="",
    ),
)
