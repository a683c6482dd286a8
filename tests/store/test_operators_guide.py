"""docs/several-machines.md for operators: its queries run, and a restored store that is held starts nothing."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from tests.kernel.crashing import die
from tests.kernel.scene import postgres_scene
from tests.store.postgres_server import postgres_url, shared_server
from tests.store.samples import NOW, OpenStore, alert, job, run
from wakeful import Every, Manual, Once
from wakeful.clock import SystemClock
from wakeful.testing import run as live
from wakeful.triggers.moments import from_ms

__all__ = ["postgres_scene"]

pytestmark = pytest.mark.promise("X2")

GUIDE = (Path(__file__).parents[2] / "docs" / "several-machines.md").read_text(encoding="utf-8")


def statements(heading):
    """The SQL under a heading."""
    section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", GUIDE, re.DOTALL | re.MULTILINE)[1]
    found = re.findall(r"```sql\n(.*?)```", section, re.DOTALL)
    assert found
    return found


@pytest.fixture(scope="module")
def watched():
    """A store with something to see in it, that belongs to a role without special rights."""
    url = postgres_url()
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("DROP ROLE IF EXISTS watcher")
        admin.execute("CREATE ROLE watcher LOGIN; GRANT CREATE ON SCHEMA public TO watcher")
    url = url.replace("wakeful@", "watcher@")
    with OpenStore(url, SystemClock()) as store:
        store.write(lambda tx: tx.jobs.add([job(1, due_at=NOW), job(2, parked="lane", ready_at=NOW)]))
        store.write(lambda tx: tx.runs.add([run(1, outcome="success"), run(2)]))
        store.write(lambda tx: tx.alerts.open(alert(1)))
        yield url
    with psycopg.connect(shared_server().url(), autocommit=True) as admin:
        admin.execute(f"DROP DATABASE {url.rpartition('/')[2]} WITH (FORCE)")
        admin.execute("DROP ROLE watcher")


@pytest.mark.parametrize("sql", statements("What to watch"))
def test_every_monitoring_query_runs_as_the_role_of_the_store(watched, sql):
    with psycopg.connect(watched, autocommit=True) as connection:
        cursor = connection.execute(sql)
        assert cursor.description
        rows = cursor.fetchall()
    if "job_state" in sql or "alerts" in sql or "pg_size" in sql or "pg_stat_user" in sql:
        assert rows


def test_a_schema_made_as_the_guide_says_holds_the_tables_of_its_role():
    url = postgres_url()
    with psycopg.connect(url, autocommit=True) as admin:
        for sql in statements("Schemas"):
            admin.execute(sql)
    with OpenStore(url.replace("wakeful@", "wakeful_shop@"), SystemClock()):
        pass
    with psycopg.connect(url) as admin:
        found = admin.execute("SELECT DISTINCT schemaname FROM pg_tables WHERE tableowner = 'wakeful_shop'").fetchall()
    assert found == [("wakeful_shop",)]


def test_the_busiest_tables_are_cleaned_up_early():
    url = postgres_url()
    with OpenStore(url, SystemClock()):
        pass
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT relname, reloptions FROM pg_class WHERE reloptions IS NOT NULL").fetchall()
    settings = {name: options for name, options in rows if any("autovacuum" in option for option in options)}
    named = re.search(r"happens early\s+\((.*?)\)", GUIDE, re.DOTALL)[1]
    assert sorted(settings) == sorted(re.findall(r"`(\w+)`", named))


def test_a_restored_store_whose_jobs_are_paused_starts_nothing_until_they_are_resumed(postgres_scene):
    clock, started = postgres_scene.clock, []

    def node():
        made = postgres_scene.scheduler()

        async def work(run):
            started.append(run.job)
            if run.job == "cut-off" and started.count("cut-off") == 1:
                await asyncio.Event().wait()

        made.on_job_due("work", work)
        return made

    async def main():
        before = node()
        await before.open()
        await before.add_job("hourly", Every("1h"), kind="work")
        await before.add_job("later", Once(from_ms(clock.now()) + timedelta(hours=2)), kind="work")
        await before.add_job("cut-off", Manual(), kind="work")
        await before.start()
        await before.run_job("cut-off")
        await clock.sleep("1m")
        assert started == ["cut-off"]
        await die(before)  # what is in the database now is what a backup has
        await clock.sleep("1d")
        async with node() as restored:
            for each in await restored.list_jobs():
                await restored.pause_job(each.name)
            await restored.start()
            await clock.sleep("3h")
            assert started == ["cut-off"]
            assert [entry.outcome for entry in await restored.get_run_log("cut-off") if entry.outcome] == ["crashed"]
            await restored.resume_job("hourly")
            await clock.sleep("61m")
            assert started == ["cut-off", "hourly"]
            await restored.stop()

    live(main(), clock)
