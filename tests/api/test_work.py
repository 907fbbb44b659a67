"""Questions and work over HTTP: what is created, what is refused with which status, and under either name."""

import pytest

from tests.daemon.daemons import Daemon


@pytest.mark.rows("R3.1-33", "R2.1-17")
def test_a_question_and_the_work_of_its_answer(live: Daemon) -> None:
    lark, wren = live.register("lark")["token"], live.register("wren")["token"]
    made = live.call("POST", "/v1/questions", {"to": "@wren", "body": "Which port?"}, token=lark)
    assert (made.status, made.json["state"]) == (201, "open")
    ident = made.json["id"]
    answer = {"answer": "80", "spawnWork": {"title": "Open it", "ownerId": "@wren"}}
    foreign = live.call("POST", f"/v1/questions/{ident}/answer", answer, token=live.register("owl")["token"])
    assert (foreign.status, foreign.json["code"]) == (403, "not_owner")
    odd = {"answer": "80", "spawnWork": {"title": "Open it", "owner": "@wren"}}
    assert live.call("POST", f"/v1/questions/{ident}/answer", odd, token=wren).status == 400
    done = live.call("POST", f"/v1/questions/{ident}/answer", answer, token=wren).json
    assert (done["state"], done["workItem"]["questionId"]) == ("answered", ident)
    again = live.call("POST", f"/v1/questions/{ident}/answer", answer, token=wren)
    assert (again.status, again.json["code"], again.json["accepts"]) == (
        409,
        "wrong_state",
        ["close", "reopen"],
    )
    listed = live.call("GET", "/v1/questions?owed=true", token=lark).json
    assert [one["id"] for one in listed["items"]] == [ident]
    assert live.call("GET", "/v1/questions/qst_nobody", token=lark).status == 404


@pytest.mark.rows("R3.1-33", "R4.2-7", "R2.2-72")
def test_work_is_moved_by_a_post_for_each_move(live: Daemon) -> None:
    kite, ibis = live.register("kite")["token"], live.register("ibis")["token"]
    made = live.call("POST", "/v1/work", {"title": "Build", "ownerId": "@ibis"}, token=kite)
    assert (made.status, made.json["workId"]) == (201, made.json["id"])
    path = f"/v1/work/{made.json['id']}"
    assert live.call("POST", f"{path}/start", {"revision": 1}, token=ibis).json["state"] == "working"
    stale = live.call("POST", f"{path}/submit", {"revision": 1}, token=ibis)
    assert (stale.status, stale.json["code"], stale.json["current"]) == (409, "wrong_revision", 2)
    waits = {"on": "actor", "ref": "@kite", "reason": "which one?"}
    assert live.call("POST", f"{path}/wait", waits, token=ibis).json["nextMoveAddress"].startswith("@kite")
    assert live.call("POST", f"{path}/resume", {}, token=kite).json["state"] == "working"
    assert live.call("PATCH", path, {"labels": ["ci"]}, token=kite).json["labels"] == ["ci"]
    assert live.call("POST", f"{path}/submit", {"summary": "green"}, token=ibis).json["state"] == "review"
    assert live.call("POST", f"{path}/accept", {}, token=kite).json["state"] == "done"
    steps = live.call("GET", path, token=kite).json["steps"]
    moves = ["create", "start", "wait", "resume", "update", "submit", "accept"]
    assert [one["move"] for one in steps] == moves
    assert live.call("GET", "/v1/work", token=kite).json["items"] == []
    assert len(live.call("GET", "/v1/work?all=true&label=ci", token=kite).json["items"]) == 1
