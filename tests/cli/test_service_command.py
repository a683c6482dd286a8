"""`wakeful service`: the file it writes, what it asks of the supervisor, and what `doctor` says about it."""

from __future__ import annotations

import os
import plistlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.terminal import PATIENCE, Terminal
from wakeful.surfaces.cli import service_units as units

ROOT = Path(__file__).parents[2]
EXAMPLE = (ROOT / "examples" / "service" / "wakeful.service").read_text(encoding="utf-8")
#: A supervisor that writes down what it was asked.
SUPERVISOR = '#!/bin/sh\necho "$(basename "$0") $*" >> "$HOME/asked"\necho "it says hello"\nexit ${ANSWER:-0}\n'


@pytest.fixture
def terminal(tmp_path):
    (tmp_path / "bin").mkdir()
    for name in ("systemctl", "launchctl"):
        (tmp_path / "bin" / name).write_text(SUPERVISOR)
        (tmp_path / "bin" / name).chmod(0o755)
    opened = Terminal(tmp_path)
    opened.env["PATH"] = f"{tmp_path / 'bin'}:{opened.env['PATH']}"
    yield opened
    opened.close()


def asked(terminal):
    return (terminal.home / "asked").read_text().splitlines()


def test_a_service_is_installed_shown_and_removed(terminal):
    unit = terminal.home / ".config/systemd/user/wakeful.service"
    installed = terminal.ask("service", "install", "--user")
    assert (installed.code, installed.err) == (0, "")
    assert unit.read_text() in installed.out
    assert str(unit) in installed.out
    assert f"WAKEFUL_DB=sqlite:///{terminal.folder}/.wakeful/wakeful.db" in unit.read_text()
    assert asked(terminal) == ["systemctl --user daemon-reload", "systemctl --user enable --now wakeful"]
    status = terminal.ask("service", "status", "--user")
    assert status.out.startswith(f"Installed: {unit}, for {Path(sys.executable).parent}/wakeful")
    assert "it says hello" in status.out
    assert terminal.ask("service", "status", "--user", "--json").json["running"] is True
    removed = terminal.ask("service", "uninstall", "--user")
    assert (removed.code, unit.exists()) == (0, False)
    assert asked(terminal)[-2:] == ["systemctl --user disable --now wakeful", "systemctl --user daemon-reload"]
    again = terminal.ask("service", "status", "--user")
    assert again.code == 3
    assert "wakeful service install --user" in again.err


def test_where_no_supervisor_answers_the_file_is_written_and_the_commands_are_named(terminal):
    (terminal.folder / "bin" / "systemctl").write_text("#!/bin/sh\nexit 1\n")
    installed = terminal.ask("service", "install", "--user")
    assert installed.code == 0
    assert "systemctl --user daemon-reload && systemctl --user enable --now wakeful" in installed.err
    assert (terminal.home / ".config/systemd/user/wakeful.service").exists()


def test_a_service_runs_with_the_file_of_its_folder(terminal):
    (terminal.folder / "wakeful.yaml").write_text("store: jobs.db\n")
    terminal.ask("service", "install", "--user", "--no-start")
    text = (terminal.home / ".config/systemd/user/wakeful.service").read_text()
    assert f"WorkingDirectory={terminal.folder}\n" in text
    assert f"sqlite:///{terminal.folder}/jobs.db" in text
    assert not (terminal.home / "asked").exists()


def test_doctor_looks_at_the_service_and_says_what_is_wrong_with_it(terminal):
    terminal.ask("add", "job", "--every", "1h", "--", "true")
    terminal.ask("service", "install", "--user")
    checks = {check["name"]: check for check in terminal.ask("doctor", "--json").json["checks"]}
    assert checks["service"]["ok"]
    unit = terminal.home / ".config/systemd/user/wakeful.service"
    unit.write_text(re.sub(r"ExecStart=\S+", "ExecStart=/gone/wakeful", unit.read_text()))
    checks = {check["name"]: check for check in terminal.ask("doctor", "--json").json["checks"]}
    assert not checks["service"]["ok"]
    assert "wakeful service install --user" in checks["service"]["do"]


def test_the_example_is_what_a_system_service_gets():
    service = units.ServiceUnit(
        ("/opt/wakeful/bin/wakeful",), units.STATE, str(units.STATE / "wakeful.db"), system=True
    )
    assert units.systemd_unit(service) == EXAMPLE


@pytest.mark.parametrize("system", [True, False])
def test_systemd_accepts_the_unit_and_finds_little_to_expose(system, tmp_path):
    service = units.ServiceUnit((shutil.which("env"),), tmp_path, "sqlite:///w.db", system=system, user="nobody")
    file = tmp_path / "wakeful.service"
    file.write_text(units.systemd_unit(service))
    if (checker := shutil.which("systemd-analyze")) is not None:
        commands = [[checker, "verify", str(file)]]
        if system:
            commands.append([checker, "security", "--offline=true", "--threshold=25", str(file)])
        for command in commands:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
            assert done.returncode == 0, done.stdout[-300:] + done.stderr


def test_paths_with_spaces_and_signs_stay_what_they_are(tmp_path):
    folder = tmp_path / 'a b %n "c" $x'
    folder.mkdir()
    program = tmp_path / "d e %n $x"
    program.symlink_to(shutil.which("env"))
    service = units.ServiceUnit((str(program),), folder, f"sqlite:///{folder}/w\\.db")
    text = units.systemd_unit(service)
    there = str(folder).replace("%", "%%")
    inside = there.replace('"', '\\"')
    assert f"WorkingDirectory={there}\n" in text
    assert f'Environment="WAKEFUL_DB=sqlite:///{inside}/w\\\\.db"\n' in text
    assert f'ExecStart="{tmp_path}/d e %%n $x" serve\n' in text
    assert units.started_program(text) == str(program)
    file = tmp_path / "wakeful.service"
    file.write_text(text)
    if (checker := shutil.which("systemd-analyze")) is not None:
        done = subprocess.run([checker, "verify", str(file)], capture_output=True, text=True, timeout=300, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_a_service_of_a_user_is_nobody_elses_to_read(terminal):
    terminal.ask("service", "install", "--user", "--no-start")  # the address of its store may have a password
    assert (terminal.home / ".config/systemd/user/wakeful.service").stat().st_mode & 0o777 == 0o600


def test_a_property_list_for_launchd_says_the_same(monkeypatch, tmp_path):
    monkeypatch.setattr(units, "is_mac", lambda: True)
    monkeypatch.setenv("HOME", str(tmp_path))
    service = units.ServiceUnit(("/opt/wakeful/bin/wakeful",), tmp_path, "sqlite:///w.db")
    text = units.written(service)
    about = plistlib.loads(text.encode())
    assert about["ProgramArguments"] == ["/opt/wakeful/bin/wakeful", "serve"]
    assert about["EnvironmentVariables"] == {"WAKEFUL_DB": "sqlite:///w.db"}
    assert about["KeepAlive"]
    assert about["RunAtLoad"]
    assert units.started_program(text) == "/opt/wakeful/bin/wakeful"
    assert units.place(system=False) == tmp_path / "Library/LaunchAgents/org.wakeful.server.plist"
    assert os.fspath(units.place(system=True)).startswith("/Library/LaunchDaemons/")
