"""Requests that refer to values kept elsewhere, as `${NAME}` or `${file:/path}` in their url, headers and body.

Only a file or a program on this machine may write them: a caller over the network could otherwise send the values of
this process's environment wherever it wants.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wakeful.errors import InvalidJob, InvalidSetting
from wakeful.references import REFERENCE, filled, looked_up, map_texts, references_below, references_in

PARTS = ("url", "headers", "body")


def refers(value: Any) -> bool:
    """Whether any text in it has a reference."""
    return any(references_below(value))


def sample(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The payload with something plain in place of each reference, for checks that cannot know the values."""
    shown = {key: map_texts(value, _plain) if key in PARTS else value for key, value in payload.items()}
    url = payload.get("url")
    if isinstance(url, str) and (first := REFERENCE.match(url)) is not None and not first[1]:
        # The first reference holds the scheme, and perhaps the host: what follows is all that can be checked.
        rest = _plain(url[first.end() :])
        shown["url"] = f"https{rest}" if rest.startswith("://") else f"https://example.org{rest}"
    return shown


def _plain(text: str) -> str:
    return REFERENCE.sub(lambda match: match[0][1:] if match[1] else "x", text)


def values_looked_up(payload: Mapping[str, Any], known: Mapping[str, str]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The payload as it is sent, and the values in it that are secret; InvalidJob names what leads nowhere."""
    secrets: dict[str, None] = {}

    def fill(part: str, text: str) -> str:
        try:
            for reference in references_in(text):
                secrets[looked_up(reference, Path("/"), known)] = None
            return filled(text, Path("/"), known)
        except InvalidSetting as error:
            raise InvalidJob(f"The {part} of an http job {error}") from None

    full = {key: value for key, value in payload.items() if key != "references"}
    for part in PARTS:
        if part in full:
            full[part] = map_texts(full[part], lambda text, part=part: fill(part, text))  # type: ignore[misc]
    return full, tuple(secrets)
