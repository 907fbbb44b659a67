"""The results of the lexer: one record per form of address, distinguished by `form`."""

from scout.base.record import Record
from scout.identity.address import Address
from scout.identity.branch import BirthBranch
from scout.identity.path import AgentPath

# The ids that are valid addresses, by prefix.
ID_KINDS = {
    "agt": "agent",
    "ept": "endpoint",
    "ses": "session",
    "flt": "flight",
    "ask": "ask",
    "wrk": "work item",
    "cnv": "conversation",
}


class HandleName(Record, tag_field="form", tag="handle"):
    """A handle. `bare`: typed without `@` or qualifiers, so aliases and branches take precedence."""

    address: Address
    text: str
    bare: bool = False

    @property
    def canonical(self) -> str:
        return self.address.canonical


class PathName(Record, tag_field="form", tag="path"):
    path: AgentPath

    @property
    def canonical(self) -> str:
        return str(self.path)


class RelativeName(Record, tag_field="form", tag="relative"):
    """The caller (or its parent, if `up`) and suffixes below it."""

    text: str
    up: bool = False
    suffix: str = ""

    @property
    def canonical(self) -> str:
        return self.text


class RootName(Record, tag_field="form", tag="root"):
    canonical = "root"


class OperatorName(Record, tag_field="form", tag="operator"):
    canonical = "operator"


class BranchName(Record, tag_field="form", tag="branch"):
    """A birth branch; `branch` is set if the root branch is known."""

    text: str
    branch: BirthBranch | None = None

    @property
    def canonical(self) -> str:
        return self.text if self.branch else f"branch:{self.text}"


class IdName(Record, tag_field="form", tag="id"):
    kind: str
    id: str

    @property
    def canonical(self) -> str:
        return self.id


class SessionName(Record, tag_field="form", tag="session"):
    """A session by Scout's id, or by harness and native id."""

    id: str | None = None
    harness: str | None = None
    native_id: str | None = None

    @property
    def canonical(self) -> str:
        return f"session:{self.id or f'{self.harness}:{self.native_id}'}"


class ProjectName(Record, tag_field="form", tag="project"):
    directory: str

    @property
    def canonical(self) -> str:
        return f"project:{self.directory}"


class ChannelName(Record, tag_field="form", tag="channel"):
    name: str

    @property
    def canonical(self) -> str:
        return f"channel:{self.name}"


class AliasName(Record, tag_field="form", tag="alias"):
    name: str

    @property
    def canonical(self) -> str:
        return f"alias:{self.name}"


Name = (
    HandleName
    | PathName
    | RelativeName
    | RootName
    | OperatorName
    | BranchName
    | IdName
    | SessionName
    | ProjectName
    | ChannelName
    | AliasName
)
