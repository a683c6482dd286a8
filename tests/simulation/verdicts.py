"""The verdict of a world, against a plain model that reads the rows itself: what is not well is never called so."""

from __future__ import annotations

from tests.simulation.invariants import Broken, Connection, Row
from wakeful.ids import first_id_at
from wakeful.kernel.cluster.nodes import Seen
from wakeful.kernel.rules.verdict import judge
from wakeful.kernel.views.verdict_facts import standing
from wakeful.store.interface import Transaction

FAILED = ("error", "timeout", "crashed")
OF_RUNS = ("failing", "down", "missed", "stuck", "no_handler", "no_node")
NO_TROUBLE = ("well", "quiet", "empty")
LATE_MS = 60_000
QUARTER_MS = 15 * 60_000
WEEK_MS = 7 * 86_400_000


def check_verdict(tx: Transaction, connection: Connection) -> None:
    """The state of the verdict is the worst that the rows show, whatever happened."""
    facts = standing(tx, "UTC", Seen(holder={"node": "here"}), WEEK_MS)
    if facts.held is not None or facts.unaccounted:
        return  # said before anything that is modelled here
    if connection.execute("SELECT 1 FROM jobs WHERE kind IN ('agent', 'session', 'workflow') LIMIT 1").fetchone():
        return  # whose failures are judged by rules of their own
    verdict = judge(facts._replace(served=True, heard_at=tx.now, stalled=(), draining=False))
    expected = expected_state(connection, tx.now)
    if verdict.state != expected and not (expected is None and verdict.state in NO_TROUBLE):
        raise Broken(f"X26: the rows show {expected or 'nothing wrong'}, and the verdict is {tuple(verdict)}")


def expected_state(connection: Connection, now: int) -> str | None:
    """The worst that is so; None where nothing is wrong."""
    jobs = connection.execute(
        "SELECT s.* FROM job_state s JOIN jobs j ON j.id = s.job_id WHERE j.removed_at IS NULL ORDER BY s.job_id"
    ).fetchall()
    alerts = connection.execute("SELECT * FROM alerts WHERE closed_at IS NULL").fetchall()
    paused = {job["job_id"] for job in connection.execute("SELECT job_id FROM job_state WHERE paused = 1").fetchall()}
    awaited = [one for one in alerts if not (_is_of_runs(one) and one["job_id"] in paused)]
    unseen = [one for one in awaited if one["acked_at"] is None and one["kind"] != "approval"]
    asking = connection.execute("SELECT id FROM runs WHERE status = 'waiting' AND phase = 'approval'").fetchall()
    if unseen or asking:
        return "needs_you"
    reported = {one["job_id"] for one in alerts if _is_of_runs(one)}
    watched = [job for job in jobs if job["enabled"] and not job["paused"] and job["job_id"] not in reported]
    if any(_has_failed(job) or _alternates(connection, job) for job in watched) or _given_up(connection, now):
        return "failing"
    parked = any(now - job["ready_at"] > LATE_MS for job in jobs if job["parked"] is not None and job["ready_at"])
    due = connection.execute("SELECT min(due_at) AS first FROM job_state").fetchone()["first"]
    return "behind" if parked or (due is not None and now - due > LATE_MS) or _waits(connection, now) else None


def _is_of_runs(alert: Row) -> bool:
    """Whether an incident is about what a job does, and not about a message that it caused."""
    kind, subject, *_ = str(alert["key"]).split(":")
    return (subject if kind == "flapping" else kind) in OF_RUNS


def _waits(connection: Connection, now: int) -> bool:
    """Whether a message has waited to be sent for longer than five attempts take."""
    rows = connection.execute("SELECT created_at, queued_at FROM deliveries WHERE open = 1").fetchall()
    return any(now - max(row["created_at"], row["queued_at"] or 0) > QUARTER_MS for row in rows)


def _given_up(connection: Connection, now: int) -> bool:
    """Whether a message of the last week will not be sent any more."""
    sql = "SELECT id FROM deliveries WHERE status = 'failed' AND kind NOT IN ('digest', 'test') AND id >= ?"
    return bool(connection.execute(sql, (first_id_at(now - WEEK_MS),)).fetchall())


def _has_failed(job: Row) -> bool:
    """What failed last: it is neither being tried again nor has it succeeded since."""
    if job["last_error"] is None:
        return False
    return bool(job["errors"]) or (not job["queued"] and job["run_id"] is None)


def _alternates(connection: Connection, job: Row) -> bool:
    """Whether it has failed twice or more of late, each time after a success, in two of five starts or more."""
    if job["last_error"] is not None:
        return False
    rows = connection.execute("SELECT * FROM runs WHERE job_id = ? ORDER BY id", (job["job_id"],)).fetchall()
    continued = {row["retry_of"] for row in rows}
    ends = [row for row in rows if row["id"] not in continued and row["outcome"] in (*FAILED, "success", "noop")]
    lately = "".join("x" if row["outcome"] in FAILED else "." for row in ends)[::-1]
    return _is_bad(lately[:10], lately[10:100])


def _is_bad(lately: str, before: str) -> bool:
    spells = len([part for part in lately.split(".") if part])
    if spells < 2 or len(lately) < 4:
        return False
    rate = lately.count("x") / len(lately)
    usual = before.count("x") / len(before) if len(before) >= 10 else 0
    return rate >= 0.4 or (lately.count("x") >= 3 and rate >= 0.2 and rate >= 2 * usual)
