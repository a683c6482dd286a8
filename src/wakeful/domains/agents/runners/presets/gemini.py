"""Gemini CLI: `gemini`."""

from __future__ import annotations

from wakeful.domains.agents.runners.judging import Signs
from wakeful.domains.agents.runners.mcp_access import McpForm
from wakeful.domains.agents.runners.output import OutputForm
from wakeful.domains.agents.runners.presets.preset import OPTIONS, Preset

RETRYING = r"overloaded|unavailable|internal error|fetch failed|failed with status 5\d\d"

DOCUMENT = OutputForm(
    "json",
    reply="response",
    session="session_id",
    tokens=("stats.models.*.tokens.prompt", "stats.models.*.tokens.candidates"),
    thoughts=("stats.models.*.tokens.thoughts",),
    error=("error.message",),
    status="error.code",
    complaint="warnings[0]",
)
"""What `-o json` prints, which older versions do whatever they are asked for."""

GEMINI = Preset(
    start=("gemini", "-o", "stream-json", "--skip-trust", OPTIONS),
    resume=("gemini", "-o", "stream-json", "--skip-trust", OPTIONS, "-r", "{session}"),
    output=OutputForm(
        "jsonl",
        reply="content",
        session="session_id",
        tokens=("stats.input_tokens", "stats.output_tokens"),
        total="stats.total_tokens",
        error=("error.message",),
        match=(("type", "message"), ("role", "assistant")),
        joined=True,
        done=(("type", "result"), ("status", "success")),
        fails=(("type", "result"),),  # tools fail, too
        wrong=(("status", "error"),),
        ends=(("type", "result"),),
        opens=(("type", "init"), ("role", "user")),
        complains=(("type", "error"),),
        complaint="message",
        document=DOCUMENT,
    ),
    signs=Signs(
        rate_limit=r"exhausted your|\bquota\b|rate.?limit|resource_exhausted|please retry in|failed with status 429",
        session_gone=r"invalid session identifier|no previous sessions found",
        overload=RETRYING,
        quota=r"daily quota|credits are depleted|billing",
        empty=r"returned an empty response",
    ),
    about="Gemini CLI",
    passes=("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_GEMINI_BASE_URL"),
    cannot=("report what a run cost", "limit the tools of a run"),
    model="-m",
    takes_paths=True,
    mcp=McpForm(env=(("GEMINI_CLI_SYSTEM_SETTINGS_PATH", "{file}"),), entry=(("httpUrl", "{url}"), ("trust", True))),
    hints=("it has no tools that write or run commands unless `args` has `--approval-mode`, such as `auto_edit`",),
)
