"""A message of a client as Scout takes it: its text and its files."""

import json
from typing import Any, NamedTuple

from a2a.types import a2a_pb2
from a2a.utils.errors import ContentTypeNotSupportedError, InvalidParamsError
from google.protobuf.json_format import MessageToDict

from scout.a2a.card import INPUT_MODES
from scout.protocol.scout import Scout
from scout.protocol.talk import PutBlob

_ANY_BYTES = "application/octet-stream"


class ClientFile(NamedTuple):
    name: str
    media_type: str
    data: bytes


class ClientMessage(NamedTuple):
    """The text of a message, and the files that it carries. Scout does not fetch what a part only links."""

    text: str
    files: tuple[ClientFile, ...] = ()


def read_message(message: a2a_pb2.Message) -> ClientMessage:
    """Return the text and the files of a message; refuse media types that the card does not name."""
    texts: list[str] = []
    files: list[ClientFile] = []
    for number, part in enumerate(message.parts, 1):
        _check_media_type(part.media_type)
        match part.WhichOneof("content"):
            case "text":
                texts.append(part.text)
            case "data":
                texts.append(f"```json\n{_format_data(part)}\n```")
            case "url":
                texts.append(f"{part.filename or 'file'}: {part.url}")
            case "raw":
                name = part.filename.rpartition("/")[2] or f"file-{number}"
                files.append(ClientFile(name, part.media_type or _ANY_BYTES, part.raw))
            case _:
                raise InvalidParamsError(message=f"part {number} of the message is empty")
    text = "\n\n".join(one for one in texts if one.strip())
    if not text and not files:
        raise InvalidParamsError(message="the message has no text and no file")
    return ClientMessage(text or "See the attached files.", tuple(files))


async def store_files(scout: Scout, files: tuple[ClientFile, ...]) -> tuple[str, ...]:
    """Store the files of a message; return them as an ask names them."""
    stored = [
        await scout.call(PutBlob(name=one.name, media_type=one.media_type, data=one.data)) for one in files
    ]
    return tuple(f"{one.sha256}:{one.name}" for one in stored)


def _check_media_type(media_type: str) -> None:
    kind = media_type.partition(";")[0].strip().lower()
    if kind and kind not in INPUT_MODES:
        told = f"the media type {media_type[:60]} is not supported; supported: {', '.join(INPUT_MODES)}"
        raise ContentTypeNotSupportedError(message=told)


def _format_data(part: a2a_pb2.Part) -> str:
    plain: dict[str, Any] = MessageToDict(part)
    return json.dumps(plain.get("data"), ensure_ascii=False, indent=2)
