"""Sending one request: every hop is resolved once, checked, and sent to the address that was checked.

There is no client between us and the transport: it would follow proxies of the environment, keep cookies, and log
whole addresses.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, urljoin

import httpx

from wakeful.clock import Clock
from wakeful.domains.http.answer import HttpResponse
from wakeful.domains.http.secrets import basic
from wakeful.domains.http.settings import HttpSettings
from wakeful.domains.http.spec import RequestSpec
from wakeful.errors import SchedulerError
from wakeful.outbound import WebAddress, read_address
from wakeful.threads import room
from wakeful.trace_context import trace_headers

REDIRECTS = (301, 302, 303, 307, 308)
REDIRECTS_MOST = 5
ADDRESSES_MOST = 4
#: What goes along to another origin; anything else may be a secret.
HARMLESS = frozenset({"accept", "accept-language", "content-type", "user-agent"})
LOCATION = "/?#%:@!$&'()*+,;=~-._[]"  # servers send addresses with spaces; in a host they are refused all the same
_OWN = {"User-Agent": "wakeful", "Accept": "*/*", "Accept-Encoding": "identity", "Connection": "close"}


class SendingFailed(SchedulerError):
    """There is no answer; `passing`: there may be one the next time; `sent`: the request may have arrived."""

    def __init__(self, message: str, *, passing: bool, sent: bool = False) -> None:
        super().__init__(message)
        self.passing = passing
        self.sent = sent


class Hop(NamedTuple):
    """One request on the way to the answer."""

    address: WebAddress
    method: str
    headers: Mapping[str, str]
    body: bytes | None
    guarded: bool


class HttpSender:
    """Sends requests by the same settings. Holds no connections."""

    def __init__(self, settings: HttpSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._trusted: ssl.SSLContext | None = None

    async def send(self, spec: RequestSpec) -> HttpResponse:
        """The answer, after redirects. SendingFailed and OutboundRefused say why there is none."""
        begun = self._clock.boot()
        hop = first_hop(spec)
        for redirects in range(REDIRECTS_MOST + 1):
            reply = await self._ask(hop)
            reply = reply._replace(elapsed_ms=self._clock.boot() - begun, redirects=redirects)
            after = None if spec.expects(reply.status) else next_hop(spec, hop, reply)
            if after is None:
                return reply
            hop = after
        raise SendingFailed(f"{hop.address.shown} is the redirect number {REDIRECTS_MOST + 1}", passing=False)

    async def _ask(self, hop: Hop) -> HttpResponse:
        shown = hop.address.shown
        try:
            found = (await self._resolve(hop))[:ADDRESSES_MOST]
            for number, ip in enumerate(found, 1):
                try:
                    return await self._ask_at(hop, ip)
                except (httpx.ConnectError, httpx.ConnectTimeout) as error:  # nothing was sent: the next one may do
                    if number == len(found):
                        raise _unreachable(shown, error) from None
        except (httpx.LocalProtocolError, httpx.UnsupportedProtocol, httpx.InvalidURL):
            # What it says may quote what we sent.
            raise SendingFailed(f"the request to {shown} cannot be sent as it is", passing=False) from None
        except httpx.TimeoutException:
            raise SendingFailed(f"{shown} did not answer in time", passing=True, sent=True) from None
        except (httpx.HTTPError, httpx.StreamError, OSError) as error:
            said = str(error) or type(error).__name__
            raise SendingFailed(f"the connection to {shown} broke off: {said}", passing=True, sent=True) from None
        raise SendingFailed(f"{hop.address.host} has no address", passing=True)

    async def _resolve(self, hop: Hop) -> list[str]:
        """The addresses of the host, each of which may be connected to."""
        host, policy = hop.address.host, self._settings.policy
        if hop.guarded:
            policy.check_host(host)
        try:
            async with asyncio.timeout(self._settings.connect_s):
                found = await self._settings.resolve(host, hop.address.port)
        except TimeoutError:
            raise SendingFailed(f"the host {host} could not be looked up in time", passing=True) from None
        except (OSError, UnicodeError) as error:
            why = getattr(error, "strerror", None) or type(error).__name__
            raise SendingFailed(f"the host {host} cannot be found: {why}", passing=True) from None
        if hop.guarded:
            policy.check(host, found)
        return found

    async def _ask_at(self, hop: Hop, ip: str) -> HttpResponse:
        """The answer of that address and of no other; the name goes along for servers of several names."""
        address = hop.address
        url = httpx.URL(scheme=address.scheme, host=ip, port=address.port, raw_path=address.target.encode("ascii"))
        timeout = {"connect": self._settings.connect_s, "read": None, "write": None, "pool": None}
        request = httpx.Request(
            hop.method,
            url,
            headers={**hop.headers, "Host": address.netloc},
            content=hop.body,
            extensions={"timeout": timeout, "sni_hostname": address.host},
        )
        transport = self._settings.transport or await self._transport(encrypted=address.scheme == "https")
        try:
            response = await transport.handle_async_request(request)
            try:
                return await self._read(response, address)
            finally:
                await response.aclose()
        finally:
            if transport is not self._settings.transport:
                await transport.aclose()

    async def _read(self, response: httpx.Response, address: WebAddress) -> HttpResponse:
        most, body = self._settings.body_most, bytearray()
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > most:  # the rest stays where it is: the connection is closed
                break
        headers = {name.lower(): value for name, value in response.headers.items()}
        return HttpResponse(response.status_code, headers, bytes(body[:most]), len(body) > most, address.shown, 0)

    async def _transport(self, *, encrypted: bool) -> httpx.AsyncHTTPTransport:
        # Without encryption no certificate is checked, and none needs to be read.
        verify = await self._trust() if encrypted else False
        return httpx.AsyncHTTPTransport(verify=verify, trust_env=False)

    async def _trust(self) -> ssl.SSLContext:
        if self._trusted is None:
            # Reading the system's certificates takes long enough to delay others on the same loop.
            self._trusted = await room("certificates").call(ssl.create_default_context)
        return self._trusted


def first_hop(spec: RequestSpec) -> Hop:
    """The request as the job says it; a user and password in the address are sent as they are meant."""
    address = read_address(spec.url)
    given = {name.lower() for name in spec.headers}
    own = {**_OWN, **trace_headers()}
    headers = {**{name: value for name, value in own.items() if name.lower() not in given}, **spec.headers}
    if address.user is not None and "authorization" not in given:
        headers["Authorization"] = f"Basic {basic(address)}"
    body = spec.body.encode() if spec.body is not None else None
    return Hop(address, spec.method, headers, body, spec.guarded)


def next_hop(spec: RequestSpec, hop: Hop, reply: HttpResponse) -> Hop | None:
    """Where a redirect leads; None for any other answer.

    The network named another host, so it obeys the outbound policy, also for jobs of an operator. Another origin gets
    neither secrets nor a body that was not asked for again.
    """
    location = reply.headers.get("location")
    if not spec.follow_redirects or reply.status not in REDIRECTS or not location:
        return None
    base = f"{hop.address.scheme}://{hop.address.netloc}{hop.address.target}"
    try:
        address = read_address(urljoin(base, quote(location, safe=LOCATION)))
    except ValueError as error:
        raise SendingFailed(f"{hop.address.shown} redirects to an address that {error}", passing=False) from None
    headers, body, method = dict(hop.headers), hop.body, hop.method
    if not address.same_origin(hop.address):
        kept = {*HARMLESS, *(name.lower() for name in _OWN)}
        headers = {name: value for name, value in headers.items() if name.lower() in kept}
    as_get = reply.status == 303 or (reply.status in (301, 302) and method == "POST")
    if as_get and method != "HEAD":
        method, body = "GET", None
        headers = {name: value for name, value in headers.items() if name.lower() != "content-type"}
    elsewhere = address.host != read_address(spec.url).host
    return Hop(address._replace(user=None, password=None), method, headers, body, spec.guarded or elsewhere)


def _unreachable(shown: str, error: Exception) -> SendingFailed:
    said = str(error) or "it did not answer in time"
    return SendingFailed(f"{shown} cannot be reached: {said}", passing="CERTIFICATE_VERIFY_FAILED" not in said)
