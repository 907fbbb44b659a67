"""Errors of the Cloud API: what they mean for a message, and how they are told."""

from scout.connectors.calls import Answer, decode_body, explain_status
from scout.connectors.wire import WireRecord
from scout.ports.connector import ConnectorError, FailureKind

_CREDENTIALS = {0, 3, 10, 190, 368, 131005, 131031, 131045}
_PERMISSIONS = range(200, 300)
_TEMPORARY = {1, 2, 4, 80007, 130429, 131000, 131016, 131048, 131056, 131057, 133004, 135000}
_UNCERTAIN = {1, 2, 131000, 135000}
_PAIR_WAIT = 6.0  # seconds between messages to one person, on average
_WORDS = {
    131026: "this person cannot be reached on WhatsApp",
    131030: "this number is not in the list of test recipients",
    131047: (
        "more than 24 hours have passed since this person last wrote. "
        "WhatsApp delivers an answer once they write again"
    ),
    131049: "WhatsApp did not deliver the message, to protect this person from too many messages",
    131053: "WhatsApp does not accept this kind of file, or its size",
}


class _Details(WireRecord):
    details: str = ""


class _Error(WireRecord):
    code: int
    message: str = ""
    error_data: _Details = _Details()


class _Failure(WireRecord):
    error: _Error


def explain(answer: Answer) -> ConnectorError | None:
    """Return the failure that an answer means. The code decides, not the status."""
    failure = explain_status(answer)
    if failure is None:
        return None
    try:
        error = decode_body(answer.body, _Failure).error
    except ConnectorError:
        return failure
    reason = describe_error(error.code, error.error_data.details or error.message)
    if error.code in _CREDENTIALS or error.code in _PERMISSIONS:
        return ConnectorError(FailureKind.CREDENTIALS, reason)
    if error.code not in _TEMPORARY:
        return ConnectorError(
            failure.kind, reason, retry_after=failure.retry_after, uncertain=failure.uncertain
        )
    wait = failure.retry_after or (_PAIR_WAIT if error.code == 131056 else None)
    may_have_acted = error.code in _UNCERTAIN or failure.uncertain
    return ConnectorError(FailureKind.RETRY, reason, retry_after=wait, uncertain=may_have_acted)


def describe_error(code: int, details: str) -> str:
    """Return an error in words that a person understands."""
    return f"{_WORDS.get(code, details or 'the message was not delivered')} (code {code})"
