"""The sample domain through days of virtual time, on both stores, in a process that alone has registered it.

As a program it lives through them on the store it is given, and prints what was left at each point.
"""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.sample.tables import Letters
from tests.store.postgres_server import postgres_url
from wakeful import Every, Once, Retention, Scheduler, domains, ids
from wakeful.kernel.loop.config import Tuning
from wakeful.kernel.rules.lease_times import LeaseTimes
from wakeful.testing import VirtualClock, run

ROOT = Path(__file__).parents[2]
START = datetime(2026, 1, 1, tzinfo=UTC)
#: One node alone, as in tests/kernel/scene.py: beats and sweeps would be most of what happens in days.
SLOW = Tuning(lease=LeaseTimes(beat_ms=3_600_000, lease_ms=4 * 3_600_000), sweep_ms=600_000)


@pytest.fixture(params=["sqlite", "postgres"])
def found(request, tmp_path):
    """What the program says."""
    url = postgres_url() if request.param == "postgres" else f"sqlite:///{tmp_path}/letters.db"
    program = [sys.executable, "-m", "tests.sample.test_sample_in_time", url]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.promise("X9", "X11")
def test_rows_of_a_domain_come_with_runs_and_go_with_history_and_with_their_job(found):
    assert found["days later"] == {"stamps": 90, "letters": 9, "on their way": 1}, "10 sent, of which a day's are kept"
    assert found["days after its job"] == {"stamps": 90, "letters": 0, "on their way": 0}


async def live(url: str, clock: VirtualClock) -> dict[str, dict[str, int]]:
    async with Scheduler(url, clock=clock, timezone="UTC", retention=Retention(days=1), tuning=SLOW) as scheduler:

        @scheduler.on_job_due("letter")
        async def deliver(run):
            if run.payload["to"] == "nobody":
                raise ValueError("there is no such person")

        async def count():
            found = await scheduler.read(lambda tx: (tx.of(Letters).stamps(), tx.of(Letters).all()))
            stamps, letters = found
            return {"stamps": stamps, "letters": len(letters), "on their way": sum(way is None for _, way in letters)}

        await scheduler.transact(lambda tx, _: tx.of(Letters).buy(101))
        await scheduler.add_job("often", Every("3h"), kind="letter", payload={"to": "Ada"})
        await scheduler.add_job("returned", Once(START + timedelta(hours=1)), kind="letter", payload={"to": "nobody"})
        job = await scheduler.get_job("often")
        number = ids.decode(job.id)[1]
        # A letter without an end: it goes with its job, and not before.
        await scheduler.transact(lambda tx, context: tx.of(Letters).take_stamp(context.new_id(), number, 1, tx.now))
        await scheduler.start()
        await clock.sleep("31h")
        later = await count()
        await scheduler.remove_job("often")
        await clock.sleep("31h")
        return {"days later": later, "days after its job": await count()}


if __name__ == "__main__":
    domains.register("tests.sample")
    time = VirtualClock(START)
    sys.stdout.write(json.dumps(run(live(sys.argv[1], time), time)))
