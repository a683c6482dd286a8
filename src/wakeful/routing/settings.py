"""Settings of the server: where it listens, the names it answers to, what it refuses."""

from __future__ import annotations

import resource
from dataclasses import dataclass, field
from pathlib import Path

from wakeful.outbound import OutboundPolicy

HOUR_MS = 3_600_000
LOOPBACK = ("127.0.0.1", "::1", "localhost")
LOCAL = ("127.0.0.0/8", "::1")
"""Where a proxy on this machine comes from."""


@dataclass(frozen=True)
class ConnectionLimits:
    """How many connections a server has at once, and how long each may take over what it does."""

    most: int = 500
    """No more than this, and no more than a quarter of the process's file descriptors."""
    head_s: float = 10.0
    """Until the head of a request has arrived, from its first byte; on a new connection, from the start."""
    body_s: float = 30.0
    """Until its body has arrived, from the end of the head."""
    idle_s: float = 20.0
    """Between an answer and the next request."""
    drain_s: float = 30.0
    """Until a client has read the next 64 KiB of an answer, or all that is left of it."""
    proxies: tuple[str, ...] = LOCAL
    """Addresses and networks others come through."""
    streams: int = 200
    """No more event streams than this, and than half of the connections: streams last."""
    streams_of_one: int = 50
    """Event streams of one caller."""

    @property
    def places(self) -> int:
        """How many connections there may be at once."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return self.most if soft == resource.RLIM_INFINITY else max(1, min(self.most, soft // 4))

    def share(self, *, is_proxy: bool) -> int:
        """How many of them one address may hold: half, and a proxy's all but a tenth."""
        places = self.places
        return max(1, places - max(1, places // 10) if is_proxy else places // 2)

    @property
    def most_streams(self) -> int:
        """How many event streams there may be at once."""
        return max(1, min(self.streams, self.places // 2))

    @property
    def sweep_s(self) -> float:
        """How often to look whose time is over."""
        return min(1.0, self.head_s / 4, self.idle_s / 4, self.drain_s / 4)


@dataclass(frozen=True)
class MetricsSettings:
    """Who reads `/metrics`, and how many jobs are named there."""

    open: bool = False
    """Whether it needs no token."""
    per_job: int = 0
    """How many jobs have figures of their own, with their names."""


@dataclass(frozen=True)
class ServerSettings:
    """Settings of one server, fixed when it starts. `port` is the one it really listens on."""

    host: str = "127.0.0.1"
    port: int = 7878
    public_url: str | None = None
    """How people reach the server from elsewhere, such as https://jobs.example.org."""
    allowed_hosts: tuple[str, ...] = ()
    """Further names a request may call this server by."""
    min_interval_ms: int = HOUR_MS
    """Jobs made over the network may not run more often than this; 0 lets them."""
    jobs_per_agent: int | None = 100
    """How many jobs an agent may have; None for no limit."""
    bytes_per_agent: int | None = 16 * 1024 * 1024
    """How much an agent may have stored; None for no limit."""
    outbound: OutboundPolicy = field(default_factory=OutboundPolicy)
    """Where addresses that come over the network may lead."""
    agents_request: bool = False
    """Whether agents may write jobs that send requests."""
    metrics: MetricsSettings = MetricsSettings()
    connections: ConnectionLimits = ConnectionLimits()
    max_body: int = 1024 * 1024
    max_depth: int = 64
    """How deeply JSON in a request may be nested."""
    folder: Path | None = None
    """Where the configuration file lies, if there is one."""
    shutdown_wait: float = 30.0
    """Seconds that runs in progress may take once the server is asked to stop."""

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the server."""
        return self.host in LOOPBACK or self.host.startswith("127.")

    @property
    def url(self) -> str:
        """Where the server is, for clients on this machine."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(self.host, self.host)  # noqa: S104 - an address to show
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"
