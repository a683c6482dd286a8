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

from tests.store.another_process import AnotherProcess, told
from tests.store.samples import OpenStore, job
from wakeful.clock import SystemClock
from wakeful.errors import StoreError, StoreFull, StoreUnusable
from wakeful.store import make_store
from wakeful.store.jobs import JobFilter

PAGE = 4096


@pytest.fixture
def clock():
    return SystemClock()


@pytest.fixture
def file(tmp_path):
    return tmp_path / "wakeful.db"


@pytest.fixture
def open_folder():
    """A folder that everybody may look into and nobody else may write, unlike those of the tests' own user."""
    folder = Path(tempfile.mkdtemp(prefix="wakeful-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    for inner in folder.glob("*"):
        inner.chmod(0o755)
    shutil.rmtree(folder)


def url(path):
    return f"sqlite:///{path}"


def everything_in(folder):
    """What lies in a folder: names, kinds, permissions and contents."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_mode, path.read_bytes() if readable(path) else None)
        for path in folder.rglob("*")
    }


def readable(path):
    return path.is_file() and os.access(path, os.R_OK)


def a_real_store(path, clock, jobs=300):
    with OpenStore(url(path), clock) as store:
        store.add(*(job(number, payload=f'"{"x" * 500}"', due_at=number) for number in range(1, jobs + 1)))


def refusal(path, clock, *, create=True):
    """The sentence an attempt to open gets, after looking that it changed nothing."""
    before = everything_in(path.parent)
    with pytest.raises(StoreUnusable) as caught, OpenStore(url(path), clock, create=create):
        pass
    assert everything_in(path.parent) == before
    return str(caught.value)


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
def test_damage_in_the_middle_is_told_by_whoever_meets_it_and_not_made_worse(file, clock, seed):
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
        lambda tx: tx.journal.events(0),
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
    answer = told(ATTEMPT_WITHOUT_RIGHTS, url(path))
    assert everything_in(folder) == before
    return answer


def test_a_read_only_store_is_not_written(open_folder, clock):
    file = open_folder / "wakeful.db"
    a_real_store(file, clock, jobs=1)
    open_folder.chmod(0o777)
    file.chmod(0o444)
    wanted = f"StoreUnusable {file} cannot be written: check the permissions of the file and of its directory."
    assert told(ATTEMPT_WITHOUT_RIGHTS, url(file)) == wanted


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


def test_a_store_nobody_may_read_is_not_opened(open_folder, clock):
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


# -- addresses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "with space.db",
        "günther-日本-\U0001f319.db",
        "100%25.db",
        "what?mode=memory.db",
        "a#b&c=d.db",
        "file:x.db",
        'it\'s "quoted".db',
        "new\nline.db",
        "~tilde.db",
        "-rf",
        ":memory:.db",
    ],
)
def test_a_name_is_taken_letter_by_letter(tmp_path, clock, name):
    with OpenStore(url(tmp_path / name), clock) as store:
        store.add(job(1))
        assert store.read(lambda tx: tx.jobs.by_id(1))
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_directories_on_the_way_are_made(tmp_path, clock):
    with OpenStore(url(tmp_path / "a" / "b" / "wakeful.db"), clock):
        assert (tmp_path / "a" / "b" / "wakeful.db").exists()


def test_a_relative_address_means_where_the_program_was_started(tmp_path, clock, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with OpenStore("sqlite:///file:sub/wakeful.db", clock) as store:
        monkeypatch.chdir(tmp_path / "elsewhere")
        store.add(job(1))
        assert store.read(lambda tx: tx.jobs.by_id(1))
        store.do(store.store.become_engine({}))
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert {path.name for path in (tmp_path / "file:sub").iterdir()} == {"wakeful.db", "wakeful.db.lock"}


def test_home_can_be_written_short(tmp_path, monkeypatch, clock):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert make_store("sqlite:///~/wakeful.db", clock).path == str(tmp_path / "wakeful.db")


@pytest.mark.parametrize("address", ["sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite://:memory:"])
def test_a_store_in_memory_leaves_no_file_and_is_its_own(tmp_path, clock, monkeypatch, address):
    monkeypatch.chdir(tmp_path)
    with OpenStore(address, clock) as one, OpenStore(address, clock) as two:
        one.add(job(1))
        assert one.read(lambda tx: tx.jobs.by_id(1))
        assert two.read(lambda tx: tx.jobs.by_id(1)) is None
        one.do(one.store.become_engine({}))
        two.do(two.store.become_engine({}))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "address",
    [
        "sqlite://file.db",
        "sqlite:file.db",
        "sqlite",
        "sqlite:///a\0b.db",
        "sqlite:///\ud800.db",
        "mysql://x",
        "",
        None,
        5,
    ],
)
def test_what_is_no_address_is_answered_with_one_that_is(clock, address):
    with pytest.raises(StoreUnusable) as caught:
        make_store(address, clock)
    assert str(caught.value).startswith(f"{address!r} is not a store's address: write ")
    assert "sqlite:///file.db" in str(caught.value)


def test_the_home_of_a_stranger_is_no_address(clock):
    with pytest.raises(StoreUnusable, match="write the whole path"):
        make_store("sqlite:///~nobody-of-that-name/wakeful.db", clock)


def test_a_name_that_is_too_long_is_answered_with_the_reason(tmp_path, clock):
    too_long = r"cannot be reached \(File name too long\)"
    with pytest.raises(StoreUnusable, match=too_long), OpenStore(url(tmp_path / ("x" * 300)), clock):
        pass


def test_a_link_to_nothing_becomes_a_store_at_its_end_or_says_why_not(tmp_path, clock):
    (tmp_path / "link.db").symlink_to("real.db")
    a_real_store(tmp_path / "link.db", clock, jobs=1)
    with OpenStore(url(tmp_path / "real.db"), clock) as store:
        assert store.read(lambda tx: tx.jobs.by_id(1))
    (tmp_path / "lost.db").symlink_to("gone/real.db")
    wanted = f"{tmp_path / 'lost.db'} cannot be opened: check that its directory exists and may be written."
    assert refusal(tmp_path / "lost.db", clock) == wanted


# -- a disk without room ----------------------------------------------------------------------------------------------


@pytest.mark.promise("H12")
def test_on_a_full_disk_nothing_is_half_written_and_work_goes_on_when_there_is_room(file, clock):
    large = [job(number, payload=f'"{"x" * 3000}"') for number in range(1, 101)]
    heard = []

    def work(tx):
        tx.lanes.add({"a": 1})
        tx.journal.emit("job", "added")
        tx.jobs.add(large)

    with OpenStore(url(file), clock) as store:
        store.store.on_events(heard.extend)
        (pages,) = store.store._writer.execute("PRAGMA page_count").fetchone()
        store.store._writer.execute(f"PRAGMA max_page_count = {pages + 5}")
        with pytest.raises(StoreFull) as caught:
            store.write(work)
        assert str(caught.value) == f"The disk that holds {file} is full: free some space; nothing was half written."
        assert heard == []
        assert store.read(lambda tx: (tx.lanes.all(), tx.jobs.counts(), tx.journal.events(0))) == ({}, {}, [])
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
    tx.journal.set_meta({str(n): "x" * 3000 for n in range(100)})

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
        store.write(lambda tx: tx.journal.set_meta({"a": 1}))
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    assert modes == {"wakeful.db": 0o600, "wakeful.db-wal": 0o600, "wakeful.db-shm": 0o600}
