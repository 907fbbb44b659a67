"""Refusals that do not depend on the target: credentials, keys, sizes, limits, the machine."""

from typing import ClassVar

from scout.base.refusal import Diagnostic, Family
from scout.base.time import Time


def _list_needs(needs: tuple[str, ...]) -> str:
    return f"; required: {' or '.join(needs)}" if needs else ""


class Unauthenticated(Diagnostic, tag="unauthenticated"):
    """The request carries no credential, or one that Scout does not accept.

    It is missing, unknown, expired or revoked; `needs` lists what is accepted. The operator's
    token is the text of `$SCOUT_HOME/token`, sent as `Authorization: Bearer …`.
    """

    family: ClassVar[Family] = Family.CREDENTIAL
    status: ClassVar[int | None] = 401

    reason: str
    needs: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        return f"not authenticated: {self.reason}{_list_needs(self.needs)}"


class Forbidden(Diagnostic, tag="forbidden"):
    """Your credential is valid but does not allow this.

    `needs` names the grant or kind of token required, `reason` why this credential is not enough. The
    operator can add the grant with the command in the remedies.
    """

    family: ClassVar[Family] = Family.CREDENTIAL

    action: str
    subject: str
    needs: tuple[str, ...] = ()
    reason: str = ""

    @property
    def message(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        return f"{self.action} on {self.subject} is not allowed{why}{_list_needs(self.needs)}"


class NotOwner(Diagnostic, tag="not_owner"):
    """Only the owner of this record, or a caller who controls the owner, may do this.

    `owner_id` is the owner. Ask that agent, have the work handed over to you, or act as
    the operator.
    """

    family: ClassVar[Family] = Family.CREDENTIAL

    noun: str
    id: str
    owner_id: str
    needs: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        return f"{self.noun} {self.id} belongs to {self.owner_id}{_list_needs(self.needs)}"


# The message when `only` names the only open record of a noun, and none is open.
_NONE_OPEN = {
    "allowance": "there is no active allowance",
    "ask": "you have no open ask",
    "attention item": "nothing needs you",
    "flight": "you have no open flight",
    "question": "no question waits for your answer",
    "reservation": "there is no active reservation",
    "schedule": "there is no schedule",
    "session": "there is no live session",
    "work item": "there is no open work item",
}
# The same where an agent's open record is meant.
_NONE_OF_AGENT = {
    "attention item": "nothing from {} needs you",
    "flight": "{} has no open flight",
    "session": "{} has no live session",
}


class NotFound(Diagnostic, tag="not_found"):
    """There is no such record, or you may not see it.

    Ids are never reused, so a mistyped id never matches another record. Candidates are near matches
    where names are searched.
    """

    family: ClassVar[Family] = Family.UNKNOWN

    noun: str
    id: str
    needs: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        near = ", ".join(candidate.address for candidate in self.candidates)
        nearest = f"; nearest: {near}" if near else ""
        return f"{self._describe_missing()}{nearest}{_list_needs(self.needs)}"

    def _describe_missing(self) -> str:
        """Return the missing record in words, also where it was named by a word or by its agent."""
        if self.id == "only":
            return _NONE_OPEN.get(self.noun, f"there is no {self.noun}")
        if self.id in ("last", "latest"):
            return f"there is no {self.noun} yet"
        if self.id.startswith("@") and self.noun in _NONE_OF_AGENT:
            return _NONE_OF_AGENT[self.noun].format(self.id)
        return f"no {self.noun} '{self.id}'"


class RetiredUser(Diagnostic, tag="retired_user"):
    """The user is retired.

    Their agents are retired too and their chat accounts are unlinked. Revive the user to use the name again.
    """

    family: ClassVar[Family] = Family.UNKNOWN
    status: ClassVar[int | None] = 410

    user: str
    reason: str = ""

    @property
    def message(self) -> str:
        why = f" ({self.reason})" if self.reason else ""
        return f"the user {self.user} is retired{why}"


class KeyReused(Diagnostic, tag="key_reused"):
    """The idempotency key was already used for a different request.

    The same key with the same body returns the first receipt. Use a new key for a new request;
    keys are kept for 24 hours per sender and operation.
    """

    family: ClassVar[Family] = Family.CONFLICT

    key: str
    operation: str

    @property
    def message(self) -> str:
        return f"the key '{self.key}' was already used for another {self.operation}"


class TooLarge(Diagnostic, tag="too_large"):
    """Part of the request is larger than Scout accepts.

    `size` and `limit` are in bytes. Put long text into a file and attach it: attachments are stored
    once, by their hash, and may be larger than a body.

    On the command line: scout send @arc --attach long.txt 'See the attachment.'
    Over HTTP: POST /v1/attachments with `name` and `data` (base64), then pass the returned `sha256`
    in `attachments` of the message. From a tool: write the file and use the command line.
    """

    status: ClassVar[int | None] = 413

    what: str
    size: int
    limit: int

    @property
    def message(self) -> str:
        return f"the {self.what} has {self.size} bytes; the maximum is {self.limit}"


class RateLimited(Diagnostic, tag="rate_limited"):
    """You exceeded a rate limit, or have too many of these open.

    Retry after `retryAfter` seconds. The limits protect the other agents on this machine; the
    operator can change them under `limits` in the settings.
    """

    family: ClassVar[Family] = Family.LIMIT

    what: str
    limit: int
    retry_after: float = 0

    @property
    def message(self) -> str:
        later = f"; retry in {self.retry_after:g} s" if self.retry_after else ""
        return f"too many {self.what}: the limit is {self.limit}{later}"


class Busy(Diagnostic, tag="busy"):
    """Scout cannot accept the request right now. Nothing was stored.

    It is starting, stopping, or its write queue is full. Retry with the
    same idempotency key after `retryAfter` seconds.
    """

    family: ClassVar[Family] = Family.LIMIT
    status: ClassVar[int | None] = 503

    reason: str
    retry_after: float = 1

    @property
    def message(self) -> str:
        return f"busy ({self.reason}): retry in {self.retry_after:g} s"


class NoSuchMoment(Diagnostic, tag="no_such_moment"):
    """Scout has no history at this moment: it is before the first event, or in the future.

    `first` and `last` are the moments of the first and the last event. A time, `10 minutes ago` and the
    sequence number of an event between them work.
    """

    family: ClassVar[Family] = Family.UNKNOWN

    moment: str
    reason: str
    first: Time | None = None
    last: Time | None = None

    @property
    def message(self) -> str:
        return f"there is no history at {self.moment:.60}: {self.reason}"


class HistoryBehind(Diagnostic, tag="history_behind"):
    """The history does not reach this moment yet. It is built from the log, once, after an upgrade.

    `indexed` of `events` events are done, up to the time `until`. Earlier moments can be shown now; `scout
    status` shows the progress.
    """

    family: ClassVar[Family] = Family.LIMIT
    status: ClassVar[int | None] = 503

    moment: str
    indexed: int
    events: int
    until: Time | None = None
    retry_after: float = 5

    @property
    def message(self) -> str:
        up_to = f", up to {self.until}" if self.until is not None else ""
        done = f"{self.indexed} of {_count_events(self.events)} are indexed{up_to}"
        return f"the history does not reach {self.moment:.60} yet: {done}"


class HistoryPurged(Diagnostic, tag="history_purged"):
    """This part of the log was purged. Its events were deleted for good, on somebody's order.

    `first_left` is the first event that can still be read. The records themselves, such as messages, flights
    and work, are still there; only the steps that led to them are gone.
    """

    family: ClassVar[Family] = Family.UNKNOWN
    status: ClassVar[int | None] = 410

    what: str
    first_left: int
    purged_at: Time
    purged_by: str

    @property
    def message(self) -> str:
        when = f"on {self.purged_at} by {self.purged_by}"
        return f"{self.what:.80} was purged {when}; the first event that is left is {self.first_left}"


class PortInUse(Diagnostic, tag="port_in_use"):
    """Another program is using Scout's port.

    Stop that program, or give Scout another port: `SCOUT_PORT`, or `port` in the settings. If it is
    an older Scout, `scout down` stops it.
    """

    family: ClassVar[Family] = Family.FAILURE
    status: ClassVar[int | None] = 409

    port: int
    pid: int | None = None
    process: str = ""

    @property
    def message(self) -> str:
        who = self.process or "another program"
        pid = f" (pid {self.pid})" if self.pid is not None else ""
        return f"port {self.port} is used by {who}{pid}"


class StoreDamaged(Diagnostic, tag="store_damaged"):
    """The file that holds Scout's data is damaged. Nothing was changed or deleted.

    `scout verify` shows what can still be read and what is lost. `scout restore` puts a healthy copy in the
    place of the damaged file, which is kept beside it. A daemon does not start on a damaged file.
    """

    family: ClassVar[Family] = Family.FAILURE
    status: ClassVar[int | None] = 500

    path: str
    problems: tuple[str, ...] = ()
    readable: int = 0
    lost: int = 0

    @property
    def message(self) -> str:
        what = "; ".join(self.problems[:3]) or "it cannot be read"
        return (
            f"{self.path} is damaged: {what}. {_count_events(self.readable)} can be read, "
            f"{_count_events(self.lost)} known to be lost; nothing was changed or deleted"
        )


class StoreFull(Diagnostic, tag="store_full"):
    """The disk that holds Scout's data is full. Reads still work; writes fail.

    Nothing that was acknowledged is lost. Free space on that disk, or move the data folder
    (`SCOUT_HOME`); writing resumes by itself.
    """

    family: ClassVar[Family] = Family.FAILURE
    status: ClassVar[int | None] = 507

    path: str
    free: int = 0

    @property
    def message(self) -> str:
        return f"no space to write {self.path} ({self.free} bytes free)"


def _count_events(count: int) -> str:
    return "1 event" if count == 1 else f"{count} events"
