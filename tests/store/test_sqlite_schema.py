"""The schema: reached the same way from every earlier version, shaped like the records, cheap where it must be."""

from __future__ import annotations

import re
import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.store.samples import NOW, OpenStore, job, run
from wakeful import store as store_room
from wakeful.store import schema_version
from wakeful.store.facts import NUMBERED
from wakeful.store.records import AlertRow, EventGroup, JobDef, JobState, NodeRow, RunDetails, RunRow, SkipRow, TokenRow
from wakeful.store.schema_version import schema_number
from wakeful.store.sqlite_file import APPLICATION_ID, _statements, migrations

STEPS = [(step.number, script) for step, script in zip(schema_version.steps(), migrations(), strict=True)]
SCRIPTS = sorted((Path(store_room.__file__).parent / "schema").glob("*.sql"))


def shape(file):
    """Every table, its columns in order, and every index, as the database itself lists them."""
    connection = sqlite3.connect(file)
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    columns = {name: connection.execute(f"PRAGMA table_info({name})").fetchall() for name in sorted(tables)}
    indexes = connection.execute("SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'index' ORDER BY name")
    found = columns, indexes.fetchall(), connection.execute("PRAGMA user_version").fetchone()
    connection.close()
    return found


def a_store_of_version(file, version):
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA journal_mode = WAL")
    for _, script in STEPS[:version]:
        for statement in _statements(script):
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {STEPS[version - 1][0]}")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute("INSERT INTO meta (key, value) VALUES ('made by', 'an earlier version')")
    connection.commit()
    connection.close()


@pytest.mark.parametrize("version", range(1, len(STEPS) + 1))
def test_a_store_of_any_earlier_version_becomes_what_a_new_one_is_and_keeps_what_it_held(tmp_path, clock, version):
    with OpenStore(f"sqlite:///{tmp_path / 'new.db'}", clock):
        pass
    a_store_of_version(tmp_path / "old.db", version)
    with OpenStore(f"sqlite:///{tmp_path / 'old.db'}", clock) as store:
        assert store.read(lambda tx: tx.facts.of(["made by"])) == {"made by": "an earlier version"}
        store.add(job(1))
    assert shape(tmp_path / "old.db") == shape(tmp_path / "new.db")


def test_a_store_that_is_up_to_date_is_opened_without_reading_a_script(tmp_path, clock, monkeypatch):
    url = f"sqlite:///{tmp_path / 'new.db'}"
    with OpenStore(url, clock):
        pass
    for script in SCRIPTS:
        (tmp_path / "scripts" / script.name).mkdir(parents=True)  # cannot be read as a file
    monkeypatch.setitem(schema_version.FOLDERS, "wakeful", tmp_path / "scripts")
    with OpenStore(url, clock) as store:
        assert store.read(lambda tx: tx.facts.get("schema")) == str(schema_number())


def test_the_number_of_a_migration_is_that_of_its_file():
    names = [re.fullmatch(r"(\d{4})_[a-z_]+\.sql", script.name) for script in SCRIPTS]
    assert all(names)
    assert [number for number, _ in STEPS] == [int(name[1]) for name in names]
    assert schema_number() == STEPS[-1][0]


def test_a_number_that_is_left_out_keeps_no_later_migration_from_a_store(tmp_path, clock, monkeypatch):
    folder = shutil.copytree(schema_version.FOLDERS["wakeful"], tmp_path / "schema")
    latest = schema_number()
    monkeypatch.setitem(schema_version.FOLDERS, "wakeful", folder)
    for number in (latest + 5, latest + 7):
        (folder / f"{number:04}_more.sql").write_text(f"-- oldest: 1\nCREATE TABLE more_{number} (id bigint);\n")
        with OpenStore(f"sqlite:///{tmp_path / 'wakeful.db'}", clock):
            pass
        assert shape(tmp_path / "wakeful.db")[2] == (number,)
    assert {f"more_{latest + 5}", f"more_{latest + 7}"} < set(shape(tmp_path / "wakeful.db")[0])


