"""The files that `wakeful export` writes: no secret in them, and everything that is needed to come back."""

from __future__ import annotations

import json

import pytest

from wakeful.triggers import iso


@pytest.mark.promise("X10")
def test_no_secret_is_in_any_file_and_the_references_are_named(wakeful, here):
    wakeful("add", "web", "--every", "1h", "--url", "https://u:hunter2@example.org/?token=hunter2",
            "--header", "Authorization: Bearer hunter2")  # fmt: skip
    wakeful("add", "job", "--every", "1h", "--env", "API=hunter2", "--", "sh", "-c", "echo $API")
    wakeful("token", "create", "robot", "--role", "admin")
    wakeful("run", "job")
    answer = wakeful("export", "out", "--json")
    assert answer.code == 0
    assert answer.json["secrets"] == ["JOB_API", "WEB_URL", "WEB_URL_2", "WEB_AUTHORIZATION"]
    for file in (here / "out").iterdir():
        assert "hunter2" not in file.read_text(), file
        assert file.stat().st_mode & 0o077 == 0
    done = wakeful("import", "wakeful", "out", "--yes", "--db", "b.db")
    assert (done.code, "JOB_API" in done.err) == (0, True)
    web = wakeful("show", "web", "--json", "--db", "b.db").json
    assert web["payload"]["url"] == "https://u:${WEB_URL}@example.org/?token=${WEB_URL_2}"


@pytest.mark.promise("X10")
def test_every_secret_has_a_variable_of_its_own(wakeful, here, monkeypatch):
    jobs = {
        "a": {"B_C": "one", "b_c": "two"},
        "a-b": {"C": "three", "OTHER": "${A_B_C_2}"},
    }
    text = "".join(f"  {name}: {{every: 20m, command: [echo], env: {json.dumps(env)}}}\n" for name, env in jobs.items())
    (here / "wakeful.yaml").write_text(f"jobs:\n{text}")
    monkeypatch.setenv("A_B_C_2", "theirs")
    wakeful("apply", "--yes")
    answer = wakeful("export", "out", "--json")
    assert answer.json["secrets"] == ["A_B_C", "A_B_C_3", "A_B_C_4"]
    rows = json.loads((here / "out" / "state.json").read_text())["jobs"]
    assert {row["name"]: row["payload"]["env_refs"] for row in rows} == {
        "a": {"B_C": "${A_B_C}", "b_c": "${A_B_C_3}"},
        "a-b": {"C": "${A_B_C_4}", "OTHER": "${A_B_C_2}"},
    }


def test_what_every_program_has_in_its_environment_is_no_secret(wakeful, here):
    daily = ("--cron", "0 3 * * *")
    wakeful("add", "a", *daily, "--env", "PATH=/opt/bin:/bin", "--env", "LC_ALL=C", "--env", "KEY=s3", "--", "true")
    wakeful("add", "b", *daily, "--env", "HOME=/srv", "--", "true")
    answer = wakeful("export", "out", "--json")
    assert answer.json["secrets"] == ["A_KEY"]
    rows = json.loads((here / "out" / "state.json").read_text())["jobs"]
    payloads = {row["name"]: row["payload"] for row in rows}
    assert payloads["a"]["env"] == {"PATH": "/opt/bin:/bin", "LC_ALL": "C"}
    assert payloads["a"]["env_refs"] == {"KEY": "${A_KEY}"}
    assert payloads["b"]["env"] == {"HOME": "/srv"}
    assert wakeful("import", "wakeful", "out", "--yes", "--db", "b.db").code == 0
    moved = wakeful("show", "b", "--json", "--db", "b.db").json
    assert moved["name"] == "b"


