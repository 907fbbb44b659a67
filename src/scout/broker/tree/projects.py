"""Known projects and their settings, which only the operator changes."""

from pathlib import Path

from scout.base.refusal import BadRequest, Refused, Remedy
from scout.broker.transaction.services import Services
from scout.broker.transaction.transaction import Transaction
from scout.policy.permit import Deed, Subject
from scout.policy.tree.projects import ProjectRules
from scout.ports import Surroundings
from scout.protocol.request import Page
from scout.protocol.tree.spawn import ListProjects, ProjectView, SetProject


def list_projects(tx: Transaction, request: ListProjects) -> Page[ProjectView]:
    """List the known projects, by directory."""
    tx.permit(Deed.ADMINISTER, Subject(name="the settings"))
    known = tx.services.projects
    return Page(items=tuple(_build_project_view(root, known[root]) for root in sorted(known)))


def set_project(tx: Transaction, request: SetProject) -> ProjectView:
    """Write one setting of a project to the settings file, and apply it."""
    tx.permit(Deed.ADMINISTER, Subject(name="the settings"))
    place = tx.place or tx.here
    if place is None:
        raise Refused(build_no_project_refusal())
    root = find_root(tx.services, place)
    tx.services.set_project(root, request.setting, request.value)
    tx.services.reload()
    return _build_project_view(root, tx.services.projects.get(root, ProjectRules()))


def find_root(services: Services, place: Surroundings) -> str:
    """Return the main work tree of the directory's repository; without one, the project. Blocks."""
    if place.workspace is None:
        return place.repository or place.project_root
    facts = services.trees.work_trees.look(place.directory, most=0) if services.trees else None
    return facts.root if facts is not None and not facts.bare else place.project_root


def build_no_project_refusal() -> BadRequest:
    """Return the refusal of a caller that is in no project and names none."""
    remedy = Remedy(operation="who", parameters={}, why="agents and their projects")
    return BadRequest(problem="there is no project here: name one", field="projectPath", remedies=(remedy,))


def _build_project_view(root: str, rules: ProjectRules) -> ProjectView:
    return ProjectView(root=root, settings=rules, missing=not Path(root).is_dir())
