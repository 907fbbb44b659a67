"""The six dimensions of a handle and its canonical text."""

from scout.base.record import Record
from scout.identity.problem import build_malformed
from scout.identity.segment import is_folded

# Applies to typed and to canonical text, so that printed addresses can be parsed again.
MAX_LENGTH = 1024

# The dimensions after the definition, in canonical order, with their text keys.
QUALIFIERS = {
    "workspace_qualifier": "",
    "profile": "profile:",
    "harness": "harness:",
    "model": "model:",
    "node": "node:",
}


class Address(Record, omit_defaults=True):
    """A parsed handle. Every dimension is a folded segment; absent ones are None."""

    definition_id: str
    workspace_qualifier: str | None = None
    profile: str | None = None
    harness: str | None = None
    model: str | None = None
    node: str | None = None

    def __post_init__(self) -> None:
        for name in ("definition_id", *QUALIFIERS):
            value: str | None = getattr(self, name)
            if value is not None and not is_folded(value):
                raise build_malformed(
                    value, 0, f"{name} '{value[:60]}' is not folded", "a-z, 0-9 and single '-'"
                )
        if len(self.canonical) > MAX_LENGTH:
            raise build_malformed(
                self.canonical, MAX_LENGTH, "too much text", f"at most {MAX_LENGTH} characters"
            )

    @property
    def canonical(self) -> str:
        """The canonical text: `@definition.workspace.profile:x.harness:x.model:x.node:x`."""
        parts = ((key, getattr(self, name)) for name, key in QUALIFIERS.items())
        return "@" + ".".join([self.definition_id, *(f"{key}{value}" for key, value in parts if value)])

    @property
    def is_bare(self) -> bool:
        """Whether the address has only a definition and no qualifier, like an alias."""
        return not any(getattr(self, name) for name in QUALIFIERS)

    def without(self, dimension: str) -> "Address":
        """Return the same address without one dimension."""
        kept = {name: getattr(self, name) for name in QUALIFIERS if name != dimension}
        return Address(definition_id=self.definition_id, **kept)
