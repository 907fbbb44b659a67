"""The settings record and the table of its keys."""

import math
import os
import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import inspect

from scout.base.codec import list_allowed_words, to_plain
from scout.base.record import Record
from scout.policy.limits import Rules
from scout.policy.tree.projects import ProjectRules
from scout.settings import where

Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
Word = Annotated[str, msgspec.Meta(min_length=1)]
Folder = Annotated[
    str, msgspec.Meta(pattern=r"^(/|~/|~$)[^\x00]*$", description="a path that begins with / or ~/")
]
# Lists of URLs are separated by blanks, because URLs contain colons.
Url = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^https?://[^\s/]+\S*$",
        description="an address that begins with http:// or https://",
        extra={"between": " "},
    ),
]
# The name of an environment variable; a trailing star matches any suffix.
Variable = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*\*?$",
        description="the name of a variable, such as OPENAI_*",
    ),
]
LogLevel = Literal["debug", "info", "warning", "error"]

_LOOPBACK = re.compile(r"localhost|::1|127(\.\d{1,3}){3}")
_MOST_SECONDS = 1e9  # thirty years; larger values exceed the range of stored times
_MOST = 2**53

# Settings that the daemon reads only at startup: sockets, sinks, log, buffer sizes.
_AT_START = frozenset(
    {
        "host", "port", "router", "environment", "logLevel",
        "notify.desktop", "notify.webhooks", "notify.secretFile",
        "telemetry.endpoint", "telemetry.bodies", "mcp.preload",
        "limits.streamBuffer", "limits.attachment", "periods.streamComment",
    }
)  # fmt: skip


class Notifying(Record):
    """Notifications for a person. The secret that signs webhooks is stored only in its file."""

    desktop: bool = True
    webhooks: tuple[Url, ...] = ()
    secret_file: Folder | None = None


class TelemetrySettings(Record):
    """Traces and metrics over OTLP. Nothing is sent without an endpoint."""

    endpoint: Url | None = None
    bodies: bool = False


class McpSettings(Record):
    """MCP. Its libraries are loaded while the daemon is idle, or only for the first client."""

    preload: bool = True


