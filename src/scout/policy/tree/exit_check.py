"""The exit check: what an agent still owes when it is about to stop. It gets one notice."""

from scout.base.record import Record
from scout.policy.limits import ExitCheck
from scout.policy.prompt import is_shell

_FILES = "files"  # the key of uncommitted files
_SHOWN = 5
_LONGEST = 80


class OwedAsk(Record):
    """A flight that the agent took and has not answered."""

    flight_id: str
    message_id: str
    sender: str


class OwedAnswer(Record):
    """An open question to the agent."""

    question_id: str
    asker: str
    body: str


class OwedWork(Record):
    """A work item whose owner is the agent, and which neither waits nor is in review."""

    work_item_id: str
    title: str


class OpenObligations(Record):
    """Everything that an agent owes. `files`: uncommitted files of its work tree, if it was spawned."""

    asks: tuple[OwedAsk, ...] = ()
    questions: tuple[OwedAnswer, ...] = ()
    work: tuple[OwedWork, ...] = ()
    folder: str = ""
    files: tuple[str, ...] = ()
    more_files: int = 0

    @property
    def keys(self) -> tuple[str, ...]:
        """Return what identifies each of them."""
        asks = (one.flight_id for one in self.asks)
        questions = (one.question_id for one in self.questions)
        work = (one.work_item_id for one in self.work)
        return (*asks, *questions, *work, *((_FILES,) if self.files else ()))


class ExitDecision(Record):
    """The text for the agent, empty if there is none. `blocks`: it is to continue now.

    `told`: what the agent has been told so far and still owes.
    """

    text: str = ""
    blocks: bool = False
    told: tuple[str, ...] = ()


def decide_exit(owed: OpenObligations, told: tuple[str, ...], check: ExitCheck, harness: str) -> ExitDecision:
    """Tell the agent what it owes if any of it is new; the same obligations are reported once."""
    keys = owed.keys
    if check == "clean" or set(keys) <= set(told):
        return ExitDecision(told=tuple(key for key in keys if key in told))
    return ExitDecision(text=format_obligations(owed, harness), blocks=check == "block", told=keys)


def format_obligations(owed: OpenObligations, harness: str) -> str:
    """Return what the agent owes, each with the call that settles it in the syntax of its harness."""
    shell = is_shell(harness)
    lines = [
        *(_format_ask(one, shell) for one in owed.asks),
        *(_format_question(one, shell) for one in owed.questions),
        *(_format_work(one, shell) for one in owed.work),
        *((_format_files(owed),) if owed.files else ()),
    ]
    return "\n".join(
        (
            "Scout: before you stop, you still owe:",
            *(f"- {line}" for line in lines),
            "Settle these now, or mark work as waiting. If you cannot, stop again: this notice is sent once.",
        )
    )


def _format_ask(owed: OwedAsk, shell: bool) -> str:
    mcp = f'`messages_reply {{body, inReplyTo: "{owed.message_id}"}}`'
    call = f"`scout reply --to {owed.message_id} TEXT`" if shell else mcp
    return f"the answer to {owed.sender} ({owed.flight_id}): {call}"


def _format_question(owed: OwedAnswer, shell: bool) -> str:
    mcp = f'`question_answer {{questionId: "{owed.question_id}", answer}}`'
    call = f"`scout question answer {owed.question_id} TEXT`" if shell else mcp
    return f"an answer to {owed.asker}, who asks: {_shorten_text(owed.body)} {call}"


def _format_work(owed: OwedWork, shell: bool) -> str:
    ident = owed.work_item_id
    review = f'`work_update {{workItemId: "{ident}", state: "review", summary}}`'
    wait = f'`work_update {{workItemId: "{ident}", state: "waiting", waitingOn}}`'
    if shell:
        review, wait = (
            f"`scout work submit {ident} TEXT`",
            f"`scout work wait {ident} --on actor --ref ADDRESS`",
        )
    return f"the work item {ident} ({_shorten_text(owed.title)}): {review}, or {wait}"


def _format_files(owed: OpenObligations) -> str:
    shown = owed.files[:_SHOWN]
    left = len(owed.files) - len(shown) + owed.more_files
    names = ", ".join(shown) + (f" and {left} more" if left else "")
    return f"a commit of the changes in {owed.folder}: {names}"


def _shorten_text(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
