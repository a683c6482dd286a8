"""What the server does for each question the engine asks all the time, on tables that have grown: as little as it can.

Every statement is recorded as the verbs really send it, and then explained in the same transaction, with the same
settings: once for the values it was sent with, once as the server plans it when it no longer looks at them. Nothing may
read a big table from end to end, sort more than it was asked for, or touch more rows and pages than its answer needs,
whether the server has statistics or not. The tables are as large as can be filled within seconds: a hundred thousand
rows are planned like millions, because no question here has an answer that grows with them.
"""

from __future__ import annotations

import json
import re

import psycopg
import pytest

from tests.store.postgres_server import postgres_url
from tests.store.samples import NOW, OpenStore, end
from tests.store.samples import run as new_run
from wakeful.clock import ManualClock
from wakeful.domains.agents.inbound.tables import InboundRequests
from wakeful.store.jobs import JobFilter
from wakeful.store.records import RunDetails
from wakeful.store.stretches import Block, SlotSpan

ROWS = 100_000
BIG = ("events", "job_state", "jobs", "lane_sizes", "lanes", "nodes", "run_details", "runs")
BATCH = 256
DUE, PARKED, ACTIVE, QUEUED = (range(first, first + 600) for first in (1, 1001, 2001, 3001))
NODES, LIVE = 20_000, 4
BUSY_JOB = 9_999
DAY_MS = 86_400_000
CENTURY_MS = 36_500 * DAY_MS

_FILL = f"""
INSERT INTO jobs (id, name, kind, source, trigger, payload, options, created_at, updated_at, removed_at)
SELECT n, 'job-' || n, 'work', 'code', CASE WHEN n % 2 = 0 THEN '{{"type":"once"}}' ELSE '{{"type":"every"}}' END,
    'null', '{{}}', {NOW}, {NOW}, CASE WHEN n % 10 = 0 AND n > 10000 THEN {NOW} END
FROM generate_series(1, {ROWS}) n;

INSERT INTO job_state (job_id, revision, enabled, paused, due_at, run_id, queued, parked, ready_at, errors, crashes,
    missed, slot_runs, last_finished_at, ended_at, priority)
SELECT n, 1, (n % 2 = 1 OR n < 10000)::int, 0,
    CASE WHEN n BETWEEN {DUE.start} AND {DUE.stop - 1} THEN {NOW} - 5000 + n
         WHEN n > 10000 AND n % 2 = 1 THEN {NOW} + n * 1000 END,
    CASE WHEN n BETWEEN {ACTIVE.start} AND {ACTIVE.stop - 1} THEN {ROWS} + n END,
    (n BETWEEN {QUEUED.start} AND {QUEUED.stop - 1})::int,
    CASE WHEN n BETWEEN {PARKED.start} AND {PARKED.stop - 1} THEN 'lane' END,
    CASE WHEN n BETWEEN {PARKED.start} AND {PARKED.stop - 1} THEN {NOW} - n END, 0, 0, 0, 0,
    CASE WHEN n > 10000 AND n % 2 = 0 THEN {NOW} - n END,
    CASE WHEN n > 10000 AND n % 2 = 0 THEN {NOW} - n END,
    CASE n % 8 WHEN 1 THEN 7 WHEN 2 THEN 7 WHEN 3 THEN -7 WHEN 4 THEN -7 ELSE 0 END
FROM generate_series(1, {ROWS}) n;
UPDATE job_state SET next_at = due_at, slot = due_at WHERE due_at IS NOT NULL;
INSERT INTO priorities (level) VALUES (7), (-7);

INSERT INTO runs (id, job_id, kind, reason, slot, attempt, status, outcome, due_at, started_at, finished_at, node)
SELECT n, CASE WHEN n % 100 = 0 THEN {BUSY_JOB} ELSE 10000 + n % 20000 END, 'work', 'schedule', n, 1, 'done',
    'success', n, n, n + 5, 1 + n % {NODES}
FROM generate_series(1, {ROWS}) n;
INSERT INTO runs (id, job_id, kind, reason, slot, attempt, status, due_at, started_at, node)
SELECT {ROWS} + n, n, 'work', 'schedule', n, 1, 'active', {NOW}, {NOW}, {NODES} - n % {LIVE}
FROM generate_series({ACTIVE.start}, {ACTIVE.stop - 1}) n;
INSERT INTO runs (id, job_id, kind, reason, attempt, status, due_at)
SELECT {ROWS} + n, n, 'work', 'manual', 1, 'queued', {NOW} FROM generate_series({QUEUED.start}, {QUEUED.stop - 1}) n;

INSERT INTO lane_sizes (job_id, lane, size) SELECT n, 'lane', n % 50 + 5 FROM generate_series(1, {ROWS}) n;
INSERT INTO lane_sizes (job_id, lane, size) SELECT n, 'own-' || n, 1 FROM generate_series(1, {ROWS}) n;
INSERT INTO lanes (key, used, size) SELECT 'own-' || n, 0, 1 FROM generate_series(1, {ROWS}) n;
INSERT INTO lanes (key, used, size) VALUES ('lane', 3, 5);

INSERT INTO run_details (run_id, output) SELECT n, 'null' FROM generate_series(1, {ROWS}) n;
INSERT INTO events (id, stream, seq, at, body)
SELECT n, CASE n % 50 WHEN 0 THEN 'alert' ELSE 'run' END, n, {NOW} + n, '[]' FROM generate_series(1, {ROWS}) n;
INSERT INTO nodes (id, name, started_at, seen_at, stopped_at, details, loop_at)
SELECT n, 'node-' || n, {NOW}, {NOW}, CASE WHEN n <= {NODES - LIVE} THEN {NOW} END, '{{}}', {NOW}
FROM generate_series(1, {NODES}) n;
SELECT setval(pg_get_serial_sequence('events', 'id'), {ROWS});
"""  # noqa: S608 - numbers of our own


