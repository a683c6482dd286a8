"""docs/http-jobs.md cannot lie: what it shows on the command line and in Python happens, to a server on loopback."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import yaml

from tests.cli.terminal import Terminal
from tests.cli.test_documentation import first_words
from wakeful.config.schema import config_model
from wakeful.domains.http.spec import _CHECKS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "http-jobs.md").read_text(encoding="utf-8")


def block(language, site):
    """The first block of a language, with our server in place of the example's."""
    return re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)[1].replace("https://example.org", site.url)


def test_the_commands_do_what_is_shown(tmp_path, site):
    terminal = Terminal(tmp_path)
    steps = re.findall(r"^\$ (wakeful .+)\n((?:[^$].*\n)+)", block("console", site), re.MULTILINE)
    assert len(steps) == 5
    for line, shown in steps:
        answer = terminal.ask(*shlex.split(line)[1:])
        assert answer.code == 0, answer.err
        assert set(first_words(shown)) <= set(first_words(answer.out) + first_words(answer.err)), line
    assert [one["path"] for one in site.seen] == ["/health"]


def test_the_program_runs_as_printed(tmp_path, site):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", block("python", site)],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.stdout == "success 200 all is well\n\n", done.stderr


def test_the_configuration_is_one():
    request, server = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert yaml.safe_load(request)["jobs"]["health"]["url"] == "https://example.org/health"
    config = config_model().model_validate(yaml.safe_load(server))
    assert config.server.outbound.policy().allow[0] == "10.20.0.0/16"


def test_every_field_of_the_payload_is_on_the_page():
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE) == list(_CHECKS)
