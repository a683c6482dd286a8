"""Texts as Telegram takes them: parts within its limit, and Markdown as the few tags it knows. Pure."""

from __future__ import annotations

import re

from wakeful.domains.delivery.texts import cut_at, is_visible, longest, utf16

PART_MOST = 4_000  # the limit is 4096, in UTF-16 units; a fence that is closed and opened again takes some
PARTS_MOST = 5  # a text with more is attached as a file
FENCE = "```"

_SPAN = re.compile(
    r"`(?P<code>[^`\n]+)`"
    r"|\*\*(?P<bold>\S(?:[^\n]*?\S)?)\*\*"
    r"|\[(?P<label>[^\]\[\n]{1,200})\]\((?P<url>https?://[^\s()<>\"]{1,1000})\)"
    r"|(?<![\w*_])_(?P<low>[^\s_](?:[^\n_]*[^\s_])?)_(?![\w*_])"
    r"|(?<![\w*_])\*(?P<star>[^\s*](?:[^\n*]*[^\s*])?)\*(?![\w*_])"
)


def whole(title: str | None, text: str) -> str:
    """Title and text as one."""
    return f"{title}\n\n{text}".strip() if title else text.strip()


def parts(text: str, most: int = PART_MOST) -> list[str]:
    """The text between paragraphs, else lines, else words, in parts of at most so many UTF-16 units.

    A block of code that is cut continues as one in the next part. A part of blanks alone is none: Telegram refuses it.
    """
    found: list[str] = []
    rest = text.strip()
    while utf16(rest) > most:
        at = cut_at(rest, longest(rest, most - 2 * len(FENCE) - 2, utf16))
        part, rest = rest[:at].rstrip(), rest[at:].lstrip("\n")
        if _is_open(part):
            part, rest = f"{part}\n{FENCE}", f"{FENCE}\n{rest.lstrip() if not is_visible(part) else rest}"
        found.append(part)
    return [part for part in (*found, rest) if is_visible(part)] or ["-"]


def _is_open(text: str) -> bool:
    return sum(line.lstrip().startswith(FENCE) for line in text.splitlines()) % 2 == 1


def as_html(text: str) -> str | None:
    """The text with its Markdown as tags; None where it has none, so that it is sent as it is."""
    out: list[str] = []
    block: list[str] | None = None
    marked = False
    for line in text.split("\n"):
        if line.lstrip().startswith(FENCE):
            marked = True
            if block is not None:
                out.append(f"<pre>{escape(chr(10).join(block))}</pre>")
            block = [] if block is None else None
        elif block is not None:
            block.append(line)
        else:
            html = _line(line)
            marked = marked or html != escape(line)
            out.append(html)
    if block is not None:
        out.append(f"<pre>{escape(chr(10).join(block))}</pre>")
    return "\n".join(out) if marked else None


def _line(line: str) -> str:
    out, at = [], 0
    for found in _SPAN.finditer(line):
        out += [escape(line[at : found.start()]), _span(found)]
        at = found.end()
    return "".join([*out, escape(line[at:])])


def _span(found: re.Match[str]) -> str:
    if found["code"] is not None:
        return f"<code>{escape(found['code'])}</code>"
    if found["bold"] is not None:
        return f"<b>{_line(found['bold'])}</b>"
    if found["label"] is not None:
        return f'<a href="{escape(found["url"])}">{escape(found["label"])}</a>'
    return f"<i>{escape(found['low'] if found['low'] is not None else found['star'])}</i>"


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
