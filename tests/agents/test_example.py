"""examples/fleet shows life within a minute."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import httpx

from tests.cli.terminal import PATIENCE, Terminal
from wakeful.clock import SystemClock

FLEET = Path(__file__).resolve().parents[2] / "examples" / "fleet"


def test_the_fleet_of_the_example_answers_and_works(tmp_path):
    terminal = Terminal(tmp_path)
    try:
        shutil.copytree(FLEET, tmp_path, dirs_exist_ok=True)
        assert terminal.ask("check")[::2] == (0, "")  # nothing to warn of
        assert terminal.ask("apply").code == 0
        assert terminal.ask("work", "add", "builder", "Mend the roof").code == 0
        server = terminal.start("serve", "--port", "0", "--config", "wakeful.yaml")
        url = re.search(r"http://\S+:\d+", server.until("listening on"))[0]
        bell = {
            "headers": {"Authorization": "Bearer a-long-random-text"},
            "content": "The post is here.",
            "trust_env": False,
        }
        assert httpx.post(f"{url}/hooks/doorman/bell", **bell).status_code == 202
        replies = tmp_path / "replies.jsonl"
        deadline = SystemClock().boot() + 2 * PATIENCE * 1000
        wanted = {
            "builder did next: title: Mend the roof",
            "doorman did bell: [payload]: The post is here.",
            "I looked around. Last line I was asked: - [cron] Water the plants.",
        }
        said = set()
        while not wanted <= said and SystemClock().boot() < deadline:
            lines = replies.read_text().splitlines() if replies.exists() else []
            said = {json.loads(line)["text"] for line in lines}
        assert wanted <= said
    finally:
        terminal.close()
