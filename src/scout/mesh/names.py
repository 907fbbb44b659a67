"""Subjects, streams and buckets of one mesh on a NATS server. Every name holds the id of the mesh."""

import re

from scout.base.refusal import BadRequest, Refused

API = "$JS.API"
CONSUMER = "node"  # of the stream of envelopes of a node; there is one
_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,64}")


class MeshNames:
    """The names of one mesh. An id becomes part of a subject, so it holds neither dots nor wildcards."""

    def __init__(self, mesh_id: str) -> None:
        self._mesh = check_token(mesh_id)
        self.members = f"scout_{mesh_id}_members"
        self.heartbeats = f"scout_{mesh_id}_heartbeats"
        self.entries = f"scout_{mesh_id}_entries"

    @property
    def buckets(self) -> tuple[str, ...]:
        """The key-value buckets, in the order in which a node reads them."""
        return (self.members, self.heartbeats, self.entries)

    def get_stream(self, node_id: str) -> str:
        """Return the name of the stream that holds the envelopes to a node."""
        return f"scout_{self._mesh}_to_{check_token(node_id)}"

    def get_envelopes(self, to_node: str, from_node: str) -> str:
        """Return the subject of envelopes from one node to another; `*` stands for any node."""
        return f"scout.{self._mesh}.to.{_check_or_any(to_node)}.{_check_or_any(from_node)}"

    def get_join(self, invitation_id: str) -> str:
        """Return the subject on which the founder answers an invitation; `*` stands for any of them."""
        return f"scout.{self._mesh}.join.{_check_or_any(invitation_id)}"


def get_bucket_stream(bucket: str) -> str:
    """Return the stream of a bucket, as every NATS client names it."""
    return f"KV_{bucket}"


def get_key(bucket: str, *tokens: str) -> str:
    """Return the subject of a key."""
    return ".".join((f"$KV.{bucket}", *map(check_token, tokens)))


def get_inbox(name: str) -> str:
    """Return the prefix of the subjects on which a login gets replies; nobody else may listen there."""
    return f"_INBOX_{check_token(name)}"


def check_token(text: str) -> str:
    """Return an id that may be part of a subject; another one is refused."""
    if _TOKEN.fullmatch(text) is None:
        raise Refused(BadRequest(problem=f"{text!r:.80} cannot be the id of a mesh, a node or an agent"))
    return text


def _check_or_any(text: str) -> str:
    return text if text == "*" else check_token(text)
