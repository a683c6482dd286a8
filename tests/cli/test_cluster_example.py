"""examples/cluster does what it says: two nodes share a database, and its files name what is there."""

from __future__ import annotations

import asyncio
import re
import shlex
import signal
from pathlib import Path

import pytest
import yaml

from tests.cli.terminal import PATIENCE
from tests.store.postgres_server import postgres_url
from wakeful import Scheduler
from wakeful.surfaces.cli import command_tree

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "cluster"
APP = (FOLDER / "app.py").read_text(encoding="utf-8")
COMPOSE = (FOLDER / "compose.yaml").read_text(encoding="utf-8")


@pytest.mark.promise("X2")
@pytest.mark.promise("X13")
def test_two_nodes_run_the_example_together(terminal):
    url = postgres_url()
    (terminal.folder / "app.py").write_text(APP)
    serving = ("serve", "--app", "app:scheduler", "--port", "0")
    north = terminal.start(*serving, WAKEFUL_DB=url, WAKEFUL_NODE="north")
    north.until("serving")
    south = terminal.start(*serving, WAKEFUL_DB=url, WAKEFUL_NODE="south", WAKEFUL_LABELS="gpu")
    south.until("serving")
    nodes = {node["name"]: node for node in terminal.ask("node", "list", "--db", url, "--json").json}
    assert {name: (node["state"], node["labels"]) for name, node in nodes.items()} == {
        "north": ("alive", []),
        "south": ("alive", ["gpu"]),
    }
    assert asyncio.run(run_each(url)) == {"tidy", "render", "load"}
    assert {run["node"] for run in terminal.ask("runs", "render", "--db", url, "--json").json} == {"south"}
    for node in (north, south):
        node.signal(signal.SIGINT)
        assert node.ended().code == 0


async def run_each(url):
    """Start each job by hand; the names of those that ended well."""
    async with asyncio.timeout(PATIENCE), Scheduler(url) as scheduler:
        done = set()
        for job in await scheduler.list_jobs():
            if job.status == "idle":
                await scheduler.run_job(job.id)
        while len(done) < 3:
            done = {run.job for run in await scheduler.get_run_log(limit=100) if run.outcome == "success"}
        return done


def services():
    return yaml.safe_load(COMPOSE)["services"]


def test_the_containers_are_given_what_the_program_asks_for():
    asked = set(re.findall(r'os\.environ\.get\("(\w+)"', APP))
    nodes = {name: service for name, service in services().items() if name != "db"}
    given = {variable for service in nodes.values() for variable in service["environment"]}
    assert given == asked == {"WAKEFUL_DB", "WAKEFUL_NODE", "WAKEFUL_LABELS"}
    assert {service["environment"]["WAKEFUL_NODE"] for service in nodes.values()} == set(nodes)
    assert {service["environment"]["WAKEFUL_DB"].rpartition("@")[2] for service in nodes.values()} == {
        "db:5432/wakeful"
    }


def test_the_containers_run_commands_that_are_there():
    for service in (each for name, each in services().items() if name != "db"):
        program, command, *options = service["command"]
        assert program == "wakeful"
        known = {flag for parameter in command_tree().commands[command].params for flag in parameter.opts}
        assert {option for option in options if option.startswith("-")} <= known
        assert options[options.index("--app") + 1] == "app:scheduler"
        wait = options[options.index("--shutdown-wait") + 1]
        assert int(service["stop_grace_period"].removesuffix("s")) > int(wait.removesuffix("s"))
        copied = re.findall(r"COPY (examples\S+)", service["build"]["dockerfile_inline"])
        assert [(FOLDER.parents[1] / path).exists() for path in copied] == [True]


def test_the_file_holds_no_secret_but_one_that_says_what_it_is_for():
    assert set(re.findall(r"PASSWORD\S*:-([\w-]+)\}", COMPOSE)) == {"only-for-this-machine"}
    assert not re.search(r"PASSWORD: (?!\$\{)", COMPOSE)


def test_the_page_names_commands_that_are_there():
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    lines = [shlex.split(line) for line in re.findall(r"^    .*?(wakeful .*)$", page, re.MULTILINE)]
    assert len(lines) == 5
    for _, name, *words in lines:
        command = command_tree().commands[name]
        if hasattr(command, "commands"):
            command = command.commands[words.pop(0)]
        known = {flag for parameter in command.params for flag in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= known
    for target in re.findall(r"\]\(([^)#]+)", page):
        assert (FOLDER / target).exists(), target
