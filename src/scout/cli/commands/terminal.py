"""`scout open`: opens an agent's session in this terminal, and returns it when its program ends."""

import json
import os
import signal
import sys
from typing import Any

import click

from scout.cli.connection.call import DaemonCall
from scout.cli.connection.refusal import RefusalError, build_remedy, repeat_typed
from scout.cli.connection.text import note, print_out
from scout.cli.operations.build import build_epilog, run_guarded
from scout.cli.operations.complete import complete_addresses
from scout.cli.operations.verbs import Options
from scout.client.session_files import read_process_start

_NOT_FOUND = 127


@click.command("open", epilog=build_epilog("open"))
@click.argument("address", shell_complete=complete_addresses)
@click.option("--as", "act_as", metavar="ADDRESS", help="Act as this agent, if you may.")
@click.option("--print", "printed", is_flag=True, help="Only print which session it would be.")
@click.option("--json", "as_json", is_flag=True, help="With --print: one JSON object.")
def command(address: str, act_as: str | None, printed: bool, as_json: bool) -> None:
    """Continue an agent's session in this terminal. Scout takes it back when its program ends.

    ADDRESS: any spelling of an agent, or a session's id. An agent without a session gets one. Meanwhile
    you are its only writer: asks from others wait until you are done.
    """
    manner = Options(act_as=act_as, as_json=as_json)
    run_guarded(lambda: _open_terminal(manner, address, printed), as_json)


def _open_terminal(manner: Options, address: str, printed: bool) -> int:
    line = manner.line()
    ident = address if address.startswith("ses_") else _find_session(line, address)
    if printed:
        print_out(json.dumps({"sessionId": ident}) if manner.as_json else ident)
        return 0
    if not sys.stdin.isatty():
        problem = "this command needs a terminal"
        raise RefusalError.of(
            "bad_request",
            problem,
            remedies=[build_remedy("session.inspect", f"scout session inspect {ident}")],
        )
    return _open_session(line, ident)


def _find_session(line: DaemonCall, address: str) -> str:
    """Return the newest live session that Scout runs for an agent; wake the agent if there is none."""
    try:
        sessions = line.call("GET /v1/agents/{address}", {"address": address})["sessions"]
        live = [one["id"] for one in sessions if one["state"] == "live" and one["origin"] != "enrolled"]
        if live:
            return max(live)
        return str(line.call("POST /v1/agents/{address}/wake", {"address": address})["sessionId"])
    except RefusalError as problem:
        raise RefusalError(repeat_typed(problem.told, address, "address")) from None


def _open_session(line: DaemonCall, ident: str) -> int:
    """Fork a process that waits until the session is opened for it; the broker sees when it ends."""
    gate, key = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(key)
        _exec_program(gate)
    os.close(gate)
    try:
        wish = {"sessionId": ident, "pid": pid, "pidStarted": read_process_start(pid)}
        told = line.call("POST /v1/sessions/{sessionId}/open", wish)
        os.write(key, json.dumps(told).encode())
    except BaseException:
        os.close(key)
        os.waitpid(pid, 0)
        raise
    os.close(key)
    code = _wait_for_program(pid)
    line.call("POST /v1/sessions/{sessionId}/close", {"sessionId": ident})
    note(f"scout: {ident} was returned to Scout")
    return code


def _wait_for_program(pid: int) -> int:
    """Wait for the program and return its exit code. Ctrl-C and Ctrl-\\ only reach the program."""
    before = {one: signal.signal(one, signal.SIG_IGN) for one in (signal.SIGINT, signal.SIGQUIT)}
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _exec_program(gate: int) -> None:
    """Replace this process with the program that continues the session, once it is allowed."""
    with os.fdopen(gate, "rb") as file:
        data = file.read()
    told: dict[str, Any] = json.loads(data) if data else {}
    try:
        if told:
            os.chdir(told.get("cwd") or ".")
            words = [str(one) for one in told["command"]]
            os.execvpe(words[0], words, {**os.environ, **told.get("environment", {})})
    except OSError as error:
        note(f"scout: {error}")
        os._exit(_NOT_FOUND)
    os._exit(0)
