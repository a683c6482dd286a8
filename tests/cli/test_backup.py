"""`backup` and `restore`: a store at one moment, and back; what is restored waits for a person."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from tests.store.postgres_server import postgres_url
from wakeful import Every, Once, Scheduler
from wakeful.kernel.actions import callbacks, run_tokens
from wakeful.triggers.moments import from_ms

PAUSED = "Everything is paused: look through wakeful list and wakeful delivery list, then wakeful resume --all."

KEYS = (
    "The restored store has new keys: tokens of runs and callback addresses that were given out before the backup are "
    "not valid here. Work that continues elsewhere cannot report to it."
)


def names(answer):
    return [job["name"] for job in answer.json]


@pytest.mark.promise("X17")
@pytest.mark.usefixtures("stocked")
def test_a_backup_is_restored_paused_and_goes_on_when_a_person_says_so(wakeful, here):
    assert wakeful("backup", "saved.db").code == 0
    answer = wakeful("restore", "saved.db", "--db", "new.db")
    assert answer.code == 0
    assert answer.out.startswith("Copied 2 jobs")
    assert PAUSED in answer.err
    for store in ("saved.db", "new.db"):  # whichever way it is put into place
        assert names(wakeful("list", "--json", "--db", store)) == ["job", "other"]
        hold = wakeful("status", "--json", "--db", store).json["hold"]
        assert hold["messages"] is True
        assert wakeful("run", "job", "--db", store).code == 4
    assert wakeful("status", "--json").json["hold"] is None  # the store itself goes on
    assert wakeful("resume", "--all", "--db", "new.db").code == 0
    assert wakeful("run", "job", "--db", "new.db").code == 0


@pytest.mark.usefixtures("stocked")
def test_a_backup_says_as_many_jobs_as_status_counts(wakeful, store):
    async def register():
        async with Scheduler(f"sqlite:///{store}") as scheduler:
            scheduler.connectors.register("phone", print)
            await scheduler.start()

    asyncio.run(register())  # a connector has a job of its own, which nobody listed
    assert len(wakeful("list", "--internal", "--json").json) == 3
    assert wakeful("backup", "saved.db").out.startswith("Copied 2 jobs")
    assert "jobs    2 (" in wakeful("status").out


@pytest.mark.usefixtures("stocked")
def test_a_store_that_holds_something_is_not_written_over(wakeful):
    wakeful("backup", "saved.db")
    again = wakeful("backup", "saved.db")
    assert (again.code, "saved.db exists: replace it with --replace" in again.err) == (4, True)
    over = wakeful("restore", "saved.db")
    assert (over.code, "is not empty (2 jobs): choose an empty store" in over.err) == (4, True)
    assert wakeful("restore", "nothing.db", "--db", "new.db").code == 3
    dated = wakeful("backup", "daily.db", "--keep", "2")
    assert (dated.code, "daily.db reads like a file, and --keep makes a directory" in dated.err) == (2, True)
    assert wakeful("backup", "daily.db/", "--keep", "2").code == 0
    assert wakeful("restore", "saved.db", "--db", "saved.db").code == 2
    assert wakeful("backup", "postgresql://localhost/x").code == 2


@pytest.mark.promise("X17")
@pytest.mark.usefixtures("stocked")
def test_a_directory_has_a_dated_backup_of_each_time_and_the_newest_are_kept(wakeful, here):
    folder = here / "backups"
    folder.mkdir()
    for name in ("wakeful-20250101-000000.db", "wakeful-20250102-000000.db", "notes.db"):
        (folder / name).write_text("older")
    (folder / "wakeful-20250101-000000.db.logs").mkdir()
    answer = wakeful("backup", "backups", "--keep", "2")
    assert (answer.code, "Removed 1 older backup from" in answer.out) == (0, True)
    left = sorted(path.name for path in folder.iterdir() if path.suffix in (".db", ".logs"))
    assert (left[:2], len(left)) == (["notes.db", "wakeful-20250102-000000.db"], 3)
    assert names(wakeful("list", "--json", "--db", str(folder / left[2]))) == ["job", "other"]
    assert wakeful("backup", "--keep", "2", "--to", "one.db").code == 2
    assert wakeful("backup").code == 2


@pytest.mark.promise("X17")
@pytest.mark.usefixtures("stocked")
def test_a_backup_replaces_an_earlier_one_only_when_it_is_complete(wakeful, here):
    for _ in range(2):
        assert wakeful("backup", "--to", "saved.db", "--replace").code == 0
    assert names(wakeful("list", "--json", "--db", "saved.db")) == ["job", "other"]
    kept = (here / "saved.db").read_bytes()
    (here / "damaged.db").write_text("no database " * 100)
    assert wakeful("backup", "--to", "saved.db", "--replace", "--db", "damaged.db").code == 1
    assert (here / "saved.db").read_bytes() == kept
    assert not (here / "saved.db.before").exists()
    itself = wakeful("backup", "--to", wakeful("status", "--json").json["store"], "--replace")
    assert itself.code == 2


def test_nothing_is_backed_up_where_there_is_nothing(wakeful, here):
    assert wakeful("backup", "saved.db").code == 3
    assert not (here / "saved.db").exists()


@pytest.mark.promise("X17")
def test_what_was_due_and_what_waited_to_be_sent_stays_until_a_person_resumes(wakeful, here):
    """The server that made the backup goes on; the one on the restored store starts and sends nothing."""
    sent = here / "sent.txt"

    def fail(message):
        raise ConnectionError("not now")

    def send(message):
        sent.write_text(message.text)

    async def fill():
        async with Scheduler(f"sqlite:///{here}/from.db", timezone="UTC") as scheduler:
            scheduler.connectors.register("disk", fail)
            await scheduler.start()
            await scheduler.deliver("Hello.", to="disk")
            await scheduler.stop()
            await scheduler.add_job("hourly", Every("1h", anchor=from_ms(0)), kind="work")
            await scheduler.add_job("past", Once(from_ms(0)), kind="work")

    async def serve(over, started):
        async with Scheduler(f"sqlite:///{here}/to.db", timezone="UTC") as scheduler:
            scheduler.on_job_due("work", lambda run: started.append(run.job))
            scheduler.connectors.register("disk", send)
            await scheduler.start()
            for _ in range(600):
                await asyncio.sleep(0.1)
                if over():
                    break
            await scheduler.stop()

    asyncio.run(fill())
    assert wakeful("backup", "saved.db", "--db", "from.db").code == 0
    assert wakeful("restore", "saved.db", "--db", "to.db").code == 0
    started = []
    looks = itertools.count()
    asyncio.run(serve(lambda: next(looks) == 5, started))
    assert started == []
    assert not sent.exists()
    (held,) = wakeful("delivery", "list", "--json", "--db", "to.db").json
    assert held["status"] == "held"
    assert wakeful("resume", "--all", "--db", "to.db").code == 0
    asyncio.run(serve(lambda: started and sent.exists(), started))
    assert started == ["past"]
    assert sent.read_text() == "Hello."


@pytest.mark.promise("X17")
def test_a_store_on_postgresql_is_backed_up_while_a_server_works_and_restored_into_either(wakeful):
    url, started = postgres_url(), []

    async def serve():
        async with Scheduler(url, timezone="UTC") as scheduler:
            begun, go_on = asyncio.Event(), asyncio.Event()

            async def work(run):
                started.append(run.job)
                begun.set()
                await go_on.wait()

            scheduler.on_job_due("work", work)
            await scheduler.add_job("past", Once(from_ms(0)), kind="work")
            await scheduler.start()
            await begun.wait()
            answer = await asyncio.to_thread(wakeful, "backup", "saved.db", "--db", url)
            go_on.set()
            await scheduler.stop()
            return answer

    assert asyncio.run(serve()).code == 0
    there = postgres_url()
    for goal in ("new.db", there):
        assert wakeful("restore", "saved.db", "--db", goal).code == 0

    async def serve_restored():
        async with Scheduler(there, timezone="UTC") as scheduler:
            scheduler.on_job_due("work", lambda run: started.append(run.reason))
            await scheduler.start()
            await asyncio.sleep(0.5)
            held = len(started)
            await asyncio.to_thread(wakeful, "resume", "--all", "--db", there)
            async with asyncio.timeout(60):
                while len(started) == held:  # noqa: ASYNC110 - what handlers did is no event
                    await asyncio.sleep(0.05)
            await scheduler.stop()
            return held

    assert asyncio.run(serve_restored()) == 1
    assert started == ["past", "recovery"]  # what was running at the time of the backup, once a person said so


@pytest.mark.promise("X17")
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_neither_a_backup_nor_what_is_restored_from_it_has_the_keys_of_the_running_server(wakeful, here, store):
    """Whoever gets hold of a backup makes no tokens of runs and no callbacks for the server it was made of."""
    live = f"sqlite:///{here}/live.db" if store == "sqlite" else postgres_url()
    facts = (callbacks.KEY, run_tokens.KEY)

    async def keys(url, *, make=False):
        async with Scheduler(url, timezone="UTC") as scheduler:
            if make:
                await scheduler.add_job("job", Every("1h"))
                await scheduler.transact(lambda tx, _: (callbacks.callback_token(tx, 1), run_tokens.run_token(tx, 1)))
            return await scheduler.read(lambda tx: [tx.facts.of([fact]).get(fact) for fact in facts])

    def keys_of(url, **how):
        return asyncio.run(keys(url, **how))

    before = keys_of(live, make=True)
    assert all(before)
    assert wakeful("backup", "saved.db", "--db", live).code == 0
    found = [path.read_bytes() for path in here.glob("saved.db*")]
    assert not any(key.encode() in content for key in before for content in found)
    restored = wakeful("restore", "saved.db", "--db", "new.db")
    assert KEYS in restored.err
    new = [*keys_of(f"sqlite:///{here}/saved.db"), *keys_of(f"sqlite:///{here}/new.db")]
    assert len({*before, *new}) == 6
    assert keys_of(live) == before, "the server itself goes on with its own"
    if store == "sqlite":  # a copy of the file that was made without Wakeful has them: they are replaced here
        assert wakeful("restore", "live.db", "--db", "other.db").code == 0
        assert set(keys_of(f"sqlite:///{here}/other.db")).isdisjoint(before)
