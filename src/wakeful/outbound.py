"""Where requests may go whose address came over the network.

An address that a caller, an agent or a redirect names must not become a way into this machine or the network it stands
in. `OutboundPolicy` refuses private, loopback and link-local addresses, those of metadata services among them, unless
`server.outbound.allow` names them. It judges addresses, not names: the sender of a request resolves the name once, has
the result checked, and connects to exactly that (see `wakeful.domains.http.sending`).

What an operator writes on the command line, in a file or in code is trusted and not checked.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

from wakeful.errors import OutboundRefused

KEY = "server.outbound.allow"
URL_MOST = 8_000
PORTS = {"http": 80, "https": 443}

Ip = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_REFUSED_V4 = [
    (ip_network(network), words)
    for network, words in (
        ("0.0.0.0/8", "an address of this machine"),
        ("10.0.0.0/8", "a private address"),
        ("100.64.0.0/10", "a private address of a carrier"),
        ("127.0.0.0/8", "a loopback address"),
        ("168.63.129.16/32", "the address of a metadata service"),
        ("169.254.169.254/32", "the address of a metadata service"),
        ("169.254.0.0/16", "a link-local address"),
        ("172.16.0.0/12", "a private address"),
        ("192.0.0.0/24", "a reserved address"),
        ("192.0.2.0/24", "a reserved address"),
        ("192.88.99.0/24", "a reserved address"),
        ("192.168.0.0/16", "a private address"),
        ("198.18.0.0/15", "a private address"),
        ("198.51.100.0/24", "a reserved address"),
        ("203.0.113.0/24", "a reserved address"),
        ("224.0.0.0/4", "a multicast address"),
        ("240.0.0.0/4", "a reserved address"),
    )
]
_REFUSED_V6 = [
    (ip_network(network), words)
    for network, words in (
        ("::/128", "an address of this machine"),
        ("::1/128", "a loopback address"),
        ("fd00:ec2::254/128", "the address of a metadata service"),
        ("fd20:ce::254/128", "the address of a metadata service"),
        ("fc00::/7", "a private address"),
        ("fe80::/10", "a link-local address"),
        ("fec0::/10", "a private address"),
        ("ff00::/8", "a multicast address"),
        ("2001::/23", "a reserved address"),
        ("2001:db8::/32", "a reserved address"),
        ("2002::/16", "an address inside a tunnel"),
        ("3fff::/20", "a reserved address"),
    )
]
_PUBLIC_V6 = ip_network("2000::/3")
_TRANSLATED = ip_network("64:ff9b::/96")  # NAT64: the last 32 bits are where it really goes
_HOST = re.compile(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?", re.ASCII)
_NUMBERS = re.compile(r"(0x[0-9a-f]*|[0-9]+)(\.(0x[0-9a-f]*|[0-9]+)){0,3}", re.ASCII)


class WebAddress(NamedTuple):
    """An http or https address, parsed once, so that it is not read differently later."""

    scheme: str
    host: str  # lower case, ASCII, no brackets, no dot at the end
    port: int
    target: str  # path and query, ASCII
    user: str | None = None
    password: str | None = None

    @property
    def netloc(self) -> str:
        """Host and port as a `Host` header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def shown(self) -> str:
        """The address as it may be shown to anyone: no user, no password, no query."""
        return f"{self.scheme}://{self.netloc}{self.target.partition('?')[0]}"

    def same_origin(self, other: WebAddress) -> bool:
        return (self.scheme, self.host, self.port) == (other.scheme, other.host, other.port)


def read_address(url: object) -> WebAddress:
    """The parts of an http or https address; ValueError says what is wrong with it, without showing it."""
    if not isinstance(url, str) or not 0 < len(url) <= URL_MOST:
        message = f"must be a text such as https://example.org/health, of {URL_MOST} characters at most"
        raise ValueError(message)
    if any(letter in ' \\"<>^`{|}' or not letter.isprintable() for letter in url):
        message = "must not contain spaces, backslashes or control characters: write them as %20 and so on"
        raise ValueError(message)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("has a host or port that cannot be read") from None
    if parts.scheme not in PORTS:
        raise ValueError("must begin with http:// or https://")
    if port == 0:
        raise ValueError("has the port 0, on which nothing listens")
    target = quote(f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}", safe="/?%:@!$&'()*+,;=~-._[]")
    user, password = (None if text is None else unquote(text) for text in (parts.username, parts.password))
    return WebAddress(parts.scheme, _read_host(parts.hostname), port or PORTS[parts.scheme], target, user, password)


