"""wakeful.yaml: what it may hold, what is said about what it may not, and that secrets stay secret."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wakeful.config.loading import load_config
from wakeful.config.reading import ConfigError, basics_in
from wakeful.config.schema import config_model

Config = config_model()

SECRET = "hunter2-and-more"  # noqa: S105 - a secret that is none


def faults(path, **environ):
    with pytest.raises(ConfigError) as caught:
        load_config(path, environ)
    assert str(caught.value).startswith(str(caught.value.faults[0]))
    return [(fault.line, fault.message) for fault in caught.value.faults]


def test_an_error_names_the_file_to_check_for_the_rest(write):
    path = write("on: 1\noff: 2\n", "my jobs.yaml")
    with pytest.raises(ConfigError, match=rf" \(and 1 more: wakeful check '{re.escape(str(path))}'\)$"):
        load_config(path, {})


# -- what it may hold -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "---\n", "server: {}\n"])
def test_a_file_that_says_nothing_is_a_server_as_built_in(write, text):
    found = load_config(write(text), {})
    assert found.model_dump() == Config().model_dump()
    assert (found.server.host, found.server.port, found.limits.min_interval) == ("127.0.0.1", 7878, 3_600_000)


def test_everything_that_can_be_said_is_understood(write):
    found = load_config(
        write(
            "store: sqlite:///.wakeful/wakeful.db\n"
            "server: {host: 0.0.0.0, port: 0, public_url: https://jobs.example.org,\n"
            "         allowed_hosts: [a.example, 'b:81'], proxies: [10.0.0.5, 'fd00::/64'],\n"
            "         sessions: {url: http://127.0.0.1:3000}}\n"
            "limits: {max_running: 1, min_interval: 5m}\n"
            "defaults: {timezone: Europe/Berlin, catch_up: {within: 2h}}\n"
        ),
        {},
    )
    assert found.store == "sqlite:///.wakeful/wakeful.db"
    assert (found.server.port, found.server.public_url) == (0, "https://jobs.example.org")
    assert (found.server.allowed_hosts, found.server.sessions.url) == (["a.example", "b:81"], "http://127.0.0.1:3000")
    assert found.server.proxies == ["10.0.0.5", "fd00::/64"]
    assert (found.limits.max_running, found.limits.min_interval) == (1, 300_000)
    assert (found.defaults.timezone, found.defaults.job_options()) == (
        "Europe/Berlin",
        {"catch_up": {"within": 7200.0}},
    )


def test_words_mean_what_they_look_like(write):
    """The file's `no` and `on` are texts, as is 22:00: only true and false are truths."""
    assert faults(write("defaults: {timezone: no}")) == [
        (1, "defaults.timezone must be a time zone such as Europe/Berlin, or local, not 'no'.")
    ]
    assert faults(write("on: 1"))[0][1].startswith("There is no key 'on'.")
    assert faults(write("limits: {max_running: 22:00}")) == [
        (1, "limits.max_running must be a whole number, not '22:00'.")
    ]


