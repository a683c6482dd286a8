"""Qwen Code: `qwen`."""

from __future__ import annotations

from wakeful.domains.agents.runners.judging import Signs
from wakeful.domains.agents.runners.mcp_access import McpForm
from wakeful.domains.agents.runners.output import OutputForm
from wakeful.domains.agents.runners.presets.preset import OPTIONS, Preset

QWEN = Preset(
    start=("qwen", "-o", "stream-json", OPTIONS),
    resume=("qwen", "-o", "stream-json", OPTIONS, "--resume", "{session}"),
    output=OutputForm(
        "jsonl",
        reply="result",
        session="session_id",
        tokens=("usage.input_tokens", "usage.output_tokens"),
        error=("error.message", "is_error"),
        match=(("type", "result"),),
        fails=(("type", "result"),),
        ends=(("type", "result"),),
        opens=(("type", "system"), ("type", "stream_event")),
        denied="permission_denials",
        version="qwen_code_version",
        apology=r"\A\[API Error: ",  # older versions end well with it
    ),
    signs=Signs(
        rate_limit=r"\b429\b|rate.?limit|usage limit|too many requests",
        session_gone=r"no saved session found",
        overload=r"API Error: 5\d\d|overloaded|connection error|fetch failed",
        quota=r"quota|insufficient",
        empty=r"stream ended with empty response",
    ),
    about="Qwen Code",
    mcp=McpForm(("--mcp-config", "{file}"), entry=(("httpUrl", "{url}"), ("trust", True))),
    passes=("OPENAI_API_KEY", "OPENAI_BASE_URL"),
    cannot=(
        "report what a run cost",
        "limit the tools of a run",
        "report a rate limit or an overload: it waits without a word, until its `timeout`",
    ),
    model="-m",
    cumulative=True,
    takes_paths=True,
    hints=("it has no tools that write or run commands unless `args` has `--approval-mode`, such as `auto-edit`",),
)
