"""Hostile requests: refused with the right status, early, and without a trace in the store."""

from __future__ import annotations

import json
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.terminal import PATIENCE
from wakeful.surfaces.api.bodies import MOST_PARTS, too_deep, too_many_parts
from wakeful.surfaces.api.guard import Name, read_name

JOB = {"name": "planted", "trigger": {"every": "1d"}, "kind": "command", "payload": {"argv": ["true"]}}
MIB = 1024 * 1024


@pytest.fixture
def unchanged(server):
    """Whatever the test does, the store holds afterwards what it held before."""

    def held():
        return [
            server.terminal.ask(*words, "--json").json for words in (["list"], ["runs"], ["token", "list", "--all"])
        ]

    def without_use(parts):
        for token in parts[2]:
            token.pop("last_used_at")
        return parts

    before = without_use(held())
    yield
    assert without_use(held()) == before
    with server.client() as client:
        assert client.get("/livez").status_code == 200


def refused(answer, status, code):
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    data = answer.json()
    assert (data["status"], data["code"]) == (status, code)
    assert data["error"].endswith(".")
    assert {"type", "title", "detail"} <= set(data)


def raw(server, *parts: bytes, more: bool = False) -> bytes:
    """What the server answers to these bytes; with `more` it must not wait for the rest."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as link:
        for part in parts:
            link.sendall(part)
        if not more:
            link.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := link.recv(65536):
            answer += piece
    return answer


# -- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1.evil.example:{port}", "127.0.0.1:1", "localhost@evil", "*"],
)
def test_a_foreign_host_is_refused_whatever_the_token(server, client, unchanged, host):
    for method, path in (("GET", "/api/me"), ("GET", "/healthz"), ("POST", "/api/jobs")):
        answer = client.request(method, path, headers={"Host": host.format(port=server.port)})
        refused(answer, 403, "forbidden_host")


@pytest.mark.parametrize(
    "host", ["127.0.0.1:{port}", "localhost:{port}", "[::1]:{port}", "LOCALHOST:{port}", "localhost:1"]
)
def test_names_of_this_machine_are_known(server, host):
    with server.client() as client:
        assert client.get("/healthz", headers={"Host": host.format(port=server.port)}).status_code == 200


def test_a_request_without_a_host_is_refused(server, unchanged):
    assert raw(server, b"GET /healthz HTTP/1.0\r\n\r\n").split(b"\r\n")[0].endswith(b"403 Forbidden")
    assert b" 400 " in raw(server, b"GET /healthz HTTP/1.1\r\n\r\n").split(b"\r\n")[0]


@given(st.text(max_size=40))
def test_any_text_can_be_read_as_a_name_or_not(text):
    name = read_name(text)
    assert name is None or (name.host and "/" not in text)


def test_a_name_is_a_host_and_perhaps_a_port():
    assert read_name("Example.org:80") == Name("example.org", 80)
    assert read_name("[::1]:80") == Name("::1", 80)
    assert read_name("example.org", 443) == Name("example.org", 443)
    assert [read_name(text) for text in ("", "a b", "a:b", "user@a", "a/b", "a:99999", "[::1")] == [None] * 7


# -- pages of others --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1.evil.example", "file://", "http://127.0.0.1:1"]
)
def test_a_foreign_page_changes_nothing(client, unchanged, origin):
    refused(client.post("/api/jobs", json=JOB, headers={"Origin": origin}), 403, "forbidden_origin")


def test_a_page_of_another_site_that_hides_its_origin_changes_nothing(client, unchanged):
    for site in ("cross-site", "same-site"):
        refused(client.post("/api/jobs", json=JOB, headers={"Sec-Fetch-Site": site}), 403, "forbidden_origin")


def test_a_cookie_from_another_origin_opens_nothing_not_even_for_reading(server, unchanged):
    headers = {"Origin": "http://evil.example", "Cookie": "wakeful=stolen"}
    with server.client() as client:
        refused(client.get("/api/me", headers=headers), 403, "forbidden_origin")
        refused(client.post("/api/jobs", json=JOB, headers=headers), 403, "forbidden_origin")
        refused(client.get("/api/me", headers={"Cookie": "wakeful=stolen"}), 401, "unauthorized")


@pytest.mark.parametrize(
    "kind",
    [
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/plain",
        "application/jsonp",
        "",
        "a",
    ],
)
def test_a_form_of_another_site_is_refused(client, unchanged, kind):
    answer = client.post("/api/jobs", content=json.dumps(JOB), headers={"Content-Type": kind})
    refused(answer, 415, "not_json")


def test_our_own_page_and_programs_without_an_origin_get_past_the_guard(server, client):
    own = {"Origin": server.url, "Sec-Fetch-Site": "same-origin"}
    for headers in (own, {}):
        assert client.post("/api/nothing", json={}, headers=headers).status_code == 404


def test_no_answer_lets_other_origins_read_it(client):
    for answer in (client.get("/api/me", headers={"Origin": "http://evil.example"}), client.options("/api/me")):
        assert not [name for name in answer.headers if name.startswith("access-control")]


# -- bodies -----------------------------------------------------------------------------------------------------------


def test_a_huge_body_is_refused_before_it_is_read(client, unchanged):
    sent = []

    def chunks():
        for _ in range(100):
            sent.append(MIB)
            yield b" " * MIB

    refused(client.post("/api/jobs", content=chunks(), headers={"Content-Type": "application/json"}), 413, "too_large")
    assert len(sent) < 50  # what the system's buffers took, not what was offered


def announced(server, length, token):
    """The head of a request whose body never comes."""
    return (
        f"POST /api/jobs HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Length: {length}\r\n"
        f"Content-Type: application/json\r\nAuthorization: Bearer {token}\r\n\r\n"
    )


@pytest.mark.parametrize("token", ["wk_nobody", ""])
def test_a_wrong_token_is_refused_before_a_byte_of_the_body_is_there(server, unchanged, token):
    answer = raw(server, announced(server, 1000, token).encode(), more=True)
    assert b" 401 " in answer.split(b"\r\n")[0]
    assert b"connection: close" in answer.lower()


@pytest.mark.parametrize("token", ["0" * 64, "wrong"])
def test_a_report_with_a_wrong_token_is_refused_before_a_byte_of_it_is_there(server, unchanged, token):
    head = announced(server, 1000, "").replace("/api/jobs", f"/api/runs/run_1hbmhnjhtmxy3/complete?token={token}")
    answer = raw(server, head.encode(), more=True)
    assert b" 403 " in answer.split(b"\r\n")[0], answer


@pytest.mark.parametrize("body", [b"{not json", b"\xff", b"[" * 5000, b'{"a": 1, "a": 2}', b"x=1"])
def test_a_refusal_without_a_token_says_nothing_about_the_body(server, unchanged, body):
    with server.client() as anonymous:
        answer = anonymous.post("/api/jobs", content=body, headers={"Content-Type": "text/plain"})
    refused(answer, 401, "unauthorized")


def test_a_body_that_says_it_is_huge_is_refused_unseen(server, unchanged):
    answer = raw(server, announced(server, 104857600, server.token).encode(), more=True)
    assert b" 413 " in answer.split(b"\r\n")[0]
    assert b"connection: close" in answer.lower()


@pytest.mark.parametrize("piece", [("[", "]"), ('{"a":', "1}"), ('[{"a":[', "]}]")])
def test_json_ten_thousand_levels_deep_is_refused_unparsed(client, unchanged, piece):
    body = piece[0] * 10_000 + piece[1] * 10_000
    answer = client.post("/api/jobs", content=body, headers={"Content-Type": "application/json"})
    refused(answer, 400, "too_deep")


@pytest.mark.promise("X24")
@pytest.mark.parametrize("part", ["[]", "{}", '{"a":[]}'])
def test_json_of_very_many_parts_is_refused_unparsed(client, unchanged, part):
    body = f'{{"name": "a", "every": "6h", "payload": [{part}{f",{part}" * MOST_PARTS}]}}'
    answer = client.post("/api/jobs", content=body, headers={"Content-Type": "application/json"})
    refused(answer, 413, "too_large")


def test_brackets_in_a_text_are_no_parts():
    assert not too_many_parts(json.dumps({"payload": "[{" * MOST_PARTS}).encode())
    assert not too_many_parts(("[" + "[]," * (MOST_PARTS - 2) + "[]]").encode())
    assert too_many_parts(("[" + "[]," * (MOST_PARTS - 1) + "[]]").encode())


def test_json_in_another_encoding_whose_nesting_cannot_be_seen_is_refused(client, unchanged):
    deep = "[" * 900 + "]" * 900
    body = ('{"name": "a", "every": "6h", "x": "\u2200", "payload": ' + deep + ', "y": "\u2200"}').encode("utf-16-le")
    answer = client.post("/api/jobs", content=body, headers={"Content-Type": "application/json"})
    refused(answer, 400, "invalid_json")


@pytest.mark.parametrize("body", [b"\xff\xfe", b'{"name": "\xed\xa0\x80"}'])
def test_a_body_that_is_no_utf_8_is_refused(client, unchanged, body):
    answer = client.post("/api/jobs", content=body, headers={"Content-Type": "application/json"})
    refused(answer, 400, "invalid_json")


@given(
    st.recursive(
        st.text() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=40
    )
)
def test_depth_is_counted_as_a_parser_would(value):
    def depth(part):
        if isinstance(part, list | dict):
            return 1 + max(map(depth, part.values() if isinstance(part, dict) else part), default=0)
        return 0

    for body in (json.dumps(value).encode(), json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")):
        for most in range(5):
            assert too_deep(body, most) == (depth(value) > most)


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        (b"[" * MIB, True),
        (b"[{" * (MIB // 2), True),
        (b"[]" * (MIB // 2), False),
        (b'"\\"' * (MIB // 3), False),
        (b'"' + b'\\"[' * (MIB // 3) + b"\\", False),
        (b'["' + b'\\"[' * (MIB // 3) + b"\\", True),
    ],
)
def test_a_mebibyte_made_to_be_slow_is_counted_as_fast_as_any(body, verdict):
    assert too_deep(body, 64) is verdict  # time that grew with the square of the length would run into the limit


# -- addresses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/api/jobs/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/api/schedule/..%2f..%2fwakeful.db",
        "/../../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
    ],
)
def test_a_path_that_climbs_leads_nowhere(server, client, unchanged, path):
    head = (
        f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\nConnection: close\r\n\r\n"
    )
    answer = raw(server, head.encode(), more=True)
    assert b" 404 " in answer.split(b"\r\n")[0]
    assert b"root:" not in answer


@pytest.mark.parametrize("path", ["/api/jobs/a%00b", "/api/me?name=%00", "/%00", "/healthz?%00=1"])
def test_a_nul_in_an_address_is_refused(client, unchanged, path):
    refused(client.get(path), 400, "bad_address")


@pytest.mark.parametrize("path", ["/%ff", "/%ed%a0%80", "/api/%c3%28", "/api/" + "x" * 20_000])
def test_an_address_of_nonsense_is_not_found_or_refused_and_breaks_nothing(client, unchanged, path):
    assert client.get(path).status_code in (400, 404)


def test_unknown_addresses_and_wrong_methods_are_answered_in_the_one_shape(client):
    refused(client.get("/nothing"), 404, "not_found")
    refused(client.get("/api/me/"), 404, "not_found")
    answer = client.post("/api/me")
    refused(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == "GET, HEAD"
    assert client.post("/api/jobs/some-job").headers["allow"] == "DELETE, GET, HEAD, PATCH, PUT"
    refused(client.options("/api/me"), 405, "method_not_allowed")
    for path in ("/api/work/wrk_1", "/api/workflows/some/events", "/api/schedule"):
        answer = client.delete(path)
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD"), path
        assert "use GET, HEAD" in answer.json()["error"]


def test_head_is_get_without_a_body(client):
    got, head = client.get("/api/me"), client.head("/api/me")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == got.headers["content-length"]


def test_every_answer_carries_what_browsers_must_know(client):
    for path in ("/api/me", "/healthz", "/nothing", "/api/docs", "/api/openapi.json"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "server" not in headers


# -- connections ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "garbage", [b"\0" * 100, b"GET\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/9.9\r\n\r\n", b"a" * 200_000]
)
def test_garbage_is_answered_or_hung_up_on_and_no_other_client_notices(server, client, unchanged, garbage):
    assert client.get("/api/me").status_code == 200
    try:
        answer = raw(server, garbage)
    except OSError:  # hung up on while still talking
        answer = b""
    assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
    assert client.get("/api/me").status_code == 200


def test_a_request_cut_off_in_its_middle_leaves_nothing_behind(server, unchanged):
    head = (
        "POST /api/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\nContent-Type: application/json\r\n\r\n{"
    )
    link = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
    link.sendall(head.encode())
    link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # gone without a goodbye
    link.close()
    with server.client() as another:
        assert another.get("/healthz").status_code == 200
