"""Agents without a server: `wakeful run AGENT.SCHEDULE` and `wakeful agent ask` run them in the command itself."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from tests.agents.virtual_agents import VirtualAgents, agent
from wakeful import Every, Scheduler
from wakeful.testing import VirtualClock, run

FILE = """\
store: sqlite:///.wakeful/wakeful.db
env_file: .env
agents:
  echo:
    runner: {start: [sh, -c, "cat; echo; echo $WORD | tr a-z A-Z"], env: ["WORD=${WORD}"]}
    heartbeat: {every: 1h, prompt: "Look around."}
    schedules:
      standup: {cron: "0 9 * * *", prompt: "Summarise."}
      main: {cron: "0 9 * * *", prompt: "For the main session.", target: main}
"""


@pytest.fixture
def file(here, wakeful):
    (here / "wakeful.yaml").write_text(FILE)
    (here / ".env").write_text("WORD=secret-word\n")
    assert wakeful("apply").code == 0
    return here / "wakeful.yaml"


@pytest.mark.promise("D9")
def test_a_schedule_of_an_agent_runs_without_a_server(wakeful, file):
    answer = wakeful("run", "echo.standup", "--json")
    assert answer.code == 0
    found = answer.json
    assert (found["outcome"], found["reason"], found["job"]) == ("success", "manual", "echo.standup")
    assert found["output"]["reply"].startswith("Summarise.")
    assert found["output"]["reply"].endswith("SECRET-WORD")
    assert "ended as success" in wakeful("run", "echo.standup").err
    planned = wakeful("run", "echo.standup", "--dry-run")
    assert (planned.code, "can start  yes" in planned.out) == (0, True)


def test_a_woken_agent_runs_without_a_server_and_what_only_wakes_it_says_what_to_do(wakeful, file):
    assert wakeful("run", "echo.wake", "--json").json["output"]["reply"].startswith("Look around.")
    for schedule in ("heartbeat", "main"):
        answer = wakeful("run", f"echo.{schedule}")
        assert answer.code == 0
        assert "echo is woken when a server runs (wakeful serve), or now with wakeful run echo.wake" in answer.err
    # A wake is due a quarter of a second after it was asked for: until then a start waits, and is started by the next.
    tries = (wakeful("run", "echo.wake", "--json") for _ in range(50))
    answer = next(one for one in tries if one.code == 0)
    assert "For the main session." in answer.json["output"]["reply"]


@pytest.mark.promise("C8", "D9")
def test_the_transcript_of_an_agent_is_shown_after_its_run(wakeful, here):
    script = "echo working on it; echo no credit left >&2; exit $(cat code)"
    (here / "wakeful.yaml").write_text(f"""\
store: sqlite:///.wakeful/wakeful.db
agents:
  a:
    runner: {{start: [sh, -c, "{script}"]}}
    schedules:
      daily: {{cron: "0 9 * * *", prompt: "Go."}}
