"""Something alive for the views of work, sessions, usage, the tree and schedules."""

from typing import Any
from urllib.parse import quote

from tests.daemon.daemons import eventually
from tests.surface.site import Site, git


def fill_views(site: Site) -> list[str]:
    """Fill the views, and return the paths of single records to look at."""
    _fill_usage(site)
    return [
        _fill_work(site),
        "/work?label=nothing",
        _fill_sessions(site),
        _fill_tree(site),
        _fill_schedules(site),
    ]


def _fill_work(site: Site) -> str:
    """A work item in every state."""
    owner = site.puller("picture-owner")

    def create(title: str, **more: Any) -> Any:
        return site.post("/v1/work", title=title, ownerId=owner.address, **more)["id"]

    create("Write the release notes", labels=["release", "docs"], priority="high")
    working = create("Move the writer to one transaction", priority="urgent", description="Why: it is slow.")
    owner.post(f"/v1/work/{working}/start")
    owner.post(f"/v1/work/{working}/progress", done=3, total=7, summary="the reader is done")
    waiting = create("Rotate the certificates")
    owner.post(f"/v1/work/{waiting}/wait", on="condition", ref="the new key is signed", reason="ordered")
    review = create("Measure the cold start")
    owner.post(f"/v1/work/{review}/submit", summary="41 ms, down from 180 ms")
    done = create("Pin the linters")
    owner.post(f"/v1/work/{done}/submit")
    site.post(f"/v1/work/{done}/accept")
    return f"/work/{working}"


def _fill_sessions(site: Site) -> str:
    """A session that works at something, and writes."""
    script = "cat >/dev/null; echo reading the writer >&2; sleep 600"
    agent = site.agent("picture-busy", command=["sh", "-c", script])
    site.ask(agent.address, "Look for races in the writer.")
    return f"/sessions/{wait_for_session(site, agent.address)}"


def wait_for_session(site: Site, address: str) -> str:
    """The session of an agent, once its program runs."""

    def look() -> Any:
        found = site.get("/v1/sessions", agent=address, live="true")["items"]
        return found[0]["id"] if found and found[0]["pid"] else None

    return str(eventually(look))


def _fill_usage(site: Site) -> None:
    for number, (harness, model) in enumerate((("claude", "opus"), ("codex", "gpt"), ("echo", "echo"))):
        spender = site.puller(f"picture-spender-{number}")
        size = 40_000 * (3 - number) ** 2
        about = {"harness": harness, "model": model}
        spender.post("/v1/usage", promptTokens=size, completionTokens=size // 9, **about)
        spender.post("/v1/usage", category="protocol_overhead", promptTokens=size // 25, **about)


def make_repository(site: Site, name: str) -> str:
    """A repository with one commit."""
    folder = site.shell.project(name)
    git(folder, "init", "-q")
    (folder / "readme").write_text("hello\n")
    git(folder, "add", "readme")
    git(folder, "commit", "-qm", "begin")
    return str(folder)


def _fill_tree(site: Site) -> str:
    root = make_repository(site, "picture-repository")
    (auth, _) = spawn(site, root, "auth", "docs", role="tl")
    spawn(site, root, "tokens", "sessions", **{"from": auth["address"]})
    return f"/tree/{quote(auth['address'], safe='@')}"


def spawn(site: Site, root: str, *slugs: str, **more: Any) -> Any:
    """New agents, each on a branch."""
    return site.post("/v1/spawn", slugs=slugs, harness="echo", projectPath=root, **more)["agents"]


def _fill_schedules(site: Site) -> str:
    target = site.agent("picture-cron", harness="echo")
    first = site.post("/v1/schedules", cron="0 9 * * 1-5", body="Summarise what changed.", to=target.address)
    other = site.post("/v1/schedules", cron="*/15 * * * *", body="Look at the queue.", to=target.address)
    site.post(f"/v1/schedules/{other['id']}/pause", reason="too often")
    site.post(f"/v1/schedules/{first['id']}/run")
    return f"/schedules/{first['id']}"