def test_two_migrations_of_one_number_are_refused(tmp_path, monkeypatch):
    folder = shutil.copytree(schema_version.FOLDERS["wakeful"], tmp_path / "schema")
    monkeypatch.setitem(schema_version.FOLDERS, "wakeful", folder)
    (folder / f"{schema_number():04}_another.sql").write_text("-- oldest: 1\n")
    with pytest.raises(ValueError, match="have the same number"):
        schema_version.steps()


def test_the_schema_asks_no_clock_and_speaks_no_dialect():
    words = re.compile(r"\b(now\(|current_timestamp|autoincrement|serial|datetime\(|pragma|strftime)", re.IGNORECASE)
    assert [script.name for script in SCRIPTS if words.search(script.read_text(encoding="utf-8"))] == []


def test_the_numbers_of_a_table_are_its_own_row_numbers(tmp_path, clock):
    with OpenStore(f"sqlite:///{tmp_path / 'wakeful.db'}", clock):
        pass
    connection = sqlite3.connect(tmp_path / "wakeful.db")
    for table in ("jobs", "job_state", "runs", "run_details", "events", "alerts", "nodes"):
        keys = [column for column in connection.execute(f"PRAGMA table_info({table})") if column[5]]
        assert [column[2] for column in keys] == ["INTEGER"], table
    connection.close()


@pytest.mark.parametrize(
    ("table", "record"),
    [
        ("jobs", JobDef),
        ("job_state", JobState),
        ("runs", RunRow),
        ("run_details", RunDetails),
        ("skips", SkipRow),
        ("alerts", AlertRow),
        ("events", EventGroup),
        ("tokens", TokenRow),
    ],
)
def test_a_record_has_the_fields_of_its_table_in_their_order(tmp_path, clock, table, record):
    with OpenStore(f"sqlite:///{tmp_path / 'wakeful.db'}", clock):
        pass
    columns = [column[1] for column in shape(tmp_path / "wakeful.db")[0][table]]
    assert tuple(columns) == record._fields


def test_a_node_is_a_part_of_its_row(tmp_path, clock):
    with OpenStore(f"sqlite:///{tmp_path / 'wakeful.db'}", clock):
        pass
    columns = [column[1] for column in shape(tmp_path / "wakeful.db")[0]["nodes"]]
    assert set(NodeRow._fields) <= set(columns)


LOOKING = {
    "what is due": lambda tx: tx.jobs.due(NOW, 512),
    "the next alarm": lambda tx: tx.jobs.next_alarm(),
    "what is parked": lambda tx: tx.jobs.parked_counts(),
    "unparking": lambda tx: tx.jobs.requeue_parked("lane", NOW, 10),
    "a job's open runs": lambda tx: tx.runs.open(1),
    "a job by name": lambda tx: tx.jobs.by_name("job-1"),
    "a slot": lambda tx: tx.runs.has_slot(1, NOW),
    "a job's last runs": lambda tx: tx.runs.log(1, 5),
    "all last runs": lambda tx: tx.runs.log(None, 5),
    "the highest id": lambda tx: tx.facts.highest_id(),
}


@pytest.mark.promise("H11")
def test_looking_for_work_costs_the_same_however_many_jobs_sleep_and_runs_are_done(tmp_path, clock):
    with OpenStore(f"sqlite:///{tmp_path / 'wakeful.db'}", clock, inline=True) as store:
        fill(store, 1, 50)
        few = {name: steps(store, work) for name, work in LOOKING.items()}
        fill(store, 51, 4000)
        many = {name: steps(store, work) for name, work in LOOKING.items()}
    # A deeper tree may cost a step more here and there; a walk through the table would cost eighty times as much.
    assert {name: (few[name], many[name]) for name in LOOKING if many[name] > 2 * few[name] + 20} == {}


