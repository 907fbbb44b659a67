"""An agent that speaks the Agent Client Protocol and does what a line of a prompt says that begins with `!`.

    python acp_agent.py FOLDER [WORD ...]

It keeps what was said in FOLDER, a file a session. A word takes something away from it: `no-resume`,
`no-load`, `no-fork`, `no-modes`, `no-http`; `liar`: it says that it resumes all the same; `forgetful`: it loads what it does not know, too; `silent`: it says
nothing at all; `old`: it speaks another version; `locked`: it wants a key first.

    !fail TEXT · !login · !limit · !refusal · !hang · !stubborn · !die TEXT · !flood BYTES
    !ask · !scout · !file · !recall · !env NAME · !session · !plan

Anything else is said back.
"""

import json
import os
import queue
import sys
import threading
import uuid
from pathlib import Path
from typing import Any

FOLDER, WORDS = Path(sys.argv[1]), set(sys.argv[2:])
OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "ever", "name": "Yes, always", "kind": "allow_always"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]
MODES = ("default", "plan", "acceptEdits", "yolo")


class Agent:
    def __init__(self) -> None:
        self.sessions: dict[str, dict[str, Any]] = {}
        self.cancelled = threading.Event()
        self.answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self.asked = 0
        self.is_open = "locked" not in WORDS
        self.saying = threading.Lock()

    # -- saying ----------------------------------------------------------------------------------

    def say(self, **message: Any) -> None:
        with self.saying:
            print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

    def update(self, session: str, what: str, **fields: Any) -> None:
        params = {"sessionId": session, "update": {"sessionUpdate": what, **fields}}
        self.say(method="session/update", params=params)

    def speak(self, session: str, text: str, kind: str = "agent_message_chunk") -> None:
        self.update(session, kind, content={"type": "text", "text": text}, messageId=uuid.uuid4().hex)

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.asked += 1
        self.say(id=self.asked, method=method, params=params)
        return self.answers.get()

    # -- calls -----------------------------------------------------------------------------------

    def hear(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), message.get("params", {})
        if method is None:
            self.answers.put(message)
        elif method == "session/cancel":
            self.cancelled.set()
        elif method == "session/prompt":
            threading.Thread(target=self.answer, args=(message, self.prompted), daemon=True).start()
        else:
            self.answer(message, lambda: self.called(method, params))

    def answer(self, message: dict[str, Any], work: Any) -> None:
        try:
            done = work(message["params"]) if work == self.prompted else work()
        except ProblemError as found:
            self.say(id=message["id"], error=found.args[0])
        else:
            self.say(id=message["id"], result=done)

    def called(self, method: str, params: dict[str, Any]) -> Any:
        match method:
            case "initialize":
                return self.greeting()
            case "authenticate":
                self.is_open = True
                return {}
            case "session/new":
                return self.opened(uuid.uuid4().hex, params)
            case "session/fork" if "no-fork" not in WORDS:
                made = uuid.uuid4().hex
                file(made).write_text(require_known(params["sessionId"]))
                return self.opened(made, params)
            case "session/resume" if "no-resume" not in WORDS:
                require_known(params["sessionId"])
                return self.opened(params["sessionId"], params)
            case "session/load" if "no-load" not in WORDS:
                said = "[]" if "forgetful" in WORDS else require_known(params["sessionId"])
                for text in json.loads(said):
                    self.speak(params["sessionId"], text, "user_message_chunk")
                return self.opened(params["sessionId"], params)
            case "session/set_mode":
                self.sessions[params["sessionId"]]["mode"] = params["modeId"]
                return {}
            case "session/set_config_option":
                self.sessions[params["sessionId"]][params["configId"]] = params["value"]
                return {}
            case _:
                raise ProblemError({"code": -32601, "message": f"no method {method}"})

    def greeting(self) -> dict[str, Any]:
        can: dict[str, Any] = {name: {} for name in ("resume", "fork") if f"no-{name}" not in WORDS}
        return {
            "protocolVersion": 2 if "old" in WORDS else 1,
            "agentCapabilities": {
                "loadSession": "no-load" not in WORDS,
                "mcpCapabilities": {"http": "no-http" not in WORDS},
                "sessionCapabilities": {**can, **({"resume": {}} if "liar" in WORDS else {})},
            },
            "authMethods": [{"id": "person", "name": "x"}, {"id": "key", "vars": [{"name": "AGENT_KEY"}]}],
        }

    def opened(self, session: str, params: dict[str, Any]) -> dict[str, Any]:
        if not self.is_open:
            raise ProblemError({"code": -32000, "message": "Authentication required"})
        self.sessions[session] = {"mode": "default", "model": "small", "servers": params["mcpServers"]}
        models = [{"value": one, "name": one.title()} for one in ("small", "large")]
        option = {"id": "model", "category": "model", "currentValue": "small", "options": models}
        made: dict[str, Any] = {"configOptions": [{"id": "x", "options": [option]}, option]}
        if "no-modes" not in WORDS:
            offered = [{"id": one, "name": one} for one in MODES]
            made["modes"] = {"currentModeId": "default", "availableModes": offered}
        return {"sessionId": session, **made}

    # -- turns -----------------------------------------------------------------------------------

    def prompted(self, params: dict[str, Any]) -> dict[str, Any]:
        session, text = params["sessionId"], params["prompt"][0]["text"]
        before = json.loads(file(session).read_text() if file(session).exists() else "[]")
        file(session).write_text(json.dumps([*before, text]))
        self.cancelled.clear()
        said = (line.removeprefix("> ") for line in text.splitlines())  # as a broker quotes a person
        lines = (line for line in said if line.startswith("!"))
        word, _, rest = next(lines, "").partition(" ")
        usage = {"inputTokens": 7, "outputTokens": 5, "totalTokens": 12}
        reason = self.done(session, word, rest, text, before)
        return {"stopReason": reason, "usage": usage}

    def done(self, session: str, word: str, rest: str, text: str, before: list[str]) -> str:
        """Why the turn is over."""
        if word in ("!fail", "!login", "!limit"):
            raise ProblemError(problem(word, rest))
        if word in ("!hang", "!stubborn", "!die", "!flood"):
            self.stuck(session, word, rest)
            return "cancelled"
        if word == "!refusal":
            return "refusal"
        return self.said(session, word, rest, text, before)

    def stuck(self, session: str, word: str, rest: str) -> None:
        """It does not end by itself, or not well."""
        if word == "!die":
            print(rest, file=sys.stderr, flush=True)
            os._exit(3)
        if word == "!flood":
            self.speak(session, "x" * int(rest))
        (self.cancelled if word == "!hang" else threading.Event()).wait()

    def said(self, session: str, word: str, rest: str, text: str, before: list[str]) -> str:
        match word:
            case "!ask" | "!scout":
                return self.permitted(session, word == "!scout")
            case "!file":
                refused = self.ask("fs/read_text_file", {"sessionId": session, "path": rest})
                self.speak(session, str(refused["error"]["code"]))
            case "!recall":
                self.speak(session, " | ".join(before))
            case "!env":
                self.speak(session, os.environ.get(rest, "nothing"))
            case "!session":
                self.speak(session, json.dumps(self.sessions[session]))
            case "!plan":
                entries = [
                    {"content": "one", "status": "completed"},
                    {"content": "two", "status": "in_progress"},
                ]
                self.update(session, "plan", entries=entries)
                self.speak(session, "planned")
            case _:
                half = len(text) // 2
                for part in (text[:half], text[half:]):
                    self.update(session, "agent_message_chunk", content={"type": "text", "text": part})
        return "end_turn"

    def permitted(self, session: str, of_scout: bool) -> str:
        name = "mcp__scout_run__count" if of_scout else "Bash"
        call = {
            "toolCallId": "t1",
            "title": "make a thing",
            "kind": "execute",
            "rawInput": {"command": "make"},
        }
        self.speak(session, "let me see")
        self.update(session, "tool_call", **call, _meta={"claudeCode": {"toolName": name}})
        params = {"sessionId": session, "toolCall": {"toolCallId": "t1"}, "options": OPTIONS}
        answer = self.ask("session/request_permission", params)["result"]["outcome"]
        if answer["outcome"] == "cancelled":
            return "cancelled"
        self.speak(session, f"they said {answer['optionId']}")
        return "end_turn"


class ProblemError(Exception):
    """An error of the protocol."""


def problem(word: str, rest: str) -> dict[str, Any]:
    if word == "!login":
        return {"code": -32000, "message": "Authentication required"}
    if word == "!limit":
        return {"code": -32603, "message": "no more", "data": {"errorKind": "rate_limit"}}
    return {"code": -32603, "message": f"Internal error: {rest}"}


def file(session: str) -> Path:
    return FOLDER / f"{session}.json"


def require_known(session: str) -> str:
    if not file(session).exists():
        raise ProblemError({"code": -32002, "message": f"Resource not found: {session}"})
    return file(session).read_text()


def main() -> None:
    agent = Agent()
    for line in sys.stdin:
        if "silent" not in WORDS:
            agent.hear(json.loads(line))


if __name__ == "__main__":
    main()
