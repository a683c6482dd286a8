"""What the library hands out: ids as text, times as aware datetimes in UTC, and readable reprs."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime

import pytest

import wakeful
from wakeful import AlertNotFound, Every, Manual, Scheduler
from wakeful.testing import VirtualClock, run


def fields(record):
    """Every public attribute of a record that is no method."""
    names = [name for name in dir(record) if not name.startswith("_")]
    return {name: value for name in names if not callable(value := getattr(record, name))}


def check(record):
    for name, value in fields(record).items():
        if name.endswith(("_at", "slot")) and value is not None:
            assert isinstance(value, datetime), f"{record!r}.{name}"
            assert value.utcoffset() == UTC.utcoffset(None), f"{record!r}.{name}"
        if name == "id" or name.endswith("_id"):
            assert value is None or ("_" in value and not value.isdigit()), f"{record!r}.{name}"
    assert repr(record).startswith("<")
    assert "datetime" not in repr(record)
    assert len(repr(record)) < 200
    assert not any(isinstance(value, datetime) for value in record.to_dict().values())


def test_every_record_has_text_ids_and_aware_times():
    clock = VirtualClock(datetime(2026, 3, 2, tzinfo=UTC))
    scheduler = Scheduler("sqlite://", clock=clock, node="here")

    @scheduler.job(Every("1h"), max_errors=1)
    async def broken():
        raise OSError("the disk is full")

    async def main():
        async with scheduler:
            await scheduler.create_token("grafana", "viewer")
            await scheduler.create_token("old", "admin")
            await scheduler.revoke_token("old")
            await scheduler.start()
            await clock.sleep("2h")
            [alert] = await scheduler.list_alerts()
            assert (alert.job, alert.acked_at, alert.id[:4]) == ("broken", None, "alr_")
            acked = await scheduler.ack_alert(alert.id)
            assert (acked.id, acked.acked_at) == (alert.id, datetime(2026, 3, 2, 2, tzinfo=UTC))
            [job], [ran] = await scheduler.list_jobs(), await scheduler.get_run_log()
            tokens = await scheduler.list_tokens(revoked=True)
            assert [repr(token) for token in tokens] == ["<Token grafana viewer>", "<Token old admin revoked>"]
            for record in [alert, acked, job, ran, *tokens, *await scheduler.list_nodes()]:
                check(record)
            assert isinstance((await scheduler.get_summary()).alive_at, datetime | None)
            await scheduler.resume_job("broken")
            [closed] = await scheduler.list_alerts(open_only=False)
            assert closed.closed_at == datetime(2026, 3, 2, 2, tzinfo=UTC)
            await scheduler.remove_job("broken")
            [kept] = await scheduler.list_alerts(open_only=False)
            assert (kept.job, kept.job_id) == (None, job.id)

    run(main(), clock)


@pytest.mark.parametrize("unknown", ["alr_0000000000000", "nonsense", "job_0000000000000"])
def test_acknowledging_what_is_not_there_says_so(unknown):
    clock = VirtualClock()

    async def main():
        async with Scheduler("sqlite://", clock=clock) as scheduler:
            with pytest.raises(AlertNotFound, match=unknown):
                await scheduler.ack_alert(unknown)

    run(main(), clock)


def test_the_engines_holder_says_since_when_as_a_datetime(tmp_path):
    with wakeful.sync.Scheduler(f"sqlite:///{tmp_path}/wakeful.db") as scheduler:
        assert scheduler.engine_holder() is None
        scheduler.start()
        assert scheduler.engine_holder()["since"].tzinfo is UTC


def test_waiting_for_a_run_ends_with_it_or_in_time():
    clock = VirtualClock()
    scheduler = Scheduler("sqlite://", clock=clock)

    @scheduler.on_job_due("slow")
    async def slow():
        await clock.sleep("1h")
        return "done"

    async def main():
        async with scheduler:
            await scheduler.add_job("slow", Manual(), kind="slow")
            await scheduler.start()
            started = await scheduler.run_job("slow")
            with pytest.raises(TimeoutError):
                await scheduler.wait_for_run(started, timeout=300)
            assert (await scheduler.wait_for_run(started)).output == "done"
            with pytest.raises(wakeful.RunNotFound):
                await scheduler.wait_for_run("nonsense")
            with pytest.raises(wakeful.RunNotFound):
                await scheduler.wait_for_run("run_0000000000000")

    run(main(), clock)


def test_every_public_record_is_importable_from_wakeful():
    """What a public method of the scheduler returns has a public name."""
    for name, method in inspect.getmembers(Scheduler, inspect.isfunction):
        if name.startswith("_") or name in {"transact", "read"}:
            continue
        for word in str(method.__annotations__.get("return", "")).replace("[", " ").replace("]", " ").split():
            if word[0].isupper() and word not in {"Any", "None", "Path", "H", "Callable", "H,", "Awaitable"}:
                assert word in wakeful.__all__, f"{name} returns {word}"
