"""Files that are no store of ours, or not ours to write: each gets its sentence, and stays as it was to the byte."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import stat
import tempfile
from pathlib import Path

import pytest

from tests.store.another_process import AnotherProcess, output_of
from tests.store.samples import OpenStore, job
from tests.store.sqlite_files import a_real_store, everything_in, refusal, url
from wakeful.clock import SystemClock
from wakeful.errors import StoreError, StoreFull, StoreUnusable
from wakeful.store.jobs import JobFilter

PAGE = 4096


@pytest.fixture
def clock():
    return SystemClock()


@pytest.fixture
def open_folder():
    """A folder that every user may read and only its owner may write, unlike those of the tests' own user."""
    folder = Path(tempfile.mkdtemp(prefix="wakeful-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    for inner in folder.glob("*"):
        inner.chmod(0o755)
    shutil.rmtree(folder)


# -- what is no store -------------------------------------------------------------------------------------------------


def test_a_directory_is_answered_with_a_file_to_name(tmp_path, clock):
    (tmp_path / "data").mkdir()
    wanted = f"{tmp_path}/data is a directory: name a file in it, for example {tmp_path}/data/wakeful.db."
    assert refusal(tmp_path / "data", clock) == wanted


@pytest.mark.parametrize(
    "content",
    [b"no", b"[agents]\n" * 400, random.Random(4).randbytes(5 * PAGE), b"SQLite format 3", b"\0" * PAGE],
    ids=["two letters", "text", "chance", "half a header", "zeros"],
)
def test_a_file_that_is_no_database_is_left_alone(file, clock, content):
    file.write_bytes(content)
    assert refusal(file, clock) == f"{file} is not a database: choose another file, or move this one away."


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/null")])
def test_what_is_no_file_at_all_is_not_opened(file, clock, make):
    make(file)
    assert refusal(file, clock) == f"{file} is not a file: choose another place."


@pytest.mark.parametrize("statement", ["CREATE TABLE notes (text)", "PRAGMA user_version = 3"])
def test_another_programs_database_is_not_touched(file, clock, statement):
    connection = sqlite3.connect(file)
    connection.execute(statement)
    connection.close()
    assert refusal(file, clock) == f"{file} is another program's database: choose another file for Wakeful."


def test_a_store_from_a_newer_version_is_not_touched(file, clock):
    a_real_store(file, clock)
    known = latest_version(file)
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA user_version = 99")
    connection.execute("UPDATE meta SET value = '98' WHERE key = 'oldest_schema'")
    connection.commit()
    connection.close()
    assert refusal(file, clock) == (
        f"{file} was written by a newer Wakeful (schema 99, for versions that know schema 98 or later; this one knows "
        f"{known}): upgrade this one, or use another file."
    )


def latest_version(file):
    connection = sqlite3.connect(file)
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    connection.close()
    return version


def test_an_empty_file_becomes_a_store(file, clock):
    file.touch()
    a_real_store(file, clock, jobs=1)
    with OpenStore(url(file), clock) as store:
        assert store.read(lambda tx: tx.jobs.by_id(1))


def test_where_nothing_is_nothing_is_made_unless_asked(file, clock):
    assert refusal(file, clock, create=False) == (
        f"There is no store at {file}: add a job or start a server to create it, or name another with --db."
    )


# -- what was a store -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [PAGE * 3, PAGE * 3 + 17, PAGE, 600])
def test_a_truncated_store_is_found_damaged(file, clock, kept):
    a_real_store(file, clock)
    os.truncate(file, kept)
    assert (
        refusal(file, clock) == f"{file} is damaged: restore a backup, or recover it with the sqlite3 tool's .recover."
    )


def test_a_damaged_schema_is_found_at_once(file, clock):
    a_real_store(file, clock)
    damage(file, 100, PAGE)
    assert (
        refusal(file, clock) == f"{file} is damaged: restore a backup, or recover it with the sqlite3 tool's .recover."
    )


@pytest.mark.parametrize("seed", range(8))
def test_damage_in_the_middle_is_reported_by_the_reader_that_meets_it_and_not_made_worse(file, clock, seed):
    a_real_store(file, clock)
    chance = random.Random(seed)
    pages = file.stat().st_size // PAGE
    for page in chance.sample(range(1, pages), pages // 2):
        damage(file, page * PAGE, (page + 1) * PAGE, chance)
    before = file.read_bytes()
    sentences = set()
    reads = [
        lambda tx: tx.jobs.matching(JobFilter()),
        lambda tx: tx.jobs.due(10**9, 1000),
        lambda tx: tx.runs.log(None, 100),
        lambda tx: tx.events.after(0),
    ]
    for read in reads:
        try:
            with OpenStore(url(file), clock) as store:
                store.read(read)
        except StoreError as error:
            sentences.add(str(error))
    assert sentences == {f"{file} is damaged: restore a backup, or recover it with the sqlite3 tool's .recover."}
    assert file.read_bytes() == before


def damage(file, start, end, chance=random.Random(1)):  # noqa: B008 - a fixed source, so that damage repeats
    content = bytearray(file.read_bytes())
    content[start:end] = chance.randbytes(end - start)
    file.write_bytes(content)


# -- what may not be written ------------------------------------------------------------------------------------------


ATTEMPT_WITHOUT_RIGHTS = "drop_rights(); attempt(url)"


def without_rights(path, folder):
    before = everything_in(folder)
    answer = output_of(ATTEMPT_WITHOUT_RIGHTS, url(path))
    assert everything_in(folder) == before
    return answer


def test_a_read_only_store_is_not_written(open_folder, clock):
    file = open_folder / "wakeful.db"
    a_real_store(file, clock, jobs=1)
    open_folder.chmod(0o777)
    file.chmod(0o444)
    wanted = f"StoreUnusable {file} cannot be written: check the permissions of the file and of its directory."
    assert output_of(ATTEMPT_WITHOUT_RIGHTS, url(file)) == wanted


def test_a_store_in_a_read_only_directory_is_not_written(open_folder, clock):
    file = open_folder / "wakeful.db"
    a_real_store(file, clock, jobs=1)
    file.chmod(0o666)
    open_folder.chmod(0o555)
    wanted = {
        f"StoreUnusable {file} cannot be opened: check that its directory exists and may be written.",
        f"StoreUnusable {file} cannot be written: check the permissions of the file and of its directory.",
    }
    assert without_rights(file, open_folder) in wanted


def test_a_store_that_may_not_be_read_is_not_opened(open_folder, clock):
    file = open_folder / "wakeful.db"
    a_real_store(file, clock, jobs=1)
    file.chmod(0o000)
    open_folder.chmod(0o555)
    wanted = f"StoreUnusable {file} cannot be opened: check that its directory exists and may be written."
    assert without_rights(file, open_folder) == wanted


def test_a_new_store_in_a_read_only_directory_is_refused(open_folder):
    file = open_folder / "wakeful.db"
    open_folder.chmod(0o555)
    wanted = f"StoreUnusable {file} cannot be opened: check that its directory exists and may be written."
    assert without_rights(file, open_folder) == wanted


def test_a_directory_that_cannot_be_made_is_named_with_the_reason(open_folder):
    file = open_folder / "a" / "b" / "wakeful.db"
    open_folder.chmod(0o555)
    wanted = f"StoreUnusable The directory of {file} cannot be made (Permission denied): choose another place."
    assert without_rights(file, open_folder) == wanted


def test_a_directory_that_may_not_be_entered_is_named_with_the_reason(open_folder):
    (open_folder / "closed").mkdir(mode=0o000)
    file = open_folder / "closed" / "wakeful.db"
    wanted = f"StoreUnusable {file} cannot be reached (Permission denied): choose another place."
    assert without_rights(file, open_folder) == wanted


def test_a_directory_under_a_file_cannot_be_made(tmp_path, clock):
    (tmp_path / "notes").write_text("mine", encoding="utf-8")
    with pytest.raises(StoreUnusable, match="cannot be made"), OpenStore(url(tmp_path / "notes/wakeful.db"), clock):
        pass
    assert (tmp_path / "notes").read_text(encoding="utf-8") == "mine"


# -- a disk without room ----------------------------------------------------------------------------------------------


@pytest.mark.promise("H12")
def test_on_a_full_disk_nothing_is_half_written_and_work_goes_on_when_there_is_room(file, clock):
    large = [job(number, payload=f'"{"x" * 3000}"') for number in range(1, 101)]
    heard = []

    def work(tx):
        tx.lanes.add({"a": 1})
        tx.events.emit("job", "added")
        tx.jobs.add(large)

    with OpenStore(url(file), clock) as store:
        store.store.on_events(heard.extend)
        (pages,) = store.store._writer.execute("PRAGMA page_count").fetchone()
        store.store._writer.execute(f"PRAGMA max_page_count = {pages + 5}")
        with pytest.raises(StoreFull) as caught:
            store.write(work)
        assert str(caught.value) == f"The disk that holds {file} is full: free some space; nothing was half written."
        assert heard == []
        assert store.read(lambda tx: (tx.lanes.all(), tx.jobs.counts(), tx.events.after(0))) == ({}, {}, [])
        store.write(lambda tx: tx.lanes.add({"small": 1}))
        store.store._writer.execute("PRAGMA max_page_count = 1000000")
        store.write(work)
        assert store.read(lambda tx: (tx.lanes.all(), tx.jobs.counts())) == ({"a": 1, "small": 1}, {"idle": 100})
    assert len(heard) == 1


LIMITED = """
from wakeful.store.interface import Transaction

def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

def fill(tx):
    tx.lanes.add({"half": 1})
    tx.facts.put({str(n): "x" * 3000 for n in range(100)})

async def main():
    store = await opened(url)
    await store.write(lambda tx: tx.lanes.add({"before": 1}))
    limit(os.path.getsize(url[10:] + "-wal") + 20_000)
    try:
        await store.write(fill)
    except SchedulerError as error:
        say(type(error).__name__, error)
    say(await store.read(lambda tx: tx.lanes.all()))
    limit(resource.RLIM_INFINITY)
    await store.write(fill)
    say(await store.read(lambda tx: tx.lanes.all()))
    await store.close()

limit(100)
attempt(url)
limit(resource.RLIM_INFINITY)
asyncio.run(main())
"""


@pytest.mark.promise("H12")
def test_where_files_may_not_grow_nothing_is_half_written_and_work_goes_on_when_they_may(file):
    wanted = (
        f"StoreUnusable The disk that holds {file} failed: check it, its quota and the limits on file sizes; "
        "nothing was half written."
    )
    with AnotherProcess(LIMITED, url(file)) as other:
        assert other.hear() == wanted  # a store that cannot be made
        assert other.hear() == wanted  # a write that does not fit
        assert other.hear() == "{'before': 1}"
        assert other.hear() == "{'before': 1, 'half': 1}"


def test_a_new_store_is_readable_by_its_owner_alone(tmp_path, clock):
    path = tmp_path / "wakeful.db"
    with OpenStore(url(path), clock) as store:
        store.write(lambda tx: tx.facts.put({"a": 1}))
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    assert modes == {"wakeful.db": 0o600, "wakeful.db-wal": 0o600, "wakeful.db-shm": 0o600}
