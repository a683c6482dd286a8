"""Where redirects lead: never to a private address that is not allowed, and never with another host's headers."""

from __future__ import annotations

import asyncio
import ssl
import subprocess

import pytest

from tests.http.targets import target
from tests.http.test_requests import ask
from wakeful.clock import SystemClock
from wakeful.domains.http import HttpSettings
from wakeful.domains.http.sending import HttpSender, SendingFailed
from wakeful.domains.http.spec import RequestSpec
from wakeful.errors import OutboundRefused
from wakeful.outbound import OutboundPolicy


class Names:
    """A name server of a few lines that remembers what it was asked."""

    def __init__(self, **names):
        self.names = {name.replace("_", "."): answers for name, answers in names.items()}
        self.asked = []

    async def __call__(self, host, _port):
        self.asked.append(host)
        answers = self.names.get(host, [[host]])
        return answers.pop(0) if len(answers) > 1 else answers[0]


def send(payload, allow=(), names=None):
    settings = HttpSettings(policy=OutboundPolicy(tuple(allow)), resolve=names or Names())
    spec = RequestSpec.from_payload(payload)
    return asyncio.run(HttpSender(settings, SystemClock()).send(spec))


def test_a_redirect_is_followed_and_counted(site):
    run = ask({"url": f"{site.url}/to?url=/ok"})
    assert (run.output["status"], run.output["redirects"]) == (200, 1)
    assert run.output["url"] == f"{site.url}/ok"


def test_a_redirect_that_is_refused_is_the_answer(site):
    run = ask({"url": f"{site.url}/to?url=/ok", "follow_redirects": False})
    assert run.outcome == "error"
    assert "follow_redirects is false" in run.error
    assert len(site.seen) == 1


def test_a_key_in_a_redirect_is_not_kept(site):
    run = ask({"url": f"{site.url}/to?url=/ok?token=very-secret", "expect": 302})
    assert run.output["headers"]["location"] == "/ok?token=***"


def test_a_redirect_with_a_space_in_its_path_is_followed(site):
    send({"url": f"{site.url}/to?url=/echo/a%20b"})
    assert site.seen[-1]["path"] == "/echo/a%20b"


def test_redirects_end(site):
    run = ask({"url": f"{site.url}/loop"})
    assert "redirect number 6" in run.error
    assert len(site.seen) == 6


@pytest.mark.parametrize("place", ["ftp://127.0.0.1/", "file:///etc/passwd", "http://exa mple.org/", "http://[::1"])
def test_a_redirect_to_what_is_no_web_address_is_refused(site, place):
    with pytest.raises(SendingFailed, match="redirects to an address that"):
        send({"url": f"{site.url}/to?url={place.replace(' ', '%20')}"})


@pytest.mark.parametrize(
    "place",
    [
        "http://169.254.169.254/latest/",
        "http://10.0.0.1/",
        "http://0x7f000001:9/",
        "http://[::1]:9/",
        "http://meta.example/",
    ],
)
def test_a_trusted_job_is_not_redirected_into_a_private_network(site, place):
    names = Names(meta_example=[["169.254.169.254"]])
    with pytest.raises(OutboundRefused, match=r"server\.outbound\.allow"):
        send({"url": f"{site.url}/to?url={place}"}, names=names)


def test_a_guarded_job_reaches_only_what_is_configured(site):
    guarded = {"url": f"{site.url}/ok", "guarded": True}
    with pytest.raises(OutboundRefused, match="loopback"):
        send(guarded)
    assert site.seen == []
    assert send(guarded, allow=["127.0.0.1"]).status == 200


def test_a_guarded_job_is_judged_by_what_its_name_resolves_to(site):
    names = Names(public_example=[["127.0.0.1"]])
    with pytest.raises(OutboundRefused, match=r"public\.example \(127\.0\.0\.1\) is a loopback address"):
        send({"url": f"http://public.example:{site.port}/ok", "guarded": True}, names=names)
    assert site.seen == []


