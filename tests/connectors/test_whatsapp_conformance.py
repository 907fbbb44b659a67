"""The connector `whatsapp` with a broker, on the stage of our strict Cloud API."""

from contextlib import AbstractContextManager
from pathlib import Path

from scout.protocol.people.connectors import PostToUser
from tests.broker.rig import inbox_bodies, wait_until
from tests.connectors.chatting import Chat
from tests.connectors.conformance import ConnectorConformance
from tests.connectors.stage import Stage
from tests.connectors.whatsapp_stage import WhatsAppStage, whatsapp_stage


class TestWhatsApp(ConnectorConformance):
    file = ("out.txt", b"of the few kinds that Meta accepts\n" * 10)

    def stage(self) -> AbstractContextManager[Stage]:
        return whatsapp_stage()

    def test_a_message_after_24_hours_goes_back_to_its_sender(self, tmp_path: Path) -> None:
        """Meta accepts it at first, and reports later that it was not delivered."""

        async def scene(chat: Chat) -> None:
            assert isinstance(chat.stage, WhatsAppStage)
            arc = await chat.agent("arc", harness=None)
            ada = await chat.link("ada")
            await chat.settle()
            chat.stage.fake.closed.add(ada)
            await arc.call(PostToUser(user="ada", body="a day later"))

            async def bounced() -> bool:
                return any("more than 24 hours" in one for one in await inbox_bodies(chat.rig, "arc"))

            await wait_until(bounced)
            await chat.say(ada, "I am here")
            await arc.call(PostToUser(user="ada", body="welcome back"))
            await chat.shows(ada, "welcome back")
            assert "a day later" not in str(await chat.texts(ada))

        self.play(tmp_path, scene)
