"""The nightly job: a person repeats an ask at set times, and it runs once each time, whatever the machine does."""

import shlex
import subprocess
import sys
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scout import BlockingScout
from scout.daemon.start import start, stop
from scout.protocol.people.schedules import AddSchedule, GetSchedule
from tests.cli.running import Shell, a_shell
from tests.daemon.daemons import Daemon, eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

DAY = 86_400
WAITS = "while [ ! -e {go} ]; do sleep 0.05; done; echo done"


class Night:
    """A person's shell, its daemon, and the clock of that daemon."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.clock = shell.folder / "clock"
        self.ahead = 0
        self.daemon = self.start()

    def start(self) -> Daemon:
        running, _ = start(str(self.shell.home), environ=self.environ, timeout=60)
        return Daemon(self.shell.home, running)

    @property
    def environ(self) -> dict[str, str]:
        return {**self.shell.environ, "SCOUT_TEST_CLOCK_FILE": str(self.clock)}

    @property
    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self.ahead)

    def move_to(self, moment: str) -> None:
        """Set the clock a little after a moment."""
        at = datetime.fromisoformat(moment)
        self.move_by((at - self.now).total_seconds() + 2)

    def move_by(self, seconds: float) -> None:
        self.ahead += round(seconds)
        fresh = self.clock.with_suffix(".new")
        fresh.write_text(str(self.ahead))
        fresh.replace(self.clock)

    def agent(self, name: str, command: str = "tr a-z A-Z") -> None:
        self.shell.say("agent", "register", name, "--command", command, cwd=self.shell.project(name))

    def add(self, cron: str = "0 9 * * *", *words: str, text: str = "it is nine", to: str = "@upper") -> Any:
        return self.shell.data("cron", "add", cron, "--to", to, "--tz", "UTC", *words, text)

    def show(self, ident: str) -> Any:
        return self.shell.data("cron", "show", ident)

    def runs(self, ident: str) -> list[Any]:
        """The runs of a schedule, oldest first."""
        return self.shell.data("cron", "log", ident, "--limit", "200")["items"][::-1]

    def wait_for_runs(self, ident: str, count: int, outcome: str = "fired") -> list[Any]:
        """The runs with this outcome, oldest first, once there are as many."""

        def look() -> bool:
            runs = self.get(f"{ident}/log?limit=200")["items"]
            return [one["outcome"] for one in runs].count(outcome) >= count

        eventually(look)
        return [one for one in self.runs(ident) if one["outcome"] == outcome]

    def wait_for_end(self, ident: str) -> None:
        """Wait until the last run has ended."""
        ended = ("completed", "failed", "cancelled")
        eventually(lambda: (last := self.get(ident)["last"]) and last["state"] in ended)

    def get(self, path: str) -> Any:
        """What the daemon answers now, on the socket that every daemon of this home has."""
        reply = self.daemon.call("GET", f"/v1/schedules/{path}", unix=True)
        assert reply.status == 200, reply.body
        return reply.json

    def inbox(self) -> list[str]:
        return [one["message"]["body"] for one in self.shell.data("inbox")["items"]]


@pytest.fixture
def night() -> Generator[Night]:
    with a_shell() as shell:
        yield Night(shell)


def paste(shell: Shell, line: str) -> str:
    """The command of a `try:` line, typed."""
    words = shlex.split(line.partition("try: ")[2].partition("  #")[0])
    assert words[0] == "scout", line
    return shell.say(*words[1:])


# -- making ----------------------------------------------------------------------------------------------


@pytest.mark.rows("R9.c-1", "R9.c-2")
def test_a_schedule_is_made_and_shown_on_every_surface(night: Night) -> None:
    night.agent("upper")
    words = ("cron", "add", "0 9 * * 1-5", "--to", "@upper", "--tz", "Europe/Berlin")
    told = night.shell.say(*words, "Summarise what changed.", TZ="Europe/Berlin")
    assert told.startswith("added sch_")
    assert "At 09:00 on Monday through Friday (Europe/Berlin), asks @upper" in told

    wish = {"cron": "@daily", "to": "@upper", "body": "Check.", "timeZone": "Asia/Tokyo", "name": "nightly"}
    reply = night.daemon.call("POST", "/v1/schedules", wish)
    assert (reply.status, reply.json["address"]) == (201, "/me/cron/nightly")
    url, token = night.daemon.running.url, night.daemon.token
    with BlockingScout(url=url, token=token) as scout:
        made = scout.call(AddSchedule(cron="@weekly", to="@upper", body="Tidy.", time_zone="UTC"))
        assert scout.call(GetSchedule(schedule_id=made.id)).words == "At 00:00 on Sunday"

    listed = night.shell.say("cron")
    assert [line.split()[0][:4] for line in listed.splitlines()[1:]] == ["sch_"] * 3
    shown = night.shell.say("cron", "show", "nightly", TZ="UTC")
    assert "At 00:00 every day" in shown
    _, _, times = shown.partition("NEXT, ASIA/TOKYO")
    rows = times.splitlines()[1:6]
    assert all(" 00:00 +09:00" in row and row.endswith("15:00") for row in rows), shown
    one = night.daemon.call("GET", "/v1/schedules/nightly").json
    assert (one["words"], len(one["upcoming"])) == ("At 00:00 every day", 5)
    assert len(night.daemon.call("GET", "/v1/schedules?limit=2").json["items"]) == 2


@pytest.mark.rows("R9.c-4")
@pytest.mark.parametrize(
    ("text", "told", "cron"),
    [
        ("0 25 * * 1-5", "the hour '25' at character 2", "0 23 * * 1-5"),
        ("0 9 * * monday", "the day of the week 'monday' at character 8", "0 9 * * mon"),
        ("0 9 * *", "the end at character 7", "0 9 * * *"),
        ("@dayly", "the name '@dayly' at character 0", "@daily"),
    ],
)
def test_a_wrong_time_is_refused_where_it_is_wrong(night: Night, text: str, told: str, cron: str) -> None:
    night.agent("upper")
    refused = night.shell.type("cron", "add", text, "--to", "@upper", "Check the build.")
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"malformed_cron: found {told}; expected ")
    (line,) = [one for one in refused.stderr.splitlines() if one.startswith("try: ")]
    assert "added" in paste(night.shell, line)
    (made,) = night.shell.data("cron")["items"]
    assert (made["cron"], made["body"]) == (cron, "Check the build.")


@pytest.mark.rows("R9.c-4")
def test_an_unknown_time_zone_is_refused_with_the_nearest(night: Night) -> None:
    night.agent("upper")
    refused = night.shell.type("cron", "add", "@daily", "--to", "@upper", "--tz", "berlin", "Check.")
    assert refused.stderr.startswith("not_found: no time zone 'berlin'; nearest: Europe/Berlin\n")
    assert "added" in paste(night.shell, refused.stderr.splitlines()[1])


@pytest.mark.rows("R9.c-5")
def test_a_fixed_time_comes_once_on_the_days_on_which_clocks_change(night: Night) -> None:
    night.agent("upper")
    made = night.add("30 2 * * *", "--tz", "Europe/Berlin")
    year = night.now.year + 1
    spring, autumn = last_sunday(year, 3), last_sunday(year, 10)
    for sunday, at in ((spring, "03:00+02:00"), (autumn, "02:30+02:00")):
        night.move_to(f"{sunday - timedelta(days=1)}T12:00:00+00:00")
        night.wait_for_runs(made["id"], 1 if sunday == spring else 2)
        night.wait_for_end(made["id"])
        days = [one["inZone"] for one in night.show(made["id"])["upcoming"]]
        assert days[0] == f"{sunday}T{at}"
        assert days[1].startswith(f"{sunday + timedelta(days=1)}T02:30")


def last_sunday(year: int, month: int) -> Any:
    day = datetime(year, month, 31, tzinfo=UTC).date()
    return day - timedelta(days=(day.weekday() + 1) % 7)


# -- running ---------------------------------------------------------------------------------------------


@pytest.mark.rows("R9.c-3", "R9.c-9")
def test_the_nightly_job_runs_and_is_answered(night: Night) -> None:
    night.agent("upper")
    made = night.add("0 9 * * *", "--name", "nightly")
    night.move_to(made["slot"])
    (run,) = night.wait_for_runs("nightly", 1)
    assert run["slot"] == made["slot"]
    night.wait_for_end("nightly")
    assert night.inbox() == ["IT IS NINE"]
    (flight,) = night.shell.data("flight", "list")["items"]
    assert (flight["requesterAddress"], flight["output"]) == ("/me/cron/nightly", "IT IS NINE")
    assert "completed" in night.shell.say("cron", "log", "nightly")
    assert "completed" in night.shell.say("cron")

    told = night.shell.say("cron", "run", "nightly")
    assert told.startswith("started flt_")
    night.wait_for_end("nightly")
    assert night.show("nightly")["fired"] == 2
    assert "paused" in night.shell.say("cron", "pause", "nightly", "--reason", "holidays")
    night.move_by(2 * DAY)
    resumed = night.shell.data("cron", "resume", "nightly")
    assert resumed["fired"] == 2
    assert datetime.fromisoformat(resumed["slot"]) > night.now
    night.shell.say("cron", "remove", "nightly")
    assert night.shell.data("cron")["items"] == []
    assert night.shell.data("cron", "list", "--all")["items"][0]["state"] == "ended"
    assert "clean" in night.shell.say("verify")


@pytest.mark.rows("R9.c-9")
def test_the_answer_goes_to_a_channel(night: Night) -> None:
    night.agent("upper")
    night.shell.say("channel", "create", "dev")
    made = night.add("0 9 * * *", "--channel", "dev")
    night.move_to(made["slot"])
    night.wait_for_runs(made["id"], 1)
    night.wait_for_end(made["id"])
    said = night.shell.data("message", "list", "--channel", "dev")["items"]
    assert [(one["senderAddress"], one["body"]) for one in said] == [
        (made["address"], "it is nine"),
        ("@upper", "IT IS NINE"),
    ]


@pytest.mark.rows("R9.c-6")
@pytest.mark.parametrize(("missed", "outcome"), [("once", "fired"), ("skip", "skipped")])
def test_runs_that_were_missed_while_no_daemon_ran(night: Night, missed: str, outcome: str) -> None:
    night.agent("upper")
    made = night.add("0 9 * * *", "--missed", missed)
    night.shell.say("down")
    night.move_to(made["slot"])
    night.move_by(3 * DAY + 3600)
    night.start()
    (run,) = night.wait_for_runs(made["id"], 1, outcome)
    assert run["reason"].startswith("missed at ")
    night.move_to(night.show(made["id"])["slot"])
    night.wait_for_runs(made["id"], 2 if outcome == "fired" else 1)


@pytest.mark.rows("R9.c-7", "R9.c-12")
@pytest.mark.parametrize(
    ("overlap", "outcomes"),
    [
        ("skip", ["fired", "skipped", "skipped", "skipped"]),
        ("queue", ["fired", "held", "skipped", "skipped"]),
        ("cancel", ["fired", "fired", "fired", "fired"]),
    ],
)
def test_a_run_while_the_previous_one_works(night: Night, overlap: str, outcomes: list[str]) -> None:
    go = night.shell.folder / "go"
    night.agent("slow", f"sh -c '{WAITS.format(go=go)}'")
    made = night.add("0 9 * * *", "--overlap", overlap, to="@slow")
    for number, outcome in enumerate(outcomes, start=1):
        night.move_to(night.show(made["id"])["slot"])
        night.wait_for_runs(made["id"], outcomes[:number].count(outcome), outcome)
    assert [one["outcome"] for one in night.runs(made["id"])] == outcomes
    states = [one.get("state") for one in night.runs(made["id"]) if one["outcome"] == "fired"]
    assert states[:-1] == ["cancelled"] * (len(states) - 1)
    items = night.shell.data("attention")["items"]
    assert [one["kind"] for one in items] == (["failure"] if overlap == "skip" else [])
    go.touch()
    if overlap == "queue":
        runs = night.wait_for_runs(made["id"], 2)
        assert runs[-1]["slot"] == night.runs(made["id"])[1]["slot"]
    if overlap == "skip":
        night.wait_for_end(made["id"])
        night.move_to(night.show(made["id"])["slot"])
        night.wait_for_runs(made["id"], 2)
        assert night.shell.data("attention")["items"] == []
    night.wait_for_end(made["id"])  # a program that still waits would find its folder removed


@pytest.mark.rows("R9.c-8")
def test_a_jitter_starts_each_run_a_little_later(night: Night) -> None:
    night.agent("upper")
    made = night.add("0 9 * * *", "--jitter", "10m")
    late = datetime.fromisoformat(made["nextAt"]) - datetime.fromisoformat(made["slot"])
    assert timedelta(0) <= late <= timedelta(minutes=10)
    assert "up to 600 s" in night.shell.say("cron", "show", made["id"])


@pytest.mark.rows("R9.c-11")
def test_a_run_that_cannot_start_is_shown_with_the_command_that_corrects_it(night: Night) -> None:
    night.agent("upper")
    night.agent("lower", "tr A-Z a-z")
    made = night.add(text="Hello.")
    night.shell.say("agent", "retire", "@upper")
    night.move_to(made["slot"])
    (run,) = night.wait_for_runs(made["id"], 1, "failed")
    assert "was retired" in run["reason"]
    assert "1 not started" in night.shell.say("cron")
    (item,) = night.shell.data("attention")["items"]
    assert "could not run" in item["title"]
    tries = [line for line in item["body"].splitlines() if line.startswith("try: ")]
    assert tries[0] == "try: scout agent revive /me/agent/upper"
    paste(night.shell, tries[0])
    night.move_to(night.show(made["id"])["slot"])
    night.wait_for_runs(made["id"], 1)
    assert night.shell.data("attention")["items"] == []


@pytest.mark.rows("R9.c-13")
def test_nothing_runs_during_a_pause(night: Night) -> None:
    night.agent("upper")
    made = night.add()
    night.shell.say("pause")
    night.move_to(made["slot"])
    other = night.shell.data("cron", "add", "@hourly", "--to", "@upper", "--tz", "UTC", "later")
    night.move_by(3600)
    assert night.runs(made["id"]) == []
    night.shell.say("resume")
    night.wait_for_runs(made["id"], 1)
    night.wait_for_runs(other["id"], 1)


# -- once ------------------------------------------------------------------------------------------------


@pytest.mark.rows("R9.c-10")
def test_two_daemons_that_start_at_the_same_time_run_a_schedule_once(night: Night) -> None:
    night.agent("upper")
    made = night.add()
    for number in range(1, 4):
        slot = night.show(made["id"])["slot"]
        night.shell.say("down")
        night.move_to(slot)
        words = [sys.executable, "-m", "scout", "up"]
        both = [subprocess.Popen(words, env=night.environ, stdout=subprocess.DEVNULL) for _ in range(2)]
        assert [one.wait(60) for one in both] == [0, 0]
        night.wait_for_runs(made["id"], number)
        night.wait_for_end(made["id"])
        slots = [one["slot"] for one in night.runs(made["id"])]
        assert slots[-1] == slot
        assert len(set(slots)) == len(slots) == number


@pytest.mark.rows("R9.c-10")
def test_a_daemon_that_is_killed_while_schedules_are_due_runs_each_once(night: Night) -> None:
    night.agent("upper")
    made = [night.add("0 9 * * *", "--overlap", "queue", text=f"job {number}") for number in range(8)]
    for life in range(1, 4):
        night.move_to(night.show(made[0]["id"])["slot"])
        night.wait_for_runs(made[life % 8]["id"], life)
        subprocess.run(["kill", "-9", str(night.daemon.running.pid)], check=True)
        night.daemon = night.start()
    for one in made:
        runs = night.wait_for_runs(one["id"], 3)
        slots = [run["slot"] for run in runs]
        assert len(set(slots)) == len(slots) == 3
        night.wait_for_end(one["id"])
    asked = [one["requesterAddress"] for one in night.shell.data("flight", "list", "--limit", "100")["items"]]
    assert {address: asked.count(address) for address in asked} == {one["address"]: 3 for one in made}
    assert "clean" in night.shell.say("verify")


@pytest.mark.rows("R9.c-14")
def test_a_clock_that_is_wrong_for_a_while_neither_silences_nor_repeats_a_schedule(night: Night) -> None:
    night.agent("upper")
    made = night.add()
    night.move_to(made["slot"])
    night.move_by(30 * DAY)
    (ahead,) = night.wait_for_runs(made["id"], 1)
    night.wait_for_end(made["id"])
    night.move_by(-30 * DAY)
    soon = (night.now + timedelta(days=2)).isoformat()
    eventually(lambda: night.get(made["id"])["slot"] < soon)
    night.move_to(night.show(made["id"])["slot"])
    runs = night.wait_for_runs(made["id"], 2)
    assert runs[-1]["slot"] < ahead["slot"]
    night.wait_for_end(made["id"])
    night.shell.say("down")
    night.move_to(ahead["slot"])
    night.start()
    eventually(lambda: night.get(made["id"])["slot"] > ahead["slot"])
    slots = [one["slot"] for one in night.runs(made["id"]) if one["outcome"] == "fired"]
    assert len(set(slots)) == len(slots)
    assert stop(str(night.shell.home), timeout=60)
