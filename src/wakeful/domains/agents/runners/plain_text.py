"""Reading plain text that a tool prints: the reply in it, the error, and the numbers. Pure.

All of it is the reply unless a pattern says where it stands; then there is none without a match. Numbers may be short,
such as `7.7k`.
"""

from __future__ import annotations

import re

from wakeful.domains.agents.runners.forms import OutputForm, Printed
from wakeful.domains.agents.runners.paths import MOST

LONGEST_REPLY = 100_000  # characters: the run's log has longer ones
LONGEST_TROUBLE = 16_000  # characters at the end: a search may take the square of them
MOST_COUNTED = 1000
_FACTOR = {"": 1, "k": 1_000, "m": 1_000_000}
_NUMBER = re.compile(r"([\d.,]+)([kKmM]?)")


def read_text(form: OutputForm, text: str, stderr: str) -> Printed:
    """What was understood of the text on standard output; numbers may be on standard error."""
    acted, cost, tokens_in, tokens_out = bool(text.strip()), *_counted(form, f"{text}\n{stderr}")
    used = Printed(acted=acted, cost=cost, tokens_in=_whole(tokens_in), tokens_out=_whole(tokens_out))
    if form.said is None:
        return used._replace(reply=text.strip("\n")[:LONGEST_REPLY], has_result=True)
    if (found := re.search(form.said, text)) is not None:
        return used._replace(reply=(found[1] or "").strip()[:LONGEST_REPLY], has_result=True)
    trouble = re.findall(form.trouble, text[-LONGEST_TROUBLE:]) if form.trouble is not None else []
    return used._replace(error=" ".join(trouble[-1].split()), is_own=True) if trouble else used


def _counted(form: OutputForm, text: str) -> list[float | None]:
    """The last cost that is found, and the sums of the tokens that went in and of those that came out."""
    sums: dict[str, float] = {}
    for index, found in enumerate(re.finditer(form.counted, text) if form.counted is not None else ()):
        if index == MOST_COUNTED:
            break
        for name, said in found.groupdict().items():
            if said is not None and (number := _number(said)) is not None:
                sums[name] = number if name == "cost" else sums.get(name, 0) + number
    return [sums.get(name) for name in ("cost", "tokens_in", "tokens_out")]


def _number(text: str) -> float | None:
    found = _NUMBER.fullmatch(text)
    try:
        number = None if found is None else float(found[1].replace(",", "")) * _FACTOR[found[2].lower()]
    except ValueError:
        return None
    return number if number is not None and number <= MOST else None


def _whole(number: float | None) -> int | None:
    return None if number is None else round(number)
