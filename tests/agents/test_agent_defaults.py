"""`agents: defaults:`, anchors and `x-` keys: what agents have in common is written once."""

from __future__ import annotations

import pytest

from wakeful.config.loading import json_schema, load
from wakeful.config.reading import ConfigError
from wakeful.domains.agents.agents_file import entries_of
from wakeful.errors import InvalidJob

pytestmark = pytest.mark.promise("D1")

FLEET = """\
connectors: {phone: {type: log}}
agents:
  defaults:
    runner: {preset: claude, cwd: repo, tools: [Read], max_cost: 0.5, timeout: 10m}
    heartbeat: {every: 1h, active_hours: {start: "09:00", end: "17:00"}}
    deliver: phone
    max_concurrent: 2
  plain:
  other:
    runner: {cwd: elsewhere, tools: [Edit]}
    heartbeat: {every: 2h}
    deliver: none
  quiet: {heartbeat: null}
  codex: {runner: {preset: codex}}
"""


@pytest.fixture
def write(tmp_path):
    def write(text, **others):
        for name, content in others.items():
            (tmp_path / f"{name}.yaml").parent.mkdir(exist_ok=True)
            (tmp_path / f"{name}.yaml").write_text(content)
        (tmp_path / "wakeful.yaml").write_text(text)
        return tmp_path / "wakeful.yaml"

    return write


def jobs(path):
    return {entry.new.name: entry.new for entry in load(path, {"SET": "x"}).jobs.entries}


def mistakes(path):
    with pytest.raises(ConfigError) as caught:
        load(path, {})
    return [(fault.file.rpartition("/")[2], fault.line, fault.message) for fault in caught.value.faults]


def test_what_an_agent_does_not_say_it_takes_from_the_defaults(write, tmp_path):
    found = jobs(write(FLEET))
    assert sorted({name.partition(".")[0] for name in found}) == ["codex", "other", "plain", "quiet"]
    plain, other = found["plain.wake"].payload, found["other.wake"].payload
    assert plain["runner"] == {
        "preset": "claude",
        "cwd": str(tmp_path / "repo"),
        "tools": ["Read"],
        "max_cost": 0.5,
        "timeout": 600_000,
    }
    assert other["runner"] == {**plain["runner"], "cwd": str(tmp_path / "elsewhere"), "tools": ["Edit"]}
    assert (plain["deliver"], other["deliver"]) == ("phone", "none")
    assert (plain["max_concurrent"], other["max_concurrent"]) == (2, 2)
    assert found["plain.heartbeat"].trigger.interval_ms == 3_600_000
    assert found["other.heartbeat"].trigger.interval_ms == 7_200_000
    assert found["other.heartbeat"].payload["active_hours"]["start"] == "09:00"
    assert "quiet.heartbeat" not in found


def test_a_runner_with_another_program_keeps_what_every_program_has(write, tmp_path):
    runner = jobs(write(FLEET))["codex.wake"].payload["runner"]
    assert runner == {"preset": "codex", "cwd": str(tmp_path / "repo"), "max_cost": 0.5, "timeout": 600_000}
    text = FLEET.replace("{preset: codex}", "{url: 'http://127.0.0.1:3000'}")
    assert jobs(write(text))["codex.wake"].payload["runner"] == {
        "url": "http://127.0.0.1:3000",
        "max_cost": 0.5,
        "timeout": 600_000,
    }


def test_a_program_of_each_agent_takes_the_rest_from_defaults_without_one(write, tmp_path):
    text = "agents:\n  defaults: {runner: {cwd: repo, env: [KEY]}}\n  a: {runner: {preset: claude}}\n"
    runner = jobs(write(text))["a.wake"].payload["runner"]
    assert runner == {"preset": "claude", "cwd": str(tmp_path / "repo"), "env": ["KEY"]}


def test_a_mistake_in_the_defaults_is_reported_once_and_where_it_is(write):
    text = """\
agents:
  defaults:
    runner: {presett: claude}
    heartbeat: {every: 5x}
    deliver: fone
    schedules: {s: {every: 1h}}
  a: {}
  b: {heartbeat: {prompt: x}}
  c: {runner: {preset: claude}, deliver: none, sesion: x}
"""
    assert mistakes(write(text)) == [
        ("wakeful.yaml", 3, "There is no key 'presett' in agents.defaults.runner. Did you mean 'preset'?"),
        (
            "wakeful.yaml",
            4,
            'agents.defaults.heartbeat.every: Invalid time unit "x". Valid units are: s, m, h, d.',
        ),
        (
            "wakeful.yaml",
            5,
            "agents.defaults.deliver: there is no connector named 'fone'. Add it to connectors, or use last or none.",
        ),
        (
            "wakeful.yaml",
            6,
            "agents.defaults.schedules cannot be shared: give each agent its own schedules.",
        ),
        ("wakeful.yaml", 9, "There is no key 'sesion' in agents.c. Did you mean 'session'?"),
    ]


def test_defaults_nobody_uses_are_checked_too(write):
    assert mistakes(write("agents: {defaults: {sesion: x}}\n"))[0][2].startswith("There is no key 'sesion'")
    assert mistakes(write("agents: {defaults: 5}\n"))[0][2].startswith("agents.defaults must be a section")
    assert jobs(write("agents: {defaults: {runner: {preset: claude}}}\n")) == {}


