"""The streams and buckets of a mesh, as literal configurations, and what makes them.

Every call may be repeated. A bucket is a stream that keeps the last message of each key, named as NATS
clients expect it. Rollups are off, because one header would let any node clear a whole bucket.
"""

from typing import Any

from scout.mesh.connection import Connection
from scout.mesh.names import CONSUMER, MeshNames, get_bucket_stream, get_key
from scout.model.mesh.envelope import ENVELOPE_LIMIT
from scout.ports.mesh import MeshDown

_SECOND = 1_000_000_000
_HEADERS = 4096
_DAY = 86_400 * _SECOND
_STREAM_EXISTS = 10058
_NOT_FOUND = {10014, 10059}  # consumer, stream
_TOO_FEW_SERVERS = {10005, 10023, 10074}  # no peers, no room, no cluster

_ENVELOPES: dict[str, Any] = {
    "retention": "workqueue",
    "storage": "file",
    "discard": "new",
    "discard_new_per_subject": True,
    "max_msgs_per_subject": 20_000,  # from one node, so that it cannot block the others
    "max_msg_size": ENVELOPE_LIMIT + _HEADERS,
    "max_age": 7 * _DAY,  # far longer than a sender keeps trying
    "duplicate_window": 120 * _SECOND,
}
_RECEIVER: dict[str, Any] = {
    "durable_name": CONSUMER,
    "deliver_policy": "all",
    "ack_policy": "explicit",
    "ack_wait": 3 * _SECOND,  # also how long an envelope waits that was lost with a connection
    "max_deliver": -1,
    "max_ack_pending": 256,
    "replay_policy": "instant",
}
_BUCKET: dict[str, Any] = {
    "retention": "limits",
    "storage": "file",
    "discard": "new",
    "max_msgs_per_subject": 1,
    "max_msg_size": 65_536,
    "allow_msg_ttl": True,
    "allow_direct": True,
    "allow_rollup_hdrs": False,
    "deny_delete": True,
}
# The server writes a marker when a heartbeat expires, which tells every watcher.
_MARKERS: dict[str, Any] = {"subject_delete_marker_ttl": 600 * _SECOND, "max_msg_size": 8192}


async def make_buckets(connection: Connection, names: MeshNames) -> None:
    """Make the three buckets of the directory."""
    for bucket in names.buckets:
        extra = _MARKERS if bucket == names.heartbeats else {}
        await _make_stream(
            connection, get_bucket_stream(bucket), {**_BUCKET, **extra, "subjects": [f"$KV.{bucket}.>"]}
        )


async def make_node_stream(connection: Connection, names: MeshNames, node_id: str) -> None:
    """Make the stream that holds the envelopes to a node, and the consumer through which it reads them."""
    stream = names.get_stream(node_id)
    await _make_stream(connection, stream, {**_ENVELOPES, "subjects": [names.get_envelopes(node_id, "*")]})
    request = {"stream_name": stream, "config": _RECEIVER}
    check_response(await connection.call(f"CONSUMER.CREATE.{stream}.{CONSUMER}", request))


async def remove_node(connection: Connection, names: MeshNames, node_id: str) -> None:
    """Remove the stream of a node, its entries and its heartbeat."""
    stream = names.get_stream(node_id)
    check_response(await connection.call(f"STREAM.DELETE.{stream}"), missing=True)
    for bucket, key in (
        (names.entries, f"{get_key(names.entries, node_id)}.>"),
        (names.heartbeats, get_key(names.heartbeats, node_id)),
    ):
        purge = f"STREAM.PURGE.{get_bucket_stream(bucket)}"
        check_response(await connection.call(purge, {"filter": key}), missing=True)


def check_response(response: dict[str, Any], *, missing: bool = False) -> dict[str, Any]:
    """Return a response of the server without an error. `missing`: what is not there is no error."""
    error: dict[str, Any] = response.get("error") or {}
    if error and not (missing and _get_code(response) in _NOT_FOUND):
        raise MeshDown(f"the server refused: {error.get('description', 'no reason given')}")
    return response


async def _make_stream(connection: Connection, name: str, config: dict[str, Any]) -> None:
    """Make a stream. One with another configuration stays as it is: the operator of the server set it so.

    A cluster keeps it on three of its servers, so that it may lose one.
    """
    response = await _create_stream(connection, name, config, 3 if connection.is_clustered else 1)
    if _get_code(response) in _TOO_FEW_SERVERS:
        response = await _create_stream(connection, name, config, 1)
    if _get_code(response) != _STREAM_EXISTS:
        check_response(response)


async def _create_stream(
    connection: Connection, name: str, config: dict[str, Any], replicas: int
) -> dict[str, Any]:
    request = {"name": name, "num_replicas": replicas, **config}
    return await connection.call(f"STREAM.CREATE.{name}", request)


def _get_code(response: dict[str, Any]) -> int | None:
    error: dict[str, Any] = response.get("error") or {}
    return error.get("err_code")
