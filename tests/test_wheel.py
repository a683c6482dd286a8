"""What running needs: `make run` installs it, and the wheel of `make wheel` runs with it and nothing else."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from importlib.metadata import distribution
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LOCKS = {name: (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8") for name in ("run", "dev")}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TOOLS = [each for group in PROJECT["dependency-groups"].values() for each in group if isinstance(each, str)]

# What an installer writes into bin/wakeful.
WAKEFUL = """
import sys
from importlib.metadata import entry_points
(script,) = entry_points(group="console_scripts", name="wakeful")
sys.exit(script.load()())
"""


def pins(lock):
    """Each package with its version, condition and hashes."""
    return dict(re.findall(r"^([\w.-]+)(==(?:.*\\\n)+.*)", LOCKS[lock], re.MULTILINE))


def names(requirements):
    return {re.match(r"[\w.-]+", requirement)[0].lower() for requirement in requirements}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=300)
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


def test_the_wheel_has_every_file_of_the_package(wheel):
    package = ROOT / "src"
    files = [path for path in (package / "wakeful").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    packed = [name for name in wheel.namelist() if ".dist-info/" not in name]
    assert sorted(packed) == sorted(str(path.relative_to(package)) for path in files)
    assert {"wakeful/py.typed", "wakeful/store/schema/0001_kernel.sql"} <= {*packed}


def test_the_wheel_requires_what_running_needs_and_no_test_tools(wheel):
    (metadata,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    required = Parser().parsestr(wheel.read(metadata).decode()).get_all("Requires-Dist")
    assert names(line for line in required if "extra ==" not in line) == names(PROJECT["project"]["dependencies"])
    assert not names(required) & names(TOOLS)


def test_the_lock_for_running_is_the_part_of_the_other_that_running_needs():
    assert pins("run").items() <= pins("dev").items()
    assert names(PROJECT["project"]["dependencies"]) <= pins("run").keys()
    assert not names(TOOLS) & pins("run").keys()


def test_make_run_installs_the_lock_for_running_and_no_other(tmp_path):
    command = ["make", "--no-print-directory", "--dry-run", f"VENV={tmp_path / 'env'}", "run"]
    told = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=300).stdout
    assert {*re.findall(r"--requirement (\S+)", told)} == {"requirements/run.txt"}
    assert "--editable" not in told
    assert told.splitlines()[-1].endswith("-m wakeful.cli demo")


def test_the_wheel_runs_the_demo_with_the_packages_of_the_lock_alone(wheel, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True, timeout=300)
    (packages,) = (tmp_path / "env").glob("lib/python*/site-packages")
    wheel.extractall(packages)
    for name in (name for name, pin in pins("run").items() if "sys_platform == 'win32'" not in pin):
        lend(name, packages)
    command = [tmp_path / "env" / "bin" / "python", "-I", "-c", WAKEFUL, "demo", "--no-open"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as demo:
        first = demo.stdout.readline()
        demo.send_signal(signal.SIGINT)
        rest = demo.stdout.read()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/in/\w+\n", first), first + rest
    assert (demo.returncode, rest.splitlines()[-1]) == (0, "The demo is over; its store is gone.")


def lend(name, packages):
    """Put an installed package into another environment, by links."""
    installed = distribution(name)
    for top in {file.parts[0] for file in installed.files} - {"..", "__pycache__"}:
        (packages / top).symlink_to(Path(os.fspath(installed.locate_file(top))))