def test_the_connection_goes_to_the_address_that_was_checked(site):
    """A name that answers otherwise the second time is not asked a second time."""
    with target("127.0.0.2") as allowed:
        names = Names(rebind_example=[["127.0.0.2"], ["127.0.0.1"]])
        url = f"http://rebind.example:{allowed.port}/echo"
        reply = send({"url": url, "guarded": True}, allow=["127.0.0.2"], names=names)
        assert reply.status == 200
        assert names.asked == ["rebind.example"]
        assert allowed.seen[0]["headers"]["Host"] == f"rebind.example:{allowed.port}"
        with pytest.raises(OutboundRefused):
            send({"url": url, "guarded": True}, allow=["127.0.0.2"], names=names)


def test_every_hop_is_checked_again(site):
    """A name that was good is judged again after a redirect back to it."""
    with target("127.0.0.2") as allowed:
        names = Names(rebind_example=[["127.0.0.2"], ["127.0.0.1"]])
        url = f"http://rebind.example:{allowed.port}/to?url=http://rebind.example:{site.port}/ok"
        with pytest.raises(OutboundRefused):
            send({"url": url, "guarded": True}, allow=["127.0.0.2"], names=names)
    assert site.seen == []


def test_another_origin_gets_no_secrets(site):
    with target() as other:
        headers = {"Authorization": "Bearer very-secret", "X-Key": "very-secret", "Accept": "text/plain"}
        send({"url": f"{site.url}/to?url={other.url}/echo", "headers": headers})
        send({"url": f"http://ann:very-secret@127.0.0.1:{site.port}/to?url={other.url}/echo"})
        assert "very-secret" not in str(other.seen)
        assert other.seen[0]["headers"]["Accept"] == "text/plain"
        assert "Authorization" not in other.seen[1]["headers"]
        send({"url": f"{site.url}/to?url=/echo", "headers": headers})
        assert site.seen[-1]["headers"]["X-Key"] == "very-secret"


@pytest.mark.parametrize(
    ("code", "method", "then", "body"),
    [(302, "POST", "GET", ""), (301, "POST", "GET", ""), (303, "PUT", "GET", ""), (307, "POST", "POST", "hello"),
     (308, "PUT", "PUT", "hello"), (302, "PUT", "PUT", "hello"), (303, "HEAD", "HEAD", "")],
)  # fmt: skip
def test_the_method_after_a_redirect_is_what_the_code_says(site, code, method, then, body):
    send(
        {"url": f"{site.url}/to?code={code}&url=/echo", "method": method, "body": "hello" if method != "HEAD" else None}
    )
    assert (site.seen[-1]["method"], site.seen[-1]["body"]) == (then, body)


def test_the_next_address_is_tried_where_one_does_not_answer(site):
    names = Names(two_example=[["127.0.0.3", "127.0.0.1"]])
    assert send({"url": f"http://two.example:{site.port}/ok"}, names=names).status == 200


@pytest.fixture
def certificate(tmp_path):
    """A certificate for secure.example, signed by itself."""
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    subject = ["-subj", "/CN=secure.example", "-addext", "subjectAltName=DNS:secure.example"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out", cert]
    subprocess.run([*command, *subject], check=True, capture_output=True)
    return cert, key


def test_a_certificate_is_checked_against_the_name_not_the_address(certificate, monkeypatch):
    cert, key = certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    asked = []
    context.sni_callback = lambda _socket, name, _context: asked.append(name)
    names = Names(secure_example=[["127.0.0.1"]], other_example=[["127.0.0.1"]])
    with target(wrap=context) as site:
        with pytest.raises(SendingFailed, match="cannot be reached") as error:
            send({"url": f"https://secure.example:{site.port}/ok"}, names=names)
        assert not error.value.passing
        monkeypatch.setenv("SSL_CERT_FILE", str(cert))
        assert send({"url": f"https://secure.example:{site.port}/ok"}, names=names).status == 200
        assert asked[-1] == "secure.example"
        with pytest.raises(SendingFailed, match="cannot be reached"):
            send({"url": f"https://other.example:{site.port}/ok"}, names=names)
