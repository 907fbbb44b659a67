"""One-time codes: a chat account is linked by what is typed in its chat, and by nothing else."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from scout.broker.people import accounts, links
from scout.broker.people.links import ChatAccount, Linked, NotLinked
from scout.broker.routing import users
from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Agent
from scout.model.attention import Attention, AttentionKind
from scout.model.people.user import ConnectorKey, UserKind
from scout.policy.limits import Limits
from scout.store.ledger import LAST
from tests.broker.rig import Rig, as_test, event_name, expect_refusal, read_log, run_scene

T = TypeVar("T")
PHONE = ChatAccount(connector="telegram", external_id="77", chat_id="77", label="Ann L.")
ROOM = ChatAccount(connector="telegram", external_id="77", chat_id="-100", label="Home", group=True)
WRONG = "scout-0000-0000"


async def system(rig: Rig, work: Callable[[Transaction], T]) -> T:
    return await rig.broker.as_system(work)


async def new_code(rig: Rig, name: str, kind: UserKind = UserKind.PERSON, connector: str = "telegram") -> str:
    """A code of a user, who is created first."""

    def issue(tx: Transaction) -> str:
        user = users.find_user(tx, name) or users.create_user(tx, name, kind=kind)
        return links.issue_code(tx, user, connector)[1]

    return await system(rig, issue)


async def redeem(rig: Rig, text: str, account: ChatAccount = PHONE) -> Linked | NotLinked:
    return await system(rig, lambda tx: links.redeem(tx, account, text))


async def link(rig: Rig, name: str, account: ChatAccount = PHONE, kind: UserKind = UserKind.PERSON) -> Linked:
    done = await redeem(rig, await new_code(rig, name, kind, account.connector), account)
    assert isinstance(done, Linked), done
    return done


@pytest.mark.rows("R9.keys-2", "R9.keys-7")
@as_test
async def test_a_code_that_is_typed_links_the_account_and_creates_the_agent(rig: Rig) -> None:
    done = await link(rig, "ann")
    assert (done.user.name, done.key.user, done.agent) == ("ann", "ann", "/ann/telegram")
    assert (done.key.external_id, done.key.chat_id, done.key.label) == ("77", "77", "Ann L.")
    agent = await system(rig, lambda tx: tx.ledger.one(Agent, "agent_at_path", path=done.agent))
    assert agent is not None
    assert (agent.kind, agent.model_role, agent.is_person) == ("connector", "user", False)
    families = [event_name(one) for one in await read_log(rig, "collab.key")]
    assert families == ["key.code_issued", "key.linked", "key.code_redeemed"]


@as_test
async def test_no_code_stands_in_the_log_or_the_tables(rig: Rig) -> None:
    code = await new_code(rig, "ann")
    await redeem(rig, code)
    for file in rig.home.glob("scout.db*"):
        assert code.encode() not in file.read_bytes()


@pytest.mark.rows("R9.keys-3", "R9.keys-4")
@pytest.mark.parametrize("manner", ["used", "replaced", "late", "wrong", "another connector", "retired"])
def test_a_code_that_does_not_count_is_refused_in_the_same_words(tmp_path: Path, manner: str) -> None:
    async def scene(rig: Rig) -> str:
        code = await new_code(rig, "ann")
        account = PHONE
        match manner:
            case "used":
                await redeem(rig, code, ChatAccount(connector="telegram", external_id="1", chat_id="1"))
            case "replaced":
                await new_code(rig, "ann")
            case "late":
                rig.clock.ahead += 901
            case "wrong":
                code = WRONG
            case "another connector":
                account = ChatAccount(connector="matrix", external_id="77", chat_id="77")
            case _:
                await system(rig, lambda tx: links.revoke_codes(tx, "ann", "retired"))
        done = await redeem(rig, code, account)
        assert isinstance(done, NotLinked), done
        assert await system(rig, lambda tx: accounts.find_key(tx, "telegram", "77")) is None
        return done.reason

    assert run_scene(scene, tmp_path) == "This code is not valid. Ask for a new one."


@as_test
async def test_an_ordinary_text_is_not_counted_as_a_wrong_code(rig: Rig) -> None:
    for _ in range(10):
        await redeem(rig, "hello")
    assert isinstance(await redeem(rig, await new_code(rig, "ann")), Linked)


@pytest.mark.rows("R9.keys-4")
def test_a_chat_has_few_attempts_and_so_have_all_together(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        code = await new_code(rig, "ann")
        for _ in range(2):
            assert isinstance(await redeem(rig, WRONG), NotLinked)
        blocked = await redeem(rig, code)
        assert isinstance(blocked, NotLinked)
        assert "Too many" in blocked.reason
        other = ChatAccount(connector="telegram", external_id="5", chat_id="5")
        assert isinstance(await redeem(rig, WRONG, other), NotLinked)
        third = ChatAccount(connector="telegram", external_id="6", chat_id="6")
        stopped = await redeem(rig, code, third)
        assert isinstance(stopped, NotLinked)
        assert "Too many" in stopped.reason
        elsewhere = ChatAccount(connector="matrix", external_id="@a:x", chat_id="!r:x")
        assert isinstance(await link(rig, "ann", elsewhere), Linked)
        rig.clock.ahead += 901
        assert isinstance(await redeem(rig, await new_code(rig, "ann")), Linked)

    run_scene(scene, tmp_path, limits=Limits(link_attempts=2, link_attempts_total=3))


@pytest.mark.rows("R9.keys-5")
@as_test
async def test_an_account_is_taken_over_by_a_code_and_its_owner_is_told(rig: Rig) -> None:
    first = await link(rig, "ann")
    second = await link(rig, "bob")
    assert second.taken_from == "ann"

    def look(tx: Transaction) -> tuple[list[ConnectorKey], list[Attention]]:
        keys = tx.ledger.many(ConnectorKey, "keys_of_user", user="ann", before=LAST, limit=9)
        return keys, tx.ledger.many(Attention, "attention_open", user="ann", before=LAST, limit=9)

    keys, told = await system(rig, look)
    assert [(one.id, one.state) for one in keys] == [(first.key.id, "freed")]
    assert [(one.kind, one.title) for one in told] == [
        (AttentionKind.NOTIFY, "your telegram account Ann L. is now linked to another user")
    ]
    owner = await system(rig, lambda tx: accounts.find_key(tx, "telegram", "77"))
    assert owner is not None
    assert owner.user == "bob"


@as_test
async def test_linking_again_keeps_the_key(rig: Rig) -> None:
    first = await link(rig, "ann")
    again = await link(
        rig, "ann", ChatAccount(connector="telegram", external_id="77", chat_id="78", label="A")
    )
    assert (again.key.id, again.key.chat_id, again.key.label) == (first.key.id, "78", "A")
    assert again.taken_from is None


@as_test
async def test_a_person_may_have_several_accounts_of_a_platform(rig: Rig) -> None:
    await link(rig, "ann")
    await link(rig, "ann", ChatAccount(connector="telegram", external_id="5", chat_id="5"))
    keys = await system(rig, lambda tx: accounts.list_keys(tx, "ann"))
    assert {one.external_id for one in keys} == {"77", "5"}


@pytest.mark.rows("R9.keys-8")
@as_test
async def test_a_group_is_linked_by_its_chat(rig: Rig) -> None:
    code = await new_code(rig, "club", UserKind.GROUP)
    private = await redeem(rig, code)
    assert isinstance(private, NotLinked)
    assert "Type it in the group" in private.reason
    done = await redeem(rig, code, ROOM)
    assert isinstance(done, Linked)
    assert (done.key.external_id, done.key.chat_id, done.agent) == ("-100", "-100", "/club/telegram")


@as_test
async def test_a_persons_code_that_a_group_has_read_is_withdrawn(rig: Rig) -> None:
    code = await new_code(rig, "ann")
    shown = await redeem(rig, code, ROOM)
    assert isinstance(shown, NotLinked)
    assert "others have seen it" in shown.reason
    assert isinstance(await redeem(rig, code), NotLinked)


@as_test
async def test_last_use_is_stored_without_an_event(rig: Rig) -> None:
    done = await link(rig, "ann")
    rig.clock.ahead += 60
    before = len(await read_log(rig))
    used = await system(rig, lambda tx: accounts.mark_used(tx, done.key))
    assert len(await read_log(rig)) == before
    found = await system(rig, lambda tx: accounts.find_key(tx, "telegram", "77"))
    assert found == used


@as_test
async def test_an_unknown_connector_is_refused_with_the_nearest_name(rig: Rig) -> None:
    problem = await expect_refusal(new_code(rig, "ann", connector="telegarm"))
    assert [one.address for one in problem.candidates] == ["telegram"]
    direct = await expect_refusal(new_code(rig, "ann", connector="direct"))
    assert "needs no link" in direct.message
