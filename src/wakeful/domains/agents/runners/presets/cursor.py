"""Cursor's agent: `cursor-agent`."""

from __future__ import annotations

from wakeful.domains.agents.runners.judging import Signs
from wakeful.domains.agents.runners.output import OutputForm
from wakeful.domains.agents.runners.presets.preset import OPTIONS, Preset

CURSOR = Preset(
    start=("cursor-agent", "-p", "--output-format", "stream-json", "--trust", OPTIONS),
    resume=("cursor-agent", "-p", "--output-format", "stream-json", "--trust", OPTIONS, "--resume", "{session}"),
    output=OutputForm(
        "jsonl",
        reply="result",
        session="session_id",
        tokens=("usage.inputTokens", "usage.cacheReadTokens", "usage.cacheWriteTokens", "usage.outputTokens"),
        error=("is_error",),
        match=(("type", "result"),),
        fails=(("type", "result"),),
        ends=(("type", "result"),),
        opens=(("type", "system"), ("type", "user")),
    ),
    signs=Signs(
        rate_limit=r"rate.?limit|too many requests|\b429\b",
        session_gone=r"(?:chat|session|conversation)\b.{0,80}\b(?:not found|does not exist)|no (?:chat|session) found",
        overload=r"resource_exhausted|unavailable|overloaded|ECONNREFUSED|ENOTFOUND|fetch failed",
        quota=r"hit your usage limit|usage limit|monthly cycle|spend limit",
    ),
    about="Cursor's agent",
    passes=("CURSOR_API_KEY",),
    cannot=("report what a run cost", "limit the tools of a run", "say when a rate limit ends"),
    model="--model",
    takes_paths=True,
    hints=("it changes no file and runs no command without approval unless `args` has `--force`",),
)
