"""A broker with one connector at a stage, and people who chat with it. Nothing of ours is replaced but time."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

from scout.broker.local import LocalScout
from scout.broker.people import links
from scout.broker.routing import users
from scout.daemon.connectors import StoredConnectors
from scout.model.access.token import TokenKind
from scout.model.people.user import UserKind
from scout.ports.connector import ConnectorCapabilities, ConnectorSetup
from scout.protocol.access import CreateToken
from scout.protocol.agents import ConfigureAgent
from scout.protocol.enrolment import Enrol, Enrolled, HookEvent, ReportHook
from scout.protocol.people.connectors import ConnectorView, ListConnectors
from tests.broker.rig import Rig, run_scene, wait_until
from tests.connectors.stage import Shown, Stage

__all__ = ["Chat", "Scene", "chat_test", "store_setup"]

T = TypeVar("T")
Scene = Callable[["Chat"], Awaitable[None]]


def store_setup(home: Path, stage: Stage) -> StoredConnectors:
    """What `scout connector add` would have stored."""
    kits = StoredConnectors(home / "connectors")
    kits.store(ConnectorSetup(connector=stage.connector, values=dict(stage.values)))
    return kits


def chat_test(stage: AbstractContextManager[Stage], home: Path, scene: Scene, **options: Any) -> None:
    """Play a scene; what the connector sent must be allowed, and the log must give the rows."""
    with stage as made:
        kits = store_setup(home, made)

        async def play(rig: Rig) -> None:
            chat = Chat(rig, made)
            await chat.wait_for_state("running")
            await scene(chat)

        run_scene(play, home, kits=kits, **options)
        assert made.problems() == []


class Chat:
    """The broker, the stage, and the people. Calls of the stage run in a thread: it may be a real server."""

    def __init__(self, rig: Rig, stage: Stage) -> None:
        self.rig = rig
        self.stage = stage
        self.connector = stage.connector
        self.seen: dict[str, int] = {}
        self._host: LocalScout | None = None

    async def do(self, work: Callable[..., T], *words: Any, **more: Any) -> T:
        return await asyncio.to_thread(work, *words, **more)

    @property
    def capabilities(self) -> ConnectorCapabilities:
        setup = ConnectorSetup(connector=self.connector, values=dict(self.stage.values))
        return StoredConnectors(self.rig.home / "connectors").build(setup).capabilities

    async def wait_for_state(self, state: str) -> ConnectorView:
        """The connector as Scout lists it, once it is in this state."""

        async def look() -> ConnectorView | None:
            (view,) = (await self.rig.operator(ListConnectors())).items
            return view if view.state == state else None

        return await wait_until(look)

    # -- people ------------------------------------------------------------------------------------

    async def issue_code(self, user: str, kind: UserKind = UserKind.PERSON) -> str:
        """A link code; the user is made if there is none."""

        def issue(tx: Any) -> str:
            known = users.find_user(tx, user) or users.create_user(tx, user, kind=kind)
            return links.issue_code(tx, known, self.connector)[1]

        return await self.rig.broker.as_system(issue)

    async def link(self, user: str, name: str | None = None) -> str:
        """A person whose account is linked to a user; the id of their private chat."""
        person = await self.do(self.stage.person, name or user)
        chat = await self.do(self.stage.private, person)
        code = await self.issue_code(user)
        await self.say(person, code, chat=chat)
        await self.shows(chat, "is linked to")
        return person

    async def link_group(self, group: str, *people: str) -> str:
        """A group chat that is linked to a user of its own."""
        chat = await self.do(self.stage.group, group, *people)
        code = await self.issue_code(group, UserKind.GROUP)
        await self.say(people[0], code, chat=chat, mention=True)
        await self.shows(chat, "This group is linked to")
        return chat

    async def private(self, person: str) -> str:
        return await self.do(self.stage.private, person)

    async def say(self, person: str, text: str, *, chat: str | None = None, **more: Any) -> str:
        """A person types, in their private chat unless another is named."""
        where = chat if chat is not None else await self.private(person)
        return await self.do(self.stage.say, person, where, text, **more)

    async def press(self, person: str, label: str, shown: Shown, chat: str | None = None) -> None:
        where = chat if chat is not None else await self.private(person)
        await self.do(self.stage.press, person, where, shown.message_id, label)

    # -- what is shown -----------------------------------------------------------------------------

    async def shown(self, chat: str) -> list[Shown]:
        return await self.do(self.stage.shown, chat)

    async def shows(self, chat: str, text: str, count: int = 1, **more: Any) -> Shown:
        """The newest message of the bot that holds a text, once there are this many."""

        async def look() -> Shown | None:
            found = [one for one in await self.shown(chat) if text in one.text]
            found = [one for one in found if all(getattr(one, name) == is_ for name, is_ in more.items())]
            return found[-1] if len(found) >= count else None

        try:
            return await wait_until(look)
        except AssertionError:
            raise AssertionError(f"'{text}' is not among {await self.texts(chat)}") from None

    async def texts(self, chat: str) -> list[str]:
        return [one.text for one in await self.shown(chat)]

    async def notes(self, person: str, count: int) -> Sequence[str]:
        """What only one person was shown, once it is this much."""

        async def look() -> list[str] | None:
            found = await self.do(self.stage.notes, person)
            return found if len(found) >= count else None

        return await wait_until(look)

    async def settle(self) -> None:
        """Wait until nothing is to be sent any more."""

        async def look() -> bool:
            connection = self.rig.broker.glance()
            states = connection.rows("chat_posts_open", connector=self.connector)
            return not states

        await wait_until(look)

    # -- agents ------------------------------------------------------------------------------------

    async def agent(self, name: str = "arc", **more: Any) -> LocalScout:
        return await self.rig.agent(name, **{"harness": "echo", **more})

    async def let_answer(self, user: str, harness: str = "echo") -> None:
        """The agent of a user's chat is run by this harness."""
        path = f"/{user}/{self.connector}"
        await self.rig.operator(ConfigureAgent(address=path, config={"harness": harness}))

    async def session(self, name: str = "talkie") -> tuple[LocalScout, Enrolled]:
        """A session of the operator's that a host reports for."""
        if self._host is None:
            made = await self.rig.operator(CreateToken(kind=TokenKind.HOST, label="host"))
            self._host = await self.rig.scout(made.secret)
        folder = self.rig.home / name
        folder.mkdir(exist_ok=True)
        wish = Enrol(cwd=str(folder), harness="claude", native_session_id=f"n-{name}")
        return self._host, await self._host.call(wish)

    async def wants(self, command: str, name: str = "talkie") -> str | None:
        """A program asks for permission; the item that a person has to decide, if any."""
        host, enrolled = await self.session(name)
        answer = await host.call(
            ReportHook(
                session_id=enrolled.session.id,
                event=HookEvent.PERMISSION_REQUEST,
                tool="Bash",
                arguments={"command": command},
                expires_in=600,
            )
        )
        return answer.attention_id
