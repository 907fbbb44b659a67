"""Settings of a project. The operator sets them for a directory; the repository in it cannot."""

from typing import Annotated

import msgspec

from scout.base.record import Record

Command = Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]
# A relative pattern. Lists of patterns are separated by blanks.
Glob = Annotated[str, msgspec.Meta(pattern=r"^(?!/|~)(?!(.*/)?\.\.(/|$)).+$", extra={"between": " "})]
Seconds = Annotated[float, msgspec.Meta(gt=0)]


class WorkTreeRules(Record):
    """How the work tree of a spawned agent is prepared, and how a merge is checked."""

    setup: Command | None = None
    copy: tuple[Glob, ...] = ()
    check: Command | None = None
    setup_seconds: Seconds = 600.0
    check_seconds: Seconds = 600.0


class ProjectRules(Record):
    """All settings of one project."""

    worktree: WorkTreeRules = WorkTreeRules()
