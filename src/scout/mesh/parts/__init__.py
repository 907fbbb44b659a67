"""All parts of the mesh that need the extra, so that the daemon loads them with one import, when needed."""

from scout.mesh.certificate import hash_certificate, make_certificate
from scout.mesh.connection import ServerLogin, connect
from scout.mesh.identity_key import IdentityKey
from scout.mesh.invitation import InvitationLine, read_line, write_line
from scout.mesh.joining import answer_joins, join_mesh
from scout.mesh.link import LinkPlace, NatsLink
from scout.mesh.login_key import build_seed, certify_login, derive_seed, get_public
from scout.mesh.names import MeshNames, get_inbox
from scout.mesh.server import NatsServer, ServerFolder, ServerState, build_url
from scout.mesh.streams import make_buckets

__all__ = [
    "IdentityKey",
    "InvitationLine",
    "LinkPlace",
    "MeshNames",
    "NatsLink",
    "NatsServer",
    "ServerFolder",
    "ServerLogin",
    "ServerState",
    "answer_joins",
    "build_seed",
    "build_url",
    "certify_login",
    "connect",
    "derive_seed",
    "get_inbox",
    "get_public",
    "hash_certificate",
    "join_mesh",
    "make_buckets",
    "make_certificate",
    "read_line",
    "write_line",
]
