"""Suggest projects for an unknown name: directories of that name beside the caller's project or in a root."""

from collections.abc import Iterator
from pathlib import PurePath

from msgspec.structs import replace

from scout.base.refusal import PLACEHOLDER, Candidate, Refused, Remedy
from scout.broker.transaction.services import Services
from scout.identity.lexer import lex
from scout.identity.name import HandleName
from scout.model.problems.target import UnknownTarget
from scout.policy.directory import Viewpoint
from scout.ports import Surroundings

_LOOKED = 16  # maximum directories searched


def add_projects(problem: UnknownTarget, services: Services, caller: Viewpoint) -> UnknownTarget:
    """Return the refusal with nearby projects of this name, without projects that do not exist."""
    problem = replace(problem, remedies=_drop_missing(problem.remedies, services))
    name = _read_definition(problem.address)
    found = {place.project_root: place for place in _find_projects(name, services, caller)} if name else {}
    if not found:
        return problem
    near = [Candidate(address=f"project:{root}") for root in found]
    asks = [_suggest_ask(root) for root in found]
    return replace(
        problem,
        candidates=(*problem.candidates, *near),
        remedies=(*asks, *problem.remedies),
    )


def _drop_missing(remedies: tuple[Remedy, ...], services: Services) -> tuple[Remedy, ...]:
    """Drop remedies whose project path is not a directory."""
    kept = tuple(
        one for one in remedies if "projectPath" not in one.parameters or _has_project(one, services)
    )
    return kept or (Remedy(operation="who", parameters={}, why="list agents"),)


def _has_project(remedy: Remedy, services: Services) -> bool:
    try:
        services.places.locate(str(remedy.parameters["projectPath"]))
    except Refused:
        return False
    return True


def _read_definition(address: str) -> str | None:
    try:
        name = lex(address)
    except Refused:
        return None
    return name.address.definition_id if isinstance(name, HandleName) else None


def _find_projects(name: str, services: Services, caller: Viewpoint) -> Iterator[Surroundings]:
    beside = [str(PurePath(caller.project_root).parent)] if caller.project_root else []
    for folder in list(dict.fromkeys((*beside, *services.roots)))[:_LOOKED]:
        try:
            place = services.places.locate(name, folder)
        except Refused:
            continue
        if place.definition == name:
            yield place


def _suggest_ask(root: str) -> Remedy:
    return Remedy(
        operation="ask", parameters={"projectPath": root, "body": PLACEHOLDER}, why="a project nearby"
    )
