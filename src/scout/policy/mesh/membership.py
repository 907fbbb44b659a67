"""Who belongs to a mesh: which invitation admits, under which name, and whose word about an agent counts."""

from collections.abc import Callable
from enum import StrEnum
from itertools import count

from scout.base.record import Record
from scout.base.refusal import PLACEHOLDER, Candidate, Refused, Remedy
from scout.base.time import Time
from scout.identity.spelling import name_node
from scout.model.mesh.entry import AgentEntry
from scout.model.mesh.join import JoinRequest
from scout.model.mesh.member import Invitation, InvitationState, MemberEntry, MemberRelation, NodeHeartbeat
from scout.model.node import Node, NodeState
from scout.model.problems.mesh import InvitationInvalid
from scout.model.problems.target import NameTaken


def check_invitation(invitation: Invitation | None, now: Time, *, proved: bool) -> Invitation:
    """Return the invitation if it admits somebody now; `proved`: the joining node knows its secret."""
    if invitation is None or not proved:
        raise Refused(InvitationInvalid(problem="its secret is not right"))
    if invitation.state is InvitationState.OPEN and now >= invitation.expires_at:
        raise Refused(InvitationInvalid(problem=f"it expired at {invitation.expires_at}"))
    if invitation.state is not InvitationState.OPEN:
        raise Refused(InvitationInvalid(problem=f"it is {invitation.state}"))
    return invitation


def find_free_name(name: str, is_taken: Callable[[str], bool]) -> str:
    """Return the name, or the first free one with a number."""
    if not is_taken(name):
        return name
    return next(one for one in (f"{name}-{number}" for number in count(2)) if not is_taken(one))


def choose_node_name(wished: str, is_taken: Callable[[str], bool]) -> str:
    """Return the folded name of a new node; refuse a taken one with one that is free."""
    name = name_node(wished)
    if is_taken(name):
        free = find_free_name(name, is_taken)
        again = Remedy(operation="mesh.join", parameters={"line": PLACEHOLDER, "name": free})
        raise Refused(
            NameTaken(
                noun="node",
                name=name,
                holder_id="",
                holder_state="a member of the mesh",
                candidates=(Candidate(address=free),),
                remedies=(again,),
            )
        )
    return name


def build_member(
    request: JoinRequest, name: str, relation: MemberRelation, founder_key: str, now: Time
) -> MemberEntry:
    """Return the entry of an admitted node; a guest is its own operator."""
    return MemberEntry(
        node_id=request.node_id,
        name=name,
        public_key=request.public_key,
        login_key=request.login_key,
        login_proof=request.login_proof,
        relation=relation,
        operator_key=founder_key if relation is MemberRelation.OWN else request.public_key,
        admitted_at=now,
        updated_at=now,
    )


class EntryClaim(Record):
    """What is claimed about an agent: the key it was published under, and who is known to have its id.

    `held_here`: an agent of this node has the id. `held_by`: the node that listed it first. `came_from`: the
    node from which the agent of this node came.
    """

    node_id: str
    agent_id: str
    held_here: bool
    held_by: str | None
    came_from: str | None = None


class EntryFate(StrEnum):
    """Store the entry; ignore it, because another node has the agent by now; give the agent to that node.

    Keep it: it counts as soon as the node that lists the agent hands it over. Refuse it: it is false.
    """

    STORE = "store"
    IGNORE = "ignore"
    HAND_OVER = "hand over"
    KEEP = "keep"
    REFUSE = "refuse"


class EntryDecision(Record):
    """What happens with an entry, and why it is kept or refused."""

    fate: EntryFate
    problem: str = ""


def decide_entry(entry: AgentEntry, claim: EntryClaim) -> EntryDecision:
    """Decide about an entry whose signature is right. Only the node that lists an agent hands it over."""
    if entry.node_id != claim.node_id:
        return _refuse(f"it speaks for the node {entry.node_id}")
    if entry.id != claim.agent_id:
        return _refuse(f"it names the agent {entry.id} under the key of {claim.agent_id}")
    if entry.moved_to is not None:
        handed = claim.held_by == claim.node_id and not claim.held_here
        return EntryDecision(fate=EntryFate.HAND_OVER if handed else EntryFate.IGNORE)
    if claim.held_here and claim.came_from == claim.node_id:
        return EntryDecision(fate=EntryFate.IGNORE)
    if claim.held_here:
        return _refuse(f"{entry.id} is an agent of this node")
    if claim.held_by not in (None, claim.node_id):
        problem = f"{entry.id} is an agent of the node {claim.held_by}"
        return EntryDecision(fate=EntryFate.KEEP, problem=problem)
    return EntryDecision(fate=EntryFate.STORE)


def _refuse(problem: str) -> EntryDecision:
    return EntryDecision(fate=EntryFate.REFUSE, problem=problem)


def is_member(node: Node | None) -> bool:
    """Whether a node's word counts: it was admitted and not removed."""
    return node is not None and node.member is not None and node.state is not NodeState.REMOVED


def has_wish(beat: NodeHeartbeat, member: MemberEntry) -> bool:
    """Whether a heartbeat asks the founder for another entry: another name, another key, or to leave."""
    rotates = beat.login_key is not None and beat.login_key != member.login_key
    return rotates or beat.leaving or beat.name != member.name


_OUT_OF_DATE = 300.0  # seconds without a connection


def is_out_of_date(connected: bool, since: Time | None, now: Time) -> bool:
    """Whether a node has not heard from the mesh for five minutes: it may trust a node that was removed."""
    return not connected and since is not None and now.since(since) >= _OUT_OF_DATE
