"""Configuration files of every released version: what they say is still understood."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.terminal import Terminal

FILES = Path(__file__).parents[1] / "data" / "files"
SECRETS = "SESSIONS_TOKEN=one\nPASSWORD=two\nBACKUP_TOKEN=three\n"


@pytest.fixture
def terminal(tmp_path):
    (tmp_path / ".env").write_text(SECRETS)
    (tmp_path / ".env").chmod(0o600)
    (tmp_path / "agent").mkdir()
    return Terminal(tmp_path)


@pytest.mark.promise("X33")
@pytest.mark.parametrize("file", sorted(FILES.iterdir()), ids=lambda path: path.stem)
def test_a_file_of_a_released_version_is_valid(file, terminal):
    (terminal.folder / "wakeful.yaml").write_text(file.read_text(encoding="utf-8"))
    answer = terminal.ask("check")
    assert answer.code == 0, answer.out + answer.err
    assert answer.out.splitlines()[0].endswith("wakeful.yaml: valid")


@pytest.mark.promise("X33")
def test_what_a_released_version_accepted_and_this_one_does_not_is_refused_with_what_to_do(terminal):
    text = (FILES / "0.2.0.yaml").read_text(encoding="utf-8").replace("open-sesame-at-night", "open-sesame")
    (terminal.folder / "wakeful.yaml").write_text(text)
    answer = terminal.ask("check")
    assert answer.code == 1
    assert "make one with openssl rand -hex 32" in answer.out + answer.err
