"""The composer: files with a completed path, drafts that outlive it, and receipts below what was sent."""

import hashlib
from pathlib import Path

import pytest
from textual import events

from scout.tui.attachments import list_paths
from scout.tui.drafts import Draft, DraftBook
from tests.tui.stage import Fleet, Stage, play


@pytest.mark.rows("R4.4t-17")
def test_a_file_is_attached_by_a_completed_path(fleet: Fleet, tmp_path: Path) -> None:
    fleet.register("filer", harness="echo")
    (tmp_path / "deep").mkdir()
    file = tmp_path / "deep" / "report-final.txt"
    file.write_text("all is well")
    flights: list[str] = []

    async def scene(stage: Stage) -> None:
        await stage.press("c")
        await stage.type("@filer")
        await stage.press("enter")
        await stage.type("See the file.")
        await stage.press("ctrl+o")
        await stage.shows("Attach a file")
        await stage.type(f"{tmp_path}/d")
        await stage.press("tab")
        await stage.type("nothing")
        await stage.press("enter")
        await stage.shows("is not a file.")
        await stage.press(*["backspace"] * len("nothing"))
        await stage.type("rep")
        await stage.press("tab", "enter")
        await stage.shows("attached: report-final.txt")
        await stage.press("enter")
        await stage.shows("✓ completed")
        flights.append(stage.app.view.subject.rpartition(" ")[2])

    play(fleet.shell, scene)
    ask = fleet.call("GET", f"/v1/flights/{flights[0]}")
    page = fleet.call("GET", f"/v1/messages?conversation={ask['conversationId']}")
    attached = page["items"][0]["attachments"]
    assert [(one["name"], one["size"]) for one in attached] == [("report-final.txt", len("all is well"))]
    assert attached[0]["sha256"] == hashlib.sha256(b"all is well").hexdigest()


def test_paths_are_completed_as_they_are_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / ".hidden").touch()
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert list_paths("") == ["file", "folder/"]
    assert list_paths("./fo") == ["./folder/"]
    assert list_paths("~/.h") == ["~/.hidden"]
    assert list_paths("nowhere/x") == list_paths("~nobody-here/x") == []


@pytest.mark.rows("R4.4t-17")
def test_a_draft_outlives_the_composer_and_the_application(fleet: Fleet, tmp_path: Path) -> None:
    fleet.register("drafted", harness="echo")
    conversation = fleet.ask("@drafted", "first words")["conversationId"]
    kept, note = tmp_path / "drafts.json", tmp_path / "note.txt"
    note.write_text("a note")

    async def write(stage: Stage) -> None:
        stage.app.show_record(conversation)
        await stage.shows("│ first words")
        await stage.type("half a thought")
        await stage.press("ctrl+o")
        await stage.shows("Attach a file")
        await stage.type(str(note))
        await stage.press("enter")
        await stage.shows("attached: note.txt")
        await stage.press("escape")
        await stage.hides("half a thought")
        await stage.press("c")
        await stage.type("@drafted")
        await stage.press("enter")
        await stage.type("another thought")

    async def continue_it(stage: Stage) -> None:
        await stage.press("c")
        await stage.shows("@drafted", "another thought")
        await stage.press("escape")
        stage.app.show_record(conversation)
        await stage.shows("half a thought", "attached: note.txt")
        await stage.type(", now whole")
        await stage.press("enter")
        await stage.shows(
            "│ half a thought, now whole", "attached: note.txt (6 bytes)", "✓ @drafted acknowledged"
        )

    play(fleet.shell, write, drafts=kept)
    assert kept.stat().st_mode & 0o777 == 0o600
    play(fleet.shell, continue_it, drafts=kept)
    assert set(DraftBook(kept)._drafts) == {"ask"}


def test_two_applications_keep_each_others_drafts(tmp_path: Path) -> None:
    file = tmp_path / "drafts.json"
    one, two = DraftBook(file), DraftBook(file)
    one.keep("ask", Draft(to="@arc", body="one"))
    two.keep("cnv_1", Draft(body="two"))
    one.save()
    two.save()
    assert DraftBook(file).get("ask") == Draft(to="@arc", body="one")
    assert DraftBook(file).get("cnv_1") == Draft(body="two")
    two.forget("cnv_1")
    two.save()
    assert DraftBook(file).get("cnv_1") == Draft()
    file.write_text("{broken")
    assert DraftBook(file).get("ask") == Draft()


def test_what_is_typed_while_a_message_is_refused_is_not_lost(fleet: Fleet, tmp_path: Path) -> None:
    fleet.register("refuser", harness="echo")
    conversation = fleet.ask("@refuser", "first words")["conversationId"]
    gone = tmp_path / "gone.txt"
    gone.write_text("soon gone")

    async def scene(stage: Stage) -> None:
        stage.app.show_record(conversation)
        await stage.shows("│ first words")
        await stage.type("with a file")
        await stage.press("ctrl+o")
        await stage.type(str(gone))
        await stage.press("enter")
        await stage.shows("attached: gone.txt")
        gone.unlink()
        await stage.press("enter")
        await stage.shows("Refused: bad_request", "cannot be read")
        await stage.press("escape")
        await stage.shows("with a file", "attached: gone.txt")

    play(fleet.shell, scene)


@pytest.mark.rows("R4.4t-7")
def test_fast_typing_goes_where_it_is_meant_to(fleet: Fleet) -> None:
    """Keys that arrive in one piece, as over a slow line: the text is not added to the address."""
    for number in range(7):
        fleet.register(f"fast-{number}", harness="echo")

    async def scene(stage: Stage) -> None:
        await stage.press("c")
        await stage.shows("Enter sends")
        for sign in "@fast-3\rquick\r":
            key = "enter" if sign == "\r" else sign
            stage.app.post_message(events.Key(key, sign))
        await stage.shows("@fast-3 · flt_", "│ quick")

    play(fleet.shell, scene)