@pytest.fixture(scope="module")
def filled():
    """A store with a long history, and nobody who would gather statistics about it by himself."""
    url = postgres_url()
    with OpenStore(url, ManualClock()) as opened:
        with psycopg.connect(url, autocommit=True) as connection:
            for table in BIG:
                connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = false)")
                connection.execute(f"ALTER TABLE {table} SET UNLOGGED")
            connection.execute(_FILL)
        yield opened, url


@pytest.fixture(scope="module", params=["without statistics", "with statistics"])
def store(filled, request):
    opened, url = filled
    if request.param == "with statistics":
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ANALYZE")
    return opened


# -- what is asked, and for how many rows an answer may cost ----------------------------------------------------------

_SOME = list(ACTIVE)[:BATCH]
_RUNS = [ROWS + number for number in _SOME]


def _turn(tx):
    """All that a turn writes, for one batch."""
    standing, due = tx.jobs.due_for(NODES, NOW, BATCH, parked=True)
    assert (standing.draining, len(due)) == (False, BATCH)
    tx.jobs.save_started([state for _, state in due])
    tx.runs.add([new_run(10 * ROWS + state.job_id, state.job_id, slot=1) for _, state in due])
    tx.jobs.next_alarm()


def _turn_when_everything_is_due(tx):
    due = tx.jobs.due(NOW + CENTURY_MS, BATCH)
    assert [state.priority for _, state in due] == [7] * BATCH
    tx.jobs.save([state._replace(due_at=None, parked="lane", ready_at=state.due_at) for _, state in due])
    tx.jobs.next_alarm()


def _settle(tx):
    states = tx.jobs.states(_SOME)
    assert len(states) == BATCH
    tx.jobs.save_settled(list(states.values()))
    tx.runs.finish([end(run_id) for run_id in _RUNS])
    tx.runs.detail([RunDetails(run_id, output="1") for run_id in _RUNS])
    tx.reports.of(_RUNS)


