"""`list` with many jobs: a first page for people, all of it as a stream for programs."""

from __future__ import annotations

import asyncio
import gc
import json

import pytest

from wakeful import Every, Job, NewJob, Scheduler
from wakeful.surfaces.cli import jobs as listing

COUNT = 60


@pytest.fixture
def many(store):
    """Sixty jobs, one of them paused, two of another kind, three with an owner."""

    async def fill():
        scheduler = Scheduler(f"sqlite:///{store}")
        await scheduler.open()
        await scheduler.add_jobs(
            NewJob(f"job-{n:02}", Every("1h"), kind="mail" if n < 2 else "work", owner="ada" if n > 56 else None)
            for n in range(COUNT)
        )
        await scheduler.pause_job("job-07")
        await scheduler.close()

    asyncio.run(fill())


def shown(answer):
    return [line.split()[0] for line in answer.out.splitlines() if line.startswith("job-")]


@pytest.mark.usefixtures("many")
def test_a_listing_shows_a_first_page_and_says_how_many_more_there_are(wakeful):
    answer = wakeful("list")
    assert shown(answer) == [f"job-{n:02}" for n in range(50)]
    assert answer.err == "Note: 10 more jobs not shown: use --limit N or --all to see more.\n"
    assert "Note: 1 more job not shown" in wakeful("list", "--limit", "59").err


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("argv", [["--all"], ["-n", "60"], ["--limit", "1000"]])
def test_all_of_it_is_shown_to_who_asks(wakeful, argv):
    answer = wakeful("list", *argv)
    assert (len(shown(answer)), answer.err) == (COUNT, "")


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize(
    ("argv", "found"),
    [
        (["--status", "paused"], ["job-07"]),
        (["--kind", "mail"], ["job-00", "job-01"]),
        (["--owner", "ada"], ["job-57", "job-58", "job-59"]),
        (["--match", "B-3", "-n", "2"], ["job-30", "job-31"]),
        (["--match", "nothing"], []),
    ],
)
def test_filters_say_which_and_the_rest_is_counted_by_the_same(wakeful, argv, found):
    answer = wakeful("list", *argv)
    assert shown(answer) == found
    more = "Note: 8 more jobs not shown: use --limit N or --all to see more.\n"
    assert answer.err == (more if "-n" in argv else "")
    assert [job["name"] for job in wakeful("list", "--json", *argv).json] == found


@pytest.mark.usefixtures("many")
def test_json_has_everything_that_matches_one_job_on_a_line(wakeful):
    answer = wakeful("list", "--json")
    assert [job["name"] for job in answer.json] == [f"job-{n:02}" for n in range(COUNT)]
    first, *lines, last = answer.out.splitlines()
    assert (first, last) == ("[", "]")
    assert [json.loads(line.removesuffix(","))["name"] for line in lines] == [job["name"] for job in answer.json]
    assert len(wakeful("list", "--json", "--limit", "7").json) == 7


def _live_jobs():
    gc.collect()  # what is only not given back yet is not kept
    return sum(type(each) is Job for each in gc.get_objects())


@pytest.mark.promise("X24")
@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("argv", [["--json"], ["--all"]])
def test_a_listing_keeps_a_few_pages_however_long_it_is(wakeful, monkeypatch, argv):
    kept, rows, data = [], listing.job_rows, listing._data
    before = _live_jobs()  # of other tests

    def watch(show):
        def shown(jobs, *rest):
            kept.append(_live_jobs() - before)
            return show(jobs, *rest)

        return shown

    monkeypatch.setattr(listing, "PAGE", 4)
    monkeypatch.setattr(listing, "job_rows", watch(rows))
    monkeypatch.setattr(listing, "_data", watch(data))
    assert wakeful("list", *argv).code == 0
    assert len(kept) == COUNT / 4
    # One is printed, one is read, two may be on their way, and the thread that read one may not have let go of it yet.
    assert max(kept) <= 5 * 4


@pytest.mark.usefixtures("many")
def test_all_and_a_limit_are_not_said_together(wakeful):
    answer = wakeful("list", "--all", "--limit", "3")
    assert (answer.code, answer.err) == (2, "Error: Use --all or --limit, not both.\n")


@pytest.mark.parametrize(
    ("number", "said"), [("0", "at least 1"), ("x", "a whole number"), ("20000000000", "at most")], ids=str
)
def test_a_limit_out_of_range_is_refused_in_plain_words(wakeful, number, said):
    answer = wakeful("runs", "-n", number)
    assert answer.code == 2
    assert answer.err.startswith(f"Error: --limit must be {said}")


@pytest.mark.parametrize("group", ["alert", "node", "token"])
def test_a_group_without_a_command_names_its_commands(wakeful, group):
    answer = wakeful(group)
    assert (answer.code, "list" in answer.err) == (2, True)
    assert answer.err.startswith("Error: Missing command: ")
