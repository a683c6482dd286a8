"""Zones: names are checked, segments say what zoneinfo says."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timezone
from zoneinfo import ZoneInfo, available_timezones

import pytest

from wakeful.errors import InvalidTrigger
from wakeful.triggers import Cron, system_zone, zone_name, zones
from wakeful.triggers.zones import zone

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def offset(name, second):
    return int(datetime.fromtimestamp(second, ZoneInfo(name)).utcoffset().total_seconds())


@pytest.mark.promise("H14")
def test_every_zone_has_the_offsets_of_zoneinfo():
    chance = random.Random(4)
    for name in sorted(available_timezones() - {"UTC", "Etc/UTC", "localtime"}):
        second = chance.randrange(-3_000_000_000, 5_000_000_000)
        start, end, shift, mark = zone(name).segment(second)
        assert start <= second < end
        for probe in (start, second, end - 1):
            assert offset(name, probe) == shift, (name, probe)
        before, after = zone(name).segment(start - 1), zone(name).segment(end)
        assert (before[1], after[0]) == (start, end)
        assert mark == max(before[3], start + before[2])


@pytest.mark.promise("H14")
@pytest.mark.parametrize(
    "name", ["Africa/Freetown", "America/Boa_Vista", "Africa/Casablanca", "Europe/Riga", "Asia/Gaza"]
)
def test_no_change_of_a_clock_is_missed_however_short(name):
    for year in (1939, 1944, 2000, 2023, 2054):
        begin = int(datetime(year, 1, 1, tzinfo=UTC).timestamp())
        for second in range(begin, begin + 366 * 86_400, 43_200):
            assert zone(name).segment(second)[2] == offset(name, second)


@pytest.mark.promise("H14")
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Europe/Berlinn", 'did you mean "Europe/Berlin"'),
        ("europe/berlin", 'did you mean "Europe/Berlin"'),
        ("Berlin", 'did you mean "Europe/Berlin"'),
        ("America/New York", 'did you mean "America/New_York"'),
        ("utc", 'did you mean "UTC"'),
        ("Mars/Olympus", "use an IANA name"),
        ("../../etc/passwd", "use an IANA name"),
        ("/etc/passwd", "use an IANA name"),
        ("/usr/share/zoneinfo/Europe/Berlin", "Unknown time zone"),
        ("Europe", "Unknown time zone"),
        ("Europe/", "Unknown time zone"),
        ("zone.tab", "Unknown time zone"),
        ("right/UTC", "Unknown time zone"),
        ("localtime", "Unknown time zone"),
        ("Europe/Berlin\0", "Unknown time zone"),
        ("", "Unknown time zone"),
        ("x" * 5000, "Unknown time zone"),
    ],
)
def test_an_unknown_zone_is_refused_with_the_nearest_name(name, hint):
    with pytest.raises(InvalidTrigger, match=hint) as caught:
        Cron("0 0 * * *", tz=name)
    assert caught.value.field == "tz"


@pytest.mark.parametrize("name", [5, b"UTC", ["UTC"], timezone.max])
def test_a_zone_is_a_name(name):
    with pytest.raises(InvalidTrigger, match="an IANA name"):
        Cron("0 0 * * *", tz=name)


def test_zone_objects_are_taken_by_their_name():
    assert zone_name(ZoneInfo("Europe/Berlin")) == "Europe/Berlin"
    assert Cron("0 0 * * *", tz=UTC) == Cron("0 0 * * *", tz="UTC")
    assert zone_name("local") == "local"
    assert zone_name(None) is None


@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        ("Asia/Tokyo", "Asia/Tokyo"),
        (":Asia/Tokyo", "Asia/Tokyo"),
        ("/usr/share/zoneinfo/Asia/Tokyo", "Asia/Tokyo"),
        ("posix/Asia/Tokyo", "Asia/Tokyo"),
    ],
)
def test_the_zone_of_the_machine_is_read_from_the_environment(monkeypatch, variable, expected):
    monkeypatch.setenv("TZ", variable)
    assert system_zone() == expected


def test_a_zone_that_is_changed_on_the_machine_is_seen(monkeypatch, tmp_path):
    monkeypatch.delenv("TZ", raising=False)
    link = tmp_path / "localtime"
    monkeypatch.setattr(zones, "_LOCALTIME", str(link))
    for place in ("Asia/Tokyo", "Europe/Berlin"):
        link.unlink(missing_ok=True)
        link.symlink_to(f"/usr/share/zoneinfo/{place}")
        assert system_zone() == place


@pytest.mark.parametrize("variable", ["", "no/such/place", "../../etc/passwd"])
def test_without_a_usable_variable_the_files_of_the_machine_decide(monkeypatch, variable):
    monkeypatch.delenv("TZ", raising=False)
    of_the_files = system_zone()
    monkeypatch.setenv("TZ", variable)
    assert system_zone() == of_the_files
    assert zone(of_the_files).name == of_the_files


@pytest.mark.promise("H14")
def test_without_a_zone_a_calendar_runs_in_the_zone_of_the_machine(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert Cron("0 9 * * *").next_after(NOON) == datetime(2026, 1, 2, 0, tzinfo=UTC)
    assert Cron("0 9 * * *", tz="local").next_after(NOON) == datetime(2026, 1, 2, 0, tzinfo=UTC)


@pytest.mark.promise("H14")
def test_the_zone_is_settled_when_the_job_is_stored(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert Cron("0 9 * * *").resolved(0, "Europe/Berlin") == Cron("0 9 * * *", tz="Europe/Berlin")
    assert Cron("0 9 * * *", tz="local").resolved(0, "Europe/Berlin") == Cron("0 9 * * *", tz="Asia/Tokyo")
    named = Cron("0 9 * * *", tz="Africa/Cairo")
    assert named.resolved(0, "Europe/Berlin") == named
    stored = Cron("0 9 * * *", tz="Europe/Berlin")
    assert Cron("0 9 * * *").resolved(0, "Asia/Tokyo", keep=stored) is stored
    assert Cron("0 8 * * *").resolved(0, "Asia/Tokyo", keep=stored).tz == "Asia/Tokyo"
