"""Who edits what: which globs may be reserved, and whether a reservation keeps an editor from a path."""

import shlex
from collections.abc import Iterable, Sequence

from scout.base.gitignore import get_literal_path, matches, parse_pattern
from scout.base.record import Record
from scout.base.refusal import BadRequest, Refused, Remedy
from scout.base.time import Time
from scout.model.reservation import Reservation, is_active_reservation
from scout.policy.limits import Periods

_GLOBS = 50
_LONGEST = 500
_WHY = 500
_SPECIAL = str.maketrans({sign: f"\\{sign}" for sign in "\\*?[]!# "})


class Editor(Record):
    """The agent that is about to edit, and its session if it has one."""

    agent_id: str
    session_id: str | None = None


class EditDecision(Record):
    """The reservations of others that hold a path, oldest first; `blocked_by`: the first exclusive one."""

    path: str
    held: tuple[Reservation, ...] = ()

    @property
    def blocked_by(self) -> Reservation | None:
        return next((one for one in self.held if one.exclusive), None)


class ReservationOverlap(Record):
    """A reservation of another editor, and the glob or path that it shares with new globs."""

    reservation: Reservation
    shared: str


def is_own_reservation(reservation: Reservation, editor: Editor) -> bool:
    """Whether the editor holds it. One bound to a session belongs to that session only."""
    bound = reservation.session_id
    return reservation.agent_id == editor.agent_id and bound in (None, editor.session_id)


def decide_edit(
    reservations: Iterable[Reservation], path: str, names: Sequence[str], editor: Editor, now: Time
) -> EditDecision:
    """Decide about one edited path. `names`: its names relative to the root, with links and without."""
    held = tuple(
        one
        for one in reservations
        if is_active_reservation(one, now)
        and not is_own_reservation(one, editor)
        and any(matches(one.globs, name) for name in names)
    )
    return EditDecision(path=path, held=tuple(sorted(held, key=lambda one: one.id)))


def find_overlaps(
    globs: Sequence[str], others: Iterable[Reservation], editor: Editor, now: Time
) -> tuple[ReservationOverlap, ...]:
    """Return the reservations of others that surely overlap: the same glob, or a path of one in the other."""
    found: list[ReservationOverlap] = []
    for one in others:
        if is_active_reservation(one, now) and not is_own_reservation(one, editor):
            shared = _find_shared_path(globs, one.globs) or _find_shared_path(one.globs, globs)
            found += [ReservationOverlap(reservation=one, shared=shared)] if shared else []
    return tuple(found)


def _find_shared_path(ours: Sequence[str], theirs: Sequence[str]) -> str:
    same = [glob for glob in ours if glob in theirs and not glob.startswith("!")]
    paths = [path for path in map(get_literal_path, ours) if path is not None and matches(theirs, path)]
    return next(iter([*same, *paths]), "")


# -- reserving -----------------------------------------------------------------------------------------


def place_globs(globs: Sequence[str], root: str, folder: str) -> tuple[str, ...]:
    """Return the globs relative to the root; they are given relative to a folder in it, as in a .gitignore.

    A path below the root, `./…` and `../…` are understood too. Globs that name nothing are refused.
    """
    if not globs:
        raise _build_refusal("which files? give at least one glob, such as 'src/**'")
    if len(globs) > _GLOBS:
        raise _build_refusal(f"{len(globs)} globs are too many for one reservation; the maximum is {_GLOBS}")
    inner = folder.removeprefix(root).strip("/")
    placed = tuple(dict.fromkeys(_place(glob, root, inner) for glob in globs))
    if all(glob.startswith("!") for glob in placed):
        raise _build_refusal(f"{_clip(globs[0])} only takes files out; give a glob without '!' too")
    return placed


def _place(glob: str, root: str, inner: str) -> str:
    _check_text(glob, "globs", _LONGEST)
    negated = "!" if glob.startswith("!") else ""
    body = glob[len(negated) :]
    if body == root or body.startswith(f"{root.rstrip('/')}/"):
        body = body.removeprefix(root.rstrip("/")) or "/"
        return _check_glob(negated + _place_from_root(body.split("/"), glob), glob)
    if body.split("/")[0] in (".", ".."):
        steps = [*map(_escape, inner.split("/")), *body.split("/")]
        return _check_glob(negated + _place_from_root(steps, glob), glob)
    _check_glob(glob, glob)
    if {".", ".."} & set(body.split("/")):
        raise _build_refusal(
            f"{_clip(glob)} matches nothing: '.' and '..' are understood only at the beginning"
        )
    if not inner:
        return glob
    below = _escape(inner)
    anchored = "/" in body.rstrip("/")
    return f"{negated}/{below}/{'' if anchored else '**/'}{body.removeprefix('/')}"


