"""Is all well? One sentence from recorded facts, the worst first. Pure.

What cannot be known is never called well: without a server, with a store that fails or a clock that contradicts the
record, the sentence reports only that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from wakeful.clock import EARLIEST_MS
from wakeful.kernel.rules.parking import FILE, GLOBAL_LANE, HANDLER, HOLD, PLACE, SUSPECT_LANE, labels_of
from wakeful.triggers.moments import iso

#: What has been due for longer than this is late.
LATE_MS = 60_000
#: A message that has waited for longer than this is late: with five attempts it has failed by then.
UNSENT_MS = 900_000
#: A clock that is further behind the last sign of life than this was set back.
BEHIND_MS = 2_000

_NUMBERS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")
_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000))


class Verdict(NamedTuple):
    """Whether all is well, in one sentence.

    `state` is `unsure`, `stalled`, `needs_you`, `failing` (something failed and has not succeeded since), `behind`,
    `empty` (nothing is scheduled), `quiet` (nothing will start by time) or `well`.
    """

    state: str
    sentence: str

    @property
    def well(self) -> bool:
        """Whether everything that is scheduled runs, and nothing needs a person."""
        return self.state == "well"

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"state": self.state, "well": self.well, "sentence": self.sentence}


class Line(NamedTuple):
    """Jobs that are due and wait for the same thing."""

    waits_for: str
    jobs: int
    since: int  # of the one that has waited longest


class Failing(NamedTuple):
    """A job that failed last, or whose last run did not report its end."""

    job: str
    since: int
    unknown: bool = False


class Unsteady(NamedTuple):
    """A job that fails often, though not always."""

    job: str
    failed: int
    of: int  # its last runs


class VerdictInput(NamedTuple):
    """The input of a verdict. The defaults describe a store without problems and without jobs."""

    now: int
    served: bool = True  # whether a server runs this store
    trouble: str | None = None  # what is wrong with the store
    heard_at: int | None = None  # when a server last gave a sign of life
    silence_ms: int = 180_000  # for how long one that works may give none
    stalled: tuple[str, ...] = ()  # the nodes, if the loop of every live one is blocked
    draining: bool = False  # whether every live node is draining
    held: str | None = None  # who paused everything, since when and why; None where it is not
    unaccounted: int = 0  # slots that have no record
    questions: int = 0  # runs that wait for a person
    alerts: int = 0  # open, and not acknowledged
    alert: str | None = None  # the message of the newest of them
    acknowledged: int = 0  # open alerts that a person has seen
    lines: tuple[Line, ...] = ()
    due_since: int | None = None  # the oldest alarm, where its time has come
    any_job: bool = False
    running: int = 0  # or waiting, or about to start
    next_at: int | None = None
    runs: int = 0  # since midnight
    failed: int = 0
    more_runs: bool = False  # there were more than were counted
    failing: tuple[Failing, ...] = ()  # without jobs that have an alert about their runs
    unsteady: tuple[Unsteady, ...] = ()
    undelivered: int = 0  # messages that were given up of late
    unsent: int = 0  # messages that wait to be sent
    unsent_since: int | None = None  # the first of them


def judge(facts: VerdictInput) -> Verdict:
    """The worst that is so."""
    for question in _WORST_FIRST:
        verdict = question(facts)
        if verdict is not None:
            return verdict
    return _well(facts)


# -- what keeps everything from running --------------------------------------------------------------------------------


def _store_fails(facts: VerdictInput) -> Verdict | None:
    if facts.trouble is None:
        return None
    return Verdict("stalled", _stop(f"Stalled: the database is unavailable: {facts.trouble}"))


def _clock_is_wrong(facts: VerdictInput) -> Verdict | None:
    if facts.now < EARLIEST_MS:
        return Verdict("unsure", f"Unsure: the clock shows {iso(facts.now)} and was never set. Set it.")
    if facts.heard_at is not None and facts.heard_at - facts.now > BEHIND_MS:
        behind = span(facts.heard_at - facts.now)
        return Verdict("unsure", f"Unsure: the clock is {behind} behind the last sign of a server. Check the date.")
    return None


def _no_server(facts: VerdictInput) -> Verdict | None:
    if facts.served:
        return None
    if not facts.any_job:
        return Verdict("stalled", "No server is running (wakeful serve), and nothing is scheduled yet.")
    late = ""
    if facts.due_since is not None and facts.due_since < facts.now:
        late = f" The oldest start is {span(facts.now - facts.due_since)} late."
    return Verdict(
        "stalled", f"Stalled: no server is running, and nothing starts until one does (wakeful serve).{late}"
    )


def _silent(facts: VerdictInput) -> Verdict | None:
    if facts.stalled:
        nodes = ", ".join(facts.stalled)
        return Verdict("stalled", f"Stalled: the loop of {nodes} is blocked, and nothing starts. Restart the server.")
    if facts.heard_at is not None and facts.now - facts.heard_at > facts.silence_ms:
        silent = span(facts.now - facts.heard_at)
        return Verdict("stalled", f"Stalled: a server runs, but has given no sign for {silent}. Restart it.")
    return None


def _drained(facts: VerdictInput) -> Verdict | None:
    if not facts.draining:
        return None
    return Verdict("stalled", "Stalled: every node is being drained, and nothing starts (wakeful node undrain NAME).")


def _held(facts: VerdictInput) -> Verdict | None:
    if facts.held is None:
        return None
    return Verdict(
        "stalled", f"Stalled: everything is paused {facts.held}, and nothing starts until wakeful resume --all."
    )


def _unaccounted(facts: VerdictInput) -> Verdict | None:
    if not facts.unaccounted:
        return None
    verb = "has" if facts.unaccounted == 1 else "have"
    return Verdict("unsure", f"{_count(facts.unaccounted, 'slot')} {verb} no record. This should not happen.")


# -- what a person can do something about ------------------------------------------------------------------------------


def _needs_you(facts: VerdictInput) -> Verdict | None:
    number = facts.questions + facts.alerts
    if not number:
        return None
    rest = f" {_rest(facts)}"
    if number > 1:
        parts = [_count(facts.alerts, "alert")] if facts.alerts else []
        parts += [_count(facts.questions, "approval")] if facts.questions else []
        return Verdict("needs_you", f"{_number(number)} things need you: {' and '.join(parts)}.{rest}")
    what = facts.alert if facts.alerts and facts.alert else "a run waits for approval (wakeful approvals)"
    return Verdict("needs_you", f"{_stop(f'One thing needs you: {what}')}{rest}")


def _rest(facts: VerdictInput) -> str:
    """What is to be said of everything else."""
    wrong = [text for text in (_failures(facts), _late(facts)) if text is not None]
    return " ".join(wrong) if wrong else f"The rest is well{_but_for(facts)}."


def _but_for(facts: VerdictInput) -> str:
    return f" but for {_count(facts.acknowledged, 'acknowledged alert')}" if facts.acknowledged else ""


def _failing(facts: VerdictInput) -> Verdict | None:
    failures = _failures(facts)
    if failures is None:
        return None
    late = _late(facts)
    return Verdict("failing", failures if late is None else f"{failures} {late}")


def _failures(facts: VerdictInput) -> str | None:
    """What failed and has not succeeded since, what did not arrive, and what fails too often."""
    parts = []
    if facts.failing:
        name, since, unknown = min(facts.failing, key=lambda item: (item.since, item.job))
        ago = f"{span(facts.now - since)} ago"
        number = len(facts.failing)
        one = f"{name} {'ended as unknown' if unknown else 'failed'} {ago} and has not succeeded since"
        parts.append(one if number == 1 else f"{number:,} jobs failed and have not succeeded since, {name} {ago}")
    if facts.undelivered:
        were = "was" if facts.undelivered == 1 else "were"
        parts.append(f"{_count(facts.undelivered, 'message')} {were} not delivered (wakeful delivery list --failed)")
    if facts.unsteady:
        job, failed, of = facts.unsteady[0]
        more = f", and {_count(len(facts.unsteady) - 1, 'other job')} as often" if len(facts.unsteady) > 1 else ""
        parts.append(f"{job} failed {failed} of its last {_count(of, 'run')}{more}")
    return f"Failing: {'; '.join(parts)}." if parts else None


def _behind(facts: VerdictInput) -> Verdict | None:
    late = _late(facts)
    return Verdict("behind", late) if late is not None else None


def _late(facts: VerdictInput) -> str | None:
    lines = [line for line in facts.lines if facts.now - line.since > LATE_MS]
    if lines:
        line = min(lines, key=lambda line: (line.since, line.waits_for))
        verb = "waits" if line.jobs == 1 else "wait"
        waiting = f"{_count(line.jobs, 'job')} {verb} for {_awaited(line.waits_for)}"
        return f"Behind: {waiting}, {span(facts.now - line.since)} for the oldest."
    if facts.due_since is not None and facts.now - facts.due_since > LATE_MS:
        return f"Behind: the oldest start is {span(facts.now - facts.due_since)} late."
    if facts.unsent_since is not None and facts.now - facts.unsent_since > UNSENT_MS:
        verb = "waits" if facts.unsent == 1 else "wait"
        waiting = f"{_count(facts.unsent, 'message')} {verb} to be sent (wakeful delivery list)"
        return f"Behind: {waiting}, {span(facts.now - facts.unsent_since)} for the oldest."
    return None


# -- nothing is wrong --------------------------------------------------------------------------------------------------


def _empty(facts: VerdictInput) -> Verdict | None:
    return Verdict("empty", "Awake. Nothing is scheduled yet.") if not facts.any_job else None


def _quiet(facts: VerdictInput) -> Verdict | None:
    if facts.next_at is not None or facts.running or facts.lines:
        return None
    return Verdict(
        "quiet", "Nothing will start by time: every job is paused, disabled, done, or has no time of its own."
    )


def _well(facts: VerdictInput) -> Verdict:
    seen = _but_for(facts)
    runs = f"over {facts.runs:,} runs" if facts.more_runs else _count(facts.runs, "run")
    failed = f", {facts.failed} failed" if facts.failed else ""
    if facts.next_at is None:
        coming = "nothing more by time"
    else:
        coming = "next now" if facts.next_at - facts.now < 1_000 else f"next in {span(facts.next_at - facts.now)}"
    return Verdict("well", f"All well{seen}. {runs[0].upper()}{runs[1:]} since midnight{failed}; {coming}.")


_WORST_FIRST: tuple[Callable[[VerdictInput], Verdict | None], ...] = (
    _store_fails, _clock_is_wrong, _no_server, _silent, _held, _drained, _unaccounted, _needs_you, _failing,
    _behind, _empty, _quiet,
)  # fmt: skip


def _awaited(key: str) -> str:
    if key == HOLD:
        return "wakeful resume --all"
    if key.startswith(FILE):
        return f"the configuration file of the fleet {key.removeprefix(FILE)} to be settled"
    if key.startswith(HANDLER):
        return f"a node that handles kind {key.removeprefix(HANDLER)}"
    if key.startswith(PLACE):
        return f"a node labelled {', '.join(labels_of(key))}"
    if key == GLOBAL_LANE:
        return "a place within max_running"
    return "their turn to run alone" if key == SUSPECT_LANE else f"lane {key}"


def span(ms: int) -> str:
    """An amount of time in its largest unit, or two: "38s", "9m", "2h 5m"."""
    for number, (unit, size) in enumerate(_UNITS[:-1]):
        if ms >= size:
            smaller, part = _UNITS[number + 1]
            rest = ms % size // part
            return f"{ms // size}{unit} {rest}{smaller}" if rest and unit != "m" else f"{ms // size}{unit}"
    return f"{max(0, ms) // 1000}s"


def _number(number: int) -> str:
    return _NUMBERS[number] if number < len(_NUMBERS) else f"{number:,}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _stop(text: str) -> str:
    text = text.rstrip()
    return text if text.endswith((".", "!", "?")) else f"{text}."
