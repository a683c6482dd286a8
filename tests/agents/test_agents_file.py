"""`agents:` in wakeful.yaml: what is read, what is refused and where, and what becomes of it."""

from __future__ import annotations

import json

import pytest

from wakeful.config.loading import load
from wakeful.config.reading import ConfigError
from wakeful.domains.agents.agents_file import entries_of
from wakeful.domains.agents.runners.spec import command_form
from wakeful.errors import InvalidJob
from wakeful.triggers import system_zone

GOOD = """
agents:
  reporter:
    description: Looks after the repository
    runner: {preset: claude, cwd: repo, tools: [Read, "Bash(git log:*)"], env: [KEY, "TOKEN=${TOKEN}"], timeout: 10m}
    max_concurrent: 2
    session: team
    labels: [gpu]
    deliver: none
    heartbeat: {enabled: true, prompt_file: HEARTBEAT.md, active_hours: {start: "09:00", end: "22:00", timezone: local}}
    schedules:
      standup: {cron: "0 9 * * 1-5", timezone: Europe/Berlin, prompt: "Summarise {this}."}
      check: {interval: 5m, prompt: "Look.", target: main, enabled: false}
      legacy: {type: cron, expression: "0 9 * * 1-5", prompt: x}
      old: {type: interval, interval: 5m, prompt: x}
"""


@pytest.fixture
def read(tmp_path):
    def read(text, **others):
        for name, content in others.items():
            (tmp_path / f"{name}.yaml").write_text(content)
        path = tmp_path / "wakeful.yaml"
        path.write_text(text)
        return load(path, {"TOKEN": "hunter2"}).jobs

    return read


def faults(read, text, **others):
    with pytest.raises(ConfigError) as caught:
        read(text, **others)
    return [(fault.line, fault.column, fault.message) for fault in caught.value.faults]


@pytest.mark.promise("D1")
def test_an_agent_becomes_its_jobs(read, tmp_path):
    entries = {entry.new.name: entry for entry in read(GOOD).entries}
    assert list(entries) == [
        "reporter.wake", "reporter.heartbeat", "reporter.standup", "reporter.check", "reporter.legacy", "reporter.old",
    ]  # fmt: skip
    standup = entries["reporter.standup"].new
    assert (standup.kind, standup.owner) == ("agent", "reporter")
    assert standup.trigger.to_data() == {"type": "cron", "expression": "0 9 * * 1-5", "tz": "Europe/Berlin"}
    assert standup.options["lanes"] == {"agent:reporter": 2, "account:claude": 1, "session:team": 1}
    assert (standup.options["timeout"], standup.options["labels"]) == (660, ["gpu"])
    runner = standup.payload["runner"]
    assert runner["cwd"] == str(tmp_path / "repo")
    assert runner["env"] == ["KEY", "TOKEN=${TOKEN}"]  # looked up when it runs, never stored
    assert "hunter2" not in json.dumps([entry.new.payload for entry in entries.values()])
    check = entries["reporter.check"]
    assert (check.enabled, check.new.payload["does"], "lanes" in check.new.options) == (False, "event", False)
    beat = entries["reporter.heartbeat"].new
    assert beat.trigger.to_data()["interval"] == "30m"
    assert beat.payload["active_hours"] == {"start": "09:00", "end": "22:00", "timezone": system_zone()}
    wake = entries["reporter.wake"].new.payload
    assert wake["prompt_file"] == str(tmp_path / "HEARTBEAT.md")
    assert entries["reporter.legacy"].new.trigger.to_data()["expression"] == "0 9 * * 1-5"
    assert entries["reporter.old"].new.trigger.to_data() == {"type": "interval", "interval": "5m"}