def _wake_queued(tx):
    for job_id in QUEUED[:50]:
        (found,), given = tx.runs.open_and_first(job_id)
        assert list(given) == [found.id]
        tx.runs.activate([found._replace(status="active", started_at=NOW, node=1)])


def _forget(tx):
    tx.jobs.forget([5, 6, 7])
    tx.runs.prune_job(BUSY_JOB, 20)


def _count_slots(tx, after, number):
    placed, last = tx.slots.next_jobs(after, number, ("delivery",))
    assert (len(placed), last) == (number, after + number)
    span, block = SlotSpan(0, NOW + CENTURY_MS), Block(after, last)
    tx.slots.firsts(span, block)
    tx.slots.unstarted(span, block)
    tx.slots.opened(span, block)
    tx.stretches.sums(span, block)
    tx.stretches.crossing(span, block)
    tx.stretches.all_past_triggers(0, block)


def _list_slots(tx, job_ids):
    span = SlotSpan(0, NOW + CENTURY_MS)
    tx.slots.runs_of_each(job_ids, span)
    tx.stretches.of_each(job_ids, span)


WRITES = {
    "claim": (_turn, BATCH),
    "claim, everything is due": (_turn_when_everything_is_due, BATCH),
    "next alarm": (lambda tx: tx.jobs.next_alarm(), 3),
    "settle": (_settle, BATCH),
    "start what was queued": (_wake_queued, 50),
    "definitions": (lambda tx: tx.jobs.definitions(_SOME), BATCH),
    "lanes": (lambda tx: (tx.lanes.used(["lane", "other"]), tx.lanes.add({"lane": 1})), 2),
    "enter lanes": (lambda tx: tx.lanes.enter({ROWS + 1: {"lane": 1, "new": 2}}), 2),
    "leave lanes": (lambda tx: tx.lanes.leave([7, 8]), 4),
    "requeue_parked one": (lambda tx: tx.jobs.requeue_parked("lane", NOW, 1), 1),
    "parked, counted": (lambda tx: tx.jobs.parked_counts(), len(PARKED)),
    "parked": (lambda tx: tx.jobs.parked_on("lane", NOW, 50), 50),
    "parked for long": (lambda tx: tx.jobs.parked_on("lane", NOW - PARKED.stop + 50, 50), 50),
    "rearm": (lambda tx: tx.jobs.ahead_of(NOW, ROWS // 2, BATCH), 2 * BATCH),
    "to cancel": (lambda tx: tx.runs.to_cancel(), len(ACTIVE) + len(QUEUED)),
    "all open runs": (lambda tx: tx.runs.all_open(), len(ACTIVE) + len(QUEUED)),
    "runs of a dead node": (lambda tx: tx.runs.of_nodes([NODES]), len(ACTIVE) + len(QUEUED)),
    "was the slot run": (lambda tx: tx.runs.has_slot(BUSY_JOB, 300), 1),
    "one job": (lambda tx: (tx.jobs.by_id(7), tx.jobs.by_name("job-7"), tx.jobs.names(["job-7", "x"])), 4),
    "chains": (lambda tx: (tx.jobs.any_chains(), tx.jobs.chained("job-7")), 1),
    "beat": (lambda tx: (tx.members.lives(NODES), tx.members.beat(NODES, NOW, NOW)), 2),
    "standing": (lambda tx: tx.members.standing(NODES, parked=True), 2),
    "who is silent": (lambda tx: (tx.members.correct_seen(NOW), tx.members.silent(NOW), tx.members.alive()), LIVE),
    "who stands still": (lambda tx: (tx.members.stalled(NOW), tx.members.serving(), tx.members.earlier("me")), LIVE),
    "take over": (lambda tx: tx.members.take_over(tx.members.alive()[0], 1, NOW), LIVE),
    "emit": (lambda tx: (tx.events.emit("run", 1), tx.events.flush(NOW)), 1),
    "highest id": (lambda tx: tx.facts.highest_id(), 4),
    "prune old runs": (lambda tx: tx.runs.older(ROWS // 2, 0, 50), len(ACTIVE) + len(QUEUED)),
    "prune a long history": (lambda tx: tx.runs.beyond(BUSY_JOB, 1000, 50), 2 * ROWS // 100),
    "prune events": (lambda tx: tx.events.prune(NOW + 1000, 50), 50),
    "prune events, none is old": (lambda tx: tx.events.prune(NOW - DAY_MS, 50), 50),
    "prune finished jobs": (lambda tx: tx.jobs.finished(NOW + 1, (0, 0), 50, 50), 50),
    "prune finished jobs, none is old": (lambda tx: tx.jobs.finished(NOW - DAY_MS, (0, 0), 50, 50), 50),
    "forget": (_forget, 20),
}
READS = {
    "events after an id": (lambda tx: tx.events.after(ROWS - 100, None, 50), 50),
    "events of a stream": (lambda tx: tx.events.after(0, ["alert"], 50), 50),
    "events of streams": (lambda tx: tx.events.after(ROWS - 100, ["run", "job"], 50), 50),
    "first and last event": (lambda tx: tx.events.ids(), 2),
    "first page of jobs": (lambda tx: tx.jobs.matching(JobFilter(limit=50)), 50),
    "a later page of jobs": (lambda tx: tx.jobs.matching(JobFilter(limit=50, after="job-5")), 50),
    "jobs of a rare kind": (lambda tx: tx.jobs.matching(JobFilter(kind="none", limit=50)), 1),
    "jobs of a common kind": (lambda tx: tx.jobs.matching(JobFilter(kind="work", limit=50, after="job-5")), 50),
    "jobs of an owner": (lambda tx: tx.jobs.matching(JobFilter(owner="nobody", limit=50)), 1),
    "jobs of a source": (lambda tx: tx.jobs.matching(JobFilter(source="cli", limit=50)), 1),
    "jobs that are paused": (lambda tx: tx.jobs.matching(JobFilter(status="paused", limit=50)), 1),
    "jobs that wait for a person": (
        lambda tx: tx.jobs.matching(JobFilter(status="waiting", limit=50)),
        len(ACTIVE) + len(QUEUED),
    ),
    "schedules that hear chats": (lambda tx: tx.of(InboundRequests).chat_jobs(None), 1),
    "jobs declared in code": (lambda tx: tx.jobs.declared(), 1),
    "what will start": (lambda tx: tx.jobs.armed(50, ("delivery",)), 50 + len(ACTIVE) + len(QUEUED)),
    "what starts next": (lambda tx: tx.jobs.soonest(3), len(ACTIVE) + len(QUEUED)),
    "open alerts": (lambda tx: tx.alerts.count_open(), 1),
    "runs of a job": (lambda tx: tx.runs.log(12_345, 50), 50),
    "runs of all jobs": (lambda tx: tx.runs.log(None, 50), 50),
    "a further page of runs": (lambda tx: tx.runs.log(None, 50, ROWS // 2), 50),
    "details of runs": (lambda tx: tx.runs.details_of(range(1000, 1050)), 50),
    "the run that tried again": (lambda tx: tx.runs.successor(77), 1),
    "a step of the ledger": (lambda tx: _count_slots(tx, 5_000, 50), 50),
    "slots one by one": (lambda tx: _list_slots(tx, range(5_000, 5_050)), 50),
    "nodes": (lambda tx: (tx.members.last(), tx.nodes.names_of([1, 2])), 3),
    "open runs by node": (lambda tx: tx.nodes.running(), len(ACTIVE) + len(QUEUED)),
}


@pytest.mark.promise("X24")
@pytest.mark.parametrize("name", WRITES)
def test_what_the_engine_asks_costs_its_answer_and_not_the_history(store, name):
    verb, rows = WRITES[name]
    _assert_cheap(store.write(lambda tx: _plans(tx, verb)), rows)


@pytest.mark.promise("X24")
@pytest.mark.parametrize("name", READS)
def test_what_people_ask_costs_a_page_and_not_the_history(store, name):
    verb, rows = READS[name]
    _assert_cheap(store.read(lambda tx: _plans(tx, verb)), rows)


@pytest.mark.promise("X24")
def test_a_text_is_looked_for_in_an_index_of_names_and_not_in_the_rows(store):
    wanted = JobFilter(contains="job-123", hidden=("delivery",), limit=5)
    names, *_ = store.read(lambda tx: _plans(tx, lambda tx: tx.jobs.matching(wanted)))
    assert "Index Only Scan" in json.dumps(names[1]), names


# -- plans ------------------------------------------------------------------------------------------------------------


class Recording:
    """A connection that remembers what was sent through it."""

    def __init__(self, connection):
        self._connection = connection
        self.info = connection.info
        self.sent = []

    def execute(self, sql, params=()):
        if not sql.startswith("SELECT pg_advisory"):
            self.sent.append((sql, tuple(params)))
        return self._connection.execute(sql, params)


def _plans(tx, verb):
    """(statement, plan) of all that the verb sends, for its values and for any; nothing of it stays."""
    session = tx.jobs._session
    connection = session._connection
    session._connection = recording = Recording(connection)
    connection.execute("SAVEPOINT plan")
    verb(tx)
    session.finish()
    session._connection = connection
    assert recording.sent
    found = []
    for explain in (_explain, _explain_prepared):
        connection.execute("ROLLBACK TO plan")
        if session._writing:  # a snapshot that only reads says itself that its plans are made for their values
            connection.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        found += [(sql, explain(connection, sql, params)) for sql, params in recording.sent]
    connection.execute("ROLLBACK TO plan")
    return found


_EXPLAIN = "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) "


def _explain(connection, sql, params):
    return connection.execute(_EXPLAIN + sql, params).fetchone()[0][0]["Plan"]


def _explain_prepared(connection, sql, params):
    """As the server plans a statement that was sent so often that it is prepared."""
    numbers = iter(range(1, len(params) + 1))
    text = re.sub("%s|%%", lambda found: f"${next(numbers)}" if found[0] == "%s" else "%", sql)
    types = ", ".join("bigint" if isinstance(value, int) else "unknown" for value in params)
    connection.execute(f"PREPARE asked {f'({types})' if params else ''} AS {text}")
    values = f"({', '.join(['%s'] * len(params))})" if params else ""
    cursor = psycopg.ClientCursor(connection)
    plan = cursor.execute(f"{_EXPLAIN} EXECUTE asked {values}", params).fetchone()[0][0]["Plan"]
    connection.execute("DEALLOCATE asked")
    return plan


def _parts(plan):
    yield plan
    for part in plan.get("Plans", ()):
        yield from _parts(part)


def _touched(part):
    removed = sum(value for key, value in part.items() if key.startswith("Rows Removed by"))
    return (part["Actual Rows"] + removed) * part["Actual Loops"]


def _assert_cheap(plans, rows):
    """`rows`: how many the answer needs. An index finds each in a few pages, and a write touches each index."""
    for sql, plan in plans:
        shown = f"{sql}\n{json.dumps(plan, indent=1)}"
        for part in _parts(plan):
            kind = part["Node Type"]
            assert not (kind == "Seq Scan" and part["Relation Name"] in BIG), shown
            if kind != "Bitmap Index Scan":  # counts what other tests undid, too; the pages count it right
                assert _touched(part) <= 2 * rows + 10, shown
        blocks = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
        assert blocks <= 40 * rows + 100, shown
