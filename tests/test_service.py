"""docs/service.md cannot lie: its unit and container file are checked, and what they start is started."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from tests.cli.terminal import PATIENCE, Terminal
from wakeful.surfaces.cli import command_tree
from wakeful.triggers import parse_interval

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "service.md").read_text(encoding="utf-8")
UNIT = (ROOT / "examples" / "service" / "wakeful.service").read_text(encoding="utf-8")
CONTAINER = (ROOT / "examples" / "service" / "Containerfile").read_text(encoding="utf-8")
INSTRUCTIONS = {"FROM", "RUN", "COPY", "USER", "WORKDIR", "ENV", "VOLUME", "EXPOSE", "HEALTHCHECK", "CMD"}


def service():
    unit = configparser.ConfigParser(interpolation=None, strict=True)
    unit.optionxform = str
    unit.read_string(UNIT)
    return dict(unit["Service"])


def instructions():
    lines = [line for line in CONTAINER.splitlines() if line and not line.startswith("#")]
    return [tuple(line.split(" ", 1)) for line in lines]


def program_of(name):
    """The program an instruction starts, as its list of words."""
    [text] = [rest for word, rest in instructions() if word == name]
    return json.loads(text[text.index("[") :])


def known_options(words):
    """The options among these words of a command line; each must be there."""
    command = command_tree().commands[words[0]]
    if hasattr(command, "commands"):
        command = command.commands[words[1]]
    parameters = (*command.params, *command_tree().params)
    known = {flag for one in parameters for flag in (*one.opts, *one.secondary_opts)}
    return {word for word in words if word.startswith("--")} <= known


def test_the_page_shows_the_unit_as_it_is():
    [shown] = re.findall(r"```ini\n(.*?)```", PAGE, re.DOTALL)
    assert shown in UNIT


def test_systemd_has_nothing_to_say_against_the_unit(tmp_path):
    file = tmp_path / "wakeful.service"
    file.write_text(UNIT.replace("/opt/wakeful/bin", str(Path(sys.executable).parent)))
    if (checker := shutil.which("systemd-analyze")) is not None:
        done = subprocess.run(
            [checker, "verify", str(file)], capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_stop_leaves_running_jobs_the_time_they_have():
    [wait] = [each.default for each in command_tree().commands["serve"].params if "--shutdown-wait" in each.opts]
    longest = parse_interval(wait).total_seconds()
    assert int(service()["TimeoutStopSec"]) > longest
    assert int(re.search(r"--stop-timeout (\d+)", PAGE)[1]) > longest


def test_the_container_file_is_one():
    words = [word for word, _ in instructions()]
    assert set(words) <= INSTRUCTIONS
    assert words[0] == "FROM"
    places = dict(instructions())
    store = places["ENV"].removeprefix("WAKEFUL_DB=")
    assert Path(store).parent == Path(places["VOLUME"]) == Path(places["WORKDIR"])
    assert words.index("USER") < words.index("CMD")
    assert known_options(program_of("CMD")[1:])


def test_every_command_of_the_page_is_there():
    lines = re.findall(r"^(?:docker exec wakeful )?wakeful (.+)$", PAGE, re.MULTILINE)
    lines += re.findall(r"`wakeful ([a-z][^`]+)`", PAGE)
    assert len(lines) > 5
    for line in lines:
        assert known_options(shlex.split(line.partition(" -- ")[0])), line


def test_the_links_of_the_page_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)", PAGE):
        assert (ROOT / "docs" / target).exists(), target


def test_what_the_files_start_runs_answers_its_health_check_and_stops_cleanly(tmp_path):
    terminal = Terminal(tmp_path)
    store = tmp_path / "wakeful.db"
    program, *words = shlex.split(service()["ExecStart"])
    assert (Path(program).name, words) == ("wakeful", program_of("CMD")[1:2])
    variable, _, place = service()["Environment"].partition("=")
    try:
        server = terminal.start(*words, "--port", "0", **{variable: place.replace("/var/lib/wakeful", str(tmp_path))})
        url = re.search(r"http://\S+:\d+", server.until("listening on"))[0]
        assert (tmp_path / "wakeful.db.token").read_text().startswith("wk_")
        _, flag, check = program_of("HEALTHCHECK")
        asked = [sys.executable, flag, check.replace("http://127.0.0.1:7878", url)]
        assert subprocess.run(asked, timeout=PATIENCE, check=False).returncode == 0
        assert terminal.ask("--db", str(store), "add", "job", "--every", "1h", "--", "true").code == 0
        (backup,) = re.findall(r"^wakeful (backup --to .*)$", PAGE, re.MULTILINE)
        copy = tmp_path / "backup.db"
        places = {"/var/backups/wakeful-before-upgrade.db": str(copy), "/var/lib/wakeful/wakeful.db": str(store)}
        for _ in range(2):
            assert terminal.ask(*(places.get(word, word) for word in shlex.split(backup))).code == 0
        server.signal(signal.SIGTERM)
        assert server.ended().code == 0
        assert subprocess.run(asked, timeout=PATIENCE, check=False, stderr=subprocess.DEVNULL).returncode != 0
        assert [job["name"] for job in terminal.ask("--db", str(copy), "list", "--json").json] == ["job"]
    finally:
        terminal.close()
