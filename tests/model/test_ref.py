import pytest
from hypothesis import given

from scout.base.refusal import BadRequest, Refused
from scout.model.ref import PREFIXES, Ref, RefKind
from tests.model.generate import REFS
from tests.model.samples import ident


@given(REFS)
def test_a_reference_is_a_noun_and_an_id(ref: Ref) -> None:
    assert Ref.parse(str(ref)) == ref
    assert ref == f"{ref.kind}:{ref.id}"
    assert Ref.to(ref.id) == ref


def test_the_prefixes() -> None:
    assert {str(kind): prefix for kind, prefix in PREFIXES.items()} == {
        "agent": "agt",
        "alias": "als",
        "allowance": "alw",
        "archive": "arc",
        "ask": "ask",
        "attention": "att",
        "binding": "bnd",
        "card": "crd",
        "chat_post": "pst",
        "conversation": "cnv",
        "delivery": "dlv",
        "endpoint": "ept",
        "envelope": "env",
        "flight": "flt",
        "grant": "grt",
        "key": "key",
        "message": "msg",
        "node": "nod",
        "question": "qst",
        "reservation": "rsv",
        "invitation": "inv",
        "link_code": "lnk",
        "schedule": "sch",
        "session": "ses",
        "token": "tok",
        "usage": "usg",
        "user": "usr",
        "work": "wrk",
    }
    assert Ref.to(ident("wrk")).kind is RefKind.WORK


@pytest.mark.parametrize(
    "text",
    [
        "",
        "agent",
        "agent:",
        "agent:bob",
        "agent:/u1/agent/arc",
        f"flight:{ident('agt')}",
        f"banana:{ident('agt')}",
        f"agent:{ident('xyz')}",
        ident("agt"),
        f"agent:{ident('agt')}:",
        5,
        None,
    ],
)
def test_anything_else_is_refused(text: object) -> None:
    with pytest.raises(Refused) as refused:
        Ref.parse(text)
    assert isinstance(refused.value.diagnostic, BadRequest)


@pytest.mark.parametrize("text", ["", "bob", ident("xyz")])
def test_an_id_of_no_noun_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="not the id of a record"):
        Ref.to(text)
