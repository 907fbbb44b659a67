"""The browsable page of all operations: plain HTML, no scripts, no external resources."""

import base64
import functools
import hashlib
from html import escape
from typing import Any

from scout.api.asgi import Response
from scout.api.openapi import build_document

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
:root { color-scheme: light dark; }
code, dt { font-family: ui-monospace, monospace; }
summary { cursor: pointer; padding: .3rem 0; } summary b { display: inline-block; min-width: 4.5rem; }
dl { margin: .3rem 0 1rem 1.5rem; } dd { margin-left: 1.5rem; }
nav a { margin-right: .8rem; }
"""
_DIGEST = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY = f"default-src 'none'; style-src 'sha256-{_DIGEST}'; frame-ancestors 'none'; base-uri 'none'"
_HEADERS = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)


@functools.cache
def build_page(version: str) -> Response:
    """Return the page, built once from the OpenAPI document."""
    described = build_document(version)
    groups: dict[str, list[str]] = {}
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            groups.setdefault(operation["tags"][0], []).append(_render_operation(method, path, operation))
    links = "".join(f'<a href="#{escape(tag)}">{escape(tag)}</a>' for tag in groups)
    sections = "".join(
        f'<h2 id="{escape(tag)}">{escape(tag)}</h2>{"".join(rows)}' for tag, rows in groups.items()
    )
    html = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Scout {escape(version)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
        f"<h1>Scout {escape(version)} over HTTP</h1><p>{escape(described['info']['description'])}</p>"
        f'<p>As data: <a href="/openapi.json">openapi.json</a></p><nav>{links}</nav>{sections}</html>'
    )
    return Response(html.encode(), headers=_HEADERS)


def _render_operation(method: str, path: str, operation: dict[str, Any]) -> str:
    rows = [
        (one["name"], one.get("description", ""), one["in"], one["required"])
        for one in operation["parameters"]
        if "name" in one
    ]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    required: list[str] = body.get("required", [])
    rows += [
        (name, kind.get("description", ""), "body", name in required)
        for name, kind in body.get("properties", {}).items()
    ]
    fields = "".join(_render_field(*row) for row in rows)
    return (
        f"<details><summary><b>{escape(method.upper())}</b><code>{escape(path)}</code> "
        f"{escape(operation['summary'])}</summary><p>{escape(operation['description'])} "
        f"Operation <code>{escape(operation['operationId'])}</code>.</p><dl>{fields}</dl></details>"
    )


def _render_field(name: str, says: str, place: str, required: bool) -> str:
    needed = "required" if required else "optional"
    return f"<dt>{escape(name)}</dt><dd>{escape(says)} <i>({place}, {needed})</i></dd>"
