"""Pages: size, start, and the opaque cursor of the next page."""

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from scout.base.machine import Mutable
from scout.base.refusal import BadRequest, Refused
from scout.policy.limits import Limits
from scout.protocol.request import Page
from scout.store.ledger import LAST

T = TypeVar("T")
M = TypeVar("M", bound=Mutable)
_SEARCHED = 2000
_MOST = (1 << 63) - 1


def get_page_size(limit: int | None, limits: Limits) -> int:
    """Return the number of items of a page."""
    wanted = limits.page if limit is None else limit
    if wanted < 1:
        raise Refused(BadRequest(problem="a page has at least one item", field="limit"))
    return min(wanted, limits.page_most)


def decode_cursor(text: str | None) -> str | None:
    """Return the position that a cursor encodes."""
    if text is None:
        return None
    try:
        place = base64.b64decode(text.encode("ascii"), altchars=b"-_", validate=True).decode("ascii")
    except (ValueError, binascii.Error):
        place = ""
    if not place.isprintable() or not place:
        raise Refused(BadRequest(problem="this is not a cursor of a page", field="cursor"))
    return place


def decode_bound(text: str | None) -> str:
    """Return the id before which the next page begins, for lists with the newest first."""
    return decode_cursor(text) or LAST


def decode_number(text: str | None, default: int = 0) -> int:
    """Return the position of the next page, for lists ordered by a number."""
    place = decode_cursor(text)
    if place is None:
        return default
    if not (place.isascii() and place.isdigit() and int(place) <= _MOST):
        raise Refused(BadRequest(problem="this is not a cursor of this list", field="cursor"))
    return int(place)


def build_page(items: Sequence[T], wanted: int, key: Callable[[T], Any]) -> Page[T]:
    """Return a page of a list of which one more than `wanted` was read."""
    shown = tuple(items[:wanted])
    more = len(items) > wanted
    return Page(items=shown, next=encode_cursor(key(shown[-1])) if more else None)


def encode_cursor(key: object) -> str:
    """Return a position as an opaque cursor."""
    return base64.urlsafe_b64encode(str(key).encode()).decode()


def build_filtered_page(
    read: Callable[[str, int], Sequence[M]],
    is_wanted: Callable[[M], bool],
    bound: str,
    limit: int | None,
    limits: Limits,
) -> Page[M]:
    """Return a page of the wanted items of a list with the newest first.

    `read` returns the items before an id. A limited number is searched at once, so the page may be
    short; its cursor continues from there.
    """
    wanted = get_page_size(limit, limits)
    found: list[M] = []
    searched = 0
    while True:
        rows = read(bound, wanted + 1)
        found += [one for one in rows[:wanted] if is_wanted(one)]
        searched += len(rows)
        if len(found) > wanted:
            return build_page(found, wanted, lambda one: one.id)
        if len(rows) <= wanted:
            return Page(items=tuple(found), next=None)
        bound = rows[wanted - 1].id
        if len(found) == wanted or searched >= _SEARCHED:
            return Page(items=tuple(found), next=encode_cursor(bound))