@pytest.mark.promise("D1")
@pytest.mark.parametrize(
    ("written", "line", "message"),
    [
        ("runner: {presett: x}", 4, "There is no key 'presett' in agents.a.runner. Did you mean 'preset'?"),
        ("runer: {}", 4, "There is no key 'runer' in agents.a. Did you mean 'runner'?"),
        ("{S: {cron: 'x x'}}", 5, "agents.a.schedules.s.cron: "),
        ("{S: {interval: 5x}}", 5, 'agents.a.schedules.s.interval: Invalid time unit "x".'),
        ("{S: {}}", 5, "agents.a.schedules.s does not say when: give"),
        ("{S: {cron: '* * * * *', crn: 1}}", 5, "There is no key 'crn' in agents.a.schedules.s. Did you mean 'cron'?"),
        ("{S: {webhook: {verify: github}}}", 5, "agents.a.schedules.s.webhook.secret is missing."),
        (
            "{S: {webhook: {verify: gitub, secret: a-long-random-text}}}",
            5,
            "agents.a.schedules.s.webhook.verify must be",
        ),
        ("{S: {webhook: {secret: ''}}}", 5, "agents.a.schedules.s.webhook.secret must be a text that is not empty"),
        ("{S: {webhook: {secret: plain-and-not-base64!}}}", 5, "agents.a.schedules.s.webhook.secret is not base64"),
        ("{S: {webhook: {verify: bearer, secret: '${UNSET}'}}}", 5, "s.webhook.secret needs ${UNSET}, which is not"),
        (
            "{S: {webhook: {secret: a-long-random-text, verify: {header: X-Sig}}}}",
            5,
            "s.webhook.verify needs timestamp or id: else",
        ),
        (
            "{S: {webhook: {secret: a-long-random-text, verify: {header: X-Sig, timestamp: {header: T}}}}}",
            5,
            "s.webhook.verify.timestamp is not signed: put {timestamp} into signed.",
        ),
        (
            "{S: {webhook: {secret: a-long-random-text, verify: {header: X-Sig, id: {}}}}}",
            5,
            "s.webhook.verify needs timestamp or id",
        ),
        (
            "{S: {webhook: {verify: bearer, secret: a-long-random-text}, cron: '@daily'}}",
            5,
            "s.cron is a second schedule besides webhook",
        ),
        (
            "{S: {webhook: {verify: bearer, secret: a-long-random-text}, target: main}}",
            5,
            "s.target must be isolated: what others",
        ),
        ("{S: {type: webhook}}", 5, "agents.a.schedules.s.type webhook needs a secret: add webhook: {verify: github"),
        ("{S: {chat: {match: '('}}}", 5, "agents.a.schedules.s.chat.match is no regular expression"),
        (
            "{S: {chat: {connector: fone}}}",
            5,
            "agents.a.schedules.s.chat.connector: there is no connector named 'fone'",
        ),
        ("untrusted: {deliver: fone}", 4, "agents.a.untrusted.deliver: there is no connector named 'fone'"),
        ("untrusted: {tool: [Read]}", 4, "There is no key 'tool' in agents.a.untrusted. Did you mean 'tools'?"),
        ("untrusted: {session: team}", 4, "agents.a.untrusted.session must be"),
        ("{S: {every: 1h, work: true}}", 5, "agents.a.schedules.s.work needs a source: add work: {source: queue}"),
        ("work: {source: github}", 4, "agents.a.work.repo is missing: a github needs it, such as repo: owner/name."),
        ("work: {source: directory}", 4, "agents.a.work.path is missing: a directory needs it, such as path: inbox."),
        ("work: {source: queue, path: x}", 4, "agents.a.work.path is not for the source queue: remove it."),
        ("work: {source: githb}", 4, "agents.a.work.source must be 'queue', 'directory' or 'github', not 'githb'."),
        ("work: {source: github, repo: x}", 4, "agents.a.work.repo must be"),
        ("work: {source: github, repo: o/n, label: '${X}'}", 4, "agents.a.work.label has ${X}, which an agent may"),
        ("work: {source: github, repo: o/n, token: '${X}'}", 4, "agents.a.work.token needs ${X}, which is not set"),
        ("{S: {type: cron}}", 5, "agents.a.schedules.s.type cron needs expression"),
        ("{S: {every: 1h, prompt: '${X}'}}", 5, "agents.a.schedules.s.prompt has ${X}, which an agent may have in"),
        ("{S: {every: 1h, deliver: fone}}", 5, "agents.a.schedules.s.deliver: there is no connector named 'fone'."),
        ("{wake: {every: 1h}}", 5, "agents.a.schedules.wake must have another name: wake is one of the agent's own"),
        ("{Bad: {every: 1h}}", 5, "agents.a.schedules.Bad must have a name that begins with a small letter"),
        ("runner: {preset: nobody}", 4, "agents.a.runner.preset cannot be used: There is no preset 'nobody'"),
        ("runner: {preset: codex, tools: [Read]}", 4, "agents.a.runner cannot be used: The preset codex cannot limit"),
        ("runner: {preset: claude, url: 'http://x'}", 4, "agents.a.runner cannot be used: A runner has preset and url"),
        ("runner: {start: [x], failure: {pattern: '('}}", 4, "agents.a.runner cannot be used: failure.pattern is no"),
        ("runner: {preset: claude, env: ['X=${UNSET}']}", 4, "agents.a.runner.env.0 needs ${UNSET}, which is not set"),
        ("budget: {runs_a_day: 1}", 4, "There is no key 'runs_a_day' in agents.a.budget. Did you mean 'runs_per_day'?"),
        ("budget: {cost_per_day: -1}", 4, "agents.a.budget.cost_per_day must be at least 0, not -1."),
        ("budget: {runs_per_day: 1.5}", 4, "agents.a.budget.runs_per_day must be a whole number, not 1.5."),
        (
            "runner: {preset: claude, max_cost: 2}\n    budget: {cost_per_day: 1}",
            5,
            "agents.a.budget.cost_per_day is 1, and one run may cost 2 (runner.max_cost): no run would ever start.",
        ),
        (
            "runner: {preset: claude, max_cost: 1}\n    untrusted: {max_cost: 3}\n    budget: {cost_per_day: 2}",
            6,
            "agents.a.budget.cost_per_day is 2, and one run may cost 3 (untrusted.max_cost): no run would ever start.",
        ),
        (
            "runner: {preset: codex}\n    budget: {cost_per_day: 2}",
            5,
            "agents.a.budget.cost_per_day cannot be kept: this runner does not report what a run cost. Give runner.",
        ),
        (
            "runner: {preset: claude, max_cost: 21}",
            4,
            "agents.a.runner.max_cost is 21, and all agents together may cost 20 a day (limits.cost_per_day): no run",
        ),
        (
            "runner: {start: [x, '{prompt}'], resume: [x, '{session}']}",
            4,
            "agents.a.runner cannot be used: start has {prompt} and resume does not: write it into resume as well.",
        ),
        ("max_concurrent: 0", 4, "agents.a.max_concurrent must be at least 1, not 0."),
        ("heartbeat: {every: 0m}", 4, "agents.a.heartbeat.every: Zero interval is not allowed."),
        ("heartbeat: {active_hours: {start: '25:00', end: '9:00'}}", 4, "agents.a.heartbeat.active_hours cannot be"),
        ("heartbeat: {active_hours: {start: '08:00', end: '09:00', timezone: No/Where}}", 4, "Unknown time zone"),
        ("session: a b", 4, "agents.a.session must be persistent, ephemeral, or a name that"),
        ("session: heartbeat", 4, "agents.a.session must be persistent, ephemeral, or a name that"),
        ("runner: {url: 'file:///etc/passwd'}", 4, "agents.a.runner.url must begin with http:// or https://."),
        ('runner: {start: ["x\\0"]}', 4, "agents.a.runner cannot be used: start contains a NUL byte"),
        ('runner: {start: [x], env: ["A=\\0"]}', 4, "agents.a.runner cannot be used: env contains a NUL byte"),
        ("budget: {cost_per_day: much}", 4, "agents.a.budget.cost_per_day must be a number, not 'much'."),
    ],
)
def test_a_mistake_is_reported_with_its_place_and_the_nearest_right_name(read, written, line, message):
    runner = "" if written.startswith(("runner", "runer")) else "    runner: {preset: claude}\n"
    if written.startswith("{"):
        text = f"agents:\n  a:\n{runner}    schedules:\n      {written[1:-1].replace('S:', 's:')}\n"
    else:
        text = f"agents:\n  a:\n    description: x\n    {written}\n{runner}"
    found = faults(read, text)
    assert [fault for fault in found if fault[0] == line and message in fault[2]], found