def test_the_files_are_plain_and_the_yaml_stores_the_same_jobs(wakeful, here):
    wakeful("add", "one", "--cron", "0 9 * * 1-5", "--tz", "Europe/Berlin", "--retry", "2", "--", "echo", "${X}")
    wakeful("add", "two", "--after", "one", "--on", "any", "--timeout", "5m", "--", "true")
    wakeful("add", "web", "--every", "6h", "--url", "https://example.org/x", "--body", "${x}")
    wakeful("add", "mon", "--every", "1d", "--ping", "--grace", "2h")
    wakeful("pause", "two")
    wakeful("run", "one")
    assert wakeful("export", "out", "--runs", "7d").code == 0
    assert sorted(path.name for path in (here / "out").iterdir()) == [
        "events.ndjson", "runs.ndjson", "state.json", "wakeful.yaml",
    ]  # fmt: skip
    [run] = [json.loads(line) for line in (here / "out/runs.ndjson").read_text().splitlines()]
    assert (run["job"], run["outcome"]) == ("one", "success")
    assert "output" not in run
    events = [json.loads(line) for line in (here / "out/events.ndjson").read_text().splitlines()]
    assert {event["stream"] for event in events} >= {"job", "run"}
    assert wakeful("check", "out/wakeful.yaml").code == 0
    assert wakeful("apply", "out/wakeful.yaml", "--db", "b.db").code == 0
    before, after = (
        {job["name"]: job for job in wakeful("list", "--json", "--db", db).json}
        for db in (".wakeful/wakeful.db", "b.db")
    )
    assert before.keys() == after.keys()
    for name, job in before.items():
        for part in ("kind", "trigger", "payload", "options"):
            assert (after[name][part] or {}) == (job[part] or {}), (name, part)


def test_jobs_of_several_files_are_in_several_files_and_still_belong_to_them(wakeful, here):
    for fleet in ("main", "second"):
        file = here / f"{fleet}.yaml"
        file.write_text(
            f"store: sqlite:///{here}/a.db\nfleet: {fleet}\njobs:\n  {fleet}-job: {{every: 1h, command: [echo]}}\n"
        )
        assert wakeful("apply", file).code == 0
    wakeful("add", "by-hand", "--every", "1h", "--db", "a.db", "--", "true")
    assert wakeful("export", "out", "--db", "a.db").code == 0
    assert "main-job" in (here / "out/wakeful.yaml").read_text()
    assert "fleet: second" in (here / "out/fleet-second.yaml").read_text()
    assert wakeful("import", "wakeful", "out", "--yes", "--db", "b.db").code == 0
    planned = wakeful("plan", "second.yaml", "--db", "b.db")
    assert (planned.code, planned.out) == (0, "Nothing to do: 1 job already as in the file.\n")


def test_agents_come_back_with_their_prompts_and_without_their_secrets(wakeful, here):
    (here / "work").mkdir()
    (here / "wakeful.yaml").write_text(
        "store: sqlite:///a.db\nagents:\n  ada:\n"
        "    runner: {preset: scripted, args: [cat], cwd: work, env: [K=hunter2, HOME]}\n"
        "    heartbeat: {every: 20m}\n    schedules:\n      ask: {cron: '0 9 * * *', prompt: 'Look at $${HOME}.'}\n"
        "      hook: {webhook: {verify: github, secret: hunter2-hunter2-hunter2}, prompt: Pushed.}\n"
    )
    assert wakeful("apply").code == 0
    assert wakeful("export", "out").code == 0
    assert "hunter2" not in "".join(file.read_text() for file in (here / "out").iterdir())
    assert wakeful("import", "wakeful", "out", "--yes", "--db", "b.db").code == 0
    before, after = (
        {job["name"]: job for job in wakeful("list", "--json", "--db", db).json} for db in ("a.db", "b.db")
    )
    assert before.keys() == after.keys() == {"ada.ask", "ada.heartbeat", "ada.hook", "ada.wake"}
    assert after["ada.ask"]["payload"]["prompt"] == "Look at ${HOME}."
    assert after["ada.ask"]["payload"]["runner"]["env"] == ["K=${ADA_ASK_K}", "HOME"]
    assert {name: job["next_run_at"] for name, job in before.items()} == {
        name: job["next_run_at"] for name, job in after.items()
    }
    [agent] = wakeful("agent", "list", "--json", "--db", "b.db").json
    assert (agent["name"], agent["schedules"]) == ("ada", 2)


