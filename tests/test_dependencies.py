"""What Wakeful is built of and runs with: declared, bounded where it must be, and locked with hashes."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.house.source import imports, modules

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCKS = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "requirements").glob("*.txt")}
DECLARED = {
    requirement.name: requirement
    for line in [
        *PROJECT["project"]["dependencies"],
        *(line for extra in PROJECT["project"]["optional-dependencies"].values() for line in extra),
    ]
    for requirement in [Requirement(line)]
}
#: Modules whose distribution has another name; pydantic pins its core exactly.
NAMED = {
    "yaml": "pyyaml",
    "prometheus_client": "prometheus-client",
    "pydantic_core": "pydantic",
    "opentelemetry": "opentelemetry-sdk",
}


def pinned(lock):
    found = re.findall(r"^([\w.-]+)==([^\s;]+)", LOCKS[lock], re.MULTILINE)
    return {canonicalize_name(name): number for name, number in found}


def test_every_module_that_is_imported_from_elsewhere_is_declared():
    found = {name.partition(".")[0] for module in modules() for name, _ in imports(module)}
    others = found - sys.stdlib_module_names - {"wakeful", "__future__"}
    assert {NAMED.get(name, name) for name in others} <= DECLARED.keys()


def test_every_lock_is_a_part_of_the_one_for_development():
    whole = pinned("dev").items()
    assert sorted(LOCKS) == ["build", "dev", "run", "service"]
    assert all(pinned(name).items() <= whole for name in LOCKS)
    assert pinned("run").items() <= pinned("service").items()
    assert {canonicalize_name(name) for name in DECLARED} <= pinned("service").keys()


def test_the_pins_keep_to_what_is_declared():
    for name, requirement in DECLARED.items():
        assert requirement.specifier.contains(pinned("service")[canonicalize_name(name)]), name


def test_the_build_backend_is_the_one_that_is_locked():
    [backend] = PROJECT["build-system"]["requires"]
    assert backend == f"hatchling=={pinned('build')['hatchling']}"


def test_a_version_of_h11_that_misreads_requests_is_not_allowed():
    assert not DECLARED["h11"].specifier.contains("0.14.0")


def test_the_class_of_uvicorn_that_is_extended_is_there_and_its_version_is_bounded():
    from uvicorn.protocols.http.h11_impl import H11Protocol
    from uvicorn.server import ServerState

    from wakeful.surfaces.api.connections import BoundedProtocol, Connections

    assert issubclass(BoundedProtocol, H11Protocol)
    assert issubclass(Connections, ServerState)
    replaced = {"connection_made", "connection_lost", "data_received", "on_response_complete", "resume_writing"}
    used = {"send_400_response", "_unset_keepalive_if_required"}
    assert (replaced | used) <= vars(H11Protocol).keys()
    assert replaced <= vars(BoundedProtocol).keys()
    installed = version("uvicorn")
    major, minor = map(int, installed.split(".")[:2])
    assert DECLARED["uvicorn"].specifier.contains(installed)
    assert not DECLARED["uvicorn"].specifier.contains(f"{major}.{minor + 1}.0"), "nobody has tried that one"


@pytest.mark.parametrize("file", ["docs/service.md", "examples/service/Containerfile", "examples/cluster/compose.yaml"])
def test_what_guides_install_is_locked_by_hashes(file):
    commands = re.findall(r"^.*/?pip install (-.*)$", (ROOT / file).read_text(), re.MULTILINE)
    locked = [part for part in commands if "--require-hashes" in part]
    assert locked
    assert all("requirements/service.txt" in part and "requirements/build.txt" in part for part in locked)
    assert all("--no-deps" in part and "--no-build-isolation" in part for part in commands if part not in locked)
