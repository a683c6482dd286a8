"""64-bit ids that sort by the time they were made, and how people see them.

Layout: 42 bits of milliseconds since 2000, 21 bits of a counter that starts at random in every millisecond. Ids from
one source only go up, also when the clock goes back. People see `job_`, `run_` or `dlv_` and thirteen letters whose
order is the ids' order.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from wakeful.clock import EARLIEST_MS

_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no i, l, o, u
_PAIRS = [first + second for first in _LETTERS for second in _LETTERS]  # ten bits at a time
_VALUES = {letter: value for value, letter in enumerate(_LETTERS)}
_COUNTER_BITS = 21
_STEP_BITS = 20  # of the steps while the clock is behind: half a millisecond at most
_LENGTH = 13
_MAX = 2**63 - 1
#: What ids begin with; domains add theirs.
PREFIXES = {"job", "run", "dlv"}


class IdSource:
    """Makes ids, from a source of chance that a test may seed."""

    def __init__(self, now: Callable[[], int], rng: random.Random) -> None:
        self._now = now
        self.rng = rng
        self._steps: random.Random | None = None  # of its own: a clock that is set changes no other chance
        self._last = 0

    def start_above(self, highest: int) -> None:
        """Never make an id that is not above this one: what a store already holds, also when the clock went back."""
        self._last = max(self._last, highest)

    def next(self) -> int:
        base = (self._now() - EARLIEST_MS) << _COUNTER_BITS
        if base > self._last:
            # The upper half of the counter stays free, so a burst within one millisecond still counts upward.
            self._last = base + self.rng.getrandbits(_COUNTER_BITS - 1)
        else:
            self._last += 1 if self._last - base < 1 << _COUNTER_BITS else self._step()
        return self._last

    def _step(self) -> int:
        """How far the next id is from the last one while the clock is behind."""
        if self._steps is None:
            self._steps = random.Random(str(self.rng.getstate()))
        return 1 + self._steps.getrandbits(_STEP_BITS)


def first_id_at(ms: int) -> int:
    """The smallest id that could have been made at that moment: ids below it are older."""
    return max(0, (ms - EARLIEST_MS) << _COUNTER_BITS)


def made_at(number: int) -> int:
    """When an id was made, in milliseconds."""
    return (number >> _COUNTER_BITS) + EARLIEST_MS


def encode(prefix: str, number: int) -> str:
    high, low = number >> 30, number & 0x3FFFFFFF
    return (
        f"{prefix}_{_LETTERS[high >> 30 & 31]}{_PAIRS[high >> 20 & 1023]}{_PAIRS[high >> 10 & 1023]}"
        f"{_PAIRS[high & 1023]}{_PAIRS[low >> 20]}{_PAIRS[low >> 10 & 1023]}{_PAIRS[low & 1023]}"
    )


def job_text(number: int) -> str:
    return encode("job", number)


def run_text(number: int) -> str:
    return encode("run", number)


def alert_number(text: str) -> int | None:
    """The number of an alert's id; None for anything else."""
    return number_of("alr", text)


def action_number(text: str) -> int | None:
    """The number of an action's id; None for anything else."""
    return number_of("act", text)


def decode(text: str) -> tuple[str, int] | None:
    """`("run", 123)` for a well-formed id, None for anything else, such as a name."""
    prefix, _, letters = text.partition("_")
    number = _read(letters) if prefix in PREFIXES else None
    return (prefix, number) if number is not None else None


def number_of(prefix: str, text: str) -> int | None:
    """The number of a well-formed id with this prefix; None for anything else, such as a name."""
    begin, _, letters = text.partition("_")
    return _read(letters) if begin == prefix else None


def _read(letters: str) -> int | None:
    if len(letters) != _LENGTH:
        return None
    number = 0
    for letter in letters:
        value = _VALUES.get(letter)
        if value is None:
            return None
        number = number << 5 | value
    return number if number <= _MAX else None