def _read_host(host: str | None) -> str:
    if not host:
        raise ValueError("names no host: write https://example.org/health")
    name = host
    if not name.isascii():
        name = _to_ascii(name)
    name = name.lower().removesuffix(".")
    if ":" in name:
        try:
            return str(IPv6Address("" if "%" in name else name))  # a zone is of this machine alone
        except ValueError:
            raise ValueError("has an IPv6 address that cannot be read") from None
    if len(name) > 253 or not _HOST.fullmatch(name) or ".." in name:
        raise ValueError("has a host name with signs that no host name has")
    return name


def _to_ascii(host: str) -> str:
    import httpx  # it brings the tables of international names

    try:
        return httpx.URL(scheme="http", host=host).raw_host.decode("ascii")
    except (httpx.InvalidURL, UnicodeError):
        raise ValueError("has an international host name that cannot be read") from None


# -- the policy --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OutboundPolicy:
    """What addresses from the network may lead to: everything public, and what `allow` names."""

    allow: tuple[str, ...] = ()
    """Addresses (10.0.0.5), networks (10.0.0.0/8), hosts (wiki.internal) and domains (*.internal)."""

    def check_host(self, host: str) -> None:
        """OutboundRefused for a host that can be judged by how it is written; others are judged once resolved."""
        literal = literal_ip(host)
        if literal is not None:
            self.check(host, [str(literal)])
        elif host == "localhost" or host.endswith(".localhost"):
            self.check(host, ["127.0.0.1"])

    def check(self, host: str, addresses: Iterable[str]) -> None:
        """OutboundRefused when one of the addresses a host has is not to be reached; checked after resolving."""
        named = _read_allowed(self.allow)
        if _names(named.hosts, host):
            return
        for address in addresses:
            found = ip_address(address.partition("%")[0])
            words = refusal(found)
            if words is not None and not any(_contains(network, found) for network in named.networks):
                shown = host if host == str(found) else f"{host} ({found})"
                message = (
                    f"{shown} is {words}, which an address from the network may not lead to; "
                    f"an operator can name it in {KEY} of wakeful.yaml."
                )
                raise OutboundRefused(message)


def refusal(address: Ip) -> str | None:
    """What kind of address it is that may not be reached; None for a public one."""
    inner = _inner(address)
    if isinstance(inner, IPv4Address):
        return next((words for network, words in _REFUSED_V4 if inner in network), None)
    words = next((words for network, words in _REFUSED_V6 if inner in network), None)
    return words or (None if inner in _PUBLIC_V6 else "a reserved address")


def literal_ip(host: str) -> Ip | None:
    """The address a host is when it is written as one, also as 2130706433, 0x7f.1 or 0177.0.0.1."""
    try:
        return ip_address(host)
    except ValueError:
        if not _NUMBERS.fullmatch(host):
            return None
    try:
        return IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


def _inner(address: Ip) -> Ip:
    """Where an address really leads: IPv6 may only wrap an IPv4 one."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _TRANSLATED:
            return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _contains(network: Network, address: Ip) -> bool:
    return address in network or _inner(address) in network


class _Allowed(NamedTuple):
    networks: tuple[Network, ...]
    hosts: frozenset[str]


@lru_cache(maxsize=64)
def _read_allowed(entries: tuple[str, ...]) -> _Allowed:
    read = [read_allowed(entry) for entry in entries]
    return _Allowed(
        tuple(entry for entry in read if not isinstance(entry, str)),
        frozenset(entry for entry in read if isinstance(entry, str)),
    )


def read_allowed(entry: str) -> Network | str:
    """One entry of `allow`: a network, a host, or a domain as `*.internal`; ValueError for anything else."""
    try:
        return ip_network(entry, strict=False)
    except ValueError:
        name = entry.lower().removesuffix(".")
    if not _HOST.fullmatch(name.removeprefix("*.")) or literal_ip(name) is not None:
        message = "must be an address such as 10.0.0.5, a network such as 10.0.0.0/8, or a host such as wiki.internal"
        raise ValueError(message)
    return name


def _names(hosts: frozenset[str], host: str) -> bool:
    if host in hosts:
        return True
    parts = host.split(".")
    return any("*." + ".".join(parts[start:]) in hosts for start in range(1, len(parts)))


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host, in the order to try them; OSError when it has none."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))