@pytest.mark.promise("D1")
@pytest.mark.parametrize(
    ("schedule", "places"),
    [
        ("{cron: '99 * * * *', prompt: x, prompt_file: y}", ["cron", "prompt_file"]),
        ("{every: 5m, work: true, timezone: No/Where}", ["timezone", "work"]),
        ("{webhook: {verify: bearer, secret: a-long-random-text}, cron: '@daily'}", ["cron"]),
        ("{type: cron}", ["type"]),
    ],
)
def test_of_a_schedule_each_mistake_is_reported_once_and_none_hides_another(read, schedule, places):
    text = f"agents:\n  a:\n    runner: {{preset: claude}}\n    schedules:\n      s: {schedule}\n"
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert sorted(fault.key for fault in caught.value.faults) == [f"agents.a.schedules.s.{key}" for key in places]


def test_agents_of_included_files_belong_to_the_fleet_and_are_checked_alike(read):
    main = "include: ['more*.yaml']\nagents: {a: {runner: {preset: claude}}}\n"
    more = "agents:\n  b: {runner: {preset: claude}}\n"
    assert [entry.new.name for entry in read(main, more1=more).entries] == ["a.wake", "b.wake"]
    wrong = "agents:\n  b: {runner: {presett: claude}}\n  a: {runner: {preset: claude}}\n"
    messages = [message for _, _, message in faults(read, main, more1=wrong)]
    assert messages[0] == "There is no key 'presett' in agents.b.runner. Did you mean 'preset'?"
    assert messages[1].startswith("agents.a is also in ")
    assert len(messages) == 2
    twice = "agents:\n  a: {runner: {preset: claude}}\n"
    assert "agents.a is also in" in faults(read, main, more1=twice)[0][2]


@pytest.mark.parametrize("name", ["wake", "heartbeat"])
def test_the_names_of_its_own_jobs_are_no_names_of_agents(read, name):
    found = faults(read, f"agents: {{{name}: {{runner: {{preset: claude}}}}}}")
    assert found[0][2] == f"agents.{name} must have another name: {name} is one of the agent's own jobs, not '{name}'."


