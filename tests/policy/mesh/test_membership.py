"""Who belongs to a mesh, under which name, and whose word counts."""

import pytest
from msgspec.structs import replace

from scout.base.ids import derive_id
from scout.base.refusal import Refused
from scout.base.time import Time
from scout.identity.path import AgentPath
from scout.model.mesh.entry import AgentEntry
from scout.model.mesh.join import JoinRequest
from scout.model.mesh.member import (
    Invitation,
    InvitationMove,
    InvitationState,
    MemberRelation,
    NodeHeartbeat,
    move_invitation,
)
from scout.model.node import Node, NodeMove, move_node, rename_node, set_member
from scout.model.remote_agent import find_node_owner
from scout.model.status import AgentStatus
from scout.policy.mesh.membership import (
    EntryClaim,
    EntryFate,
    build_member,
    check_invitation,
    choose_node_name,
    decide_entry,
    find_free_name,
    has_wish,
    is_member,
    is_out_of_date,
)

NOW = Time(1_700_000_000_000_000)
LATER = NOW.plus(60)
KEY, THEIRS = "ab" * 32, "cd" * 32
PATH = AgentPath.parse("/me/agent/arc")
ENTRY = AgentEntry(id="agt_1", node_id="nod_1", path=PATH, status=AgentStatus.ONLINE, updated_at=NOW)
INVITATION = Invitation(
    id=derive_id("inv", "one"),
    created_at=NOW,
    updated_at=NOW,
    hashed="00",
    expires_at=LATER,
    created_by="agt_x",
)
REQUEST = JoinRequest(
    invitation_id=INVITATION.id,
    node_id=derive_id("nod", "mini"),
    name="mini",
    version="1",
    public_key=THEIRS,
    login_key="U1",
    login_proof="p",
)
NODE = Node(id=REQUEST.node_id, created_at=NOW, updated_at=NOW, name="old")


def test_an_invitation_admits_once_in_its_time_and_who_knows_its_secret() -> None:
    assert check_invitation(INVITATION, NOW, proved=True) is INVITATION
    used = move_invitation(INVITATION, InvitationMove.USE, NOW, node_id=REQUEST.node_id)
    assert (used.state, used.node_id) == (InvitationState.USED, REQUEST.node_id)
    for invitation, now, proved, says in (
        (None, NOW, True, "its secret is not right"),
        (INVITATION, NOW, False, "its secret is not right"),
        (INVITATION, LATER, True, "it expired at"),
        (used, NOW, True, "it is used"),
    ):
        with pytest.raises(Refused, match=says):
            check_invitation(invitation, now, proved=proved)


def test_a_taken_name_is_refused_with_a_free_one() -> None:
    assert choose_node_name("Mini.local", lambda _: False) == "mini-local"
    assert find_free_name("mini", lambda _: False) == "mini"
    with pytest.raises(Refused, match="belongs to") as refused:
        choose_node_name("mini", lambda name: name in ("mini", "mini-2"))
    assert refused.value.diagnostic.candidates[0].address == "mini-3"
    assert refused.value.diagnostic.remedies[0].parameters["name"] == "mini-3"


@pytest.mark.parametrize(
    ("relation", "operator", "owner"),
    [(MemberRelation.OWN, KEY, "me"), (MemberRelation.GUEST, THEIRS, f"~{THEIRS[:8]}")],
)
def test_a_guest_is_its_own_operator(relation: MemberRelation, operator: str, owner: str) -> None:
    member = build_member(REQUEST, "mini", relation, KEY, NOW)
    assert (member.operator_key, member.public_key, member.relation) == (operator, THEIRS, relation)
    node = set_member(NODE, member, NOW, operator_key=KEY)
    assert (node.name, node.public_key, node.revision) == ("mini", THEIRS, 2)
    assert find_node_owner(node, "me") == owner
    assert find_node_owner(set_member(NODE, member, NOW, operator_key=None), "me") == "me"


def test_a_removed_node_is_no_member() -> None:
    member = build_member(REQUEST, "mini", MemberRelation.OWN, KEY, NOW)
    node = set_member(NODE, member, NOW, operator_key=KEY)
    assert is_member(node)
    assert not is_member(None)
    assert not is_member(NODE)
    assert not is_member(move_node(node, NodeMove.REMOVE, NOW))
    assert rename_node(node, "studio", NOW).name == "studio"
    lost = move_node(node, NodeMove.LOSE, LATER, last_seen=NOW)
    assert (lost.lost_at, lost.last_seen) == (LATER, NOW)
    assert move_node(lost, NodeMove.RECOVER, LATER).lost_at is None


def test_a_node_speaks_only_for_its_own_agents() -> None:
    entry, claim = ENTRY, EntryClaim(node_id="nod_1", agent_id="agt_1", held_here=False, held_by=None)
    assert decide_entry(entry, claim).fate is EntryFate.STORE
    assert decide_entry(entry, replace(claim, held_by="nod_1")).fate is EntryFate.STORE
    false = [
        (replace(claim, node_id="nod_2"), "speaks for the node nod_1"),
        (replace(claim, agent_id="agt_2"), "under the key of agt_2"),
        (replace(claim, held_here=True), "an agent of this node"),
    ]
    for one, problem in false:
        decision = decide_entry(entry, one)
        assert decision.fate is EntryFate.REFUSE
        assert problem in decision.problem
    other = decide_entry(entry, replace(claim, held_by="nod_3"))
    assert (other.fate, "an agent of the node nod_3" in other.problem) == (EntryFate.KEEP, True)


def test_only_the_node_that_lists_an_agent_hands_it_over() -> None:
    claim = EntryClaim(node_id="nod_1", agent_id="agt_1", held_here=False, held_by="nod_1")
    moved = replace(ENTRY, moved_to="nod_2")
    assert decide_entry(moved, claim).fate is EntryFate.HAND_OVER
    assert decide_entry(moved, replace(claim, held_by="nod_2")).fate is EntryFate.IGNORE
    assert decide_entry(moved, replace(claim, held_by=None)).fate is EntryFate.IGNORE
    assert decide_entry(moved, replace(claim, held_here=True)).fate is EntryFate.IGNORE
    late = replace(claim, held_here=True, held_by=None, came_from="nod_1")
    assert decide_entry(ENTRY, late).fate is EntryFate.IGNORE


def test_a_heartbeat_may_hold_a_wish() -> None:
    member = build_member(REQUEST, "mini", MemberRelation.OWN, KEY, NOW)
    beat = NodeHeartbeat(node_id=member.node_id, name="mini", version="1", login_key="U1")
    assert not has_wish(beat, member)
    assert not has_wish(replace(beat, login_key=None), member)
    for wish in (replace(beat, name="x"), replace(beat, login_key="U2"), replace(beat, leaving=True)):
        assert has_wish(wish, member)


def test_a_node_is_out_of_date_after_five_minutes_without_a_connection() -> None:
    since = Time(1_000_000_000)
    assert not is_out_of_date(connected=False, since=None, now=since)
    assert not is_out_of_date(connected=False, since=since, now=since.plus(299))
    assert is_out_of_date(connected=False, since=since, now=since.plus(300))
    assert not is_out_of_date(connected=True, since=since, now=since.plus(300))