@pytest.mark.promise("X10")
def test_a_webhook_whose_secret_is_a_reference_keeps_it_and_a_written_one_becomes_one(wakeful, here, monkeypatch):
    (here / "work").mkdir()
    monkeypatch.setenv("HOOK", "hunter2-hunter2-hunter2")
    hook = "      {}: {{webhook: {{verify: github, secret: {}}}, prompt: Pushed.}}\n"
    (here / "wakeful.yaml").write_text(
        "store: sqlite:///a.db\nagents:\n  ada:\n"
        "    runner: {preset: scripted, args: [cat], cwd: work}\n    schedules:\n"
        + hook.format("kept", '"${HOOK}"')
        + hook.format("both", '["${HOOK}", hunter2-hunter2-hunter3]')
    )
    assert wakeful("apply").code == 0
    answer = wakeful("export", "out", "--json")
    assert answer.json["secrets"] == ["ADA_BOTH_SECRET"]
    assert wakeful("import", "wakeful", "out", "--yes", "--db", "b.db").code == 0
    stored = {job["name"]: job["payload"] for job in json.loads((here / "out/state.json").read_text())["jobs"]}
    assert stored["ada.kept"]["webhook"]["secret"] == ["${HOOK}"]
    assert stored["ada.both"]["webhook"]["secret"] == ["${HOOK}", "${ADA_BOTH_SECRET}"]


@pytest.mark.promise("X17")
def test_where_work_is_due_already_an_import_opens_held(wakeful, here):
    wakeful("add", "job", "--every", "1h", "--", "true")
    wakeful("export", "out")
    state = json.loads((here / "out/state.json").read_text())
    for key in ("next_at", "slot", "counted_to"):
        state["jobs"][0]["state"][key] = iso(1_700_000_000_000)
    (here / "out/state.json").write_text(json.dumps(state))
    done = wakeful("import", "wakeful", "out", "--yes", "--db", "b.db")
    assert (done.code, "everything is paused" in done.err) == (0, True)
    assert "paused" in wakeful("status", "--db", "b.db").out.lower()


def test_an_export_overwrites_nothing(wakeful, here):
    wakeful("add", "job", "--every", "1h", "--", "true")
    (here / "full").mkdir()
    (here / "full" / "notes").write_text("mine")
    (here / "link").symlink_to(here)
    for folder, code in (("full", 4), ("link", 2), ("full/notes", 2)):
        assert wakeful("export", folder).code == code, folder
    assert [path.name for path in (here / "full").iterdir()] == ["notes"]


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.update(format=99),
        lambda data: data.update(jobs={}),
        lambda data: data.update(jobs=[1]),
    ],
)
def test_an_export_of_another_format_is_refused(wakeful, here, change):
    wakeful("add", "job", "--every", "1h", "--", "true")
    wakeful("export", "out")
    data = json.loads((here / "out/state.json").read_text())
    change(data)
    (here / "out/state.json").write_text(json.dumps(data))
    answer = wakeful("import", "wakeful", "out", "--yes", "--db", "b.db")
    assert (answer.code, answer.err.startswith("Error: state.json")) == (1, True)
    assert wakeful("list", "--json", "--db", "b.db").json == []


@pytest.mark.parametrize(
    "change",
    [
        {"id": "run_1"}, {"name": ""}, {"kind": 5}, {"source": "moon"}, {"trigger": {"type": "x"}}, {"payload": 5},
        {"options": {"timeout": "never"}}, {"created_at": "then"}, {"state": {}}, {"owner": 5},
        {"state": {"revision": -1}}, {"options": {"surprise": 1}},
    ],
)  # fmt: skip
def test_a_job_of_an_export_that_was_tampered_with_is_refused(wakeful, here, change):
    wakeful("add", "job", "--every", "1h", "--", "true")
    wakeful("export", "out")
    data = json.loads((here / "out/state.json").read_text())
    data["jobs"][0].update(change)
    (here / "out/state.json").write_text(json.dumps(data))
    answer = wakeful("import", "wakeful", "out", "--yes", "--json", "--db", "b.db")
    assert answer.code in (0, 1), answer.err
    assert "fault in Wakeful" not in answer.err
    assert wakeful("list", "--json", "--db", "b.db").json == []