def _place_from_root(steps: Sequence[str], glob: str) -> str:
    """Return the path from the root, without `.` and `..`; the root itself is everything in it."""
    names: list[str] = []
    for step in steps:
        if step == ".." and not names:
            raise _build_refusal(f"{_clip(glob)} is outside of the work tree")
        if step == "..":
            names.pop()
        elif step not in ("", "."):
            names.append(step)
    folder = "/" if steps[-1] == "" and names else ""
    return f"/{'/'.join(names)}{folder}" if names else "**"


def _check_glob(placed: str, glob: str) -> str:
    if parse_pattern(placed) is not None:
        return placed
    if not glob.strip():
        raise _build_refusal("a glob is empty")
    if glob.startswith("#"):
        raise _build_refusal(
            f"{_clip(glob)} is a comment in a .gitignore; for a file of this name, write \\#"
        )
    raise _build_refusal(f"{_clip(glob)} matches nothing; to reserve everything, write '**'")


def _escape(path: str) -> str:
    return path.translate(_SPECIAL)


def check_why(why: str) -> str:
    """Return the purpose of a reservation; refuse a long one and one with control characters."""
    _check_text(why, "why", _WHY)
    return why.strip()


def _check_text(text: str, field: str, longest: int) -> None:
    if len(text) > longest:
        raise _build_refusal(f"{len(text)} characters are too many; the maximum is {longest}", field)
    if not text.isprintable():
        raise _build_refusal(f"control characters cannot be used: {show_text(text)[:80]}", field)


def lease_until(globs: Sequence[str], seconds: float | None, now: Time, periods: Periods) -> Time:
    """Return the end of a reservation for so many seconds; default and maximum are settings."""
    wanted = min(periods.reservation, periods.reservation_most) if seconds is None else seconds
    if wanted <= 0:
        raise _build_refusal("a reservation lasts longer than 0 seconds", "seconds")
    if wanted > periods.reservation_most:
        most = f"{periods.reservation_most:g}"
        problem = f"{wanted:g} seconds are too long; the maximum is {most} (periods.reservationMost)"
        parameters = {"globs": [*globs], "seconds": periods.reservation_most}
        longest = Remedy(operation="reserve.add", parameters=parameters, why="as long as possible")
        raise Refused(BadRequest(problem=problem, field="seconds", remedies=(longest,)))
    return now.plus(wanted)


# -- words ---------------------------------------------------------------------------------------------


def tell_holder(path: str, reservation: Reservation, holder: str, now: Time, *, person: bool = False) -> str:
    """Tell an editor who holds a path, until when, why, and how to ask. `person`: the holder is a person."""
    minutes = max(1, round(reservation.expires_at.since(now) / 60))
    until = f"until {str(reservation.expires_at)[11:16]} UTC (in {minutes} min)"
    why = f": {reservation.why}" if reservation.why else ""
    ask = "scout need" if person else f"scout ask {holder}"
    words = shlex.quote(f"May I edit {show_text(path)}?")
    return f"{show_text(path)} is reserved by {holder} {until}{why}. To ask: {ask} {words}"


def tell_same_files(files: Sequence[str], address: str, flight_id: str, root: str) -> str:
    """Tell an agent that another flight changed the same files while its own was running."""
    shown = [show_text(one) for one in files[:_SHOWN]]
    more = [f"… and {len(files) - _SHOWN} more"] if len(files) > _SHOWN else []
    what = "this file" if len(files) == 1 else "these files"
    first = f"{address} ({flight_id}) worked in {show_text(root)} while you did; {what} changed:"
    last = f"Check that nothing is lost. To agree on the rest: scout ask {address} '…'"
    return "\n".join([first, *(f"- {one}" for one in (*shown, *more)), last])


_SHOWN = 20


def show_text(text: str) -> str:
    """Return the text with control characters made visible."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


def _clip(glob: str) -> str:
    return f"'{show_text(glob)[:80]}'"


def _build_refusal(problem: str, field: str = "globs") -> Refused:
    return Refused(BadRequest(problem=problem, field=field))
