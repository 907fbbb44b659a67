"""Laws of names that hold for every text."""

import itertools
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from scout.base.codec import decode, encode, to_plain
from scout.base.refusal import Diagnostic, Refused
from scout.identity.address import QUALIFIERS, Address, fold, fold_segment, is_folded
from scout.identity.branch import BirthBranch, check_ref, check_slug
from scout.identity.code_span import CodeSpans
from scout.identity.grammar import parse_dimensions, parse_handle, try_parse_handle
from scout.identity.lexer import lex, read_bare_branch
from scout.identity.mention import find_mentions
from scout.identity.model_word import VENDORS, list_model_words, matches_model
from scout.identity.name import BranchName, HandleName
from scout.identity.path import PATH_WORDS, AgentPath, Kind
from scout.identity.problem import MalformedAddress
from scout.identity.reserved import RESERVED
from scout.identity.route import find_route
from scout.identity.spelling import name_directory_agent, name_node, name_registered
from tests.identity.texts import (
    ADDRESSES,
    ANY_CHARACTER,
    NEARLY_NAMES,
    OTHER_VALUES,
    ROOT_BRANCHES,
    SEGMENTS,
    TEXTS,
)


def check_refusal(diagnostic: Diagnostic, text: object) -> None:
    """What every refusal of a name owes its reader."""
    assert diagnostic.code
    assert diagnostic.message
    assert encode(diagnostic)
    assert diagnostic.remedies
    for remedy in diagnostic.remedies:
        assert remedy.why
        if remedy.operation == "parse":
            for reading in remedy.parameters["texts"]:
                lex(reading)  # a reading that is itself refused would be no remedy
    if isinstance(diagnostic, MalformedAddress):
        assert diagnostic.problem
        assert diagnostic.expected
        longest = len(text) if isinstance(text, str | bytes) else 0
        assert 0 <= diagnostic.position <= longest


def try_call(function: Callable[[object], object], value: object) -> object:
    """What the function makes of the value; a refusal is checked and gives None."""
    try:
        return function(value)
    except Refused as refusal:
        check_refusal(refusal.diagnostic, value)
        return None


# ------------------------------------------------------------------------------------- round trips


@pytest.mark.rows("R1.3-45", "R1.3-46", "R1.2-3")
@given(ADDRESSES)
def test_parsing_what_was_printed_gives_the_same_address(address: Address) -> None:
    assert parse_handle(address.canonical) == address
    assert parse_handle(address.canonical[1:]) == address
    assert parse_handle(address.canonical).canonical == address.canonical
    assert decode(encode(address), Address) == address


@pytest.mark.rows("R1.3-45", "R1.3-46", "R1.2-4")
@pytest.mark.parametrize("size", range(6))
def test_every_subset_of_dimensions_round_trips(size: int) -> None:
    values = {"definition_id": "5", **dict.fromkeys(QUALIFIERS, "5"), "node": "local"}
    for names in itertools.combinations(QUALIFIERS, size):
        address = Address(**{name: values[name] for name in ("definition_id", *names)})
        assert parse_handle(address.canonical) == address
        assert address.canonical.count(".") == size


@pytest.mark.rows("R1.2-20")
@given(ADDRESSES, st.randoms(use_true_random=False))
def test_the_order_of_typed_qualifiers_does_not_matter(address: Address, chance: Random) -> None:
    keys = {"workspace_qualifier": "branch", "profile": "persona", "harness": "runtime", "model": "model"}
    parts = [
        f"{keys.get(name, 'host')}:{getattr(address, name)}" for name in QUALIFIERS if getattr(address, name)
    ]
    chance.shuffle(parts)
    assert parse_handle(".".join([address.definition_id, *parts])) == address


@pytest.mark.rows("R1.2-15")
@given(ADDRESSES)
def test_structured_input_round_trips(address: Address) -> None:
    assert parse_dimensions(to_plain(address)) == address
    name = lex(encode(address))
    assert isinstance(name, HandleName)
    assert name.address == address


@pytest.mark.rows("R1.3-46")
@given(TEXTS, st.none() | ROOT_BRANCHES)
@example("a㎓" * 100, None)
@example("@" + "a" * 1015 + "#b", None)
@example("@" + "㎓" * 341, None)
def test_canonical_text_is_read_as_the_same_name(text: str, root_branch: str | None) -> None:
    try:
        name = lex(text, root_branch)
    except Refused:
        return
    again = lex(name.canonical, root_branch)
    assert type(again) is type(name)
    assert again.canonical == name.canonical
    if isinstance(name, HandleName):
        assert isinstance(again, HandleName)
        assert again.address == name.address
        assert name.canonical == "@" + name.canonical[1:].lower()
    else:
        assert again == name


