"""`token`, `check` and `schema`."""

from __future__ import annotations

import json
import re

import pytest


def test_a_token_is_printed_alone_on_its_line_and_listed_without_itself(wakeful):
    answer = wakeful("token", "create", "fox", "--role", "agent")
    assert (answer.code, answer.err) == (0, "")
    assert re.fullmatch(r"wk_[\w-]{43}\n", answer.out)
    listed = wakeful("token", "list", "--json").json
    assert [(token["name"], token["role"], token["last_used_at"]) for token in listed] == [("fox", "agent", None)]
    table = wakeful("token", "list").out
    assert re.search(r"fox +agent +(just now|\d+s ago) +never +valid", table)
    assert answer.out.strip() not in table + json.dumps(listed)


def test_two_tokens_are_never_the_same(wakeful):
    assert (
        wakeful("token", "create", "a", "--role", "admin").out != wakeful("token", "create", "b", "--role", "admin").out
    )


def test_a_name_is_taken_until_its_token_is_revoked(wakeful):
    assert wakeful("token", "create", "fox", "--role", "viewer").code == 0
    taken = wakeful("token", "create", "fox", "--role", "viewer")
    assert (taken.code, taken.out) == (4, "")
    assert taken.err == "Error: A token named 'fox' already exists: revoke it first, or choose another name.\n"
    assert wakeful("token", "revoke", "fox").out == "Revoked fox\n"
    assert wakeful("token", "create", "fox", "--role", "admin").code == 0
    assert [token["role"] for token in wakeful("token", "list", "--json").json] == ["admin"]
    assert len(wakeful("token", "list", "--all", "--json").json) == 2


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["create", "x", "--role", "boss"], 2, "A token's role is one of viewer, operator, admin, agent, not 'boss'."),
        (["create", " x", "--role", "admin"], 2, "A token's name is a text of 1 to 100 printable characters"),
        (["create", "a\nb", "--role", "admin"], 2, "A token's name is a text of 1 to 100 printable characters"),
        (["create", "x"], 2, "--role"),
        (["revoke", "nobody"], 3, "There is no token named 'nobody'"),
    ],
)
def test_what_cannot_be_done_is_reported_and_nothing_is_made(wakeful, stocked, argv, code, said):
    answer = wakeful("token", *argv)
    assert (answer.code, answer.out) == (code, "")
    assert said in answer.err
    assert wakeful("token", "list", "--all", "--json").json == []


def test_an_empty_listing_says_which_store_was_read_and_makes_none(wakeful, store):
    assert str(store) in wakeful("token", "list").out
    assert not store.exists()
    assert wakeful("token", "revoke", "x").code == 3
    assert not store.exists()


# -- the configuration file -------------------------------------------------------------------------------------------


def test_check_says_that_a_file_is_right(wakeful, here):
    (here / "wakeful.yaml").write_text("server: {port: 8000}\n")
    (here / "below").mkdir()
    answer = wakeful("check")
    assert (answer.code, answer.out, answer.err) == (0, f"{here / 'wakeful.yaml'}: valid\n", "")
    assert wakeful("check", "wakeful.yaml", "--json").json == []


def test_check_says_everything_that_is_wrong(wakeful, here):
    (here / "wakeful.yaml").write_text("stoer: x\nserver: {port: y}\n")
    answer = wakeful("check", "wakeful.yaml")
    assert (answer.code, answer.err) == (1, "wakeful.yaml: 2 mistakes\n")
    assert answer.out.splitlines() == [
        "wakeful.yaml:1:1: There is no key 'stoer'. Did you mean 'store'?",
        "wakeful.yaml:2:10: server.port must be a whole number, not 'y'.",
    ]
    data = wakeful("check", "--json").json
    assert [(fault["line"], fault["column"], fault["path"]) for fault in data] == [
        (1, 1, "stoer"),
        (2, 10, "server.port"),
    ]


def test_check_without_a_file_says_where_it_looked(wakeful, here):
    answer = wakeful("check")
    assert answer.code == 2
    assert f"There is no wakeful.yaml in {here} or above it" in answer.err


def test_the_schema_is_json(wakeful):
    assert wakeful("schema").json["title"] == "Config"


# -- the store of the configuration file ------------------------------------------------------------------------------


def test_every_command_works_on_the_store_the_file_names_from_anywhere_below_it(wakeful, here, monkeypatch):
    (here / "wakeful.yaml").write_text("store: sqlite:///data/jobs.db\n")
    assert wakeful("add", "job", "--every", "1h", "--", "true").code == 0
    assert (here / "data" / "jobs.db").exists()
    (here / "below" / ".wakeful").mkdir(parents=True)
    monkeypatch.chdir(here / "below")
    assert [job["name"] for job in wakeful("list", "--json").json] == ["job"]
    monkeypatch.setenv("WAKEFUL_DB", str(here / "other.db"))
    assert wakeful("list", "--json").json == []


def test_a_file_that_names_no_store_leaves_the_choice_as_it_is(wakeful, here, store):
    (here / "wakeful.yaml").write_text("server: {port: 1}\n")
    assert wakeful("status", "--json").json["store"] == str(store)


def test_a_file_that_cannot_be_read_is_reported_unless_the_store_is_named(wakeful, here, stocked):
    (here / "wakeful.yaml").write_text("store: [half a li")
    answer = wakeful("list")
    assert (answer.code, answer.out) == (1, "")
    assert "wakeful.yaml, line 1: This is not YAML" in answer.err
    assert wakeful("list", "--db", stocked).code == 0


def test_a_password_in_the_file_is_in_no_message(wakeful, here, monkeypatch):
    monkeypatch.setenv("PW", "hunter2")
    (here / "wakeful.yaml").write_text("store: 'postgresql://me:${PW}@127.0.0.1:1/jobs'\n")
    answer = wakeful("status")
    assert answer.code == 1
    assert "hunter2" not in answer.out + answer.err