""")
    assert wakeful("apply").code == 0
    for code in ("3", "0"):
        (here / "code").write_text(code)
        answer = wakeful("run", "a.daily")
        assert answer.code == (0 if code == "0" else 1)
        assert ("no credit left" in answer.out) == (code != "0")  # of a success the reply is enough
        assert sorted(wakeful("logs", "a.daily").out.splitlines()) == ["[stderr] no credit left", "working on it"]
        assert "no credit left" in wakeful("logs", "a.daily", "--json").json["output"]


def test_a_failing_agent_is_reported_with_its_error(wakeful, here):
    (here / "wakeful.yaml").write_text(
        "store: sqlite:///.wakeful/wakeful.db\nagents:\n  bad:\n    runner: {start: [sh, -c, 'exit 3']}\n"
        "    schedules: {s: {every: 1h}}\n"
    )
    wakeful("apply")
    answer = wakeful("run", "bad.s")
    assert answer.code == 1
    assert "bad.s ended as error" in answer.err


def test_what_no_command_can_run_names_its_server(wakeful, here, store):
    async def leave():
        async with Scheduler(f"sqlite:///{store}", clock=VirtualClock()) as scheduler:
            await scheduler.add_job("mine", Every("1h"), kind="report")

    run(leave(), VirtualClock())
    answer = wakeful("run", "mine")
    assert answer.code == 4
    assert "'report'" in answer.err
    assert "wakeful serve --app" in answer.err


def test_a_start_that_waits_is_run_and_not_asked_for_twice(wakeful, file, store):
    async def ask():
        async with Scheduler(f"sqlite:///{store}", clock=VirtualClock()) as scheduler:
            return await scheduler.run_job("echo.standup")

    waits = run(ask(), VirtualClock())
    assert wakeful("run", "echo.standup", "--json").json["id"] == waits
    assert wakeful("run", "echo.standup", "--json").json["id"] != waits
    assert [one["status"] for one in wakeful("runs", "echo.standup", "--json").json] == ["done", "done"]


# -- ask --------------------------------------------------------------------------------------------------------------


def test_an_agent_is_asked_without_a_server_and_its_reply_is_printed(wakeful, file):
    answer = wakeful("agent", "ask", "echo", "What is new?")
    assert answer.code == 0
    assert answer.out.splitlines()[0] == "What is new?"
    found = wakeful("agent", "ask", "echo", "And now?", "--json").json
    assert (found["outcome"], found["job"]) == ("success", "echo.asked")
    assert found["output"]["reply"].startswith("And now?")
    assert [one["job"] for one in wakeful("runs", "echo.asked", "--json").json] == ["echo.asked"] * 2


def test_asking_says_what_is_wrong(wakeful, file):
    nobody = wakeful("agent", "ask", "nobody", "Hello?")
    assert (nobody.code, "There is no agent 'nobody'" in nobody.err) == (3, True)
    empty = wakeful("agent", "ask", "echo", "  ")
    assert (empty.code, "A prompt cannot be empty" in empty.err) == (2, True)
    wakeful("run", "echo.standup")
    assert [job["name"] for job in wakeful("list", "--json").json if "asked" in job["name"]] == []


@pytest.mark.promise("A6")
def test_a_question_is_answered_whatever_the_reply_is_and_follows_the_agent():
    """Its own session, the runner as it is now, and no ack token: a person asked."""
    clock, agents = VirtualClock(), VirtualAgents()

    async def main():
        async with Scheduler("sqlite://", clock=clock, timezone="UTC") as scheduler:
            await scheduler.agents.apply({"a": agent()})
            await scheduler.start()
            agents.act = lambda _: "HEARTBEAT_OK"
            first = await scheduler.agents.ask("a", "All well?")
            ended = await scheduler.wait_for_run(first["run"])
            assert (ended.output["outcome"], ended.output["reply"]) == ("sent", "HEARTBEAT_OK")
            again = await scheduler.wait_for_run(await scheduler.retry_run(first["run"]))
            assert (again.output["reply"], agents.prompts) == ("HEARTBEAT_OK", ["All well?"] * 2)
            await scheduler.agents.apply({"a": agent(max_concurrent=3, runner={**agent()["runner"], "timeout": "5m"})})
            second = await scheduler.agents.ask("a", "And now?", deliver="none")
            ended = await scheduler.wait_for_run(second["run"])
            assert ended.output["outcome"] == "silent"
            job = await scheduler.get_job("a.asked")
            assert job.options["timeout"] == "6m"
            shown = json.dumps((await scheduler.agents.get("a"))["schedules"])
            assert '"asked"' in shown
            await scheduler.stop()

    run(main(), clock)


def test_a_schedule_that_the_file_calls_asked_is_left_alone(wakeful, file):
    file.write_text(FILE + '      asked: {cron: "0 9 * * *", prompt: "Mine."}\n')
    wakeful("apply")
    answer = wakeful("agent", "ask", "echo", "Hello?")
    assert answer.code == 4
    assert "echo.asked is a schedule of its own, under which questions would run: give that schedule" in answer.err


SECRETS = """\
store: sqlite:///.wakeful/wakeful.db
env_file: .env
jobs:
  passed: {manual: true, command: [sh, -c, 'echo "word: $WORD" | tr a-z A-Z'], pass_env: [WORD]}
agents:
  bot:
    runner: {start: [sh, -c, 'cat > /dev/null; echo "word: $WORD" | tr a-z A-Z'], env: [WORD]}
    schedules: {now: {manual: true, prompt: "Now."}}
"""


@pytest.fixture
def secrets(here, wakeful, monkeypatch):
    """A folder whose file was applied, and which is not the one where commands are typed from here on."""
    (here / "wakeful.yaml").write_text(SECRETS)
    (here / ".env").write_text("WORD=secret-word\n")
    assert wakeful("apply").code == 0
    elsewhere = here / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.delenv("WORD", raising=False)
    return here


def _said(answer):
    return json.dumps(answer.json["output"])


@pytest.mark.parametrize("job", ["passed", "bot.now"])
def test_a_store_that_is_named_keeps_the_env_file_of_the_file_it_was_applied_from(wakeful, secrets, monkeypatch, job):
    store = secrets / ".wakeful" / "wakeful.db"
    assert "WORD: SECRET-WORD" in _said(wakeful("--db", store, "run", job, "--json"))
    monkeypatch.delenv("WORD", raising=False)
    monkeypatch.setenv("WAKEFUL_DB", f"sqlite:///{store}")
    assert "WORD: SECRET-WORD" in _said(wakeful("run", job, "--json"))


def test_a_job_of_no_file_is_given_what_the_file_beside_its_store_sets(wakeful, secrets, monkeypatch):
    store = secrets / ".wakeful" / "wakeful.db"
    added = ["add", "own", "--manual", "--pass-env", "WORD", "--", "sh", "-c", "echo $WORD | tr a-z A-Z"]
    assert wakeful("--db", store, *added).code == 0
    assert "SECRET-WORD" in _said(wakeful("--db", store, "run", "own", "--json"))


@pytest.mark.parametrize("job", ["passed", "bot.now"])
def test_a_run_whose_file_is_gone_is_refused_before_it_has_an_empty_secret(wakeful, secrets, monkeypatch, job):
    store = secrets / ".wakeful" / "wakeful.db"
    (secrets / "wakeful.yaml").unlink()
    answer = wakeful("--db", store, "run", job)
    assert answer.code == 4
    assert "takes WORD from its environment, and the file that has it" in answer.err
    monkeypatch.setenv("WORD", "set-here")
    assert "WORD: SET-HERE" in _said(wakeful("--db", store, "run", job, "--json"))


def test_a_file_that_another_user_could_have_changed_since_is_not_read(wakeful, secrets):
    (secrets / "wakeful.yaml").chmod(0o666)
    answer = wakeful("--db", secrets / ".wakeful" / "wakeful.db", "run", "passed")
    assert (answer.code, "is not used because" in answer.err) == (4, True)


TOLD = """\
store: sqlite:///.wakeful/wakeful.db
connectors:
  ops: {type: file, path: told.jsonl}
