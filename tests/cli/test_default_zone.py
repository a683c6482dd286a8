"""One zone for every time that names none: `defaults.timezone` of wakeful.yaml, on each command alike."""

from __future__ import annotations

import pytest

CONFIG = "defaults:\n  timezone: America/New_York\n"


@pytest.fixture
def new_york(here):
    (here / "wakeful.yaml").write_text(CONFIG)
    return here


@pytest.mark.usefixtures("new_york")
@pytest.mark.parametrize(
    ("options", "field", "moment"),
    [
        (["--at", "2030-01-15T09:00"], "at", "2030-01-15T14:00:00Z"),
        (["--at", "2030-01-15T09:00Z"], "at", "2030-01-15T09:00:00Z"),
        (["--at", "2030-01-15T09:00", "--tz", "Europe/Berlin"], "at", "2030-01-15T08:00:00Z"),
        (["--at", "2030-01-15T09:00", "--tz", "local"], "at", "2030-01-15T09:00:00Z"),
        (["--every", "1h", "--start", "2030-01-15T09:00"], "start", "2030-01-15T14:00:00Z"),
        (["--every", "1h", "--until", "2030-01-15T09:00"], "until", "2030-01-15T14:00:00Z"),
        (["--every", "1h", "--anchor", "2030-01-15T09:00"], "anchor", "2030-01-15T14:00:00Z"),
    ],
)
def test_a_time_without_an_offset_is_one_of_the_default_zone(wakeful, options, field, moment):
    assert wakeful("add", "job", *options, "--json", "--", "true").json["trigger"][field] == moment
    assert wakeful("add", "other", "--every", "7d", "--", "true").code == 0
    if field != "at":
        edited = wakeful("edit", "other", *options[2:], "--json").json["trigger"][field]
        assert edited == moment


@pytest.mark.usefixtures("new_york")
def test_next_and_a_stored_job_agree_about_the_zone(wakeful):
    listed = wakeful("next", "0 9 * * *", "--after", "2030-01-15T00:00", "-n", "1", "--json").json
    assert (listed["tz"], listed["times"]) == ("America/New_York", ["2030-01-15T14:00:00Z"])
    job = wakeful("add", "job", "--cron", "0 9 * * *", "--start", "2030-01-15T00:00", "--json", "--", "true").json
    assert (job["trigger"]["tz"], job["upcoming"][0]) == ("America/New_York", "2030-01-15T14:00:00Z")


@pytest.mark.usefixtures("new_york")
def test_people_read_times_in_the_zone_of_the_job_with_utc_beside(wakeful):
    wakeful("add", "job", "--at", "2030-01-15T09:00", "--", "true")
    wakeful("add", "plain", "--every", "1h", "--anchor", "2030-01-15T14:00Z", "--", "true")
    wakeful("add", "berlin", "--cron", "0 9 15 1 *", "--start", "2030-01-01", "--tz", "Europe/Berlin", "--", "true")
    both = "Tue 2030-01-15 09:00 EST (14:00 UTC)"
    assert "runs     once at 2030-01-15 09:00 EST (14:00 UTC)" in wakeful("show", "job").out
    assert both in wakeful("show", "job").out
    assert both in wakeful("show", "plain").out
    assert "It will run next at 2030-01-15 09:00:00 EST (14:00:00 UTC)." in wakeful("explain", "plain").out
    listed = {line.split()[0]: line for line in wakeful("list").out.splitlines()}
    assert "2030-01-15 09:00 EST (14:00 UTC)" in listed["plain"]
    assert "2030-01-15 09:00 CET (08:00 UTC)" in listed["berlin"]
    assert both in wakeful("next").out


@pytest.mark.usefixtures("new_york")
def test_programs_read_utc(wakeful):
    wakeful("add", "job", "--at", "2030-01-15T09:00", "--", "true")
    assert wakeful("show", "job", "--json").json["next_run_at"] == "2030-01-15T14:00:00Z"
    assert wakeful("next", "--json").json[0]["at"] == "2030-01-15T14:00:00Z"


def test_a_zone_that_is_none_is_refused_where_it_counts_and_keeps_no_one_from_looking(wakeful, here):
    wakeful("add", "job", "--every", "1h", "--", "true")
    (here / "wakeful.yaml").write_text("defaults:\n  timezone: Mars/Base\n")
    for argv in (["next", "0 9 * * *"], ["add", "new", "--at", "09:00", "--", "true"]):
        answer = wakeful(*argv)
        assert (answer.code, "defaults.timezone must be a time zone" in answer.err) == (2, True), argv
    for argv in (["list"], ["show", "job"], ["explain", "job"], ["status"]):
        assert wakeful(*argv).code == 0, argv


@pytest.mark.usefixtures("new_york")
@pytest.mark.parametrize(
    "when",
    [["--cron", "0 9 * * *"], ["--every", "1d", "--except", "2030-01-01"],
     ["--cron", "0 9 * * *", "--active-hours", "08:00-10:00"]],
)  # fmt: skip
def test_tz_none_gives_a_job_the_default_zone_back(wakeful, when):
    wakeful("add", "job", *when, "--tz", "Asia/Tokyo", "--", "true")
    answer = wakeful("edit", "job", "--tz", "none", "--json").json
    assert (answer["action"], answer["trigger"]["tz"]) == ("updated", "America/New_York")
    assert answer["trigger"].get("active_hours", {}).get("timezone") in (None, "America/New_York")


def test_tz_none_takes_the_zone_away_where_none_is_needed(wakeful):
    wakeful("add", "job", "--every", "1h", "--tz", "Asia/Tokyo", "--", "true")
    assert "tz" not in wakeful("edit", "job", "--tz", "none", "--json").json["trigger"]


@pytest.mark.usefixtures("new_york")
def test_runs_are_listed_in_the_zones_of_their_jobs(wakeful):
    wakeful("add", "kolkata", "--cron", "0 9 * * *", "--tz", "Asia/Kolkata", "--", "true")
    wakeful("add", "plain", "--every", "1h", "--", "true")
    wakeful("run", "kolkata")
    wakeful("run", "plain")
    run = wakeful("runs", "kolkata", "--json").json[0]["id"]
    listed = {line.split()[1]: line for line in wakeful("runs").out.splitlines()}
    for shown in (listed["kolkata"], wakeful("runs", "kolkata").out, wakeful("show", run).out):
        assert " IST (" in shown
    assert " IST (" not in listed["plain"]
    wakeful("remove", "kolkata")
    assert " IST (" in wakeful("runs", "kolkata").out
