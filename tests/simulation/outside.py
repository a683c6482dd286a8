"""The world outside a workflow: what was changed there, who agreed to it, and how often the workflow came.

It outlives every process. What breaks a promise is reported, because an exception here would only fail a run.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any

WINDOW_S = 60.0
MOST_FAILED = 12  # calls a minute; a backoff begins with 10 s
MOST_KILLED = 4  # the first is tried again at once


class Outside:
    """What one workflow did outside, and what it does there now."""

    def __init__(
        self,
        name: str,
        now: Callable[[], float],
        broken: Callable[[str], None],
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.name = name
        self.ledger: list[str] = []  # what was changed outside, in order
        self.calls: Counter[str] = Counter()
        self.last_call: dict[str, float] = {}
        self._now = now
        self._broken = broken
        self._note = note
        self._questions: dict[str, str] = {}  # by run: what it asked about
        self._agreed: set[str] = set()
        self._inside: dict[int, str] = {}  # calls and threads that have not ended
        self._numbers = 0
        self._often: dict[str, deque[float]] = defaultdict(deque)

    # -- calls ---------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def call(self, what: str, errors: list[Exception] | None = None) -> Iterator[None]:
        """A call of a handler: nothing else of its workflow goes on beside it, and failures are not too many.

        `errors`: the first of them is taken and raised.
        """
        if self._inside:
            other = next(iter(self._inside.values()))
            self._broken(f"K7: {self.name}.{what} was called while {other} was still working")
        self._note(f"call {what}")
        self.calls[what] += 1
        self.last_call[what] = self._now()
        number = self._begin(what)
        try:
            _fail_with(errors)
            yield
        except Exception as error:
            self._note(f"{what} failed: {error!r}")
            self._count(what, "failed", MOST_FAILED)
            raise
        finally:
            self._inside.pop(number, None)

    def thread(self, what: str) -> Callable[[], None]:
        """A thread begins to work; what is returned says that it has ended."""
        number = self._begin(f"{what} in a thread")
        return lambda: self._inside.pop(number, None) and None

    def _begin(self, what: str) -> int:
        self._numbers += 1
        self._inside[self._numbers] = what
        return self._numbers

    def kill(self, what: str) -> None:
        """A call ends its process."""
        self._count(what, "killed its process", MOST_KILLED)

    def forgive(self) -> None:
        """A person lets it try again at once: what it did before is not counted any more."""
        self._often.clear()

    def report(self, broken: str) -> None:
        """Something else that breaks a promise."""
        self._broken(broken)

    def is_busy(self) -> bool:
        """Whether a call or a thread has not ended."""
        return bool(self._inside)

    def died(self) -> None:
        """The process is gone: nothing of it is under way any more."""
        self._inside.clear()

    def _count(self, what: str, how: str, most: int) -> None:
        times = self._often[f"{what} {how}"]
        times.append(self._now())
        while times[0] < times[-1] - WINDOW_S:
            times.popleft()
        if len(times) > most:
            self._broken(f"K12: {self.name}.{what} {how} {len(times)} times within a minute")

    # -- changes -------------------------------------------------------------------------------------------------------

    def change(self, names: list[str]) -> None:
        """Change something for each of these messages."""
        for name in names:
            if name in self.ledger:
                self._broken(f"K10: {self.name} changed {name} outside twice")
            self.ledger.append(name)

    def has(self, names: list[str]) -> bool:
        return set(names) <= set(self.ledger)

    # -- approvals -----------------------------------------------------------------------------------------------------

    def ask(self, run: str, data: Any) -> None:
        """The run asks whether it may do this."""
        self._questions[run] = _fingerprint(data)

    def agree(self, run: str) -> None:
        """A person has said yes to what the run asked."""
        if run in self._questions:
            self._agreed.add(self._questions[run])

    def rely_on_approval(self, data: Any) -> None:
        """A handler that was told of an approval is about to do this."""
        if _fingerprint(data) not in self._agreed:
            self._broken(f"X8: {self.name} did {_fingerprint(data)} with an approval that was given for something else")


def _fail_with(errors: list[Exception] | None) -> None:
    if errors:
        raise errors.pop(0)


def _fingerprint(data: Any) -> str:
    return json.dumps(data, sort_keys=True)
