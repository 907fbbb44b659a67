"""The configuration of a server that Scout runs: one account, a login for each node, and its rights.

A node may write the envelopes that it sends, its own heartbeat and its own entries, and reads its own stream
and the directory. It hears replies under one name only: `_INBOX_<node>`. Rights are the first fence, and a
member that means harm can get over it: a NATS server sends its replies to whatever subject the asker names,
also into a stream. What others believe is therefore decided by signatures.
"""

from collections.abc import Mapping
from typing import Any

from scout.base.record import Record
from scout.mesh.names import API, CONSUMER, MeshNames, get_bucket_stream, get_inbox, get_key
from scout.model.mesh.envelope import ENVELOPE_LIMIT

ACCOUNT = "MESH"
_SYSTEM = "SYS"
_HEADERS = 16_384  # bytes around an envelope
_LOG_SIZE = 5 << 20
_STORE_SIZE = 10 << 30  # bytes of all streams; a full store refuses what is new, and senders try again


class ServerLogins(Record):
    """Who may log in. `own`: this node. `admin`: only the system account, which counts connections."""

    own: tuple[str, ...]
    admin: str
    nodes: Mapping[str, str] = {}
    invitations: Mapping[str, str] = {}


class ServerFiles(Record):
    """Where the server keeps its things."""

    store: str
    log: str
    certificate: str
    key: str


def build_configuration(
    mesh_id: str, host: str, port: int, files: ServerFiles, logins: ServerLogins
) -> dict[str, Any]:
    """Return the whole configuration; it is written as JSON, which the server reads."""
    names = MeshNames(mesh_id)
    return {
        "server_name": f"scout-{mesh_id}",
        "host": host,
        "port": port,
        "max_payload": ENVELOPE_LIMIT + _HEADERS,
        "ping_interval": "2s",
        "ping_max": 2,
        "write_deadline": "5s",
        "log_file": files.log,
        "logfile_size_limit": _LOG_SIZE,
        "logfile_max_num": 2,
        "jetstream": {"store_dir": files.store, "max_file_store": _STORE_SIZE},
        "tls": {"cert_file": files.certificate, "key_file": files.key, "handshake_first": True, "timeout": 5},
        "accounts": {
            ACCOUNT: {"jetstream": "enabled", "users": _list_users(names, logins)},
            _SYSTEM: {"users": [{"nkey": logins.admin}]},
        },
        "system_account": _SYSTEM,
    }


def _list_users(names: MeshNames, logins: ServerLogins) -> list[dict[str, Any]]:
    own = [{"nkey": key} for key in logins.own]
    nodes = [_build_user(key, *_list_node_rights(names, node)) for node, key in sorted(logins.nodes.items())]
    guests = [
        _build_user(key, [names.get_join(one)], [f"{get_inbox(one)}.>"])
        for one, key in sorted(logins.invitations.items())
    ]
    taken = set(logins.own)
    return [*own, *(user for user in (*nodes, *guests) if user["nkey"] not in taken)]


def _build_user(key: str, publish: list[str], subscribe: list[str]) -> dict[str, Any]:
    return {"nkey": key, "permissions": {"publish": publish, "subscribe": subscribe}}


def _list_node_rights(names: MeshNames, node: str) -> tuple[list[str], list[str]]:
    """Return what a node may publish and where it may listen."""
    stream = names.get_stream(node)
    write = [
        names.get_envelopes("*", node),
        get_key(names.heartbeats, node),
        f"{get_key(names.entries, node)}.>",
    ]
    pull = [f"{API}.CONSUMER.MSG.NEXT.{stream}.{CONSUMER}", f"$JS.ACK.{stream}.{CONSUMER}.>"]
    read = [
        f"{API}.{call}.{get_bucket_stream(bucket)}.{node}"
        for bucket in names.buckets
        for call in ("CONSUMER.CREATE", "CONSUMER.DELETE", "CONSUMER.MSG.NEXT")
    ]
    return [*write, *pull, *read], [f"{get_inbox(node)}.>"]
