"""Style, script and icon: served under names with a hash of their content, so that browsers keep them for good."""

from __future__ import annotations

import gzip
import hashlib
import re
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from fastapi import APIRouter, Request
from starlette.responses import Response

from wakeful.routing.problems import ApiError

FOLDER = Path(__file__).parent / "static"
TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
#: What scripts import from, by the word they have for it: that of every page, and what it loads when it is wanted.
SHARED = {'"DASHBOARD"': "dashboard.js", '"MORE"': "more.js"}
FOREVER = "public, max-age=31536000, immutable"

_COMMENT = re.compile(r" */\*.*?\*/")
_SPACED = re.compile(r"\s*([{};>]|[:,](?=\s))\s*")  # around what parts rules, and behind what parts their words
_BLOCK = re.compile(r"^\s*/\*.*?\*/[ ]*\n", re.DOTALL | re.MULTILINE)

router = APIRouter()


class Asset(NamedTuple):
    """A file that pages name."""

    content: bytes
    compressed: bytes
    type: str


@lru_cache(maxsize=1)
def assets() -> dict[str, Asset]:
    """All of them, by the name in their address: `dashboard.1f0c9a2b.css`."""
    return {address(path.name): _asset(path) for path in sorted(FOLDER.iterdir()) if path.suffix[1:] in TYPES}


def _asset(path: Path) -> Asset:
    content = content_of(path)
    return Asset(content, gzip.compress(content, 9, mtime=0), TYPES[path.suffix[1:]])


def squeezed(text: str) -> str:
    """Without what is there for people alone: indentation, comments on lines of their own, and empty lines."""
    plain = _BLOCK.sub("", text)
    lines = (line.strip() for line in plain.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//")) + "\n"


@lru_cache(maxsize=32)
def address(name: str) -> str:
    """The name of a file with its hash."""
    stem, _, ending = name.rpartition(".")
    return f"{stem}.{hashlib.sha256(content_of(FOLDER / name)).hexdigest()[:12]}.{ending}"


def content_of(path: Path) -> bytes:
    """A file as it is served; a script names those that it is built on by their addresses."""
    text = squeezed(path.read_text(encoding="utf-8"))
    if path.suffix == ".css":
        text = _SPACED.sub(r"\1", _COMMENT.sub("", text)).replace(";}", "}")
    for word, name in SHARED.items():
        text = text.replace(word, f'"./{address(name)}"') if word in text else text
    return text.encode()


@router.get("/static/{name}", include_in_schema=False)
async def get_asset(request: Request, name: str) -> Response:
    found = assets().get(name)
    if found is None:
        raise ApiError(404, "not_found", "There is no such file. Reload the page.")
    headers = {"Cache-Control": FOREVER, "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(found.compressed, media_type=found.type, headers={**headers, "Content-Encoding": "gzip"})
    return Response(found.content, media_type=found.type, headers=headers)
