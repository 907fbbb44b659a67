"""Refusals of a target: unknown, ambiguous, mismatched or unreachable."""

from typing import ClassVar

from scout.base.refusal import Candidate, Diagnostic, Family
from scout.base.time import Time


def _list_candidates(candidates: tuple[Candidate, ...], word: str) -> str:
    return f"; {word} {', '.join(candidate.address for candidate in candidates)}" if candidates else ""


def _describe_last_seen(moment: Time | None) -> str:
    return f"last seen {moment}" if moment is not None else "never seen"


class UnknownTarget(Diagnostic, tag="unknown_target"):
    """No agent that you may see has this address.

    The candidates are the nearest names: typos, prefixes, siblings in other workspaces,
    projects nearby. Use one of them, register the agent, or ask the project by its path:
    `scout ask --project DIR "…"` creates the project's agent if needed.
    """

    family: ClassVar[Family] = Family.UNKNOWN

    address: str
    reason: str = ""

    @property
    def message(self) -> str:
        why = f" ({self.reason})" if self.reason else ""
        return (
            f"no agent has the address '{self.address}'{why}{_list_candidates(self.candidates, 'nearest:')}"
        )


class AmbiguousTarget(Diagnostic, tag="ambiguous_target"):
    """The text matches several agents or records, and no rule prefers one.

    Scout never guesses. Each candidate is listed with its shortest unique address
    (maximum 20; `count` is the total, up to a thousand); `retry` is the most likely one,
    fully qualified.
    """

    family: ClassVar[Family] = Family.AMBIGUOUS

    address: str
    count: int
    retry: str = ""
    noun: str = "agent"

    @property
    def message(self) -> str:
        which = _list_candidates(self.candidates, "choose one:")
        if self.address == "only" and self.noun != "agent":  # no id was given
            return f"you gave no id, and there are {self.count} {self.noun}s{which}"
        return f"'{self.address}' matches {self.count} {self.noun}s{which}"


class AmbiguousEndpoint(Diagnostic, tag="ambiguous_endpoint"):
    """The agent can be reached through several harnesses, and none is preferred.

    It has endpoints of several harnesses, or none and no default. Name the harness (`@talkie#codex`),
    mark one endpoint as preferred, or set a default harness for the agent or the project.
    """

    family: ClassVar[Family] = Family.AMBIGUOUS

    address: str
    harnesses: tuple[str, ...]
    retry: str = ""
    agent_id: str | None = None

    @property
    def message(self) -> str:
        choices = " or ".join(self.harnesses)
        return (
            f"{self.address} can be reached through {choices}; choose one"
            if choices
            else f"{self.address} has no default harness, and no harness is ready"
        )


class AliasBroken(Diagnostic, tag="alias_broken"):
    """The alias no longer has exactly one target, so Scout does not follow it.

    Its target is gone or has become ambiguous, or an agent was registered under the same name later.
    The candidates are the possible targets; repair the alias with one of them, or remove it.
    """

    family: ClassVar[Family] = Family.AMBIGUOUS

    alias: str
    reason: str

    @property
    def message(self) -> str:
        readings = _list_candidates(self.candidates, "readings:")
        return f"the alias '{self.alias}' is broken: {self.reason}{readings}"


class AliasShadows(Diagnostic, tag="alias_shadows"):
    """An alias cannot have the name of a live agent.

    Otherwise the same text would have two meanings. Choose another word
    for the alias, or address the agent by its own name.
    """

    family: ClassVar[Family] = Family.CONFLICT

    alias: str
    definition: str

    @property
    def message(self) -> str:
        return f"'{self.alias}' is already the name of the agent {self.definition}: choose another alias"


class HarnessMismatch(Diagnostic, tag="harness_mismatch"):
    """The agent or session runs in a different harness than you named.

    A harness named in an address is never replaced, and a session belongs to its harness. Leave
    the harness out, use an attached one, or start a session in the harness you want.
    """

    family: ClassVar[Family] = Family.CONFLICT

    address: str
    requested: str
    attached: tuple[str, ...]

    @property
    def message(self) -> str:
        attached = ", ".join(self.attached) or "none"
        return f"{self.address} has no {self.requested} endpoint (attached: {attached})"


