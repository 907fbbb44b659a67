"""Parameter types that many requests share, each described once for every surface."""

from typing import Annotated

import msgspec


def describe(text: str) -> msgspec.Meta:
    """Attach a description to a parameter; help, OpenAPI and MCP schemas show it."""
    return msgspec.Meta(description=text)


# No name, id or key is longer than this. Longer text is refused before anything reads it.
Words = Annotated[str, msgspec.Meta(max_length=4096)]
Key = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]

Address = Annotated[Words, describe("a handle, path, birth branch, alias, id or project:DIR")]
Body = Annotated[str, describe("Markdown text, maximum 256 KiB")]
Cursor = Annotated[Words | None, describe("the `next` value of the previous page")]
Limit = Annotated[int | None, describe("page size; default 50, maximum 200")]
At = Annotated[
    Words | None,
    describe("show it as it was: a time, a while such as '10 minutes ago', or a sequence number of the log"),
]
Revision = Annotated[int | None, describe("the revision you read; refused if the record has changed since")]
