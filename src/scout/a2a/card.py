"""The card of a published agent: who it is, what it can do, and where it answers."""

from typing import Any

from scout.protocol.agents import Publication

# The media types of the parts that an agent is given: text in its prompt, the others as files.
INPUT_MODES = (
    "text/plain",
    "text/markdown",
    "text/html",
    "text/csv",
    "application/json",
    "application/octet-stream",
    "application/pdf",
    "application/zip",
    "image/gif",
    "image/jpeg",
    "image/png",
    "image/webp",
)
OUTPUT_MODES = ("text/plain", "text/markdown", "application/json", "application/octet-stream")

_VERSION = "1.0"
_BULLETS = ("- ", "* ")
_LONGEST_NAME = 60


def build_card(published: Publication, version: str) -> dict[str, Any]:
    """Return the card as JSON has it."""
    about = published.description or f"The agent {published.name}."
    bindings = ("JSONRPC", "HTTP+JSON")
    return {
        "name": published.name,
        "description": about,
        "version": version,
        "supportedInterfaces": [
            {"url": published.url, "protocolBinding": one, "protocolVersion": _VERSION} for one in bindings
        ],
        "capabilities": {"streaming": True, "pushNotifications": False, "extendedAgentCard": False},
        "securitySchemes": {"bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}},
        "securityRequirements": [{"schemes": {"bearer": {"list": []}}}],
        "defaultInputModes": list(INPUT_MODES),
        "defaultOutputModes": list(OUTPUT_MODES),
        "skills": _build_skills(published.name, about),
    }


def _build_skills(name: str, about: str) -> list[dict[str, Any]]:
    """Return a skill for each bullet of a description; without bullets, the description is one."""
    lines = [line.strip() for line in about.splitlines()]
    bullets = [line[2:].strip() for line in lines if line.startswith(_BULLETS)]
    texts = [text for text in bullets if text] or [" ".join(about.split())]
    return [
        {
            "id": f"skill-{number}",
            "name": text.partition(". ")[0].partition(": ")[0][:_LONGEST_NAME],
            "description": text,
            "tags": [name],
        }
        for number, text in enumerate(texts, 1)
    ]