def fill(store, first, last):
    store.add(*(job(number, due_at=NOW + number, last_run_id=number) for number in range(first, last + 1)))
    store.add_runs(*(run(number, number, slot=NOW, outcome="success") for number in range(first, last + 1)))


def steps(store, work):
    """How many steps the database's machine takes for it."""
    count = [0]

    def step():
        count[0] += 1

    connection = store.store._writer
    connection.set_progress_handler(step, 1)
    store.read(work)
    connection.set_progress_handler(None, 0)
    return count[0]


def test_jobs_that_were_over_before_there_was_a_word_for_it_are_over_and_others_are_not(tmp_path):
    connection = sqlite3.connect(tmp_path / "old.db")
    for _, script in [step for step in STEPS if step[0] < 14]:
        connection.executescript(script)
    once, every = '{"type":"once"}', '{"type":"every"}'
    rows = [  # trigger, removed, enabled, last slot, last end, notes
        (once, None, 0, 5, 6, None),
        (every, None, 0, 5, 7, '["finished 2026-01-01T00:00:00Z: it has run 3 times"]'),
        (every, 9, 0, 5, 8, None),
        (once, None, 1, 5, 6, None),
        (once, None, 0, None, 6, None),  # run by hand, then disabled by a person
        (every, None, 0, 5, 6, '["disabled 2026-01-01T00:00:00Z after 5 errors in a row"]'),
    ]
    for number, (trigger, removed, enabled, slot, ended, notes) in enumerate(rows, 1):
        connection.execute(
            "INSERT INTO jobs (id, name, kind, source, trigger, payload, options, created_at, updated_at, removed_at) "
            "VALUES (?, ?, 'work', 'code', ?, 'null', '{}', 1, 1, ?)",
            (number, f"job-{number}", trigger, removed),
        )
        connection.execute(
            "INSERT INTO job_state (job_id, revision, enabled, paused, queued, last_slot, last_finished_at, errors, "
            "crashes, missed, slot_runs, notes) VALUES (?, 1, ?, 0, 0, ?, ?, 0, 0, 0, 1, ?)",
            (number, enabled, slot, ended, notes),
        )
    connection.executescript(dict(STEPS)[14])
    found = connection.execute("SELECT ended_at FROM job_state ORDER BY job_id").fetchall()
    connection.close()
    assert [row[0] for row in found] == [6, 7, 9, None, None, None]


def test_events_of_an_earlier_version_wait_only_where_a_handler_subscribes(tmp_path, clock):
    file = tmp_path / "old.db"
    a_store_of_version(file, [number for number, _ in STEPS].index(31))
    connection = sqlite3.connect(file)
    for name, removed_at in (("flow", None), ("gone", NOW)):
        connection.execute(
            "INSERT INTO workflows (name, version, source, created_at, updated_at, removed_at) "
            "VALUES (?, 'v', 's', 1, 1, ?)",
            (name, removed_at),
        )
    for name, job_id, topics in (("now", 1, '["a-b", "c"]'), ("before", None, '["d"]')):
        connection.execute(
            "INSERT INTO workflow_handlers (workflow, name, job_id, type, subscribes, timeout) "
            "VALUES ('flow', ?, ?, 'consumer', ?, 1)",
            (name, job_id, topics),
        )
    events = [("flow", "a"), ("flow", "a-b"), ("flow", "c"), ("flow", "d"), ("gone", "d")]
    for number, (workflow, topic) in enumerate(events):
        connection.execute(
            "INSERT INTO workflow_events (id, workflow, topic, message_id, seq, payload, status, at) "
            "VALUES (?, ?, ?, 'm', ?, '{}', 'pending', 7)",
            (number, workflow, topic, number),
        )
    connection.commit()
    connection.close()
    with OpenStore(f"sqlite:///{file}", clock):
        pass
    connection = sqlite3.connect(file)
    found = connection.execute(
        "SELECT workflow, topic FROM workflow_events WHERE settled_at = 7 ORDER BY id"
    ).fetchall()
    connection.close()
    assert found == [("flow", "a"), ("flow", "d")]


