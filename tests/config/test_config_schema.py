"""wakeful.yaml: the schema, and that every mistake is reported at once."""

from __future__ import annotations

import json

import pytest

from tests.config.test_config import Config, faults
from wakeful import Retention
from wakeful.config.loading import json_schema, load, load_config
from wakeful.config.reading import ConfigError, basics_in


def test_the_store_is_found_without_looking_at_the_rest(write):
    assert basics_in(write("store: here.db\nnonsense: 1\n"), {}).store == "here.db"
    assert basics_in(write("server: {}\n"), {}).store is None
    assert basics_in(write(""), {}).store is None
    with pytest.raises(ConfigError, match="store is the address of a store"):
        basics_in(write("store: [1]"), {})


def test_the_schema_knows_every_key_and_refuses_others():
    schema = json_schema()
    assert set(schema["properties"]) == set(Config.model_fields)
    assert schema["additionalProperties"] is False
    assert json.loads(json.dumps(schema)) == schema


def test_every_mistake_is_reported_at_once_also_about_jobs_that_have_others(write):
    job = "  a:\n    every: 5x\n    command: [echo]\n    env: {K: '${MISSING}'}\n    every: 6m\n"
    text = f"server: {{port: abc}}\njobs:\n{job}"
    found = faults(write(text))
    assert [line for line, _ in found] == [1, 4, 6, 7]
    assert "jobs.a.env.K needs ${MISSING}" in found[2][1]
    assert found[3] == (7, "'every' is given twice.")


@pytest.mark.promise("D1")
def test_no_mistake_hides_another(write):
    """A wrong value beside an unknown key, in the same section, in another agent, and in another part of the file."""
    text = """\
zzz: 1
alerts: {to: phon}
connectors:
  phone: {type: log}
  wrong: {tpye: log}
jobs:
  a: {cron: "99 * * * *", evry: 1, jitter: 50, command: [echo], deliver: phon}
  b: {every: 1h, command: [echo], deliver: wrong}
agents:
  broken:
    runner: {preset: claude, cwdd: x}
    heartbeat: {every: 5x}
    deliver: nowhere
    schedules:
      typo: {cron: "99 * * * *", promt: x}
      other: {cron: "0 9 * * 1-9", prompt: x}
      none: {evry: 5m}
  bare:
    schedules:
      s: {cron: "98 * * * *"}
      t: {webhook: {verify: github}}
  right:
    runner: {preset: claude}
    budget: {cost_per_day: 1}
    work: {source: directory}
    schedules:
      s: {interval: 5y}
      t: {type: cron}
"""
    found = faults(write(text))
    expected = [
        (1, "There is no key 'zzz'."),
        (2, "alerts.to: there is no connector named 'phon'. Did you mean 'phone'?"),
        (5, "There is no key 'tpye' in connectors.wrong."),
        (7, "There is no key 'evry' in jobs.a."),
        (7, "jobs.a.cron: "),
        (7, "jobs.a.jitter"),
        (7, "jobs.a.deliver: there is no connector named 'phon'."),
        (11, "There is no key 'cwdd' in agents.broken.runner."),
        (12, 'agents.broken.heartbeat.every: Invalid time unit "x".'),
        (13, "agents.broken.deliver: there is no connector named 'nowhere'."),
        (15, "There is no key 'promt' in agents.broken.schedules.typo."),
        (15, "agents.broken.schedules.typo.cron: "),
        (16, "agents.broken.schedules.other.cron: "),
        (17, "There is no key 'evry' in agents.broken.schedules.none."),
        (18, "agents.bare.runner is missing."),
        (20, "agents.bare.schedules.s.cron: "),
        (21, "agents.bare.schedules.t.webhook.secret is missing."),
        (25, "agents.right.work.path is missing"),
        (27, "agents.right.schedules.s.interval: "),
        (28, "agents.right.schedules.t.type cron needs expression"),
    ]
    told = [(line, message) for line, message in expected if any(a == line and message in b for a, b in found)]
    assert told == expected
    assert len(found) == len(expected), found


def test_the_file_says_how_long_history_is_kept(tmp_path):
    file = tmp_path / "wakeful.yaml"
    file.write_text("retention: {age: 7d, runs_per_job: 50, slots: 90d, events: 1000, records: 200}\n")
    assert load_config(file).retention.rules() == Retention(7, 50, 90, events=1000, records=200)
    file.write_text("retention: {logs: 3d, deliveries: 14d}\n")
    assert load_config(file).retention.rules() == Retention(log_days=3, message_days=14)
    file.write_text("store: sqlite:///a.db\n")
    assert load_config(file).retention.rules() == Retention()
    file.write_text("retention: {age: 12h}\n")
    with pytest.raises(ConfigError, match="must be whole days, such as 30d"):
        load_config(file)


def test_a_heartbeat_takes_hours_as_a_job_does(tmp_path):
    file = tmp_path / "wakeful.yaml"
    text = "agents: {a: {runner: {preset: claude, cwd: /tmp}, heartbeat: {active_hours: %s}}}\n"
    wanted = {"start": "09:00", "end": "17:00", "timezone": "UTC"}
    for hours in ("09:00-17:00", '{start: "09:00", end: "17:00"}'):
        file.write_text(f"defaults: {{timezone: UTC}}\n{text % hours}")
        (beat,) = [entry.new for entry in load(file).jobs.entries if entry.new.name == "a.heartbeat"]
        assert beat.payload["active_hours"] == wanted
    file.write_text(text % "9")
    with pytest.raises(ConfigError, match="must be hours such as 09:00-17:00"):
        load(file)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("jobs:\n  a:\n    cron: * * * * *\n", 'must be in quotes, such as cron: "*/5 * * * *"'),
        ("jobs:\n  - name: a\n", "jobs must have the name of each job as a key, such as backup: {every: 6h"),
    ],
)
def test_a_wrong_form_is_answered_with_a_right_one(tmp_path, text, said):
    file = tmp_path / "wakeful.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(file)
    assert said in str(caught.value)