def test_the_usual_places_of_an_answer_need_not_be_written():
    spelled_out = {"format": "json", "reply": "result", "session": "session_id", "cost": "total_cost_usd"}
    spelled_out |= {"tokens": ["usage.input_tokens", "usage.output_tokens"], "error": "is_error"}
    assert command_form({"start": ["x"], "output": "json"}) == command_form({"start": ["x"], "output": spelled_out})
    lines = {**spelled_out, "format": "jsonl", "match": {"type": "result"}}
    assert command_form({"start": ["x"], "output": "jsonl"}) == command_form({"start": ["x"], "output": lines})


def test_every_agent_needs_a_runner_and_nothing_else(read):
    assert faults(read, "agents: {a: {}}")[0][2] == "agents.a.runner is missing."
    assert [entry.new.name for entry in read("agents: {a: {runner: {preset: gemini}}}").entries] == ["a.wake"]
    assert read("agents:\n").entries == ()


@pytest.mark.parametrize("said", ["off", "ask", "allow"])
def test_an_agent_may_say_what_it_may_schedule_itself(read, said):
    runner = "{start: [my-agent], resume: [my-agent, --session, '{session}'], prompt: stdin, output: json}"
    assert len(read(f"agents: {{a: {{runner: {runner}, self_schedule: {said}}}}}").entries) == 1
    assert (
        "'off', 'ask' or 'allow'" in faults(read, "agents: {a: {runner: {preset: gemini}, self_schedule: maybe}}")[0][2]
    )


@pytest.mark.promise("D4", "X18")
def test_webhooks_and_chats_become_jobs_that_no_time_starts(read):
    text = """
agents:
  a:
    runner: {preset: claude, tools: [Read, Bash]}
    target: main
    untrusted: {tools: [Read], session: ephemeral}
    schedules:
      deploy: {webhook: {verify: github, secret: "${TOKEN}"}, prompt: "Deployed {payload.ref}"}
      stripe:
        webhook:
          secret: [the-first-long-secret, the-second-long-secret]
          verify: {header: Stripe-Signature, prefix: "v1=", signed: "{timestamp}.{body}",
                   timestamp: {header: Stripe-Signature, prefix: "t="}, id: {body: id}, tolerance: 1m}
      ask: {chat: {match: "^/ask "}}
      rest: {type: chat}
"""
    entries = {entry.new.name: entry.new for entry in read(text).entries}
    triggers = {name: new.trigger.to_data() for name, new in entries.items()}
    assert triggers == {
        "a.wake": {"type": "manual"}, "a.deploy": {"type": "webhook"}, "a.stripe": {"type": "webhook"},
        "a.ask": {"type": "chat"}, "a.rest": {"type": "chat"},
    }  # fmt: skip
    deploy = entries["a.deploy"].payload
    assert (deploy["does"], deploy["webhook"]) == ("ask", {"verify": "github", "secret": ["${TOKEN}"]})
    assert deploy["untrusted"] == {"tools": ["Read"], "session": "ephemeral"}
    assert entries["a.stripe"].payload["webhook"]["verify"]["tolerance"] == 60_000
    assert entries["a.rest"].payload["chat"] == {}


@pytest.mark.promise("X18")
@pytest.mark.parametrize(
    "runner", ["{preset: codex}", "{start: [x]}", "{python: 'm:f'}", "{url: 'http://127.0.0.1:1'}"]
)
def test_a_runner_that_cannot_limit_tools_refuses_to_promise_it(read, runner):
    found = faults(read, f"agents:\n  a:\n    runner: {runner}\n    untrusted: {{tools: [Read]}}\n")
    assert [(line, "agents.a.untrusted.tools cannot be enforced: " in message) for line, _, message in found] == [
        (4, True)
    ]


@pytest.mark.parametrize(
    ("agents", "sentence"),
    [
        ([1], "Agents are a mapping from names to settings, not [1]."),
        ({"a": 5}, "agents.a must be a section with keys of its own."),
        ({"a": {"runner": {"start": "x"}}}, "agents.a.runner.start must be a list."),
        ({"A": {"runner": {"preset": "claude"}}}, "agents.A must have a name that begins with a small letter"),
        ({"a": {"runner": {"preset": "claude"}, "zz": 1}}, "There is no key 'zz' in agents.a."),
        ({"a": {"runner": {"env": 5, "preset": "claude"}}}, "agents.a.runner.env must be a list."),
    ],
)
def test_what_a_program_gives_wrongly_is_refused_in_words_without_its_value(tmp_path, agents, sentence):
    with pytest.raises(InvalidJob) as refused:
        entries_of(agents, tmp_path, "UTC")
    assert str(refused.value).startswith(sentence)
