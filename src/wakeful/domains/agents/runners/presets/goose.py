"""goose: `goose run`."""

from __future__ import annotations

from wakeful.domains.agents.runners.judging import Signs
from wakeful.domains.agents.runners.mcp_access import McpForm
from wakeful.domains.agents.runners.output import OutputForm
from wakeful.domains.agents.runners.presets.preset import NEW_SESSION, OPTIONS, Preset

GOOSE = Preset(
    start=("goose", "run", "-q", "--output-format", "json", "-n", NEW_SESSION, OPTIONS, "-i", "-"),
    resume=("goose", "run", "-q", "--output-format", "json", "-r", "-n", "{session}", OPTIONS, "-i", "-"),
    output=OutputForm(
        "json",
        reply="messages[-1].content[-1].text",
        tokens=("metadata.input_tokens", "metadata.output_tokens"),
        wrong=(("metadata.status", "error"),),
        # A provider's error is its last message, and it ends well.
        apology=r"(?s)Ran into this error: .*Please retry if you think this is a transient",
    ),
    signs=Signs(
        rate_limit=r"rate.?limit|too many requests|\b429\b",
        session_gone=r"no session found",
        overload=r"server error: |overloaded|network error|connection refused",
        quota=r"credits exhausted|quota",
    ),
    about="goose",
    mcp=McpForm(("--with-extension", "{bridge}")),
    passes=("GOOSE_PROVIDER", "GOOSE_MODEL", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"),
    cannot=(
        "report what a run cost: what it prints is the cost of the session",
        "limit the tools of a run",
        "say when a rate limit ends",
    ),
    model="--model",
    cumulative=True,
    hints=("with `GOOSE_MODE=approve` it fails at the first tool that asks: `env: [GOOSE_MODE=auto]`",),
)