# ------------------------------------------------------------------------------- nothing ever crashes


@given(TEXTS | OTHER_VALUES, st.none() | ROOT_BRANCHES)
def test_the_lexer_answers_or_refuses_with_a_remedy(value: object, root_branch: str | None) -> None:
    try_call(lambda text: lex(text, root_branch), value)


@given(TEXTS | OTHER_VALUES)
def test_the_grammar_answers_or_refuses_with_a_remedy(value: object) -> None:
    found = try_call(parse_handle, value)
    if isinstance(value, str):
        assert try_parse_handle(value) == found


@given(NEARLY_NAMES)
def test_handles_that_are_nearly_right(text: str) -> None:
    try_call(parse_handle, f"@arc{text}")
    try_call(lex, f"@arc.{text}")
    try_call(lex, f"@arc#{text}")
    try_call(lex, f"@arc?{text}")


@given(NEARLY_NAMES)
def test_explicit_kinds_that_are_nearly_right(text: str) -> None:
    for kind in ("session", "project", "channel", "alias", "branch", ">> ", "agt_", "../", "./"):
        try_call(lex, f"{kind}:{text}" if kind.isalpha() else f"{kind}{text}")


@given(TEXTS | OTHER_VALUES)
def test_paths_answer_or_refuse_with_a_remedy(value: object) -> None:
    try_call(AgentPath.parse, value)
    if isinstance(value, str):
        try_call(AgentPath.parse, f"/u1/agent/{value}")
        try_call(AgentPath.parse, f"/u1/telegram/{value}")


@given(TEXTS | OTHER_VALUES, ROOT_BRANCHES)
def test_branches_answer_or_refuse_with_a_remedy(value: object, root: str) -> None:
    try_call(lambda text: BirthBranch.parse(text, root), value)
    try_call(BirthBranch.parse("main", "main").child, value)
    try_call(check_slug, value)
    if isinstance(value, str):
        try_call(lambda text: BirthBranch.parse(text, text), value)
        try_call(lambda text: check_ref(str(text)), value)


@given(TEXTS | OTHER_VALUES)
def test_segments_and_dimensions_answer_or_refuse_with_a_remedy(value: object) -> None:
    try_call(fold_segment, value)
    try_call(lambda text: parse_dimensions({"definitionId": text}), value)
    if isinstance(value, str):
        with_key = {"definitionId": "a", value: "x"}
        try_call(lambda _: parse_dimensions(with_key), value)


@given(TEXTS, TEXTS)
def test_new_names_are_derived_or_refused_with_a_remedy(one: str, other: str) -> None:
    for function in (
        lambda: name_registered(one, other),
        lambda: name_registered("u1", one, other),
        lambda: name_directory_agent(one, other, None, lambda name: False),
        lambda: name_directory_agent(one, other, other, lambda name: True),
        lambda: name_node(one),
    ):
        try:
            function()
        except Refused as refusal:
            check_refusal(refusal.diagnostic, "x" * 5000)


@given(st.lists(NEARLY_NAMES | st.text(ANY_CHARACTER, max_size=5), max_size=8).map(" ".join) | OTHER_VALUES)
def test_mentions_are_found_or_the_value_is_refused(body: object) -> None:
    try_call(find_mentions, body)
    if not isinstance(body, str):
        return
    found = find_mentions(body)
    mentions = [*([found.leading] if found.leading else []), *found.soft]
    assert [one.position for one in mentions] == sorted({one.position for one in mentions})
    for one in mentions:
        assert one.text.startswith("@")
        assert body.startswith(one.text, one.position)
        assert (one.address is None) != (one.problem is None)
        assert body[one.position - 1 : one.position] not in ("a", ".", "@", "5")
    for one in found.soft:
        assert one.address == parse_handle(one.text)
    if found.leading:
        assert not body[: found.leading.position].strip()
        if found.leading.problem:
            check_refusal(found.leading.problem, found.leading.text)


@given(st.lists(NEARLY_NAMES | st.just(">>"), max_size=6).map(" ".join) | TEXTS | OTHER_VALUES)
def test_routes_are_found_or_refused_with_a_remedy(value: object) -> None:
    try_call(find_route, value)


@given(st.text(st.sampled_from("`~ab \n- 1."), max_size=60))
def test_code_spans_are_in_order_and_apart(text: str) -> None:
    spans = CodeSpans(text)._spans
    assert all(start < end for start, end in spans)
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(spans))


@given(TEXTS)
def test_a_bare_branch_is_read_as_one_or_refused(text: str) -> None:
    if read_bare_branch(text) is None:
        return
    try:
        assert isinstance(lex(text, "main"), BranchName)
    except Refused as refusal:
        check_refusal(refusal.diagnostic, text)