class Settings(Record):
    """All settings. `home` holds the data, `runtime` the socket; `config` is the config file.

    `projects`: the settings of each known project, by its real directory.
    """

    home: str
    config: str
    runtime: str
    host: Word = where.HOST
    port: Port = where.PORT
    autostart: bool = where.AUTOSTART
    harness: Word | None = None
    router: Word | None = None
    roots: tuple[Folder, ...] = ()
    environment: tuple[Variable, ...] = ()
    log_level: LogLevel = "info"
    mcp: McpSettings = McpSettings()
    notify: Notifying = Notifying()
    telemetry: TelemetrySettings = TelemetrySettings()
    rules: Rules = Rules()
    projects: dict[str, ProjectRules] = {}

    @property
    def database(self) -> str:
        return f"{self.home}/scout.db"

    @property
    def blobs(self) -> str:
        return f"{self.home}/blobs"

    @property
    def connectors(self) -> str:
        return f"{self.home}/connectors"

    @property
    def sessions(self) -> str:
        return f"{self.home}/sessions"

    @property
    def logs(self) -> str:
        return f"{self.home}/logs"

    @property
    def token(self) -> str:
        return f"{self.home}/token"

    @property
    def node_key(self) -> str:
        return f"{self.home}/node.key"

    @property
    def identity_key(self) -> str:
        """The file with the key that signs identity files of agents."""
        return f"{self.home}/identity.key"

    @property
    def page_key(self) -> str:
        """The file with the key that the web page's host name and secrets are derived from."""
        return f"{self.home}/web.key"

    @property
    def webhook_secret(self) -> str:
        """The file with the secret that signs webhooks."""
        return self.notify.secret_file or f"{self.home}/webhook.key"

    @property
    def lock(self) -> str:
        return f"{self.home}/lock"

    @property
    def socket(self) -> str:
        return f"{self.runtime}/scout.sock"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the port."""
        return _LOOPBACK.fullmatch(self.host) is not None


class Setting(Record):
    """One key: its type, its default, its environment variable and its flag."""

    key: str
    kind: Any
    default: Any

    @property
    def environment(self) -> str:
        return f"SCOUT_{_split_words(self.key, '_').upper()}"

    @property
    def needs_restart(self) -> bool:
        """Whether a running daemon keeps the old value until it is restarted."""
        return self.key in _AT_START

    @property
    def flag(self) -> str:
        return f"--{_split_words(self.key, '-')}"

    def check(self, value: object) -> Any:
        """Return the validated value; a ValueError says what was expected."""
        try:
            read = msgspec.convert(value, self.kind)
        except msgspec.ValidationError as error:
            if words := list_allowed_words(self.kind):
                raise ValueError(f"expected one of {', '.join(words)}") from None
            if "matching regex" in str(error):
                raise ValueError(f"expected {_describe_texts(self.kind)}") from None
            raise ValueError(f"{str(error)[:1].lower()}{str(error)[1:]}") from None
        if isinstance(read, float) and not (math.isfinite(read) and read <= _MOST_SECONDS):
            raise ValueError(f"expected at most {_MOST_SECONDS:.0f} seconds")
        if isinstance(read, int) and read > _MOST:
            raise ValueError(f"expected at most {_MOST}")
        return read

    def read(self, text: str) -> Any:
        """Return the value of a text from the environment, a flag or `config set`."""
        text.encode()  # text that is not UTF-8 is a ValueError too
        kinds = _list_kinds(self.kind)
        if inspect.NoneType in kinds and text.lower() == "none":
            return None
        if inspect.VarTupleType in kinds:
            return self.check([one for one in text.split(self._between) if one])
        return self.check(next(read for kind, read in _READERS.items() if kind in kinds)(text))

    def format(self, value: Any) -> str:
        """Return the value as text that `read` accepts."""
        if isinstance(value, bool) or value is None:
            return str(value).lower()
        if isinstance(value, float):
            return f"{value:g}" if float(f"{value:g}") == value else repr(value)
        return self._between.join(cast(tuple[str, ...], value)) if isinstance(value, tuple) else str(value)

    @property
    def _between(self) -> str:
        """The separator between the values of a list."""
        item = cast("inspect.VarTupleType", inspect.type_info(self.kind)).item_type
        extra: dict[str, str] = getattr(item, "extra", None) or {}
        return extra.get("between", os.pathsep)


def nest(values: dict[str, Any]) -> dict[str, Any]:
    """Return dotted keys as nested tables."""
    tables: dict[str, Any] = {}
    for key, value in values.items():
        *sections, name = key.split(".")
        table = tables
        for section in sections:
            table = table.setdefault(section, {})
        table[name] = value
    return tables


_READERS: dict[type[inspect.Type], Callable[[str], object]] = {
    inspect.BoolType: where.parse_truth,
    inspect.IntType: where.parse_whole,
    inspect.FloatType: float,
    inspect.LiteralType: str.lower,
    inspect.StrType: str,
}


def _describe_texts(kind: Any) -> str:
    """Return the description of the texts that a type, or each item of it, allows."""
    found = inspect.type_info(kind)
    if isinstance(found, inspect.UnionType):
        found = next(one for one in found.types if not isinstance(one, inspect.NoneType))
    item = found.item_type if isinstance(found, inspect.VarTupleType) else found
    noted: dict[str, Any] = getattr(item, "extra_json_schema", None) or {}
    return str(noted.get("description", "another text"))


def _list_kinds(kind: Any) -> set[type[inspect.Type]]:
    found = inspect.type_info(kind)
    types = found.types if isinstance(found, inspect.UnionType) else (found,)
    return {type(one.type if isinstance(one, inspect.Metadata) else one) for one in types}


def _split_words(key: str, between: str) -> str:
    return re.sub(r"(?=[A-Z])", between, key).replace(".", between).lower()


def _list_rows(record: type[Record], above: str = "") -> Iterator[Setting]:
    """Yield the keys of a record and its nested records, except `Rules`, whose sections are top-level."""
    for field in msgspec.structs.fields(record):
        key, kind = f"{above}{field.encode_name}", cast(object, field.type)
        if isinstance(kind, type) and issubclass(kind, Record):
            yield from _list_rows(kind, f"{key}.") if kind is not Rules else ()
        elif not field.required and field.name != "projects":
            yield Setting(key=key, kind=kind, default=field.default)


# The keys of one project.
PROJECT_SETTINGS: dict[str, Setting] = {row.key: row for row in _list_rows(ProjectRules)}

SETTINGS: dict[str, Setting] = {
    row.key: row
    for row in (replaced for replaced in _list_rows(Settings) if not replaced.key.startswith("rules."))
} | {row.key: row for row in _list_rows(Rules)}

SECTIONS = frozenset(
    ".".join(key.split(".")[:depth]) for key in SETTINGS for depth in range(1, key.count(".") + 1)
)


def list_values(settings: Settings) -> dict[str, Any]:
    """Return the value of each key."""
    tables = to_plain(settings)
    tables |= tables["rules"]
    return {key: get_value(tables, key) for key in SETTINGS}


def get_value(tables: Any, key: str) -> Any:
    """Return the value of a dotted key in nested tables."""
    for name in key.split("."):
        tables = tables[name]
    return tables
