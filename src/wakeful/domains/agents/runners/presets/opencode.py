"""opencode: `opencode run`."""

from __future__ import annotations

from wakeful.domains.agents.runners.judging import Signs
from wakeful.domains.agents.runners.mcp_access import McpForm
from wakeful.domains.agents.runners.output import OutputForm
from wakeful.domains.agents.runners.presets.preset import OPTIONS, Preset

OPENCODE = Preset(
    start=("opencode", "run", "--format", "json", "--print-logs", "--log-level", "ERROR", OPTIONS),
    resume=("opencode", "run", "--format", "json", "--print-logs", "--log-level", "ERROR", OPTIONS, "-s", "{session}"),
    output=OutputForm(
        "jsonl",
        reply="part.text",
        session="sessionID",
        cost="part.cost",
        tokens=("part.tokens.input", "part.tokens.cache.read", "part.tokens.cache.write", "part.tokens.output"),
        thoughts=("part.tokens.reasoning",),
        error=("error.data.message", "error.message"),
        status="error.data.statusCode",
        match=(("type", "text"),),
        done=(("type", "step_finish"), ("part.reason", "stop")),
        sums=True,
    ),
    signs=Signs(
        rate_limit=r"rate.?limit|usage limit|too many requests",
        session_gone=r"session not found|exceeds the context window",
        overload=r"overloaded|internal server error|unable to connect|cannot connect|econnrefused|\b529\b|\b503\b",
        quota=r"quota|insufficient",
    ),
    about="opencode",
    mcp=McpForm(
        env=(("OPENCODE_CONFIG_CONTENT", "{config}"),),
        section="mcp",
        entry=(("type", "remote"), ("url", "{url}"), ("enabled", True)),
    ),
    passes=("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"),
    cannot=("limit the tools of a run", "stop at a cost", "say when a rate limit ends"),
    model="-m",
    env=(("OPENCODE_DISABLE_AUTOUPDATE", "1"),),
)