@pytest.mark.parametrize("size", [1024, 1025, 10_000, 100_000])
@pytest.mark.parametrize(
    "unit", ["a", "@", ".", "/", '"', ">>", "é", "\u05d0", "\u202e", "\x00", "{", "a.", ":"]
)
def test_long_texts(unit: str, size: int) -> None:
    text = (unit * size)[:size]
    for function in (lex, parse_handle, AgentPath.parse, fold_segment, check_slug, find_mentions, find_route):
        try_call(function, text)
    try_call(lambda value: BirthBranch.parse(value, "main"), text)


# ----------------------------------------------------------------------------------------- folding


@given(TEXTS)
def test_folding_is_idempotent(text: str) -> None:
    folded = fold(text)
    assert fold(folded) == folded
    assert folded == "" or is_folded(folded)
    assert is_folded(text) == (text != "" and folded == text)


@given(TEXTS, TEXTS)
def test_folding_a_text_folds_its_parts(one: str, other: str) -> None:
    parts = [part for part in (fold(one), fold(other)) if part]
    assert fold(f"{one} {other}") == "-".join(parts)


# ------------------------------------------------------------------------------------ paths, branches

_NAMES = SEGMENTS.filter(lambda name: name not in PATH_WORDS)
_ROOTS = st.one_of(
    st.builds(AgentPath.root, _NAMES, _NAMES),
    st.builds(AgentPath.root, _NAMES, st.sampled_from(["agent", "cron", "task", "subuser"]), _NAMES),
    st.builds(AgentPath.root, st.just("system"), _NAMES),
)
_STEPS = st.lists(st.tuples(st.sampled_from(["sub", "search", "memory"]), st.integers(0, 10**6)), max_size=16)


@pytest.mark.rows("R1.4-8", "R1.4-9", "R1.4-10", "R1.4-22", "R1.4-23", "R1.4-24")
@given(_ROOTS, _STEPS)
def test_spawned_paths_round_trip(root: AgentPath, steps: list[tuple[str, int]]) -> None:
    path = root
    for kind, index in steps:
        child = path.memory() if kind == "memory" else getattr(path, kind)(index)
        assert AgentPath.parse(str(child)) == child
        assert (child.kind, child.parent) == (Kind(kind), path)
        assert (child.user, child.connector) == (root.user, None)
        assert path.contains(child)
        assert not child.contains(path)
        path = child
    assert (root.parent, root.kind not in (Kind.SUB, Kind.SEARCH, Kind.MEMORY)) == (None, True)


_SLUGS = SEGMENTS.filter(lambda slug: slug not in RESERVED)


@pytest.mark.rows("R1.5-1", "R1.5-2", "R1.5-11", "R1.5-12")
@given(ROOT_BRANCHES, st.lists(_SLUGS, max_size=5))
def test_children_and_parents_of_branches_round_trip(root: str, slugs: list[str]) -> None:
    branch = BirthBranch.parse(root, root)
    for slug in slugs:
        child = branch.child(slug, cap=5)
        assert child.parent == branch
        assert BirthBranch.parse(child.text, root) == child
        branch = child
    assert branch.slugs == tuple(slugs)
    assert branch.depth == len(slugs)


# ----------------------------------------------------------------------------------------- model words

_MODELS = st.lists(SEGMENTS | st.sampled_from(sorted(VENDORS)), min_size=1, max_size=4).map("-".join)


@pytest.mark.rows("R1.2-44", "R1.2-50")
@given(_MODELS)
def test_vendor_words_match_nothing_but_themselves(model: str) -> None:
    assert matches_model(model, model)
    for vendor in VENDORS:
        assert matches_model(vendor, model) == (vendor == model)


@pytest.mark.rows("R1.2-45", "R1.2-47", "R1.2-48")
@given(_MODELS, st.lists(SEGMENTS | st.sampled_from(sorted(VENDORS)), min_size=1, max_size=3).map("-".join))
def test_an_asked_word_is_the_model_or_a_tail_or_a_word_of_it(model: str, asked: str) -> None:
    words = model.split("-")
    named = [index for index, word in enumerate(words) if word.isalpha() and word not in VENDORS]
    leading = next((index for index, word in enumerate(words) if word not in VENDORS), len(words))
    tails = {
        "-".join(words[index:])
        for index in (0, *named, *range(leading + 1))
        if index <= leading or index in named
    }
    allowed = {model, *(words[index] for index in named), *(tail for tail in tails if tail)}
    allowed -= {tail for tail in allowed if tail != model and set(tail.split("-")) <= VENDORS}
    assert list_model_words(model) == allowed
    assert matches_model(asked, model) == (asked in allowed)