# -- what it may not --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("stoer: x", [(1, "There is no key 'stoer'. Did you mean 'store'?")]),
        ("server:\n  hots: x", [(2, "There is no key 'hots' in server. Did you mean 'host'?")]),
        ("server:\n  sessions:\n    ulr: x", [(3, "There is no key 'ulr' in server.sessions. Did you mean 'url'?")]),
        (
            "agents: {a: {schedules: {x: {every: 1h, prompt: x, session: ephemeral}}, runner: {start: [x]}}}",
            [(1, "There is no key 'session' in agents.a.schedules.x. It is a key of agents.a: write it there.")],
        ),
        (
            "zzz: 1",
            [
                (
                    1,
                    (
                        "There is no key 'zzz'. Known here: "
                        "agents, alerts, connectors, defaults, env_file, fleet, include, jobs, limits, retention, "
                        "server, store, workflows."
                    ),
                )
            ],
        ),
        ("\n\nworkflows: {}", [(3, "workflows must be a list.")]),
        (
            "limits: {cost_per_day: -2}",
            [(1, "limits.cost_per_day must be at least 0, not -2.")],
        ),
        ("server: {port: abc}", [(1, "server.port must be a whole number, not 'abc'.")]),
        ("server: {port: 70000}", [(1, "server.port must be at most 65535, not 70000.")]),
        ("server: 3", [(1, "server must be a section with keys of its own, such as {port: 7878}, not 3.")]),
        ("server: {allowed_hosts: x}", [(1, "server.allowed_hosts must be a list, not 'x'.")]),
        ("limits: {max_running: 0}", [(1, "limits.max_running must be at least 1, not 0.")]),
        ("store: 5", [(1, "store must be a text, not 5.")]),
        ("defaults: {catch_up: maybe}", [(1, "defaults.catch_up must be 'once' or 'skip', not 'maybe'.")]),
        (
            "defaults: {catch_up: {wihtin: 2h}}",
            [
                (1, "defaults.catch_up.within is missing."),
                (1, "There is no key 'wihtin' in defaults.catch_up. Did you mean 'within'?"),
            ],
        ),
        ("store: a\nstore: b\nfleet: c\nfleet: d", [(2, "'store' is given twice."), (4, "'fleet' is given twice.")]),
        ("- x", [(1, "The file must hold keys and values, such as store: sqlite:///wakeful.db.")]),
        ("x: &a [*a]", [(1, "The file is nested too deeply or repeats itself without end.")]),
        ("? [a]\n: b", [(1, "A key must be a plain text.")]),
        ("store: !secret x", [(1, "The tag !secret means nothing here.")]),
    ],
)
def test_a_mistake_is_reported_with_its_line_and_the_nearest_right_name(write, text, expected):
    assert faults(write(text)) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("server: {public_url: jobs.example.org}", "must be an address such as https://"),
        ("server: {public_url: 'https://a/b'}", "without a path"),
        ("server: {public_url: 'https://me:pw@a'}", "without a user or password"),
        ("server: {allowed_hosts: ['*']}", "server.allowed_hosts.0 must be a host name"),
        ("server: {proxies: [proxy.internal]}", "server.proxies.0 must be an address such as 10.0.0.5, or a network"),
        ("server: {sessions: {url: 'ftp://a'}}", "server.sessions.url must be an address"),
        ("limits: {min_interval: 5x}", "must be a duration such as 30m or 1h"),
        ("limits: {min_interval: -4}", "must be a duration such as 30m or 1h"),
        ("a: [1", "This is not YAML"),
        ("server: {port: 1\nstore: x", "This is not YAML"),
        ("\0", "This is not YAML"),
        ("store: !!python/object/apply:os.system [true]", "means nothing here"),
        ("[" * 5000, "nested deeper"),
    ],
)
def test_what_cannot_be_used_is_reported_in_a_sentence(write, text, words):
    found = faults(write(text))
    assert any(words in message for _, message in found)


def test_a_small_file_cannot_become_a_huge_one(write):
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))
    assert "repeats itself without end" in faults(write(bomb))[0][1]


def test_every_mistake_is_reported_in_the_order_of_the_file(write):
    found = faults(write("limits: {max_running: x}\nserver:\n  port: y\n  hots: z\nstoer: 1\n"))
    assert [line for line, _ in found] == [1, 3, 4, 5]


def test_files_that_are_none_are_reported(tmp_path, write):
    assert "cannot be read" in faults(tmp_path / "none.yaml")[0][1]
    assert "cannot be read" in faults(tmp_path)[0][1]
    (tmp_path / "bytes").write_bytes(b"store: \xff")
    assert faults(tmp_path / "bytes") == [(None, "The file is not UTF-8 text.")]
    assert "larger than 1 MiB" in faults(write("#" * 2_000_000))[0][1]


plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10) | st.sampled_from(["once", "1h"])
KEYS = st.sampled_from(
    ["store", "server", "limits", "defaults", "port", "host", "sessions", "url", "catch_up", "within"]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.recursive(plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4)))
def test_any_data_is_a_configuration_or_a_list_of_mistakes(tmp_path, value):
    path = Path(tmp_path / "any.yaml")
    path.write_text(yaml.safe_dump(value, allow_unicode=True), encoding="utf-8")
    try:
        found = load_config(path, {})
    except ConfigError as error:
        messages = [fault.message for fault in error.faults]
    else:
        messages = []
        assert isinstance(found, Config)
    assert [text for text in messages if not text.endswith((".", "?")) or "\n" in text] == []


# -- what is filled in ------------------------------------------------------------------------------------------------


