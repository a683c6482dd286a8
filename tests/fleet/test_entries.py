"""Jobs as a file writes them: which forms are valid, and that every mistake is reported with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from wakeful.config.entries import Setting, forms, read_entry
from wakeful.config.loading import load
from wakeful.config.reading import ConfigError
from wakeful.kernel.rules.options import read_options

FOLDER = Path("/srv/jobs")


def read(**data):
    return read_entry("job", data, Setting(FOLDER, "Europe/Berlin", forms()))


def entry(**data):
    found, problems = read(**{"every": "1h", "command": ["true"], **data})
    assert problems == []
    return found


def wrong(**data):
    found, problems = read(**data)
    assert found is None
    return [(".".join(map(str, problem.where)), problem.message) for problem in problems]


@pytest.mark.parametrize(
    ("data", "trigger"),
    [
        ({"cron": "0 2 * * *"}, {"type": "cron", "expression": "0 2 * * *", "tz": "Europe/Berlin"}),
        ({"cron": "0 2 * * *", "timezone": "UTC"}, {"type": "cron", "expression": "0 2 * * *", "tz": "UTC"}),
        ({"every": "6h"}, {"type": "every", "interval": "6h"}),
        ({"interval": 90}, {"type": "interval", "interval": "90s"}),
        ({"at": "2026-12-24T18:00"}, {"type": "once", "at": "2026-12-24T17:00:00Z"}),
        ({"at": "2026-12-24T18:00Z"}, {"type": "once", "at": "2026-12-24T18:00:00Z"}),
        ({"after": "other", "on": "any"}, {"type": "after", "job": "other", "on": "any"}),
        ({"manual": True}, {"type": "manual"}),
        ({"when": "every day at 2"}, {"type": "cron", "expression": "0 2 * * *", "tz": "Europe/Berlin"}),
        ({"when": "every day at 2 in UTC"}, {"type": "cron", "expression": "0 2 * * *", "tz": "UTC"}),
        (
            {"when": "every day at 2", "timezone": "UTC", "max_runs": 3},
            {"type": "cron", "expression": "0 2 * * *", "tz": "UTC", "max_runs": 3},
        ),
        ({"when": "every 6 hours"}, {"type": "every", "interval": "6h"}),
        ({"when": "2026-12-24 18:00"}, {"type": "once", "at": "2026-12-24T17:00:00Z", "tz": "Europe/Berlin"}),
        ({"when": "after other ends"}, {"type": "after", "job": "other", "on": "any"}),
        ({"when": "every hour", "jitter": "5%"}, {"type": "every", "interval": "1h", "jitter": 5.0}),
    ],
)
def test_every_schedule_of_add_can_be_written(data, trigger):
    found, problems = read(command=["true"], **data)
    assert problems == []
    assert found.new.trigger.to_data() == trigger


def test_a_job_has_the_options_of_add_in_snake_case():
    found = entry(
        active_hours="09:00-17:00", jitter="5%", max_runs=3, start="2026-01-01", until="2027-01-01T00:00Z",
        catch_up="2h", overlap="queue", retry=["1s"], backoff=["1m"], lanes={"gpu": 1}, labels=["a"], priority=5,
        approval=True, timeout="30m", owner="ops", notes="why", enabled=False,
    )  # fmt: skip
    assert found.new.trigger.to_data()["active_hours"]["timezone"] == "Europe/Berlin"
    assert found.new.trigger.to_data()["start"] == "2025-12-31T23:00:00Z"
    assert read_options(found.new.options).catch_up == 7_200_000
    assert (found.new.owner, found.notes, found.enabled) == ("ops", "why", False)


def test_paths_begin_at_the_file():
    assert entry(command=["./a.sh"]).new.payload == {"cwd": "/srv/jobs", "argv": ["./a.sh"]}
    assert entry(command=["./a.sh"], cwd="repo").new.payload == {"cwd": "/srv/jobs/repo", "argv": ["/srv/jobs/a.sh"]}
    assert entry(command=["make"], cwd="/other").new.payload == {"cwd": "/other", "argv": ["make"]}


def test_a_job_keeps_what_it_refers_to_and_not_the_value():
    found = entry(env={"TOKEN": "Bearer ${TOKEN}", "KEY": "${file:key.txt}", "A": "plain $${x}"})
    assert found.new.payload["env"] == {"A": "plain ${x}"}
    assert found.new.payload["env_refs"] == {"TOKEN": "Bearer ${TOKEN}", "KEY": "${file:/srv/jobs/key.txt}"}
    assert [reference for _, reference in found.references] == ["TOKEN", "file:key.txt"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"evry": "1h", "command": ["a"]}, [("evry", "There is no key 'evry' in jobs.job. Did you mean 'every'?")]),
        (
            {"every": "1h", "tz": "UTC", "command": ["a"]},
            [("tz", "There is no key 'tz' in jobs.job. Did you mean 'timezone'?")],
        ),
        (
            {"every": "1h", "grace": "1h", "command": ["a"]},
            [("grace", "There is no key 'grace' in jobs.job. It is for jobs with ping.")],
        ),
        ({"every": "1h"}, [("", "jobs.job does not say what to do: give command, url or ping.")]),
        (
            {"command": ["a"], "every": "1h", "cron": "* * * * *"},
            [("every", "jobs.job.every is a second schedule besides cron: give one of them.")],
        ),
        (
            {"every": "1h", "command": ["a"], "webhook": True},
            [("webhook", "jobs.job.webhook is not supported by this version yet: remove it, or use a later one.")],
        ),
        (
            {"every": "1h", "command": ["sleep", 5]},
            [("command", "jobs.job.command has 5 as argument 1, which is not text: put it in quotes.")],
        ),
        (
            {"every": "1h", "command": ["echo", "${HOME}"]},
            [
                (
                    "command.1",
                    (
                        "jobs.job.command.1 has ${HOME}, which a job may have in env alone, where it is not stored: "
                        "write $${HOME} where the text itself is meant."
                    ),
                )
            ],
        ),
        (
            {"ping": True, "every": "1h", "command": ["a"]},
            [("ping", "jobs.job.ping is a second thing to do besides command: give one of them.")],
        ),
        (
            {"ping": True, "every": "1h", "grace": "soon"},
            [("grace", 'jobs.job.grace: Missing number. Expected format: "{number}{unit}".')],
        ),
        ({"ping": True, "every": "1h", "grace": "0s"}, [("grace", "jobs.job.grace: Zero interval is not allowed.")]),
        ({"ping": "on", "every": "1h"}, [("ping", "jobs.job.ping is written ping: true, not 'on'.")]),
        (
            {"ping": True, "at": "2030-01-01T09:00Z"},
            [("at", "jobs.job.at: schedule must be a trigger that repeats, such as Every or Cron.")],
        ),
        ({"every": "1h", "command": ["a"], "notes": 5}, [("notes", "jobs.job.notes must be a text.")]),
        (
            {"every": "1h", "command": "ls -l"},
            [
                (
                    "command",
                    'jobs.job.command must be a list, such as ["ls", "-l"]; for a shell, ["sh", "-c", "ls | wc -l"].',
                )
            ],
        ),
        (
            {"at": "tomorow", "command": ["a"]},
            [("at", "jobs.job.at: 'tomorow' is not a time: write 2026-12-24T18:00, with or without an offset.")],
        ),
        (
            {"every": "1h", "until": "tomorow", "command": ["a"]},
            [("until", "jobs.job.until: 'tomorow' is not a time: write 2026-12-24T18:00, with or without an offset.")],
        ),
        (
            {"every": "1h", "command": ["a"], "overlap": "que", "enabled": "yes", "timeout": "0s", "catch_up": "nevr"},
            [
                ("timeout", "jobs.job.timeout: Zero interval is not allowed."),
                ("catch_up", """jobs.job.catch_up is one of once, skip or {"within": "2h"}, not 'nevr'."""),
                ("overlap", "jobs.job.overlap is one of skip, queue, cancel_other, not 'que'."),
                ("enabled", "jobs.job.enabled is true or false, not 'yes'."),
            ],
        ),
        (
            {"cron": "0 9 * * *", "timezone": "Europe/Berln", "command": ["a"]},
            [("timezone", 'jobs.job.timezone: Unknown time zone "Europe/Berln": did you mean "Europe/Berlin"?')],
        ),
        (
            {"cron": "0 9 31 2 *", "command": ["a"]},
            [("cron", "jobs.job.cron: '0 9 31 2 *' never comes: there is no such date.")],
        ),
        (
            {"command": ["a"]},
            [("", "jobs.job does not say when: give when, cron, every, interval, at, after or manual.")],
        ),
    ],
)
def test_a_mistake_is_reported_in_a_sentence(data, expected):
    found = wrong(**data)
    assert found == expected


def test_one_mistake_hides_no_other():
    found = wrong(cron="61 * * * *", command="ls -l", timeout="soon", lanes=3, owner="", enabled="yes", oveerlap="skip")
    assert {where for where, _ in found} == {"cron", "command", "timeout", "lanes", "owner", "enabled", "oveerlap"}
    found = wrong(every="1h", command=["a"], jitter=50, max_runs=0, start="soon", until="2026-13-01")
    assert {where for where, _ in found} == {"jitter", "max_runs", "start", "until"}


@pytest.mark.parametrize("value", [None, 3, "text", [], {}, True, [{"a": 1}], {"a": [1]}])
@pytest.mark.parametrize(
    "key", ["cron", "every", "at", "after", "except", "active_hours", "command", "env", "pass_env", "retry", "labels"]
)
def test_any_value_anywhere_is_a_job_or_a_list_of_sentences(key, value):
    _, problems = read(**{"every": "1h", "command": ["true"], key: value})
    assert all(problem.message.endswith((".", "?")) and "\n" not in problem.message for problem in problems)


# -- files ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def write(tmp_path):
    def write(text, name="wakeful.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return write


def faults(path, **environ):
    with pytest.raises(ConfigError) as caught:
        load(path, environ)
    return [(Path(one.file).name, one.line, one.column, one.key) for one in caught.value.faults]


def test_every_mistake_of_a_file_and_of_those_it_includes_is_reported_unset_variables_too(write):
    write("jobs:\n  b: {every: 1h}\n  a: {every: 2h, command: [x]}\nserver: {}\n", "more/b.yaml")
    path = write(
        "include: ['more/*.yaml']\nserver: {port: x, host: '${NOPE}'}\njobs:\n"
        "  a: {every: 1h, command: [x], env: {A: '${GONE}'}}\n  c: {every: never, command: [x]}\n"
    )
    assert faults(path) == [
        ("wakeful.yaml", 2, 10, "server.port"),
        ("wakeful.yaml", 2, 19, "server.host"),
        ("wakeful.yaml", 4, 38, "jobs.a.env.A"),
        ("wakeful.yaml", 5, 7, "jobs.c.every"),
        ("b.yaml", 2, 3, "jobs.b"),
        ("b.yaml", 3, 3, "jobs.a"),
        ("b.yaml", 4, 1, "server"),
    ]


def test_reading_only_the_jobs_does_not_need_another_sections_secret(write):
    path = write(
        "server: {port: '${NOPE}'}\nenv_file: gone.env\njobs: {a: {every: 1h, command: [x], env: {A: '${B}'}}}\n"
    )
    found = load(path, {}, needs=("defaults", "fleet", "include")).jobs
    assert (found.name, found.references, [one.new.name for one in found.entries]) == ("main", ("${B}",), ["a"])
    with pytest.raises(ConfigError):
        load(path, {})


def test_the_hash_is_of_the_file_and_those_it_includes(write):
    path = write("include: ['more/*.yaml']\n")
    write("jobs: {}\n", "more/a.yaml")
    first = load(path, {}).jobs.hash
    assert load(path, {"A": "1"}).jobs.hash == first
    write("jobs:\n", "more/a.yaml")
    assert load(path, {}).jobs.hash != first


def test_local_is_the_zone_of_the_machine_that_reads_the_file(write, monkeypatch):
    path = write("defaults: {timezone: local}\njobs: {a: {cron: '@daily', command: [x]}}\n")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert load(path, {}).jobs.entries[0].new.trigger.tz == "Asia/Tokyo"


def test_an_env_file_of_a_job_is_kept_as_a_whole_path():
    assert entry(env_file="job.env").new.payload["env_file"] == "/srv/jobs/job.env"
    assert wrong(every="1h", command=["true"], env_file=["a"])[0][0] == "env_file"


def test_jobs_that_wait_for_each_other_are_a_mistake_of_the_file(tmp_path):
    text = "jobs:\n" + "".join(
        f"  {name}: {{after: {before}, command: [ls]}}\n" for name, before in [("a", "b"), ("b", "c"), ("c", "b")]
    )
    (tmp_path / "wakeful.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "wakeful.yaml")
    assert [(fault.line, fault.message) for fault in caught.value.faults] == [
        (3, "jobs.b.after: b cannot start after c, which itself waits for b.")
    ]


@pytest.mark.promise("X29")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("in 20 minutes", "counts from now: give a date and a time in a file"),
        ("tomorrow at 9", "counts from now"),
        ("wekdays at 9", 'did you mean "weekdays at 9"'),
        (5, "is a text such as"),
    ],
)
def test_words_that_mean_something_else_at_every_reading_or_nothing_are_refused(words, message):
    [(where, said)] = wrong(when=words, command=["true"])
    assert where == "when"
    assert message in said


def test_what_the_words_say_is_not_said_by_a_key_too():
    [(where, said)] = wrong(when="every hour, at most 3 runs", max_runs=5, command=["true"])
    assert (where, "is not understood" in said) == ("when", True)
