"""What cannot be undone says so before it is done: in its help, and in a question at a terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

import pytest

FINAL = (["token", "revoke"], ["edit"], ["cancel"], ["retry"])


@pytest.mark.promise("X27")
@pytest.mark.parametrize("command", FINAL, ids=" ".join)
def test_the_help_of_a_command_says_what_cannot_be_undone(wakeful, command):
    said = " ".join(wakeful(*command, "--help").out.replace("│", " ").split())
    assert "It cannot be undone" in said or "it cannot be undone" in said


def at_a_terminal(terminal, said, *argv):
    keyboard, inside = pty.openpty()
    os.write(keyboard, f"{said}\n".encode())
    command = [sys.executable, "-m", "wakeful.cli", *argv]
    try:
        return subprocess.run(
            command, stdin=inside, capture_output=True, text=True, env=terminal.env, cwd=terminal.folder, check=False
        )
    finally:
        os.close(keyboard)
        os.close(inside)


def _key(shown):
    return re.search(r"/ping/(\S+)", shown)[1]


@pytest.mark.promise("X27")
def test_in_a_terminal_revoking_a_token_and_rotating_a_key_ask_first(terminal):
    terminal.ask("token", "create", "laptop", "--role", "viewer")
    terminal.ask("add", "offsite", "--ping", "--every", "1d")
    address = terminal.ask("show", "offsite").out
    cases = {
        ("token", "revoke", "laptop"): "The token laptop will be rejected from now on. It cannot be undone. Go on?",
        ("edit", "offsite", "--rotate-key"): "offsite gets a new key, and pings with the old one are rejected.",
    }
    for argv, question in cases.items():
        refused = at_a_terminal(terminal, "n", *argv)
        assert (refused.returncode, question in refused.stdout + refused.stderr) == (1, True)
    assert terminal.ask("token", "list", "--json").json[0]["name"] == "laptop"
    assert _key(terminal.ask("show", "offsite").out) == _key(address)
    for argv in cases:
        assert at_a_terminal(terminal, "y", *argv).returncode == 0
    assert _key(terminal.ask("show", "offsite").out) != _key(address)
    assert at_a_terminal(terminal, "n", "edit", "offsite", "--rotate-key", "--yes").returncode == 0
    missing = at_a_terminal(terminal, "n", "cancel", "dlv_0000000000000")
    assert "dlv_0000000000000 will not be sent. It cannot be undone." in missing.stdout + missing.stderr