jobs:
  say: {manual: true, command: [echo, hello], deliver: last}
agents:
  bot:
    runner: {start: [sh, -c, "cat > /dev/null; echo fine"]}
    schedules:
      last: {manual: true, prompt: "Now.", deliver: last}
      default: {manual: true, prompt: "Now."}
"""


@pytest.fixture
def told(here, wakeful):
    (here / "wakeful.yaml").write_text(TOLD)
    assert wakeful("apply").code == 0
    return here / "told.jsonl"


@pytest.mark.parametrize(("job", "text"), [("say", "hello"), ("bot.last", "fine"), ("bot.default", "fine")])
def test_what_a_run_without_a_server_delivers_is_sent_before_the_command_ends(wakeful, told, job, text):
    answer = wakeful("run", job)
    assert (answer.code, "not sent" in answer.err) == (0, False)
    assert [json.loads(line)["text"] for line in told.read_text().splitlines()] == [text]
    assert [item["status"] for item in wakeful("delivery", "list", "--json").json] == ["sent"]


def test_what_could_not_be_sent_without_a_server_waits_for_one_and_is_said_to(wakeful, told):
    told.mkdir()
    answer = wakeful("run", "bot.last")
    assert answer.code == 0
    assert "The message to ops is not sent, but pending: " in answer.err
    assert "A server (wakeful serve) sends what waits." in answer.err
    told.rmdir()
    assert [item["status"] for item in wakeful("delivery", "list", "--json").json] == ["pending"]
    waiting = wakeful("delivery", "list", "--json").json[0]["id"]
    assert wakeful("delivery", "requeue", waiting).code == 0  # due at once
    assert "not sent" not in wakeful("run", "bot.last").err
    assert [item["status"] for item in wakeful("delivery", "list", "--json").json] == ["sent", "sent"]


def test_a_run_whose_connectors_cannot_be_read_still_runs_and_says_so(wakeful, here, told):
    (here / "wakeful.yaml").write_text(TOLD.replace("path: told.jsonl", "path: '${NOWHERE_SET}'"))
    answer = wakeful("run", "bot.last")
    assert (answer.code, told.exists()) == (0, False)
    assert "is not sent, but pending: " in answer.err


BUDGETED = """\
store: sqlite:///.wakeful/wakeful.db
defaults: {timezone: ZONE}
jobs:
  other: {every: 3d, command: ["true"]}
agents:
  bot:
    runner: {start: [sh, -c, "cat > /dev/null; echo fine"]}
    budget: {runs_per_day: 1}
    schedules: {often: {every: 1h, prompt: "Now."}}
"""


def _zone_where_it_is_noon():
    offset = 12 - datetime.now(UTC).hour
    return f"Etc/GMT{-offset:+d}" if offset else "Etc/GMT"


def test_times_that_an_exhausted_budget_will_pass_over_are_not_shown_as_the_next(wakeful, here):
    (here / "wakeful.yaml").write_text(BUDGETED.replace("ZONE", _zone_where_it_is_noon()))
    assert wakeful("apply").code == 0
    before = [one["at"] for one in wakeful("next", "bot.often", "--json", "-n", "60").json]
    assert wakeful("run", "bot.often").code == 0
    for command in (["list"], ["next"], ["next", "bot.often"], ["explain", "bot.often"]):
        answer = wakeful(*command)
        assert "bot is over budget: 1 of 1 run is used today, and times before " in answer.out + answer.err
    after = wakeful("next", "bot.often", "--json").json[0]["at"]
    assert after in before[9:]
    assert wakeful("show", "bot.often", "--json").json["next_run_at"] == after
