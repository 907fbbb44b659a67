"""Texts to try on the parsers: random ones, and ones that are almost names."""

from hypothesis import strategies as st

from scout.identity.address import Address

# Every character there is: unassigned, private, control, lone surrogates, right-to-left.
ANY_CHARACTER = st.characters(exclude_categories=())

_WORDS = [
    *["arc", "Main", "a", "5", "gpt-5", "local", "日本", "é", "-", "--", "_", "~", "\u0301"],
    *["node:", "model:", "branch:", "persona:", "foo:", "HOST:", ":", '"', "'", "@", "#", "?", "."],
    *["session:", "project:", "channel:", "alias:", "ses_01", "agt_", "root", "operator", "self", "parent"],
    *["/", "..", "./", "sub", "search", "memory", "0", "01", "agent", "system", "u1", "telegram", "main"],
    *[">>", ">", "{", "}", '{"definitionId":', "[", "(", "`", "```", "~~~", "\n", " ", "\t", ",", "!"],
    *["\u200b", "\u202e", "\x00", "\ud800", "ſ", "K", "\u00a0", "x" * 60, "y" * 1100, ".lock", "\\"],
]
NEARLY_NAMES = st.lists(st.sampled_from(_WORDS), max_size=9).map("".join)

TEXTS = NEARLY_NAMES | st.text(ANY_CHARACTER, max_size=40)

OTHER_VALUES = (
    st.binary(max_size=20) | st.none() | st.integers() | st.floats() | st.lists(st.text(max_size=2))
)

SEGMENTS = st.lists(st.text("abcxyz0159", min_size=1, max_size=4), min_size=1, max_size=3).map("-".join)

ADDRESSES = st.builds(
    Address,
    definition_id=SEGMENTS,
    workspace_qualifier=st.none() | SEGMENTS,
    profile=st.none() | SEGMENTS,
    harness=st.none() | SEGMENTS,
    model=st.none() | SEGMENTS,
    node=st.none() | SEGMENTS,
)

ROOT_BRANCHES = st.sampled_from(["main", "release-1.2", "feature/x", "v1.2.3", "a"])
