"""Rate limits in transactions: met by a call, kept from starts, cleared by a success or a person, and told to people.

What must stay true: a limit that a call met is stored before its run ends; a run that started after the limit's end and
succeeded ends it, and nothing else does but time and a person; what waited for a cleared limit starts at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from wakeful.domains.agents.effective_payload import effective_payload
from wakeful.domains.agents.limits.rules import RateLimit, is_over, met_again, needs_a_person
from wakeful.domains.agents.limits.tables import RateLimits
from wakeful.domains.agents.naming import AGENT, source_key
from wakeful.domains.agents.runners.spec import limited_as
from wakeful.domains.agents.tables import AgentTables
from wakeful.errors import LimitNotFound
from wakeful.kernel.engine.alerts import alert_key, close_alert, open_alert
from wakeful.kernel.rules.alerting import many
from wakeful.kernel.rules.outcome import clean
from wakeful.store.listing import JobFilter
from wakeful.triggers.moments import iso, spoken

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.kernel.rules.outcome import Result
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, JobState, RunRow

RATE_LIMITED = "rate_limited"  # the reason of a start that waits, and the alert
LONGEST_WHY = 200


def meet_limit(tx: Transaction, account: str, until: int, why: str) -> None:
    """A call met the limit of its account."""
    limits = tx.of(RateLimits)
    limits.put(met_again(limits.of(account), account, until, clean(why[:LONGEST_WHY]), tx.now))


def limit_of(tx: Transaction, account: str | None) -> RateLimit | None:
    """The limit that holds now for an account."""
    found = tx.of(RateLimits).of(account) if account is not None else None
    return found if found is not None and found.until > tx.now else None


def get_past(tx: Transaction, context: Context, account: str | None, started_at: int) -> None:
    """A call of the account that began then was served: a limit that had ended by then is over."""
    found = tx.of(RateLimits).of(account) if account is not None else None
    if found is not None and found.until <= started_at:
        tx.of(RateLimits).drop(found.account)
        close_alert(tx, context, RATE_LIMITED, found.account, f"a run of the account {found.account} succeeded")


def end_run(tx: Transaction, context: Context, job: JobDef, run: RunRow, result: Result) -> None:
    """What the end of a run says about the limit of its account."""
    if result.outcome == "success" and run.started_at is not None:
        payload = effective_payload(tx, json.loads(job.payload))
        get_past(tx, context, limited_as(payload), run.started_at)


def watch(tx: Transaction, context: Context) -> None:
    """Open an alert for each account that has been at its limit for too long, and forget limits of long ago."""
    limits, known = tx.of(RateLimits), tx.of(RateLimits).all()
    alerts = {alert.key for alert in tx.alerts.open_of(RATE_LIMITED)}
    for limit in known:
        if is_over(limit, tx.now):
            limits.drop(limit.account)
        elif needs_a_person(limit, tx.now) and alert_key(RATE_LIMITED, limit.account) not in alerts:
            open_alert(tx, context, RATE_LIMITED, limit.account, _message(tx, limit))
    kept = {alert_key(RATE_LIMITED, limit.account) for limit in known if not is_over(limit, tx.now)}
    for key in alerts - kept:
        close_alert(tx, context, RATE_LIMITED, key.partition(":")[2], "it was not met again for a day")


def _message(tx: Transaction, limit: RateLimit) -> str:
    agents = sorted({payload["agent"] for _, _, payload in _jobs_of(tx, limit.account)})
    whose = f" of {many(agents, len(agents))}" if agents else ""
    return (
        f"The account {limit.account} has been at its rate limit since {spoken(limit.since)}, and no run{whose} has "
        f"succeeded since. It said: {limit.why.rstrip('.')}. It is tried again at {spoken(limit.until)}. If the limit "
        f"is over, clear it: wakeful agent limits clear {limit.account}"
    )


# -- for people -------------------------------------------------------------------------------------------------------


def shown_limits(tx: Transaction) -> list[dict[str, Any]]:
    """The limits that hold now, by account, with the agents that wait for them."""
    return [
        {
            "account": limit.account,
            "until": iso(limit.until),
            "since": iso(limit.since) if limit.since else None,
            "why": limit.why,
            "agents": sorted({payload["agent"] for _, _, payload in _jobs_of(tx, limit.account)}),
        }
        for limit in tx.of(RateLimits).all()
        if limit.until > tx.now
    ]


def clear_limit(tx: Transaction, context: Context, account: str) -> dict[str, Any]:
    """End the limit of an account by hand: what waited for it starts now. LimitNotFound where there is none."""
    shown = next((limit for limit in shown_limits(tx) if limit["account"] == account), None)
    if shown is None:
        names = [limit["account"] for limit in shown_limits(tx)]
        hint = f" At their limit are: {', '.join(names)}." if names else " No account is at its limit."
        raise LimitNotFound(f"There is no rate limit on an account {account!r:.80}.{hint}")
    tx.of(RateLimits).drop(account)
    close_alert(tx, context, RATE_LIMITED, account, "the limit was cleared by hand")
    for job, state, _ in list(_jobs_of(tx, account)):
        _start_now(tx, job, state)
    return shown


def _jobs_of(tx: Transaction, account: str) -> Iterator[tuple[JobDef, JobState, Mapping[str, Any]]]:
    """The jobs that a limit of the account keeps waiting, each with its whole payload."""
    for job, state in tx.jobs.matching(JobFilter(kind=AGENT)):
        payload = effective_payload(tx, json.loads(job.payload))
        if account in (limited_as(payload), source_key(payload.get("work"))):
            yield job, state, payload


def _start_now(tx: Transaction, job: JobDef, state: JobState) -> None:
    """A start that waits because of the limit is due now: one that was refused, and a run that was deferred."""
    waits = state.ready_at is not None
    for run in tx.runs.open(job.id) if state.queued else ():
        before = tx.runs.get(run.retry_of) if run.retry_of is not None else None
        if run.status != "queued" or run.due_at <= tx.now or before is None or before.outcome != "deferred":
            continue
        tx.runs.reschedule(run.id, tx.now)
        wake = tx.of(AgentTables).wake(job.id)
        if wake is not None and wake.run_id == run.id:
            tx.of(AgentTables).put_wake(wake._replace(due_at=tx.now))
        waits = True
    if waits and state.run_id is None and state.parked is None and (state.due_at or 0) > tx.now:
        tx.jobs.save([state._replace(due_at=tx.now)])
