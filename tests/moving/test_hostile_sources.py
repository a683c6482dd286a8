"""Files that were made to harm: they are refused, nothing in them runs, and nothing is changed."""

from __future__ import annotations

import contextlib
import os
import pickle
import sqlite3
import struct
import time

import pytest

from wakeful.moving.calls import NoCall, call_command
from wakeful.moving.pickles import LARGEST, PickleRefused, read_pickle

MARK = "it-ran"


class Runs:
    """Whose pickle runs a program when it is read in the usual way."""

    def __reduce__(self):
        return (os.system, (f"touch {MARK}",))


class Builds:
    def __reduce__(self):
        return (eval, (f"open({MARK!r}, 'w')",))


def hostile_pickles():
    yield pickle.dumps({"func": "a:b", "trigger": Runs(), "args": (), "kwargs": {}})
    yield pickle.dumps(Builds(), protocol=0)
    yield b"cos\nsystem\n(S'touch it-ran'\ntR."
    yield b"cbuiltins\ngetattr\n(cbuiltins\ngetattr\nS'__self__'\ntR."
    yield b"cbuiltins\ngetattr\n(czoneinfo\nZoneInfo\nS'__class__'\ntR."
    yield b"cdatetime\ndatetime.__class__\n."
    yield b"\x80\x04P0\n."
    yield b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b"x."  # claims to hold more than there is memory
    yield b"\x80\x04" + b"(" * 100_000 + b"."
    yield b"not a pickle"
    yield b""
    yield b"x" * (LARGEST + 1)


@pytest.mark.promise("X10")
@pytest.mark.parametrize("data", list(hostile_pickles()), ids=lambda data: f"{len(data)}-{data[:4].hex()}")
def test_no_pickle_runs_anything(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PickleRefused):
        read_pickle(data)
    assert list(tmp_path.iterdir()) == []


def test_a_pickle_that_would_reserve_all_memory_reserves_none():
    assert read_pickle(b"\x80\x04N" + b"r\xff\xff\xff\xff" + b".") is None  # a place in the memo, 64 GiB away


def test_a_pickle_cannot_change_what_the_next_one_is_given():
    first = b"capscheduler.triggers.interval\nIntervalTrigger\n(dS'get'\nNsb."
    with contextlib.suppress(PickleRefused):
        read_pickle(first)
    whole = b"\x80\x02capscheduler.triggers.interval\nIntervalTrigger\n)\x81}X\x01\x00\x00\x00aK\x01sb."
    assert read_pickle(whole).get("a") == 1


def test_arguments_that_share_their_parts_do_not_grow_without_end():
    value = ["x"]
    for _ in range(60):
        value = [value, value]
    with pytest.raises(NoCall):
        call_command("a:b", [value], {})
    with pytest.raises(NoCall):
        call_command("a:b", ["x" * 100_000], {})


@pytest.mark.parametrize("reference", ["", "os", "os:system;x", "os:(x)", "a b:c", "a:b\nimport os", "a:", ":b"])
def test_a_reference_that_is_more_than_a_name_is_refused(reference):
    with pytest.raises(NoCall):
        call_command(reference, [], {})


def test_pickles_in_a_store_are_refused_one_by_one(wakeful, here):
    rows = [(f"job-{number}", data) for number, data in enumerate(hostile_pickles())]
    connection = sqlite3.connect(here / "jobs.sqlite")
    connection.execute("CREATE TABLE apscheduler_jobs (id VARCHAR(191), next_run_time FLOAT, job_state BLOB)")
    connection.executemany("INSERT INTO apscheduler_jobs VALUES (?, 1, ?)", rows)
    connection.commit()
    connection.close()
    answer = wakeful("import", "apscheduler3", "jobs.sqlite", "--yes", "--json")
    assert answer.code == 0
    assert {entry["status"] for entry in answer.json["entries"]} == {"refused"}
    assert len(answer.json["entries"]) == len(rows)
    assert not (here / MARK).exists()
    assert wakeful("list", "--json").json == []


def test_a_module_is_not_imported(wakeful, here):
    (here / "tasks.py").write_text(
        f"open({MARK!r}, 'w')\n"
        f"beat_schedule = {{'a': {{'task': 'x', 'schedule': __import__('os').system('touch {MARK}')}},"
        f" 'b': {{'task': 'y', 'schedule': 60, 'args': (open({MARK!r}, 'w'),)}}}}\n"
    )
    answer = wakeful("import", "celerybeat", "tasks.py", "--yes", "--json")
    assert [entry["status"] for entry in answer.json["entries"]] == ["refused", "refused"]
    assert not (here / MARK).exists()


