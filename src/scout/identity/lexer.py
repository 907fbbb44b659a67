"""One lexer for every address a person or an agent may type. The first matching row wins.

agt_… ses_… flt_…  session: project: channel: alias: branch:     explicit kind
/…                                                                path
. .. self parent ./sub/0 ../sub/1                                 relative to the caller
root operator                                                     the project's root, the person
@… or anything with : # ?                                         handle
bare with dots                                                    birth branch, else handle
bare word                                                         alias, root branch, definition
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import cast

from msgspec.structs import replace

from scout.base.refusal import Refused, Remedy
from scout.identity.address import MAX_LENGTH, fold, require_text
from scout.identity.branch import BirthBranch, check_ref
from scout.identity.grammar import check_characters, parse_dimensions, parse_handle
from scout.identity.name import (
    ID_KINDS,
    AliasName,
    BranchName,
    ChannelName,
    HandleName,
    IdName,
    Name,
    OperatorName,
    PathName,
    ProjectName,
    RelativeName,
    RootName,
    SessionName,
)
from scout.identity.path import AgentPath
from scout.identity.problem import MalformedAddress, build_malformed, shift_position, suggest

_ID = re.compile(rf"(?P<kind>{'|'.join(ID_KINDS)})_(?P<suffix>.*)", re.DOTALL)
_ID_SUFFIX = re.compile(r"[0-9a-z]{1,64}")
_EXPLICIT = re.compile(
    r"(?P<kind>session|project|channel|alias|branch):(?P<value>.*)", re.DOTALL | re.IGNORECASE | re.ASCII
)
_RELATIVE = re.compile(r"(?P<base>\.\.?)(?P<suffix>(?:/[a-z]+(?:/\d+)?)*)", re.ASCII)
_DIRECTORY = re.compile(r"\.\.?/|~(?:/|\Z)")


def lex(text: object, root_branch: str | None = None) -> Name:
    """Return the form and parts of an address; refuse malformed text. `root_branch` enables bare branches."""
    words = require_text(text)
    try:
        return _read(words, root_branch)
    except Refused as refusal:
        raise _keep_readable_remedies(words, refusal) from None


def read_bare_branch(text: str) -> str | None:
    """Return the text if it could be a birth branch typed without `branch:`; the directory decides."""
    bare = "." in text and not text.startswith(("@", "/", ".", "~", ">>")) and not set(text) & set(':#?"{')
    return text if bare and not any(letter.isspace() for letter in text) else None


def _read(text: str, root_branch: str | None) -> Name:
    if text.startswith("{"):
        return _read_structured(text)
    if text.startswith(">>"):
        return _read_routed(text, root_branch)
    explicit = _EXPLICIT.fullmatch(text)
    if explicit:
        kind = explicit["kind"].lower()
        return _KINDS[kind](text, explicit["value"], root_branch)
    if text.startswith("/"):
        return _read_path(text)
    relative = _read_relative(text)
    if relative:
        return relative
    check_characters(text)
    identifier = _ID.fullmatch(text)
    if identifier:
        return _read_id(text, identifier["kind"], identifier["suffix"])
    return _WORDS.get(text.lower()) or _read_handle_or_branch(text, root_branch)


def _keep_readable_remedies(text: str, refusal: Refused) -> Refused:
    told = refusal.diagnostic
    assert isinstance(told, MalformedAddress)  # parsing raises no other refusal
    readable = (remedy for remedy in told.remedies if _is_readable(remedy))
    return build_malformed(text, told.position, told.problem, told.expected, *readable)


def _is_readable(remedy: Remedy) -> bool:
    """Whether the remedy offers a replacement text that can be parsed."""
    try:
        names = [_read(text, None) for text in remedy.parameters.get("texts", ())]
    except Refused:
        return False
    return bool(names)


def _read_handle_or_branch(text: str, root_branch: str | None) -> Name:
    bare = not text.startswith("@") and not set(text) & set(':#?"')
    if bare and root_branch is not None and ("." in text or text == root_branch):
        return BranchName(text=text, branch=BirthBranch.parse(text, root_branch))
    return HandleName(address=parse_handle(text), bare=bare, text=text)


def _read_structured(text: str) -> Name:
    try:
        fields: object = json.loads(text, object_pairs_hook=_check_repeats)
    except (ValueError, RecursionError):
        raise build_malformed(text, 0, "'{'", "an address, or a JSON object with its dimensions") from None
    assert isinstance(fields, dict)  # the text starts with a brace
    address = parse_dimensions(cast(Mapping[str, object], fields))
    return HandleName(address=address, bare=False, text=address.canonical)


def _check_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise build_malformed("", 0, "a repeated dimension", "each dimension at most once")
    return fields


def _read_routed(text: str, root_branch: str | None) -> Name:
    """Parse the target after the route operator, where a bare word is never a branch."""
    target = text[2:].lstrip()
    start = len(text) - len(target)
    if not target or target.startswith((">", "{")):
        problem = f"'{target[0]}'" if target else "nothing"
        raise build_malformed(text, start, problem, "a target after '>>'")
    try:
        name = _read(target, root_branch if _EXPLICIT.fullmatch(target) else None)
    except Refused as refusal:
        raise shift_position(text, start, refusal) from None
    return replace(name, bare=False) if isinstance(name, HandleName) else name


def _read_id(text: str, kind: str, suffix: str) -> Name:
    if _ID_SUFFIX.fullmatch(suffix) is None:
        handle = suggest(f"@{text}", "as a handle")
        raise build_malformed(text, len(kind) + 1, "no id", f"a-z and 0-9 after '{kind}_'", handle)
    return IdName(kind=kind, id=text)


def _read_path(text: str) -> Name:
    try:
        return PathName(path=AgentPath.parse(text))
    except Refused as refusal:
        told = refusal.diagnostic
        raise Refused(replace(told, remedies=(*told.remedies, *_suggest_project(text)))) from None


def _read_relative(text: str) -> Name | None:
    if text.lower() in ("self", "parent"):
        return RelativeName(text=text.lower(), up=text.lower() == "parent")
    found = _RELATIVE.fullmatch(text)
    if found and _is_suffix(found["suffix"]):
        return RelativeName(text=text, up=found["base"] == "..", suffix=found["suffix"])
    if _DIRECTORY.match(text):
        expected = "., .., ./sub/N, ../sub/N or project:DIR"
        raise build_malformed(text, 0, "a relative directory", expected, *_suggest_project(text))
    return None


def _suggest_project(text: str) -> tuple[Remedy, ...]:
    return (suggest(f"project:{text}", "if it is a directory"),) if len(text) <= MAX_LENGTH else ()


def _is_suffix(suffix: str) -> bool:
    """Whether the suffix is valid after an agent's path."""
    try:
        AgentPath.parse(f"/user/direct{suffix}")
    except Refused:
        return False
    return True


