"""Scripts of domains outside Wakeful: each folder is counted by itself. Stores of the time of one sequence follow."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing

import psycopg
import pytest

from tests.store.postgres_server import postgres_url
from tests.store.samples import OpenStore, job
from wakeful.clock import SystemClock
from wakeful.errors import StoreLocked, StoreUnusable
from wakeful.store import schema_version
from wakeful.store.copying import copy_store
from wakeful.store.records import NodeRow
from wakeful.store.schema_version import APART, COUNTED_APART, DOMAINS_KEY, FOLDERS, OLDEST_KEY, schema_number

OURS = FOLDERS["wakeful"]
BEFORE = 21  # the last schema of the time when all scripts shared one sequence
LETTERS = "CREATE TABLE letters (id bigint PRIMARY KEY, text text NOT NULL);\n"
STAMPS = "CREATE TABLE stamps (id bigint PRIMARY KEY);\n"
A_JOB = (
    "INSERT INTO jobs (id, name, kind, source, trigger, payload, options, created_at, updated_at) "
    """VALUES (1, 'job-1', 'work', 'code', '{"type":"manual"}', 'null', '{}', 1, 1)"""
)
ITS_STATE = (
    "INSERT INTO job_state (job_id, revision, enabled, paused, queued, errors, crashes, missed, slot_runs) "
    "VALUES (1, 1, 1, 0, 0, 0, 0, 0, 0)"
)
COLOUR = "ALTER TABLE letters ADD COLUMN colour text;\n"


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    return f"sqlite:///{tmp_path / 'wakeful.db'}" if request.param == "sqlite" else postgres_url()


@pytest.fixture
def scripts(tmp_path, monkeypatch):
    """Sets which scripts this code knows: Wakeful's up to a number and some more, and those of domains."""
    made = []

    def folder_of(texts):
        made.append(tmp_path / f"scripts-{len(made)}")
        made[-1].mkdir()
        for number, text in texts.items():
            (made[-1] / f"{number:04}_script.sql").write_text(text)
        return made[-1]

    def know(domains=None, *, ours=None, more=None):
        own = shutil.copytree(OURS, tmp_path / f"ours-{len(made)}", dirs_exist_ok=True)
        for script in own.glob("*.sql"):
            if ours is not None and int(script.name[:4]) > ours:
                script.unlink()
        for number, text in (more or {}).items():
            (own / f"{number:04}_more.sql").write_text(text)
        folders = {name: folder_of(texts) for name, texts in (domains or {}).items()}
        made.append(own)
        monkeypatch.setattr(schema_version, "FOLDERS", {"wakeful": own, **folders})

    return know


def opened(url):
    return OpenStore(url, SystemClock())