@pytest.mark.promise("X10")
def test_files_of_any_content_are_refused_quickly_and_change_nothing(wakeful, here, store):
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
        for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    hostile = {
        "huge.crontab": "0 0 * * * x\n" * 500_000,
        "binary.crontab": b"\x00\xff" * 1000,
        "latin.crontab": "0 0 * * * caf\xe9".encode("latin-1"),
        "deep.json": "[" * 100_000,
        "deep.yaml": "[" * 5_000,
        "bomb.yaml": bomb + "name: x\nschedules: *i\n",
        "tag.yaml": "name: x\nschedules: !!python/object/apply:os.system ['touch it-ran']\n",
        "number.json": '{"jobs": [' + "9" * 10_000 + "]}",
        "short.sqlite": b"SQLite format 3\x00" + b"\xff" * 500,
        "deep.py": "beat_schedule = " + "(" * 50_000,
    }
    begun = time.process_time()
    for name, content in hostile.items():
        (here / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        form = {"crontab": "crontab", "json": "openclaw", "yaml": "herdctl", "sqlite": "halo", "py": "celerybeat"}
        for kind in (form[name.rpartition(".")[2]], "auto"):
            answer = wakeful("import", kind, name, "--yes")
            assert answer.code == 1, (name, answer.out)
            assert answer.err.splitlines()[-1].startswith("Error: "), (name, answer.err)
            assert "fault in Wakeful" not in answer.err, (name, answer.err)
    assert time.process_time() - begun < 240
    assert not store.exists()
    assert not (here / MARK).exists()


def test_a_store_whose_query_would_not_end_is_given_up(wakeful, here):
    connection = sqlite3.connect(here / "halo.sqlite")
    connection.execute(
        "CREATE VIEW scheduler_jobs AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) "
        "SELECT id FROM n"
    )
    connection.commit()
    connection.close()
    answer = wakeful("import", "halo", "halo.sqlite")
    assert (answer.code, answer.err) == (1, "Error: halo.sqlite has no table scheduler_jobs.\n")


def test_pipes_links_and_files_that_others_could_write_are_refused(wakeful, here):
    (here / "open").write_text("@daily true\n")
    (here / "open").chmod(0o666)
    os.mkfifo(here / "pipe")
    folder = here / "schedules"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "definition.json").symlink_to("/etc/hostname")
    (folder / "b").symlink_to("/etc")
    (here / "herd").mkdir()
    (here / "herd" / "herdctl.yaml").write_text("agents: [{path: ../../../etc/passwd}]\n")
    said = {
        ("crontab", "open"): "is writable by everybody",
        ("crontab", "pipe"): "is not a regular file",
        ("caco", "schedules"): "has no schedules",
        ("herdctl", "herd"): "not below its folder",
    }
    for argv, why in said.items():
        answer = wakeful("import", *argv)
        assert (answer.code, why in answer.err) == (1, True), answer.err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_file_of_another_user_is_refused(wakeful, here):
    (here / "theirs").write_text("@daily true\n")
    os.chown(here / "theirs", 12345, 12345)
    answer = wakeful("import", "crontab", "theirs", "--yes")
    assert (answer.code, "belongs to another user" in answer.err) == (1, True)


def test_control_characters_do_not_reach_the_terminal_or_the_file(wakeful, here):
    (here / "jobs.json").write_text(
        '{"jobs": [{"id": "1", "name": "a\\u001b[31m\\nb", "schedule": {"kind": "every", "everyMs": 3600000},'
        ' "payload": {"kind": "systemEvent", "text": "one\\u0007\\ntwo\\u2028three"}}]}'
    )
    answer = wakeful("import", "openclaw", "jobs.json", "--into", "wakeful.yaml")
    assert answer.code == 0
    assert "\x1b" not in answer.out
    text = (here / "wakeful.yaml").read_text()
    assert "\x1b" not in text and "\x07" not in text  # noqa: PT018 - one thing
    assert wakeful("check").code == 0
    assert wakeful("apply", "--db", "x.db").code == 0
    [job] = [job for job in wakeful("list", "--json", "--db", "x.db").json if not job["name"].endswith("wake")]
    assert job["payload"]["prompt"] == "one\x07\ntwo\u2028three"
