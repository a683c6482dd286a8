"""`copy`: the same store elsewhere, with the same output of every command, and going on there."""

from __future__ import annotations

import asyncio
import re
import sqlite3

import pytest

from tests.cli.terminal import PATIENCE
from tests.store.postgres_server import postgres_url
from tests.store.rich_history import make_history
from wakeful import Scheduler


def outputs(wakeful, db):
    """What every listing says about a store, but for where its files lie and what depends on the present."""
    found = {
        "list": wakeful("list", "--json", "--db", db).out,
        "runs": wakeful("runs", "-n", "100000", "--json", "--db", db).out,
        "alerts": wakeful("alert", "list", "--all", "--json", "--db", db).out,
    }
    for job in wakeful("list", "--json", "--db", db).json:
        found[f"explain {job['name']}"] = wakeful("explain", job["name"], "--json", "--db", db).out
        found[f"show {job['name']}"] = wakeful("show", job["name"], "--json", "--db", db).out
        found[f"logs {job['name']}"] = wakeful("logs", job["name"], "--db", db).out
    lasting = {name: re.sub(r'"upcoming": \[[^]]*\]', "", text) for name, text in found.items()}
    return {name: re.sub(r'"(/[^"]*/)(run_\w+\.\w+)', r'"\2', text) for name, text in lasting.items()}


@pytest.mark.promise("X2")
@pytest.mark.parametrize("seed", [3, 4])
def test_every_command_prints_the_same_for_the_copy(wakeful, here, seed):
    make_history(here / "from.db", seed)
    there = postgres_url()
    assert wakeful("copy", "from.db", there).code == 0
    before = {name: text.replace("\\u0000", "\ufffd") for name, text in outputs(wakeful, "from.db").items()}
    assert outputs(wakeful, there) == before
    assert wakeful("copy", there, "back.db").code == 0
    assert outputs(wakeful, "back.db") == before
    assert len(before) > 30


def test_what_was_copied_is_counted(wakeful, here):
    make_history(here / "from.db", 3)
    answer = wakeful("copy", "from.db", "to.db")
    assert answer.code == 0
    assert re.fullmatch(
        r"Copied \d+ jobs, \d+ runs, \d+ events, \d+ alerts?, \d+ files?\n  from  .*/from.db\n  to    .*/to.db\n",
        answer.out,
    )
    assert (
        answer.err
        == f"Note: {here}/from.db is unchanged. Do not start a server on it again, or its jobs run on both stores.\n"
    )
    data = wakeful("copy", "from.db", "again.db", "--json").json
    assert (data["from"], data["to"]) == (f"{here}/from.db", f"{here}/again.db")
    connection = sqlite3.connect(here / "from.db")
    assert data["rows"]["runs"] == connection.execute("SELECT count(*) FROM runs").fetchone()[0] > 100
    connection.close()


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["nothing.db", "to.db"], 3, "There is no store at {here}/nothing.db: nothing was copied."),
        (["from.db", "./from.db"], 2, "{here}/from.db is FROM and TO: name two stores."),
        (["from.db", "full.db"], 4, "{here}/full.db is not empty (1 job): choose an empty store to copy into."),
        (
            ["from.db", "notes.txt"],
            1,
            "{here}/notes.txt is not a database: choose another file, or move this one away.",
        ),
        (["from.db"], 2, "Missing argument 'TO'."),
    ],
)
def test_what_cannot_be_copied_is_one_sentence(wakeful, here, argv, code, said):
    wakeful("add", "job", "--every", "1h", "--db", "from.db", "--", "true")
    wakeful("add", "job", "--every", "1h", "--db", "full.db", "--", "true")
    (here / "notes.txt").write_text("milk, eggs, and a lot more than fits into a header of a hundred bytes" * 9)
    answer = wakeful("copy", *argv)
    assert answer.code == code
    assert answer.err.startswith("Error: " + said.format(here=here))
    assert len(answer.err.splitlines()) == 1
    assert not (here / "to.db").exists()


@pytest.mark.parametrize("served", ["from", "to"])
def test_a_store_whose_server_runs_is_left_alone(terminal, served):
    for name in ("from", "to"):
        terminal.ask("add", "job", "--every", "1h", "--db", f"{name}.db", "--", "true")
    terminal.ask("remove", "job", "-y", "--db", "to.db")
    server = terminal.serve("--db", f"{served}.db", "--node", "mill", "--port", "0")
    answer = terminal.ask("copy", "from.db", "to.db")
    assert answer.code == 4
    assert f"(process {server.pid} on " in answer.err
    assert "node mill): stop it first" in answer.err


@pytest.mark.promise("X2")
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_what_a_killed_server_left_running_is_recovered_where_it_was_copied_to(terminal, kind):
    goal = postgres_url() if kind == "postgres" else "to.db"
    inside, again = terminal.pipe("inside"), terminal.pipe("again")
    command = f"if [ -e once ]; then echo again > {again.path}; else touch once; echo in > {inside.path}; sleep 600; fi"
    terminal.ask("add", "job", "--at", "now", "--lane", "disk=1", "--db", "from.db", "--", "sh", "-c", command)
    server = terminal.serve("--db", "from.db", "--node", "mill", "--port", "0")
    assert inside.line() == "in"
    server.kill()
    assert terminal.ask("copy", "from.db", goal).code == 0
    terminal.serve("--db", goal, "--node", "other", "--port", "0")
    assert again.line() == "again"
    runs = until_all_done(terminal, goal)
    assert [(run["outcome"], run["reason"]) for run in runs] == [("success", "recovery"), ("crashed", "schedule")]
    terminal.ask("add", "next", "--every", "1d", "--lane", "disk=1", "--db", goal, "--", "true")
    assert terminal("run", "next", "--wait", "--db", goal).code == 0  # the lane is free again


def until_all_done(terminal, goal):
    url = goal if "://" in goal else f"sqlite:///{terminal.folder / goal}"

    async def main():
        async with asyncio.timeout(PATIENCE), Scheduler(url) as scheduler:
            while True:
                log = await scheduler.get_run_log(limit=10)
                if all(run.outcome is not None for run in log):
                    return [run.to_dict() for run in log]

    return asyncio.run(main())