def ask(url, sql):
    """What the database answers, beside the store."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url[10:])) as connection, connection:
            return connection.execute(sql).fetchall()
    with psycopg.connect(url) as connection:
        cursor = connection.execute(sql)
        return cursor.fetchall() if cursor.description else []


def number_in(url):
    sql = "PRAGMA user_version" if url.startswith("sqlite") else "SELECT max(version) FROM wakeful_schema"
    return ask(url, sql)[0][0]


def own_number_in(url):
    return number_in(url) - APART


def facts_in(url):
    return dict(ask(url, "SELECT key, value FROM meta"))


# -- each folder by itself --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [1, 100, 9001])
def test_a_later_script_of_wakeful_runs_whatever_numbers_domains_have(url, scripts, number):
    scripts({"post": {number: LETTERS}})
    with opened(url) as store:
        store.add(job(1))
    latest = schema_number()
    assert own_number_in(url) == latest
    scripts({"post": {number: LETTERS}}, more={latest + 1: "-- oldest: 12\n" + STAMPS})
    with opened(url):
        pass
    assert ask(url, "SELECT id FROM stamps") == []
    assert own_number_in(url) == latest + 1
    assert ask(url, "SELECT name FROM jobs") == [("job-1",)]


def test_a_domain_that_is_added_later_gets_its_scripts_though_their_numbers_are_lower(url, scripts):
    scripts({"post": {7: "-- oldest: 1\n" + LETTERS}})
    with opened(url):
        pass
    scripts({"post": {7: "-- oldest: 1\n" + LETTERS, 8: "-- oldest: 1\n" + COLOUR}, "shop": {7: STAMPS}})
    for _ in range(2):
        with opened(url):
            pass
    assert ask(url, "SELECT colour FROM letters") == ask(url, "SELECT id FROM stamps") == []
    assert json.loads(facts_in(url)[DOMAINS_KEY]) == {"scripts": {"post": [8, 1], "shop": [7, 7]}}


def test_two_scripts_of_one_folder_with_the_same_number_are_refused_and_of_two_are_not(url, scripts):
    scripts({"post": {1: LETTERS}, "shop": {1: STAMPS}})
    with opened(url):
        pass
    (schema_version.FOLDERS["shop"] / "0001_again.sql").write_text("-- oldest: 1\n")
    with pytest.raises(ValueError, match=r"0001_again.sql and 0001_script.sql have the same number"):
        schema_version.steps()


# -- which code a store suits -----------------------------------------------------------------------------------------


def test_code_that_knows_less_of_a_domain_is_refused_and_code_without_it_is_not_concerned(url, scripts):
    scripts({"post": {1: LETTERS, 2: COLOUR}})
    with opened(url):
        pass
    scripts({"post": {1: LETTERS}})
    words = r"newer version of post \(schema 2, for versions that know schema 2 or later; this one knows 1\): upgrade"
    with pytest.raises(StoreUnusable, match=words):
        opened(url).__enter__()
    scripts()
    with opened(url) as store:
        store.add(job(1))


def test_code_that_knows_less_of_a_domain_whose_scripts_only_add_works_on(url, scripts):
    scripts({"post": {1: LETTERS, 2: "-- oldest: 1\n" + COLOUR}})
    with opened(url):
        pass
    scripts({"post": {1: LETTERS}})
    with opened(url) as store:
        store.add(job(1))
    assert json.loads(facts_in(url)[DOMAINS_KEY]) == {"scripts": {"post": [2, 1]}}


def test_code_of_the_time_of_one_sequence_is_refused_only_where_domains_have_scripts(url, scripts):
    scripts()
    with opened(url):
        pass
    assert int(facts_in(url)[OLDEST_KEY]) <= BEFORE
    scripts({"post": {1: LETTERS}})
    with opened(url):
        pass
    assert int(facts_in(url)[OLDEST_KEY]) == APART + COUNTED_APART
    assert number_in(url) > APART, "more than any number that such code knows, its domains' included"


@pytest.mark.parametrize(
    ("details", "words"),
    [
        (
            {"schema": 9001},
            rf"schema \d+ while nodes run that know only older ones than {COUNTED_APART}: upgrade or stop old",
        ),
        (
            {"schema": 99, DOMAINS_KEY: {"post": 1}},
            r"schema 2 of post while nodes run that know only older ones than 2",
        ),
    ],
)
def test_nothing_is_taken_away_from_a_living_node_that_needs_it(scripts, details, words):
    url = postgres_url()
    scripts()
    with opened(url) as store:
        now = store.read(lambda tx: tx.facts.database_now())
        store.write(lambda tx: tx.members.join(NodeRow(1, "old", now, now, None, json.dumps(details))))
        store.write(lambda tx: tx.members.join(NodeRow(2, "other", now, now, None, json.dumps({"schema": 99}))))
    scripts({"post": {1: LETTERS, 2: COLOUR}})
    with pytest.raises(StoreLocked, match=words):
        opened(url).__enter__()
    assert DOMAINS_KEY in facts_in(url)
    assert json.loads(facts_in(url)[DOMAINS_KEY]) == {}


def test_a_server_on_a_file_says_which_domains_it_knows(tmp_path, scripts):
    url = f"sqlite:///{tmp_path / 'wakeful.db'}"
    scripts({"post": {1: LETTERS}})
    with opened(url) as server:
        server.do(server.store.become_engine({"pid": 1, "host": "mill", "node": "old"}))
        scripts({"post": {1: LETTERS, 2: COLOUR}})
        with pytest.raises(StoreLocked, match=r"schema 2 of post while .* upgrade or stop old \(process 1\) first"):
            opened(url).__enter__()
        server.do(server.store.resign())
        with opened(url):
            pass


def test_a_process_that_opened_a_store_before_a_domain_was_changed_does_not_become_its_node_after(url, scripts):
    scripts({"post": {1: LETTERS}})
    with opened(url) as early:
        scripts({"post": {1: LETTERS, 2: COLOUR}})
        with opened(url):
            pass
        scripts({"post": {1: LETTERS}})
        with pytest.raises(StoreUnusable, match="know schema 2 of post or later; this one knows 1: upgrade it"):
            early.write(lambda tx: tx.members.join(NodeRow(1, "late", 1, 1, None, "{}")))


# -- from the time of one sequence ------------------------------------------------------------------------------------


def a_shared_store(url, scripts, ours=BEFORE, domain=(LETTERS,)):
    """A store as version 0.2.0 left it: the number of the latest script is a domain's."""
    scripts(ours=ours)
    with opened(url):
        pass
    ask(url, A_JOB)
    ask(url, ITS_STATE)
    last = 9000 + len(domain)
    for number, script in enumerate(domain, 9001):
        ask(url, script)
        new_row = f"INSERT INTO wakeful_schema (version) VALUES ({number})"  # noqa: S608 - a number
        ask(url, f"PRAGMA user_version = {number}" if url.startswith("sqlite") else new_row)
    ask(url, "INSERT INTO letters (id, text) VALUES (1, 'Dear Ada')")
    ask(url, f"UPDATE meta SET value = '{last}' WHERE key IN ('schema', 'oldest_schema')")  # noqa: S608 - a number
    assert DOMAINS_KEY not in facts_in(url)
    assert number_in(url) == last


