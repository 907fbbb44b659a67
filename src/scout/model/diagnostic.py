"""Every way Scout can decline: one list of all codes, wherever they are declared."""

import difflib
import textwrap

from scout.base.refusal import (
    BadRequest,
    Candidate,
    Diagnostic,
    Refused,
    Remedy,
    WrongRevision,
    WrongState,
    code_of,
)
from scout.identity.problem import DepthCap, MalformedAddress, ReservedName
from scout.model.request_problem import (
    Busy,
    Forbidden,
    KeyReused,
    NotFound,
    NotOwner,
    PortInUse,
    RateLimited,
    StoreDamaged,
    StoreFull,
    TooLarge,
    Unauthenticated,
)
from scout.model.session_problem import (
    AskLoop,
    DirectoryNotAllowed,
    EmptyReply,
    HarnessUnavailable,
    Layer,
    Missing,
    NoSession,
    Paused,
    SessionBusy,
    SessionFailed,
    SessionNotAttachable,
    WakeBudget,
    WakeFailed,
)
from scout.model.target_problem import (
    AliasBroken,
    AliasShadows,
    AmbiguousEndpoint,
    AmbiguousTarget,
    ExpiredCard,
    HarnessMismatch,
    ModelMismatch,
    NameTaken,
    PeerUnreachable,
    RetiredTarget,
    TargetOffline,
    UnknownTarget,
)

__all__ = [
    "ALL",
    "AliasBroken",
    "AliasShadows",
    "AmbiguousEndpoint",
    "AmbiguousTarget",
    "AnyDiagnostic",
    "AskLoop",
    "BadRequest",
    "Busy",
    "DepthCap",
    "DirectoryNotAllowed",
    "EmptyReply",
    "ExpiredCard",
    "Forbidden",
    "HarnessMismatch",
    "HarnessUnavailable",
    "KeyReused",
    "Layer",
    "MalformedAddress",
    "Missing",
    "ModelMismatch",
    "NameTaken",
    "NoSession",
    "NotFound",
    "NotOwner",
    "Paused",
    "PeerUnreachable",
    "PortInUse",
    "RateLimited",
    "ReservedName",
    "RetiredTarget",
    "SessionBusy",
    "SessionFailed",
    "SessionNotAttachable",
    "StoreDamaged",
    "StoreFull",
    "TargetOffline",
    "TooLarge",
    "Unauthenticated",
    "UnknownTarget",
    "WakeBudget",
    "WakeFailed",
    "WrongRevision",
    "WrongState",
    "by_code",
    "explain",
]

AnyDiagnostic = (
    MalformedAddress
    | ReservedName
    | DepthCap
    | UnknownTarget
    | AmbiguousTarget
    | AmbiguousEndpoint
    | AliasBroken
    | AliasShadows
    | HarnessMismatch
    | ModelMismatch
    | PeerUnreachable
    | TargetOffline
    | RetiredTarget
    | ExpiredCard
    | NameTaken
    | NoSession
    | HarnessUnavailable
    | DirectoryNotAllowed
    | SessionNotAttachable
    | SessionFailed
    | SessionBusy
    | WakeFailed
    | WakeBudget
    | Paused
    | AskLoop
    | EmptyReply
    | Unauthenticated
    | Forbidden
    | NotOwner
    | NotFound
    | KeyReused
    | TooLarge
    | RateLimited
    | Busy
    | PortInUse
    | StoreDamaged
    | StoreFull
    | BadRequest
    | WrongState
    | WrongRevision
)

ALL: tuple[type[Diagnostic], ...] = AnyDiagnostic.__args__

_BY_CODE = {code_of(diagnostic): diagnostic for diagnostic in ALL}


def by_code(code: str) -> type[Diagnostic]:
    """The diagnostic with this code, or a refusal with the nearest ones."""
    found = _BY_CODE.get(code)
    if found is None:
        nearest = difflib.get_close_matches(code, _BY_CODE, n=3)
        candidates = tuple(Candidate(address=name) for name in nearest)
        remedies = tuple(Remedy(operation="explain", parameters={"code": name}) for name in nearest)
        every = Remedy(operation="explain", parameters={}, why="every code")
        raise Refused(
            NotFound(noun="diagnostic", id=code[:60], candidates=candidates, remedies=(*remedies, every))
        )
    return found


def explain(code: str) -> str:
    """What `scout explain CODE` prints."""
    first, _, rest = (by_code(code).__doc__ or "").partition("\n")
    return f"{first}\n{textwrap.dedent(rest)}".strip()