def test_an_agent_without_a_runner_still_needs_one(write):
    [(_, line, message)] = mistakes(write("agents:\n  defaults: {deliver: none}\n  a: {}\n"))
    assert (line, message) == (3, "agents.a.runner is missing.")


def test_defaults_hold_for_included_files_with_paths_of_the_file_that_has_them(write, tmp_path):
    main = "include: ['more/*.yaml']\nagents:\n  defaults: {runner: {preset: claude, cwd: repo}, deliver: none}\n"
    path = write(main, **{"more/a": "agents:\n  defaults: {deliver: last}\n  a: {heartbeat: {prompt_file: h.md}}\n"})
    wake = jobs(path)["a.wake"].payload
    assert wake["runner"] == {"preset": "claude", "cwd": str(tmp_path / "repo")}
    assert (wake["deliver"], wake["prompt_file"]) == ("last", str(tmp_path / "more" / "h.md"))
    path = write(main.replace("preset", "presett"), **{"more/a": "agents:\n  a: {}\n  b: {}\n"})
    assert mistakes(path) == [
        ("wakeful.yaml", 3, "There is no key 'presett' in agents.defaults.runner. Did you mean 'preset'?")
    ]


def test_a_reference_in_the_defaults_is_looked_up_and_reported_once(write):
    text = "agents:\n  defaults: {runner: {preset: claude, env: ['K=${UNSET}']}}\n  a:\n  b:\n"
    [(_, line, message)] = mistakes(write(text))
    assert line == 2
    assert message.startswith("agents.defaults.runner.env.0 needs ${UNSET}")
    assert load(write(text.replace("UNSET", "SET")), {"SET": "x"}).jobs.references == ("${SET}",)


def test_a_program_gives_defaults_in_the_same_way(tmp_path):
    given = {"defaults": {"runner": {"preset": "claude"}}, "a": {"deliver": "none"}}
    assert [entry.new.name for entry in entries_of(given, tmp_path, "UTC")] == ["a.wake"]
    with pytest.raises(InvalidJob, match=r"There is no key 'sesion' in agents\.defaults\."):
        entries_of({**given, "defaults": {"sesion": "x"}}, tmp_path, "UTC")


def test_keys_with_x_hold_anchors_and_are_nothing_else(write, tmp_path):
    text = """\
x-claude: &claude {preset: claude, cwd: repo, env: ["K=${SET}"]}
x-unused: [1, {anything: "${UNSET}"}]
include: [more.yaml]
agents:
  a: {runner: *claude}
  b:
    runner:
      <<: *claude
      cwd: elsewhere
"""
    found = jobs(write(text, more="x-here: &r {preset: codex}\nagents: {c: {runner: *r}}\n"))
    assert found["a.wake"].payload["runner"]["cwd"] == str(tmp_path / "repo")
    assert found["b.wake"].payload["runner"] == {
        "preset": "claude",
        "cwd": str(tmp_path / "elsewhere"),
        "env": ["K=${SET}"],
    }
    assert found["c.wake"].payload["runner"] == {"preset": "codex"}
    wrong = mistakes(write(text.replace("preset: claude", "presett: claude"), more=""))
    assert ("wakeful.yaml", 1, "There is no key 'presett' in agents.b.runner. Did you mean 'preset'?") in wrong


@pytest.mark.parametrize(
    ("merged", "expected"),
    [
        ("{<<: [*one, *two], c: 9}", {"a": "1", "b": "2", "c": "9"}),
        ("{c: 9, <<: *two}", {"a": "5", "b": "2", "c": "9"}),
        ("{'<<': x}", {"<<": "x"}),
    ],
)
def test_merge_keys_take_what_is_not_given_and_the_first_of_several_wins(write, merged, expected):
    anchors = "x-one: &one {a: '1', c: '3'}\nx-two: &two {a: '5', b: '2'}\n"
    text = f"{anchors}jobs: {{j: {{every: 1h, command: [x], env: {merged.replace('9', chr(39) + '9' + chr(39))}}}}}\n"
    assert jobs(write(text))["j"].payload["env"] == expected


@pytest.mark.parametrize("value", ["5", "[*one, 5]", "text"])
def test_what_is_merged_must_be_a_section(write, value):
    text = f"x-one: &one {{a: 1}}\njobs:\n  j: {{every: 1h, command: [x], <<: {value}}}\n"
    assert mistakes(write(text))[0][1:] == (3, "<< takes a section, or a list of sections, such as <<: *name.")


def test_a_small_file_cannot_become_a_huge_one_by_merging(write, monkeypatch):
    monkeypatch.setattr("wakeful.config.reading.MOST_VALUES", 2_000)
    levels = "".join(f"x-{n}: &x{n} {{<<: [{', '.join([f'*x{n - 1}'] * 9)}]}}\n" for n in range(1, 12))
    [(_, _, message)] = mistakes(write(f"x-0: &x0 {{a: 1}}\n{levels}"))
    assert message == "The file is nested too deeply or repeats itself without end."


def test_editors_know_defaults_and_extension_keys():
    schema = json_schema()
    assert schema["patternProperties"] == {"^x-": {}}
    assert "required" not in schema["$defs"]["AgentSettings"]