@pytest.mark.parametrize("ours", [12, 14, BEFORE])
def test_a_store_of_the_time_of_one_sequence_gets_every_script_once_and_keeps_what_it_holds(url, scripts, ours):
    a_shared_store(url, scripts, ours)
    known = {"post": {9001: LETTERS, 9002: COLOUR}, "shop": {1: STAMPS}}
    scripts(known)
    for _ in range(2):
        with opened(url) as store:
            assert set(store.read(lambda tx: tx.jobs.definitions([1]))) == {1}
    assert ask(url, "SELECT id, text, colour FROM letters") == [(1, "Dear Ada", None)]
    assert ask(url, "SELECT id FROM stamps") == ask(url, "SELECT id FROM actions") == []
    assert own_number_in(url) == schema_number()
    facts = facts_in(url)
    assert (facts["schema"], facts[OLDEST_KEY]) == (str(schema_number()), str(APART + COUNTED_APART))
    assert json.loads(facts[DOMAINS_KEY]) == {
        "scripts": {"post": [9002, 9002], "shop": [1, 1]},
        "shared": 9001,
    }


def test_it_may_first_be_opened_by_a_program_without_the_domain(url, scripts):
    a_shared_store(url, scripts, domain=(LETTERS, "UPDATE letters SET text = 'x';", COLOUR))
    scripts()
    with opened(url):
        pass
    assert number_in(url) == schema_number()
    assert json.loads(facts_in(url)[DOMAINS_KEY]) == {"shared": 9003}
    known = {9001: LETTERS, 9002: "UPDATE letters SET text = 'x';", 9003: COLOUR, 9004: "-- oldest: 9003\n" + STAMPS}
    scripts({"post": known})
    with opened(url):
        pass
    assert ask(url, "SELECT text FROM letters") == [("Dear Ada",)]
    assert ask(url, "SELECT id FROM stamps") == []
    assert json.loads(facts_in(url)[DOMAINS_KEY]) == {"scripts": {"post": [9004, 9003]}, "shared": 9003}


def test_a_domain_of_that_time_is_put_on_record_though_it_has_nothing_new(url, scripts):
    a_shared_store(url, scripts)
    scripts()
    with opened(url):
        pass
    scripts({"post": {9001: LETTERS}})
    with opened(url):
        pass
    assert json.loads(facts_in(url)[DOMAINS_KEY])["scripts"] == {"post": [9001, 9001]}


def test_a_domain_that_such_a_store_never_had_gets_all_its_scripts(url, scripts):
    a_shared_store(url, scripts)
    scripts({"shop": {3: STAMPS}})
    with opened(url):
        pass
    assert ask(url, "SELECT id FROM stamps") == []


def test_a_store_of_that_time_whose_tables_were_changed_by_hand_is_refused_and_left_alone(url, scripts):
    a_shared_store(url, scripts)
    ask(url, "DROP TABLE actions")
    ask(url, "DROP TABLE fleets")
    scripts({"post": {9001: LETTERS}})
    with pytest.raises(StoreUnusable, match="has other tables than any version that this one knows"):
        opened(url).__enter__()
    assert number_in(url) == 9001


# -- copies -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", ["a domain on record", "a domain of the time of one sequence"])
def test_a_program_without_a_domain_does_not_leave_its_tables_behind_in_a_copy(tmp_path, scripts, known):
    source, goal = f"sqlite:///{tmp_path / 'from.db'}", f"sqlite:///{tmp_path / 'to.db'}"
    if known == "a domain on record":
        scripts({"post": {1: LETTERS}})
        with opened(source):
            pass
    else:
        a_shared_store(source, scripts)
    scripts()
    whose = "post" if known == "a domain on record" else "another domain"
    words = f"has tables of {whose} that this program does not know"
    with opened(source) as here, opened(goal) as there, pytest.raises(StoreUnusable, match=words):
        here.do(copy_store(here.store, there.store, lambda *_: None))


def test_a_copy_keeps_what_the_target_says_about_its_own_scripts(tmp_path, scripts):
    source, goal = f"sqlite:///{tmp_path / 'from.db'}", f"sqlite:///{tmp_path / 'to.db'}"
    a_shared_store(source, scripts)
    scripts({"post": {9001: LETTERS}})
    with opened(source) as here, opened(goal) as there:
        here.do(copy_store(here.store, there.store, lambda *_: None))
    assert ask(goal, "SELECT text FROM letters") == [("Dear Ada",)]
    assert json.loads(facts_in(goal)[DOMAINS_KEY]) == {"scripts": {"post": [9001, 9001]}}
