"""The API's description as one page for people: every address, every field. No script, nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

METHODS = ("get", "post", "put", "patch", "delete")
_PREFIX = "#/components/schemas/"

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1c1c1e; background: #fff }
table { border-collapse: collapse; width: 100%; margin: 0.5rem 0 } td, th { text-align: left; vertical-align: top; padding: 0.2rem 0.75rem 0.2rem 0; border-bottom: 1px solid #ddd } td:nth-child(4) { overflow-wrap: anywhere }
h2 { margin-top: 2.5rem; border-bottom: 1px solid #ddd } code { font-size: 0.95em } .verb { font-weight: 700; display: inline-block; min-width: 4.5rem }
section { margin: 1.25rem 0 } p { margin: 0.25rem 0 } .quiet { color: #5c5c66 }
@media (prefers-color-scheme: dark) { body { color: #eee; background: #16161a } .quiet { color: #a5a5b0 } h2, td, th { border-color: #444 } a { color: #9cf } }
"""  # noqa: E501 - a style sheet
STYLE_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()


def render(schema: dict[str, Any]) -> str:
    """The page."""
    groups: dict[str, list[str]] = {}
    for path, operations in schema.get("paths", {}).items():
        for method, operation in operations.items():
            if method in METHODS:
                group = (operation.get("tags") or ["other"])[0]
                groups.setdefault(str(group), []).append(_operation(method, path, operation))
    parts = [f"<h2>{escape(name)}</h2>{''.join(found)}" for name, found in groups.items()]
    parts.append("<h2>shapes</h2>" + "".join(_shape(*one) for one in sorted(schema["components"]["schemas"].items())))
    title = escape(f"{schema['info']['title']} {schema['info']['version']}")
    intro = (
        "<p>Send a token with every request: <code>Authorization: Bearer wk_…</code> "
        "(<code>wakeful token create NAME --role ROLE</code>). The same for programs: "
        '<a href="/api/openapi.json">openapi.json</a>.</p>'
    )
    head = f'<meta charset="utf-8"><title>{title}: API</title><style>{STYLE}</style>'
    return (
        f'<!doctype html><html lang="en"><head>{head}</head><body><h1>{title}</h1>{intro}{"".join(parts)}</body></html>'
    )


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    about = escape(str(operation.get("description") or operation.get("summary") or ""))
    given = _table(
        (str(one["name"]), {**one["schema"], "description": one.get("description", "")}, one.get("required", False))
        for one in operation.get("parameters", [])
    )
    body = " or ".join(_contents(operation.get("requestBody", {})))
    taken = f"<p>takes {body}</p>" if body else ""
    answers = ", ".join(
        f"{escape(status)} {' or '.join(_contents(response))}".strip()
        for status, response in sorted(operation.get("responses", {}).items())
    )
    return (
        f'<section><p><span class="verb">{method.upper()}</span> <code>{escape(path)}</code></p>'
        f'<p>{about}</p>{given}{taken}<p class="quiet">answers {answers}</p></section>'
    )


def _contents(part: dict[str, Any]) -> Iterator[str]:
    for content in part.get("content", {}).values():
        yield _type(content.get("schema", {}))


def _shape(name: str, schema: dict[str, Any]) -> str:
    needed = _needed(schema)
    fields = dict(_fields(schema))
    rows = _table((field, one, field in needed) for field, one in fields.items())
    form = "" if fields else f"<p>{_type(schema)}</p>"
    examples = "".join(f"<p><code>{escape(json.dumps(one))}</code></p>" for one in schema.get("examples", []))
    about = escape(str(schema.get("description", "")))
    return f'<section id="{escape(name)}"><h3>{escape(name)}</h3><p>{about}</p>{form}{rows}{examples}</section>'


def _needed(schema: dict[str, Any]) -> set[str]:
    """The fields that every form of a shape needs."""
    forms = [set(form.get("required", [])) for form in schema.get("anyOf", []) if "properties" in form]
    return set(schema.get("required", [])) | (set.intersection(*forms) if forms else set())


def _fields(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The fields of a shape, with those of each of its forms."""
    for form in schema.get("anyOf", []):
        yield from _fields(form)
    yield from ((name, one) for name, one in schema.get("properties", {}).items() if one.get("type") != "null")


def _table(rows: Iterable[tuple[str, dict[str, Any], bool]]) -> str:
    lines = [
        f"<tr><td><code>{escape(name)}</code>{'' if needed else ' <span class=quiet>optional</span>'}</td>"
        f"<td>{_type(field)}</td><td>{escape(str(field.get('description', '')))}</td><td>{_example(field)}</td></tr>"
        for name, field, needed in rows
    ]
    if not lines:
        return ""
    return f"<table><tr><th>name</th><th>type</th><th>meaning</th><th>example</th></tr>{''.join(lines)}</table>"


def _example(field: dict[str, Any]) -> str:
    found = field.get("examples") or field.get("enum") or ([field["const"]] if "const" in field else [])
    return f"<code>{escape(json.dumps(found[0], ensure_ascii=False))}</code>" if found else ""


def _type(schema: dict[str, Any]) -> str:
    """What a value may be, in few words; shapes are links."""
    if "$ref" in schema:
        name = escape(str(schema["$ref"]).removeprefix(_PREFIX))
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(one) for one in schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(f"<code>{escape(json.dumps(one))}</code>" for one in schema["enum"])
    if "const" in schema:
        return f"<code>{escape(json.dumps(schema['const']))}</code>"
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return escape(str(schema.get("format") or schema.get("type") or "any"))
