"""The line that invites a node: where the mesh is, the secret, and what the server and the founder prove."""

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode

import msgspec

from scout.base.refusal import Refused
from scout.mesh.names import check_token
from scout.model.problems.mesh import InvitationInvalid

_PREFIX = "scout-mesh1:"
_CHECK = 4  # bytes of a checksum: a line that was cut or mistyped is noticed before anything is sent
_LONGEST = 4096


class InvitationLine(msgspec.Struct, frozen=True, array_like=True):
    """What the line holds. `certificate` is empty for a server whose certificate an authority signed."""

    urls: tuple[str, ...]
    mesh_id: str
    invitation_id: str
    secret: str
    founder_key: bytes
    certificate: bytes = b""


def write_line(invitation: InvitationLine) -> str:
    """Return the line, short enough to paste."""
    data = msgspec.msgpack.encode(invitation)
    return _PREFIX + urlsafe_b64encode(_hash(data) + data).decode().rstrip("=")


def read_line(line: str) -> InvitationLine:
    """Return what a line holds. A line that is incomplete or was altered is refused."""
    text = "".join(line.split())[:_LONGEST]
    if not text.startswith(_PREFIX):
        raise Refused(InvitationInvalid(problem=f"it does not begin with '{_PREFIX}'"))
    try:
        code = text.removeprefix(_PREFIX)
        data = urlsafe_b64decode(code + "=" * (-len(code) % 4))
        if data[:_CHECK] != _hash(data[_CHECK:]):
            raise ValueError("the checksum does not match")
        found = msgspec.msgpack.decode(data[_CHECK:], type=InvitationLine)
    except (ValueError, msgspec.MsgspecError):
        raise Refused(InvitationInvalid(problem="the line is incomplete or was altered")) from None
    check_token(found.mesh_id)
    check_token(found.invitation_id)
    return found


def _hash(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()[:_CHECK]
