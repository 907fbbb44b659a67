"""References between records: `<noun>:<id>`, used for the source and target of events."""

import functools
from enum import StrEnum

from scout.base.ids import parse_prefix
from scout.base.refusal import BadRequest, Refused


class RefKind(StrEnum):
    """The nouns that can be the source or target of an event."""

    AGENT = "agent"
    ALLOWANCE = "allowance"
    ALIAS = "alias"
    ARCHIVE = "archive"
    ASK = "ask"
    ATTENTION = "attention"
    BINDING = "binding"
    CARD = "card"
    CHAT_POST = "chat_post"
    CONVERSATION = "conversation"
    DELIVERY = "delivery"
    ENDPOINT = "endpoint"
    ENVELOPE = "envelope"
    FLIGHT = "flight"
    GRANT = "grant"
    INVITATION = "invitation"
    KEY = "key"
    LINK_CODE = "link_code"
    MESSAGE = "message"
    NODE = "node"
    QUESTION = "question"
    RESERVATION = "reservation"
    SCHEDULE = "schedule"
    SESSION = "session"
    TOKEN = "token"
    USAGE = "usage"
    USER = "user"
    WORK = "work"


PREFIXES = {
    RefKind.AGENT: "agt",
    RefKind.ALLOWANCE: "alw",
    RefKind.ALIAS: "als",
    RefKind.ARCHIVE: "arc",
    RefKind.ASK: "ask",
    RefKind.ATTENTION: "att",
    RefKind.BINDING: "bnd",
    RefKind.CARD: "crd",
    RefKind.CHAT_POST: "pst",
    RefKind.CONVERSATION: "cnv",
    RefKind.DELIVERY: "dlv",
    RefKind.ENDPOINT: "ept",
    RefKind.ENVELOPE: "env",
    RefKind.FLIGHT: "flt",
    RefKind.GRANT: "grt",
    RefKind.INVITATION: "inv",
    RefKind.KEY: "key",
    RefKind.LINK_CODE: "lnk",
    RefKind.MESSAGE: "msg",
    RefKind.NODE: "nod",
    RefKind.QUESTION: "qst",
    RefKind.RESERVATION: "rsv",
    RefKind.SCHEDULE: "sch",
    RefKind.SESSION: "ses",
    RefKind.TOKEN: "tok",
    RefKind.USAGE: "usg",
    RefKind.USER: "usr",
    RefKind.WORK: "wrk",
}
_NOUNS = {prefix: str(kind) for kind, prefix in PREFIXES.items()}


class Ref(str):
    """`<noun>:<id>`, as in `agent:agt_…`; the noun matches the id's prefix."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: object) -> "Ref":
        """Return the reference; refuse malformed text."""
        noun, _, ident = text.partition(":") if isinstance(text, str) else ("", "", "")
        if not noun or _NOUNS.get(parse_prefix(ident) or "") != noun:
            problem = f"expected a reference such as agent:agt_…, got {text!r:.60}"
            raise Refused(BadRequest(problem=problem))
        return cls(text)

    @staticmethod
    @functools.lru_cache(maxsize=8192)
    def to(ident: str) -> "Ref":
        """Return the reference to a record from its id; cached, because the same ids recur."""
        noun = _NOUNS.get(parse_prefix(ident) or "")
        if noun is None:
            raise Refused(BadRequest(problem=f"{ident!r:.60} is not the id of a record"))
        return Ref(f"{noun}:{ident}")

    @property
    def kind(self) -> RefKind:
        return RefKind(self.partition(":")[0])

    @property
    def id(self) -> str:
        return self.partition(":")[2]
