"""What the server is told about itself: where it listens, who may name it, what it refuses."""

from __future__ import annotations

from dataclasses import dataclass

HOUR_MS = 3_600_000
LOOPBACK = ("127.0.0.1", "::1", "localhost")


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
    max_body: int = 1024 * 1024
    max_depth: int = 64
    """How deeply JSON in a request may be nested."""
    shutdown_wait: float = 30.0
    """Seconds that runs in progress may take once the server is told to stop."""

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the server."""
        return self.host in LOOPBACK or self.host.startswith("127.")

    @property
    def url(self) -> str:
        """Where the server is, for whoever is on this machine."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(self.host, self.host)  # noqa: S104 - an address to show
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"
