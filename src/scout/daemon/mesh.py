"""The mesh of this daemon: its files below `$SCOUT_HOME/mesh/`, and the parts that are built from them.

Nothing of the mesh is loaded before it is used. Its libraries are an extra of the package.
"""

import asyncio
import importlib.util
import secrets
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from scout.base.codec import decode, encode
from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time
from scout.daemon.mesh_port import choose_address
from scout.daemon.mesh_process import SupervisedServer
from scout.daemon.secret_file import read_node_key, read_or_make, read_secret, write_secret
from scout.model.mesh.join import JoinAnswer, JoinRequest
from scout.model.problems.mesh import MeshNotInstalled, MeshUnreachable
from scout.ports.mesh import JoinDesk, MeshConfig, MeshDown, MeshLink, MeshServer, NodeKeys

if TYPE_CHECKING:
    from scout.mesh import parts
    from scout.mesh.server import ServerFolder

_PACKAGES = ("cryptography", "nats", "nkeys")
_INSTALL = f"{sys.executable} -m pip install 'scout-broker[mesh]'"
_NUMBERS_OF_A_RUN = 1 << 32


class StoredMesh:
    """The folder of the mesh, and the identity key of the node beside it."""

    def __init__(self, folder: Path, node_key: Path, now: Callable[[], Time]) -> None:
        self._folder = folder
        self._node_key = node_key
        self._now = now
        self._config = folder / "mesh.json"
        self._login = folder / "login.seed"
        self._numbers = folder / "numbers"
        self._keys: NodeKeys | None = None

    # -- what is stored --------------------------------------------------------------------------------

    @property
    def installed(self) -> bool:
        return all(importlib.util.find_spec(name) is not None for name in _PACKAGES)

    async def prepare(self) -> None:
        await asyncio.to_thread(self.keys)

    def read(self) -> MeshConfig | None:
        """Return the stored configuration; None: this node belongs to no mesh."""
        try:
            return decode(read_secret(self._config), MeshConfig) if self._config.exists() else None
        except Refused as error:
            problem = f"{self._config} cannot be read: {error}"
            raise Refused(BadRequest(problem=problem)) from None

    def store(self, config: MeshConfig) -> None:
        self._make_folder()
        write_secret(self._config, encode(config).decode() + "\n")

    def forget(self) -> None:
        for file in (self._config, self._login):
            file.unlink(missing_ok=True)
        if SupervisedServer(self._get_server_folder() / "runs").find() is None:
            shutil.rmtree(self._get_server_folder(), ignore_errors=True)

    def keys(self) -> NodeKeys:
        if self._keys is None:
            self._keys = _load().IdentityKey(read_node_key(self._node_key))
        return self._keys

    def login_key(self, *, renew: bool = False) -> tuple[str, str]:
        parts = _load()
        if renew:
            write_secret(self._login, "\n".join((_make_seed(), *self._read_seeds()[:1])) + "\n")
        public = parts.get_public(self._read_seeds()[0])
        return public, parts.certify_login(self.keys(), public)

    def begin_numbers(self) -> int:
        self._make_folder()
        known = int(read_or_make(self._numbers, lambda: "0"))
        first = max(known + _NUMBERS_OF_A_RUN, int(self._now()))
        write_secret(self._numbers, f"{first}\n")
        return first

    # -- parts -----------------------------------------------------------------------------------------

    def build_link(self, config: MeshConfig, node_id: str) -> MeshLink:
        parts = _load()
        place = parts.LinkPlace(
            mesh_id=config.mesh_id, node_id=node_id, founder=config.founder, shared=not config.certificate
        )
        return parts.NatsLink(place, lambda: self._build_login(config, node_id), self._now)

    def build_server(self, config: MeshConfig) -> MeshServer:
        parts = _load()
        folder = self._open_server_folder()
        process = SupervisedServer(folder.path / "runs")
        return parts.NatsServer(folder, config.url, process, self._list_own_logins, config.certificate or "")

    async def found(self, mesh_id: str, *, host: str, port: int) -> MeshConfig:
        await self.prepare()
        return await asyncio.to_thread(self._found, mesh_id, host, port)

    def _found(self, mesh_id: str, host: str, port: int) -> MeshConfig:
        parts = _load()
        parts.MeshNames(mesh_id)
        listen = choose_address(host, port)
        self.login_key()
        certificate = parts.make_certificate("scout-mesh")
        state = parts.ServerState(mesh_id=mesh_id, host=listen.host, port=listen.port)
        self._open_server_folder().prepare(state, self._list_own_logins(), _make_seed(), certificate)
        return MeshConfig(
            mesh_id=mesh_id,
            url=",".join(parts.build_url(one, listen.port) for one in listen.hosts),
            founder_key=self.keys().public_key,
            founder=True,
            serves=True,
            certificate=parts.hash_certificate(certificate[0]),
        )

    async def found_at(self, mesh_id: str, url: str, *, credentials: str | None) -> MeshConfig:
        await self.prepare()
        parts = _load()
        config = MeshConfig(
            mesh_id=mesh_id,
            url=url,
            founder_key=self.keys().public_key,
            founder=True,
            credentials=credentials,
        )
        try:
            connection = await parts.connect(await asyncio.to_thread(self._build_login, config, "founder"))
            try:
                await parts.make_buckets(connection, parts.MeshNames(mesh_id))
            finally:
                await connection.close()
        except MeshDown as down:
            raise down.refused or Refused(MeshUnreachable(url=url, reason=down.reason)) from None
        return config

    # -- joining ---------------------------------------------------------------------------------------

    def build_invitation(self, config: MeshConfig, invitation_id: str, secret: str) -> tuple[str, str]:
        parts = _load()
        line = parts.InvitationLine(
            urls=_split_urls(config),
            mesh_id=config.mesh_id,
            invitation_id=invitation_id,
            secret=secret,
            founder_key=bytes.fromhex(config.founder_key),
            certificate=bytes.fromhex(config.certificate or ""),
        )
        return parts.write_line(line), parts.get_public(parts.derive_seed(secret, invitation_id))

    def read_invitation(self, line: str, *, credentials: str | None) -> tuple[str, MeshConfig]:
        found = _load().read_line(line)
        config = MeshConfig(
            mesh_id=found.mesh_id,
            url=",".join(found.urls),
            founder_key=found.founder_key.hex(),
            certificate=found.certificate.hex() or None,
            credentials=credentials,
        )
        return found.invitation_id, config

    async def join(self, line: str, request: JoinRequest, *, credentials: str | None) -> JoinAnswer:
        await self.prepare()
        parts = _load()
        return await parts.join_mesh(parts.read_line(line), request, credentials)

    async def answer_joins(self, config: MeshConfig, desk: JoinDesk) -> None:
        await self.prepare()
        await _load().answer_joins(
            config.mesh_id, lambda: self._build_login(config, "founder"), self.keys(), desk
        )

    # -- files -----------------------------------------------------------------------------------------

    def _build_login(self, config: MeshConfig, name: str) -> "parts.ServerLogin":
        """Build the login; a server of this node is reached without leaving the machine."""
        parts = _load()
        urls = (self._open_server_folder().read().local_url,) if config.serves else _split_urls(config)
        return parts.ServerLogin(
            urls=urls,
            name=f"scout {name}",
            inbox=parts.get_inbox(name),
            certificate=config.certificate,
            credentials=config.credentials,
            seeds=() if config.credentials else self._read_seeds(),
        )

    def _list_own_logins(self) -> tuple[str, ...]:
        return tuple(map(_load().get_public, self._read_seeds()))

    def _read_seeds(self) -> tuple[str, ...]:
        """Return the seeds of the login key, newest first; the one before it works until the server knows."""
        self._make_folder()
        return tuple(read_or_make(self._login, _make_seed).split())

    def _make_folder(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _get_server_folder(self) -> Path:
        return self._folder / "server"

    def _open_server_folder(self) -> "ServerFolder":
        return _load().ServerFolder(self._get_server_folder(), write_secret)


def _load():
    """Load the parts; refused with the command that installs their libraries."""
    try:
        from scout.mesh import parts  # noqa: PLC0415 (its libraries are an extra, and large)
    except ImportError as error:
        missing = MeshNotInstalled(package=error.name or "nats", command=_INSTALL)
        raise Refused(missing) from None
    return parts


def _make_seed() -> str:
    return _load().build_seed(secrets.token_bytes(32))


def _split_urls(config: MeshConfig) -> tuple[str, ...]:
    return tuple(config.url.split(","))
