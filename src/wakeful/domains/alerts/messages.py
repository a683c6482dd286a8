"""Messages about incidents, with enough to act on. Pure, except for reading what is known about them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from wakeful import ids
from wakeful.counting import counted
from wakeful.domains.delivery import FailureSubject, explained
from wakeful.kernel.rules.alerting import CLOSED, OPENED, REPEATED, Notice, closer_look
from wakeful.store.records import AlertRow
from wakeful.triggers.durations import format_interval
from wakeful.triggers.moments import iso, spoken
from wakeful.triggers.zones import place_named

MESSAGE_MOST = 4_000
#: The kinds about runs that failed, where what the last one said is what a person looks for.
ABOUT_RUNS = ("failing", "failed", "disabled", "stuck")

#: The message when an incident is over; `{job}` is its job.
OVER = {
    "failing": "{job} succeeded again.",
    "failed": "{job} succeeded.",
    "disabled": "{job} is enabled again.",
    "stuck": "{job} ended.",
    "down": "{job} reported a success: it is up again.",
    "missed": "{job} started.",
    "flapping": "{job} is steady again.",
    "approval": "{job} waits no longer.",
    "no_handler": "{job} can run again.",
    "no_node": "{job} can run again.",
}


class Known(NamedTuple):
    """What there is to say about an incident besides its message."""

    job: str | None = None
    subject: str | None = None  # who or what it is about, where that is not its job
    about: FailureSubject | None = None  # of the run that failed
    run: str | None = None
    link: str | None = None
    jobs: int | None = None  # how many, where it is about several
    next: str | None = None  # what happens next, where no run says it
    facts: tuple[str, ...] = ()  # what else is known of its job, where no run says it
    zone: str | None = None  # of its job's schedule; times are in it

    def when(self, ms: int) -> str:
        return spoken(ms, place_named(self.zone))


def message_about(notice: Notice, known: Known) -> tuple[str, str]:
    """Title and text."""
    alert = notice.alert
    subject = known.subject or known.job or (counted(known.jobs, "job") if known.jobs else alert.key.partition(":")[2])
    if notice.what == CLOSED:
        return f"{subject}: resolved ({alert.kind})", "\n".join(_over(notice, known))
    lines = [_cut(alert.message)]
    if notice.what == REPEATED:
        lines.append(f"This has happened {counted(alert.times, 'time')} since {known.when(alert.opened_at)}.")
    if known.about is not None:
        lines += explained(known.about._replace(job=known.job or subject), said=alert.message)
    else:
        lines += known.facts
        if known.next is not None:
            lines.append(f"Next: {known.next}")
    lines += _look_closer(alert, known)
    again = " again" if notice.what == REPEATED else ""
    return f"{subject}: {alert.kind}{again}", "\n".join(lines)


def _over(notice: Notice, known: Known) -> list[str]:
    alert = notice.alert
    lasted = max(0, (alert.closed_at or alert.last_at) - alert.opened_at)
    everything = "Everything that was missed" if known.jobs else "It"
    first = OVER.get(alert.kind, "").format(job=known.job or everything) or f"This is over: {_cut(alert.message)}"
    if notice.why is not None:
        first = f"This is over: {notice.why}."
    lines = [first]
    if alert.message not in first:
        lines.append(f"It was: {_cut(alert.message)}")
    lines.append(f"Open since {known.when(alert.opened_at)}, for {format_interval(max(1000, lasted // 1000 * 1000))}.")
    return lines + ([known.link] if known.link is not None else [])


def _look_closer(alert: AlertRow, known: Known) -> Sequence[str]:
    lines = []
    if alert.kind == "approval" and known.run is not None:
        lines.append(f"Next: it waits until you approve or reject it: wakeful approve {known.run}")
    look = closer_look(alert.kind, alert.key, known.job) or f"wakeful alert show {ids.encode('alr', alert.id)}"
    lines.append(f"Look closer: {look}")
    return lines + ([known.link] if known.link is not None else [])


def alert_data(notice: Notice, known: Known) -> dict[str, Any]:
    """The incident as connectors get it besides the text."""
    alert = notice.alert
    buttons = json.loads(alert.data).get("buttons") if alert.data and notice.what != CLOSED else None
    return {
        "id": ids.encode("alr", alert.id),
        "kind": alert.kind,
        "state": "closed" if notice.what == CLOSED else "open",
        "event": notice.what,
        "job": known.job,
        "run": known.run,
        "message": alert.message,
        "times": alert.times,
        "opened_at": iso(alert.opened_at),
        "closed_at": iso(alert.closed_at) if alert.closed_at is not None else None,
        **({"buttons": buttons} if buttons else {}),
    }


def dedupe_key(notice: Notice) -> str:
    """The same for the same thing to say, so that it is stored once."""
    alert = notice.alert
    if notice.what == OPENED:
        return f"alert:{alert.id}:{OPENED}"
    # It may be over, open again because what ended it was undone, and over again.
    stamp = alert.closed_at if notice.what == CLOSED else f"{alert.times}:{alert.notified_at}"
    return f"alert:{alert.id}:{notice.what}:{stamp}"


def _cut(text: str) -> str:
    return text if len(text) <= MESSAGE_MOST else f"{text[:MESSAGE_MOST]}…"