def test_a_schedule_that_was_added_keeps_its_session_unless_it_shared_it_with_the_files(tmp_path, clock):
    file = tmp_path / "old.db"
    a_store_of_version(file, [number for number, _ in STEPS].index(40))
    connection = sqlite3.connect(file)
    for number, name in enumerate(("a.wake", "a.both", "both", "mine", "a.mine-too")):
        connection.execute(
            "INSERT INTO jobs (id, name, kind, owner, source, trigger, payload, options, created_at, updated_at) "
            "VALUES (?, ?, 'agent', 'a', 's', '{}', '{}', '{}', 1, 1)",
            (number, name),
        )
    for name in ("a/both", "a/mine", "a/mine-too", "a/heartbeat", "mine"):
        connection.execute(
            "INSERT INTO agent_sessions (name, agent, session, created_at, used_at, tokens_in, tokens_out) "
            "VALUES (?, 'a', 's', 1, 1, 0, 0)",
            (name,),
        )
    connection.commit()
    connection.close()
    with OpenStore(f"sqlite:///{file}", clock):
        pass
    connection = sqlite3.connect(file)
    found = [row[0] for row in connection.execute("SELECT name FROM agent_sessions ORDER BY name")]
    connection.close()
    assert found == ["a/both", "a/heartbeat", "a/job:mine", "a/mine-too", "mine"]


def test_work_items_and_events_of_agents_that_were_removed_are_theirs_by_name(tmp_path, clock):
    file = tmp_path / "old.db"
    a_store_of_version(file, [number for number, _ in STEPS].index(43))
    connection = sqlite3.connect(file)
    for number, name, removed in ((1, "a.wake", 5), (2, "a.wake", None), (3, "gone.wake", 6)):
        connection.execute(
            "INSERT INTO jobs (id, name, kind, source, trigger, payload, options, created_at, updated_at, removed_at) "
            "VALUES (?, ?, 'agent', 's', '{}', '{}', '{}', 1, 1, ?)",
            (number, name, removed),
        )
        connection.execute(
            "INSERT INTO agent_events (id, job_id, text, at) VALUES (?, ?, 'The door is open.', 1)", (number, number)
        )
    for number, owner, called in ((11, 1, "T-1"), (12, 1, None), (13, 2, "T-1"), (14, 2, "T-2"), (15, 3, "T-1")):
        connection.execute(
            "INSERT INTO agent_work (id, job_id, title, external_id, priority, status, attempts, created_at) "
            "VALUES (?, ?, 't', ?, 0, 'ready', 0, 1)",
            (number, owner, called),
        )
    connection.commit()
    connection.close()
    with OpenStore(f"sqlite:///{file}", clock):
        pass
    connection = sqlite3.connect(file)
    events = connection.execute("SELECT id, agent FROM agent_events ORDER BY id").fetchall()
    items = connection.execute("SELECT id, agent FROM agent_work ORDER BY id").fetchall()
    connection.close()
    assert events == [(1, "a"), (2, "a"), (3, "gone")]
    assert items == [(12, "a"), (13, "a"), (14, "a"), (15, "gone")]  # what has the same id elsewhere is there once


@pytest.mark.promise("H2")
def test_an_id_of_any_table_is_known_to_who_makes_the_next_one(tmp_path):
    a_store_of_version(tmp_path / "ids.db", len(STEPS))
    connection = sqlite3.connect(tmp_path / "ids.db")
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    keys = {
        name: [column for _, column, _, _, _, place in connection.execute(f"PRAGMA table_info({name})") if place == 1]
        for name in tables
    }
    connection.close()
    of_their_own = {name for name, key in keys.items() if key == ["id"]}
    counted_by_the_database, of_a_run = {"events"}, {"workflow_runs"}
    assert set(NUMBERED) == of_their_own - counted_by_the_database - of_a_run
