"""OpenClaw: `openclaw agent --local`."""

from __future__ import annotations

from wakeful.domains.agents.runners.judging import Signs
from wakeful.domains.agents.runners.output import OutputForm
from wakeful.domains.agents.runners.presets.preset import NEW_SESSION, OPTIONS, SECONDS, Preset

CALLED = ("openclaw", "agent", "--local", "--json", "--timeout", SECONDS, OPTIONS, "--message-file", "/dev/stdin")

OPENCLAW = Preset(
    start=(*CALLED, "--session-id", NEW_SESSION),
    resume=(*CALLED, "--session-id", "{session}"),
    output=OutputForm(
        "json",
        reply="payloads[-1].text",
        session="meta.agentMeta.sessionId",
        tokens=(
            "meta.agentMeta.usage.input",
            "meta.agentMeta.usage.cacheRead",
            "meta.agentMeta.usage.cacheWrite",
            "meta.agentMeta.usage.output",
        ),
        error=("error.message",),
    ),
    signs=Signs(
        rate_limit=r"rate limit reached|reason=rate_limit",
        overload=r"request failed \(.{0,60}HTTP 5\d\d\)|reason=(?:server_error|overloaded|timeout)|ECONNREFUSED",
        quota=r"reason=billing|billing error|credits",
    ),
    about="OpenClaw",
    cannot=(
        "report what a run cost: for a model without a price it says 0",
        "limit the tools of a run",
        "say when a rate limit ends",
    ),
    model="--model",
    hints=("it works in the workspace of its own configuration, not in `cwd`",),
)
