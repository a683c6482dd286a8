"""What each reader finds in files as the programs write them: every entry is accounted for."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from wakeful.moving.calendar import Calendar, NoCron, read_calendar
from wakeful.moving.checking import ImportContext, check
from wakeful.moving.crontab import read_crontab
from wakeful.moving.formats import READERS, guess, read_source
from wakeful.moving.naming import Names, name_of_command
from wakeful.moving.sources import Unreadable
from wakeful.moving.systemd import read_timer
from wakeful.moving.units import read_unit, span_ms

SAMPLES = Path(__file__).parent.parent / "data" / "moving"
TERMS = ImportContext(Path("/srv"), "UTC", "UTC", 1_790_000_000_000)
AT = {
    "crontab": "crontab/user.crontab",
    "systemd": "systemd",
    "caco": "caco",
    "openalice": "openalice",
    "herdctl": "herdctl",
    "openclaw": "openclaw/jobs.json",
    "halo": "halo/halo.sqlite",
    "apscheduler3": "apscheduler/jobs.sqlite",
    "celerybeat": "celery/tasks.py",
}
FOUND = {
    "crontab": {
        "backup": "maps", "poll": "maps", "mail": "maps", "date": "maps", "echo": "maps",
        "start-things": "refused", "false": "refused", "apt-update": "refused",
    },
    "systemd": {
        "backup": "differs", "backup-2": "differs", "boot": "refused", "lonely": "refused", "poll": "differs",
        "thirteenth": "refused",
    },
    "caco": {"caco.broken": "refused", "caco-claude-sonnet.daily-standup": "differs", "caco-fresh.hourly": "differs"},
    "openalice": {
        "alice.heartbeat": "differs", "alice.btc-rsi": "differs", "alice.watch": "differs", "alice.past": "refused",
        "alice.odd": "refused", "8c1e": "refused",
    },
    "herdctl": {
        "hurricane-watcher.check": "differs", "hurricane-watcher.morning": "differs",
        "hurricane-watcher.pushed": "refused",
    },
    "openclaw": {"main.morning-brief": "differs", "main.queue": "maps", "main.reminder": "differs"},
    "halo": {
        "Price watch": "differs", "Morning": "differs", "Broken": "differs", "Past": "refused", "Odd": "refused",
    },
    "apscheduler3": {
        "christmas": "differs", "combined": "refused", "last-friday": "differs", "month-end": "differs",
        "nightly": "differs", "paused": "differs", "six-hours": "differs", "week-one": "refused",
        "with-a-date": "refused",
    },
    "celerybeat": {
        "add-every-30-seconds": "differs", "monday-morning": "differs", "cleanup": "differs", "product": "differs",
        "melbourne": "refused", "computed": "refused",
    },
}  # fmt: skip


def jobs_of(form):
    """Checked entries by name."""
    return {one.found.name: one for one in check(read_source(form, SAMPLES / AT[form]), TERMS).entries}


@pytest.mark.promise("X10")
@pytest.mark.parametrize("form", READERS)
def test_every_entry_of_a_source_maps_or_differs_or_is_refused_with_the_reason(form):
    found = jobs_of(form)
    assert {name: one.status for name, one in found.items()} == FOUND[form]
    assert all(one.found.refused for one in found.values() if one.status == "refused")
    assert all(one.found.notes for one in found.values() if one.status == "differs")


@pytest.mark.parametrize("form", READERS)
def test_every_format_is_recognised(form):
    assert guess(SAMPLES / AT[form]) == form


def test_a_crontab_keeps_shell_path_input_and_zone():
    found = jobs_of("crontab")
    path = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    assert found["backup"].job == {
        "cron": "0 2 * * *",
        "command": ["/bin/bash", "-c", "/usr/local/bin/backup.sh --full >> /var/log/backup.log 2>&1"],
        "cwd": "~",
        "env": path,
        "catch_up": "skip",
    }
    assert found["mail"].job["timezone"] == "America/New_York"
    assert found["mail"].job["command"][2] == 'mail -s "report" ops@example.org'
    assert found["mail"].job["stdin"] == "Dear all,\nthe month is over.\n"
    assert found["date"].job["command"][2] == "date +%F > /tmp/today"
    assert found["date"].job["cron"] == "0 0 * * *"
    assert found["echo"].job["command"][2] == "echo $${HOME}"  # as a file has it
    assert found["echo"].entry.new.payload["argv"][2] == "echo ${HOME}"
    assert "wakeful run" in found["start-things"].found.refused


def test_a_crontab_of_the_system_names_a_user_before_the_command():
    [hourly, wiki] = check(read_source("crontab", SAMPLES / "crontab/system.crontab"), TERMS).entries
    assert (hourly.found.name, wiki.found.name) == ("run-parts", "runJobs")
    assert hourly.job["command"] == ["/bin/sh", "-c", "cd / && run-parts --report /etc/cron.hourly"]
    assert any("www-data" in note for note in wiki.found.notes)
    assert any("mailed to root" in note for note in wiki.found.notes)


def test_a_zone_for_the_command_alone_does_not_move_its_times():
    [entry] = read_crontab("TZ=Asia/Tokyo\n0 9 * * * date\n", "crontab", Names(), system=False).entries
    assert "timezone" not in entry.job
    assert entry.job["env"] == {"TZ": "Asia/Tokyo"}
    assert "TZ" in entry.notes[0]


@pytest.mark.promise("X10")
@pytest.mark.parametrize(
    ("line", "cron", "command"),
    [
        ("@hourly\techo two words", "0 * * * *", "echo two words"),
        ("@daily \t echo\tx", "0 0 * * *", "echo\tx"),
        ("-*/15 * * * * poll", "*/15 * * * *", "poll"),
        ("CRON_TZ=Asia/Tokyo\nCRON_TZ=\n0 9 * * * date", "0 9 * * *", "date"),
        ("* * * * * -n -q poll -n", "* * * * *", "poll -n"),
    ],
)
def test_tabs_a_leading_dash_and_a_zone_that_is_taken_back_are_read_as_cron_reads_them(line, cron, command):
    [entry] = check(read_crontab(f"{line}\n", "crontab", Names(), system=False), TERMS).entries
    assert entry.status == "maps"
    assert (entry.job["cron"], entry.job["command"][2]) == (cron, command)
    assert "timezone" not in entry.job


@pytest.mark.promise("X10")
@pytest.mark.parametrize(
    ("line", "job"),
    [
        ("HOME=/srv/app\n0 9 * * * date", {"cwd": "/srv/app", "env": {"HOME": "/srv/app"}}),
        ("RANDOM_DELAY=45\n0 9 * * * date", {"stagger": "45m"}),
        ("0 9 * * * cat%one%two%", {"stdin": "one\ntwo\n"}),
        ("0 9 * * * cat%one%%", {"stdin": "one\n\n"}),
        ("0 9 * * * cat%", {"stdin": ""}),
    ],
)
def test_where_cron_starts_when_and_with_what_input(line, job):
    [entry] = check(read_crontab(f"{line}\n", "crontab", Names(), system=False), TERMS).entries
    assert entry.status == "maps", entry.found
    usual = {"cron": "0 9 * * *", "command": entry.job["command"], "cwd": "~", "catch_up": "skip"}
    assert entry.job == {**usual, **job}


@pytest.mark.promise("X10")
@pytest.mark.parametrize(
    ("command", "ends_it"),
    [
        ("(sleep 5; date >> done) &", True),
        ('nohup sh -c "sleep 5" >/dev/null 2>&1 &', True),
        ("sh -c 'work & date'", True),
        ("curl http://example.org/?a=1&b=2", True),
        ("first & second & wait", False),
        ("cd /srv && work > log 2>&1", False),
        ("work &> log", False),
        ("curl 'http://example.org/?a=1&b=2' | tee a\\&b", False),
        ('echo "Tom & Jerry"', False),
    ],
)
def test_work_in_the_background_is_said_to_end_with_its_run(command, ends_it):
    [entry] = check(read_crontab(f"0 2 * * * {command}\n", "crontab", Names(), system=False), TERMS).entries
    assert entry.status == ("differs" if ends_it else "maps")
    assert [note for note in entry.found.notes if "ended with the run" in note] == list(entry.found.notes)


@pytest.mark.promise("X10", "X18")
def test_a_variable_that_is_named_as_a_secret_is_pointed_to_env_file():
    text = "LANG=C\nDB_PASS=hunter2\n0 2 * * * backup\n"
    [entry] = check(read_crontab(text, "crontab", Names(), system=False), TERMS).entries
    assert entry.status == "differs"
    (note,) = entry.found.notes
    assert note == "DB_PASS would be stored as it is written: move it to a file that env_file names"


@pytest.mark.promise("X10")
def test_a_folder_of_crontabs_is_read_as_cron_reads_it(tmp_path):
    folder = tmp_path / "cron.d"
    folder.mkdir()
    (folder / "one").write_text("SHELL=/bin/bash\n1 1 * * * root backup --one\n")
    (folder / "two").write_text("2 2 * * * deploy backup --two\n")
    (folder / "two.dpkg-old").write_text("3 3 * * * deploy backup --old\n")
    (folder / "README").symlink_to(folder / "one")
    assert guess(folder) == "crontab"
    entries = read_source("crontab", folder).entries
    assert [(one.source, one.name, one.job["command"]) for one in entries] == [
        ("one:2", "backup", ["/bin/bash", "-c", "backup --one"]),
        ("two:1", "backup-2", ["/bin/sh", "-c", "backup --two"]),
    ]


def test_a_text_without_any_line_of_a_crontab_is_not_one():
    with pytest.raises(Unreadable, match="is not a crontab"):
        read_crontab("root:x:0:0:root:/root:/bin/bash\n", "passwd", Names(), system=False)
    assert not read_crontab("# nothing yet\n", "crontab", Names(), system=False).entries
    assert not read_crontab("MAILTO=ops\n", "crontab", Names(), system=False).entries


def test_times_without_a_zone_are_those_of_the_machine():
    reading = read_crontab("0 9 * * * date\n", "crontab", Names(), system=False)
    [here] = check(reading, TERMS._replace(zone="Europe/Berlin", local="Asia/Tokyo")).entries
    assert here.job["timezone"] == "Asia/Tokyo"


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("/usr/local/bin/backup.sh --full", "backup"),
        ("cd /srv/app && FOO=1 /usr/bin/python3 scripts/poll.py -q", "poll"),
        ("/usr/bin/env bash -c 'x'", "x"),
        ("nice -n 10 /opt/run.me/tidy", "tidy"),
        ("@@@", "job"),
        ("echo 'unbalanced", "echo"),
    ],
)
def test_a_job_is_called_after_what_it_runs(command, name):
    assert name_of_command(command) == name


@pytest.mark.parametrize(
    ("text", "cron", "zone"),
    [
        ("daily", "0 0 * * *", None),
        ("weekly", "0 0 * * 1", None),
        ("quarterly", "0 0 1 1,4,7,10 *", None),
        ("hourly UTC", "0 * * * *", "UTC"),
        ("*:0/15", "0-59/15 * * * *", None),
        ("*-*-* 04:00:00", "0 4 * * *", None),
        ("Mon,Fri 18:30", "30 18 * * 1,5", None),
        ("Sat..Mon 08:00 Europe/Berlin", "0 8 * * 6,0-1", "Europe/Berlin"),
        ("Fri..Fri 08:00", "0 8 * * 5-5", None),
        ("Mon *-*-1..7 09:00", "0 9 * * 1#1", None),
        ("*-02~01 12:00", "0 12 L 2 *", None),
        ("*-*~03 12:00", "0 12 L-2 * *", None),
        ("*-*-* *:*:30", "30 * * * * *", None),
    ],
)
def test_a_calendar_of_systemd_is_a_cron_expression(text, cron, zone):
    assert read_calendar(text) == Calendar(cron, zone)


def test_a_calendar_with_a_year_is_one_moment():
    assert read_calendar("2026-12-24 18:00") == Calendar(None, None, "2026-12-24T18:00:00")


@pytest.mark.parametrize(
    "text", ["", "never", "Fri *-*-13", "2026..2027-*-* 00:00", "*:99", "*-*-* 00:00:00.5", "9..3:00"]
)
def test_a_calendar_that_cron_cannot_say_is_refused(text):
    with pytest.raises(NoCron):
        read_calendar(text)


def test_a_service_is_a_command_with_its_folder_variables_and_limit():
    job = jobs_of("systemd")["backup"].job
    assert job["command"] == ["/usr/local/bin/backup.sh", "--full", "--label", "night of %d"]
    assert (job["cwd"], job["env"], job["timeout"]) == ("/srv/backup", {"LEVEL": "3", "NAME": "all"}, "90m")
    assert (job["cron"], job["stagger"]) == ("30 2 * * 1-5", "15m")
    assert "catch_up" not in job  # Persistent=true


@pytest.mark.promise("X10")
@pytest.mark.parametrize(
    ("line", "command"),
    [
        ('/bin/sh -c "echo $HOME $$PATH"', ["/bin/sh", "-c", "echo $HOME $PATH"]),
        ("/bin/echo 100%% > x* ;", ["/bin/echo", "100%", ">", "x*"]),
        ("/bin/echo $ARGS 'a;b' \"${ONE}-`id`-$(id)\" $$", None),
    ],
)
def test_a_command_gets_the_words_that_systemd_would_give_it(line, command):
    timer, service = read_unit("[Timer]\nOnCalendar=daily\n"), read_unit(f"[Service]\nExecStart={line}\n")
    [found] = read_timer("x.timer", timer, service, Names())
    if command is not None:
        assert (found.job["command"], found.notes) == (command, ())
        return
    env = {"ARGS": "one two", "ONE": "1 $(id)"}
    printed = subprocess.run(
        found.job["command"], env=env, capture_output=True, text=True, check=True, timeout=300
    ).stdout
    assert printed == "one two a;b 1 $(id)-`id`-$(id) $\n"
    assert found.notes == ("its variables are filled in by a shell",)


def test_a_service_with_several_commands_is_refused():
    timer, service = read_unit("[Timer]\nOnCalendar=daily\n"), read_unit("[Service]\nExecStart=/bin/a ; /bin/b\n")
    [found] = read_timer("x.timer", timer, service, Names())
    assert "more than one command" in found.refused


SERVICE = """[Unit]
OnFailure=mail.service
ConditionACPower=true
[Service]
ExecStart=/usr/bin/tidy
{}
"""


def of_service(lines):
    timer, service = read_unit("[Timer]\nOnCalendar=daily\n"), read_unit(SERVICE.format(lines))
    [found] = read_timer("tidy.timer", timer, service, Names())
    return found


@pytest.mark.promise("X10")
def test_what_systemd_fills_in_is_filled_in_or_refused():
    found = of_service("WorkingDirectory=-%h/%p\nEnvironment=A=%N 'B=100%% of %n'")
    assert found.job["cwd"] == f"{Path.home()}/tidy"
    assert found.job["env"] == {"A": "tidy", "B": "100% of tidy.service"}
    for line, where in (
        ("WorkingDirectory=%S/tidy", "WorkingDirectory=%S/tidy"),
        ("Environment=A=%H", "Environment=A"),
    ):
        assert of_service(line).refused.startswith(f"{where}: it has specifiers")


@pytest.mark.promise("X10")
@pytest.mark.parametrize(
    ("lines", "limit"),
    [
        ("Type=oneshot\nTimeoutStartSec=10min\nRuntimeMaxSec=5", "10m"),
        ("Type=oneshot\nTimeoutSec=90", "90s"),
        ("Type=oneshot\nTimeoutStartSec=infinity", None),
        ("TimeoutStartSec=10min\nRuntimeMaxSec=1h", "1h"),
        ("TimeoutStartSec=10min", None),
    ],
)
def test_a_service_may_run_for_as_long_as_its_type_allows(lines, limit):
    assert of_service(lines).job.get("timeout") == limit


@pytest.mark.promise("X10")
def test_what_a_service_asks_for_beside_its_command_maps_or_is_said():
    found = of_service("SuccessExitStatus=3 DATAERR\nSuccessExitStatus=SIGTERM 0\nNice=19\nMemoryMax=1G\nLimitNOFILE=9")
    assert found.job["success_codes"] == [0, 3, 65]
    assert found.notes == (
        "an end by SIGTERM was a success, and is a failure here",
        "OnFailure=mail.service is not started: deliver and after do what follows a run",
        "not asked before it starts: ConditionACPower",
        "what confines it does not apply here: LimitNOFILE, MemoryMax",
        "not set here: Nice",
    )


@pytest.mark.promise("X10")
def test_drop_ins_count_and_a_file_that_cannot_be_read_is_refused_alone(tmp_path):
    for name in ("tidy", "broken"):
        (tmp_path / f"{name}.timer").write_text("[Timer]\nOnCalendar=daily\n")
        (tmp_path / f"{name}.service").write_text("[Service]\nExecStart=/usr/bin/tidy\n")
    (tmp_path / "broken.service").write_bytes(b"\0")
    for name, text in (
        ("timer", "[Timer]\nOnCalendar=\nOnCalendar=03:00\n"),
        ("service", "[Service]\nRuntimeMaxSec=60\n"),
    ):
        (tmp_path / f"tidy.{name}.d").mkdir()
        (tmp_path / f"tidy.{name}.d" / "override.conf").write_text(text)
    broken, tidy = read_source("systemd", tmp_path).entries
    assert broken.refused.endswith("broken.service is not text.")
    assert (tidy.job["cron"], tidy.job["timeout"]) == ("0 3 * * *", "1m")
    with pytest.raises(Unreadable, match="is not text"):
        read_source("systemd", tmp_path / "broken.timer")


def test_spans_and_units_are_read_as_systemd_reads_them():
    assert [span_ms(text) for text in ("90", "1h 30min", "2w", "5 min 20s", "abc", "")] == [
        90_000, 5_400_000, 1_209_600_000, 320_000, None, None,
    ]  # fmt: skip
    unit = read_unit("[A]\nk=1\nk=2\n# k=9\n[B]\nk=3 \\\n  4\nk2=x\nk2=\n")
    assert (unit.all("A", "k"), unit.last("B", "k"), unit.all("B", "k2")) == (["1", "2"], "3  4", [])