def _read_session(text: str, value: str, root_branch: str | None) -> Name:
    check_characters(text)
    harness, colon, native = value.partition(":")
    if colon and fold(harness) and native:
        return SessionName(harness=fold(harness), native_id=native)
    if value.startswith("ses_") and _ID_SUFFIX.fullmatch(value[4:]):
        return SessionName(id=value)
    raise build_malformed(text, len("session:"), "no session", "ses_… or HARNESS:NATIVE-ID")


def _read_project(text: str, value: str, root_branch: str | None) -> Name:
    control = next((index for index, letter in enumerate(value) if not letter.isprintable()), None)
    if control is not None:
        raise build_malformed(text, len("project:") + control, "a control character", "a directory")
    if not value.strip():
        raise build_malformed(
            text, len("project:"), "nothing", "a directory", suggest("project:.", "this directory")
        )
    return ProjectName(directory=value)


def _build_reader(make: Callable[[str], ChannelName | AliasName]) -> Callable[[str, str, str | None], Name]:
    def read(text: str, value: str, root_branch: str | None) -> Name:
        name = make(fold(value))
        folded = suggest(name.canonical, "the folded name")
        check_characters(text, folded)
        if not name.name or "@" in value.lstrip("@"):
            problem = f"no name in '{value[:60]}'"
            raise build_malformed(text, text.index(":") + 1, problem, "a letter or a digit", folded)
        return name

    return read


def _read_branch(text: str, value: str, root_branch: str | None) -> Name:
    check_characters(text)
    try:
        if root_branch is None:
            return BranchName(text=check_ref(value))
        return BranchName(text=value, branch=BirthBranch.parse(value, root_branch))
    except Refused as refusal:
        raise shift_position(text, len("branch:"), refusal) from None


_KINDS: dict[str, Callable[[str, str, str | None], Name]] = {
    "session": _read_session,
    "project": _read_project,
    "channel": _build_reader(lambda name: ChannelName(name=name)),
    "alias": _build_reader(lambda name: AliasName(name=name)),
    "branch": _read_branch,
}

_WORDS: dict[str, Name] = {"root": RootName(), "operator": OperatorName()}