def test_variables_and_files_are_filled_in(write, tmp_path):
    write("three.example\n", "host.txt")
    text = "store: 'postgresql://me:${PW}@db/jobs'\nserver: {port: '${PORT}', allowed_hosts: ['${file:host.txt}']}\n"
    found = load_config(write(text), {"PW": SECRET, "PORT": "81"})
    assert found.store == f"postgresql://me:{SECRET}@db/jobs"
    assert (found.server.port, found.server.allowed_hosts) == (81, ["three.example"])


def test_two_dollars_are_one(write):
    assert load_config(write("store: 'a$${b}c'"), {}).store == "a${b}c"


def test_an_env_file_is_read_and_the_environment_comes_first(write):
    write("# a comment\nexport A=one\nB = 'two words' \nC=three # not this\nD=\"#four\"\n\n", "my.env")
    path = write("env_file: my.env\nstore: '${A}|${B}|${C}|${D}'")
    assert load_config(path, {}).store == "one|two words|three|#four"
    assert load_config(path, {"A": "first"}).store == "first|two words|three|#four"
    assert basics_in(path, {}).store == "one|two words|three|#four"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("store: ${NOPE}", "store needs ${NOPE}, which is not set: set it in the environment or in env_file."),
        (
            "server:\n  host: '${a b}'",
            "server.host has ${a b}: write ${NAME}, ${file:/path}, or $${ for a literal ${.",
        ),
    ],
)
def test_what_cannot_be_filled_in_is_reported(write, text, message):
    assert faults(write(text))[0][1] == message


def test_a_missing_file_is_reported_where_it_is_named(write, tmp_path):
    path = write("\nstore: ${file:none.txt}")
    assert faults(path) == [
        (2, f"store needs the file {tmp_path / 'none.txt'}, which cannot be read (No such file or directory).")
    ]
    assert "env_file" in faults(write("env_file: none.env"))[0][1]


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("pipe", "not a regular file"),
        ("device", "not a regular file"),
        ("folder", "Is a directory"),
        ("huge", "larger than 64 KiB"),
        ("bytes", "not a text file"),
    ],
)
def test_a_file_that_cannot_be_a_value_is_refused_with_its_place_and_the_reason(write, tmp_path, kind, reason):
    value = tmp_path / "value"
    if kind == "pipe":
        os.mkfifo(value)
    elif kind == "device":
        value.symlink_to("/dev/zero")
    elif kind == "folder":
        value.mkdir()
    else:
        value.write_bytes(b"x" * (64 * 1024 + 1) if kind == "huge" else b"\xff")
    path = write("\nserver:\n  sessions:\n    token: ${file:value}\n")
    assert faults(path) == [(4, f"server.sessions.token needs the file {value}, which cannot be read ({reason}).")]


def test_a_file_of_64_kib_is_a_value(write, tmp_path):
    (tmp_path / "value").write_text("x" * 65_535 + "\n")
    assert load_config(write("store: ${file:value}"), {}).store == "x" * 65_535


def test_an_env_file_is_bounded_and_may_be_a_pipe(write, tmp_path):
    path = write("env_file: my.env\nstore: ${A}")
    (tmp_path / "my.env").symlink_to("/dev/zero")
    assert faults(path) == [(1, f"env_file {tmp_path / 'my.env'} cannot be read (larger than 1024 KiB).")]
    (tmp_path / "my.env").unlink()
    os.mkfifo(tmp_path / "my.env")
    writer = threading.Thread(target=lambda: (tmp_path / "my.env").write_text("A=1\n"))
    writer.start()
    assert load_config(path, {}).store == "1"
    writer.join()


def test_a_line_of_an_env_file_that_cannot_be_read_is_not_repeated(write):
    write(f"A=1\n{SECRET}\n", "my.env")
    assert faults(write("env_file: my.env\nstore: ${A}")) == [(2, "This line is not NAME=value.")]


@pytest.mark.parametrize(
    "text",
    [
        "server: {port: '${PW}'}",
        "server: {public_url: '${PW}'}",
        "server: {allowed_hosts: ['*${PW}']}",
        "server: {sessions: {url: '${PW}'}}",
        "server: '${PW}'",
        "limits: {min_interval: '${PW}'}",
        "limits: {max_running: '${PW}'}",
        "defaults: {timezone: '${PW}'}",
        "defaults: {catch_up: '${PW}'}",
        "defaults: {catch_up: {within: '${PW}'}}",
        "nothing: '${PW}'",
        "nothing: ['${PW}']",
    ],
)
def test_a_secret_is_never_shown(write, text):
    assert SECRET not in str(faults(write(text), PW=SECRET))
