"""`export`: a conversation or a flight as Markdown."""

from typing import Any

import click

from scout.cli.connection.call import DaemonCall
from scout.cli.connection.refusal import RefusalError, build_remedy, repeat_typed
from scout.cli.connection.text import print_text
from scout.cli.operations.build import build_epilog, run_guarded
from scout.cli.operations.complete import complete_addresses
from scout.cli.operations.verbs import Options, print_result
from scout.cli.output.export import render_conversation, render_flight
from scout.protocol.asks import GetFlight
from scout.protocol.channels import GetConversation
from scout.protocol.talk import ListMessages

_PAGE = 200


@click.command("export", epilog=build_epilog("export"))
@click.argument("record", required=False, shell_complete=complete_addresses)
@click.option("--channel", metavar="NAME", help="Export the conversation of this channel.")
@click.option("--as", "act_as", metavar="ADDRESS", help="Act as this agent, if you may.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, with the text as `markdown`.")
def command(record: str | None, channel: str | None, act_as: str | None, as_json: bool) -> None:
    """Print a conversation or a flight as Markdown.

    RECORD: the id of a conversation or a flight, `last` for your last flight, or the address of an agent,
    for your direct conversation with it.

    What was written is quoted. Control characters in it are shown as escapes.
    """

    def work() -> int:
        line = Options(act_as=act_as).line()
        markdown = _build_markdown(line, record, channel)
        if as_json:
            print_result({"markdown": markdown}, "", as_json)
        else:
            print_text(markdown)
        return 0

    run_guarded(work, as_json)


def _build_markdown(line: DaemonCall, record: str | None, channel: str | None) -> str:
    if (record is None) == (channel is None):
        raise RefusalError.of(
            "bad_request", "name one conversation, flight, agent or channel", field="record"
        )
    if channel is not None:
        return _export_conversation(line, {"channel": channel})
    assert record is not None
    if record == "last" or record.startswith("flt_"):
        return render_flight(line.call(GetFlight.route, {"flightId": record}))
    if record.startswith(("@", "/")):
        try:
            return _export_conversation(line, {"to": record})
        except RefusalError as refused:
            raise RefusalError(repeat_typed(refused.told, record, "to")) from None
    return _export_conversation(line, {"conversation": record})


def _export_conversation(line: DaemonCall, which: dict[str, str]) -> str:
    messages: list[dict[str, Any]] = []
    parameters: dict[str, Any] = {**which, "limit": _PAGE}
    while True:
        page = line.call(ListMessages.route, parameters)
        messages += page["items"]
        if page["next"] is None:
            break
        parameters["cursor"] = page["next"]
    ident = messages[0]["conversationId"] if messages else which.get("conversation")
    if ident is None:
        latest = build_remedy("latest", "scout latest")
        raise RefusalError.of("not_found", "it has no messages yet", noun="message", remedies=[latest])
    return render_conversation(line.call(GetConversation.route, {"conversationId": ident}), messages)
