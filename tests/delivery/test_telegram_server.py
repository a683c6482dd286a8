"""A bot through the real server and the command line, and what kill -9 leaves of what people wrote."""

from __future__ import annotations

import os
import re
import signal
import sqlite3

import pytest

from tests.cli.terminal import Terminal
from tests.delivery.bot_server import TOKEN, ZOE, bot_server
from tests.waiting import eventually


@pytest.fixture
def bot():
    with bot_server() as made:
        yield made


@pytest.fixture
def terminal(tmp_path, bot):
    made = Terminal(tmp_path)
    made.env |= {"BOT": TOKEN}
    write(tmp_path, bot)
    yield made
    made.close()


def write(folder, bot, more=""):
    (folder / "wakeful.yaml").write_text(
        f'store: sqlite:///t.db\nconnectors:\n  bot: {{type: telegram, token: "${{BOT}}", base_url: "{bot.url}"}}\n'
        f'{more}jobs: {{greet: {{manual: true, command: ["echo", "**hello**"], deliver: bot}}}}\n'
    )


def serve(terminal):
    process = terminal.start("serve", "--port", "0", "--config", "wakeful.yaml")
    process.until("listening on")
    return process


def rows(folder, sql):
    connection = sqlite3.connect(folder / "t.db")
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def test_a_person_is_paired_gets_results_and_is_forgotten(terminal, tmp_path, bot):
    process = serve(terminal)
    code = terminal.ask("connector", "pair", "bot", "--json").json["code"]
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", code)
    bot.write(f"/start {code}")
    bot.until_text("You are paired, as operator")
    assert terminal.ask("connector", "test", "bot").out.startswith("bot took the test message dlv_")
    terminal.ask("run", "greet")
    assert bot.until_text("<b>hello</b>").startswith("greet: success")
    (person,) = terminal.ask("connector", "people", "bot", "--json").json
    assert (person["sender"], person["name"], person["role"]) == (str(ZOE), "Zoe", "operator")
    write(tmp_path, bot, "  disk: {type: file, path: out.jsonl}\n")
    names = eventually(
        lambda: [item["name"] for item in terminal.ask("connector", "list", "--json").json],
        lambda found: len(found) == 2,
    )
    assert names == ["bot", "disk"]
    write(tmp_path, bot, "  disk: {type: nonsense}\n")
    alerts = eventually(lambda: terminal.ask("alert", "list", "--json").json, bool)
    assert [alert["kind"] for alert in alerts] == ["config"]
    assert [item["name"] for item in terminal.ask("connector", "list", "--json").json] == names
    assert "no longer paired" in terminal.ask("connector", "unpair", "bot", str(ZOE)).out
    assert terminal.ask("connector", "unpair", "bot", str(ZOE)).code == 3
    assert terminal.ask("connector", "pair", "disk").code != 0
    process.kill()
    everything = (tmp_path / "t.db").read_bytes()
    assert b"planted" not in everything
    assert code.encode() not in everything


@pytest.mark.parametrize("moment", ["polled", "answered", "confirming"])
@pytest.mark.promise("A10")
def test_what_a_person_wrote_counts_once_whenever_the_server_is_killed(terminal, tmp_path, bot, moment):
    process = serve(terminal)
    code = terminal.ask("connector", "pair", "bot", "--json").json["code"]
    bot.write(f"/start {code}")
    bot.until_text("You are paired")
    bot.until(lambda: bot.polling and not bot.updates)
    last, killed = bot.confirmed, []

    def kill():
        if not killed:
            killed.append(moment)
            os.kill(process.pid, signal.SIGKILL)

    def on_call(method, params):
        # `confirming`: the updates are stored, and the poll that says so is on its way.
        if moment == "confirming" and method == "getUpdates" and int(params["offset"]) > last:
            kill()

    def after_call(method, answer):
        # `answered`: the updates are there to be read, and none, some or all of them are stored.
        if moment == "answered" and method == "getUpdates" and answer.get("result"):
            kill()

    bot.on_call, bot.after_call = on_call, after_call
    if moment == "polled":
        kill()
    for number in range(5):
        bot.write(f"message {number}")
    process.ended()
    bot.on_call = bot.after_call = None
    process = serve(terminal)
    eventually(
        lambda: rows(tmp_path, "SELECT text FROM chat_messages WHERE open = 0 ORDER BY id"),
        lambda found: len(found) >= 5,
    )
    bot.until(lambda: bot.polling and not bot.updates)
    process.kill()
    found = rows(tmp_path, "SELECT text FROM chat_messages ORDER BY id")
    assert [text for (text,) in found] == [f"message {number}" for number in range(5)]