class ModelMismatch(Diagnostic, tag="model_mismatch"):
    """The agent or session uses a different model than you named.

    Model words match by name or by a whole word of it, never by vendor (`?sonnet` is a match for
    `claude-sonnet-4-6`). Leave the model out, use an attached one, or start a session with it.
    """

    family: ClassVar[Family] = Family.CONFLICT

    address: str
    requested: str
    attached: tuple[str, ...]

    @property
    def message(self) -> str:
        attached = ", ".join(self.attached) or "none"
        return f"{self.address} has no endpoint with model {self.requested} (attached: {attached})"


class PeerUnreachable(Diagnostic, tag="peer_unreachable"):
    """The agent's node does not answer. The agent itself may be running.

    Different from `target_offline`, where the node answers but the agent does not run. Wait for
    the node, send with `ifUnreachable: queue`, or look at `scout mesh nodes`.
    """

    family: ClassVar[Family] = Family.UNREACHABLE

    node: str
    last_seen: Time | None = None
    attempts: int = 0
    since: Time | None = None

    @property
    def message(self) -> str:
        tried = f" after {self.attempts} attempts" if self.attempts else ""
        since = f" since {self.since}" if self.since else ""
        return f"node {self.node} is unreachable{since}{tried} ({_describe_last_seen(self.last_seen)})"


class RemoteTarget(Diagnostic, tag="remote_target"):
    """The agent lives on another node, and only that node can do this.

    Sessions, settings and programs of an agent belong to its node. Run the command there; you can
    send and ask from here.
    """

    family: ClassVar[Family] = Family.CONFLICT

    address: str
    node: str
    node_id: str = ""

    @property
    def message(self) -> str:
        return f"{self.address} lives on {self.node}: run this command on {self.node}"


class TargetOffline(Diagnostic, tag="target_offline"):
    """The agent's node answers, but the agent cannot be reached now.

    `unreachable` is false when nothing runs: its wake policy or its harness does not allow Scout to
    start it. It is true when its program does not answer; it may
    reconnect. Start it by hand, set its wake policy to `on_demand`, or send with `ifUnreachable: queue`.
    """

    family: ClassVar[Family] = Family.UNREACHABLE

    address: str
    last_seen: Time | None = None
    reason: str = ""
    unreachable: bool = False

    @property
    def message(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        how = "is unreachable" if self.unreachable else "is offline"
        return f"{self.address} {how} ({_describe_last_seen(self.last_seen)}){why}"


class RetiredTarget(Diagnostic, tag="retired_target"):
    """The name belongs to a retired agent.

    Nothing is delivered to a retired name, and no other agent can take it. Revive
    the agent, or address its successor.
    """

    family: ClassVar[Family] = Family.UNKNOWN
    status: ClassVar[int | None] = 410

    address: str
    agent_id: str
    retired_at: Time | None = None

    @property
    def message(self) -> str:
        when = f" at {self.retired_at}" if self.retired_at is not None else ""
        return f"{self.address} was retired{when}: revive it or address another agent"


class ExpiredCard(Diagnostic, tag="expired_card"):
    """The card can no longer be used: it was used up, has expired or was revoked.

    Cards made by agents are single-use by default. Ask its creator for a new one.
    """

    family: ClassVar[Family] = Family.UNKNOWN
    status: ClassVar[int | None] = 410

    card_id: str
    state: str
    uses: int
    max_uses: int | None = None
    reason: str = ""

    @property
    def message(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        return f"card {self.card_id} is {self.state} after {self.uses} uses{why}"


class NameTaken(Diagnostic, tag="name_taken"):
    """Another record already has this name.

    Names are unique among live and retired agents, aliases and channels of one owner. Choose
    another name, add a workspace or profile, or revive the retired holder.
    """

    family: ClassVar[Family] = Family.CONFLICT

    noun: str
    name: str
    holder_id: str = ""
    holder_state: str = ""

    @property
    def message(self) -> str:
        article = "an" if self.holder_state[:1] in "aeiou" else "a"
        state = f"{article} {self.holder_state}" if self.holder_state else "another"
        return f"the name '{self.name}' belongs to {state} {self.noun}"


class NotPublished(Diagnostic, tag="not_published"):
    """The agent is not published, so clients of other systems cannot reach it by A2A.

    The operator publishes an agent with `scout agent publish`. Who may ask it then is decided by grants.
    """

    family: ClassVar[Family] = Family.UNKNOWN

    address: str

    @property
    def message(self) -> str:
        return f"{self.address} is not published"
