"""Well-known agent programs, a few lines of data each.

`{options}` stands for the model, the tools, the cost limit and the `args` of a runner.
"""

from __future__ import annotations

from typing import NamedTuple

from wakeful.agents.runners.judging import Signs
from wakeful.agents.runners.output import OutputForm

OPTIONS = "{options}"


class Preset(NamedTuple):
    """How one program is called and understood."""

    start: tuple[str, ...]
    resume: tuple[str, ...] | None
    output: OutputForm
    signs: Signs
    about: str
    cannot: tuple[str, ...] = ()
    model: str | None = None  # the option before its value
    tools: str | None = None
    only_tools: str | None = None  # which tools there are at all, for runs that are fed by others
    max_cost: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    cumulative: bool = False  # its tokens are those of the whole session
    logged_in: tuple[str, ...] | None = None  # exits with 0 when a user is logged in


PRESETS: dict[str, Preset] = {
    "claude": Preset(
        start=("claude", "-p", "--output-format", "stream-json", "--verbose", OPTIONS),
        resume=("claude", "-p", "--output-format", "stream-json", "--verbose", OPTIONS, "--resume", "{session}"),
        output=OutputForm(
            "jsonl",
            reply="result",
            session="session_id",
            cost="total_cost_usd",
            tokens=("usage.input_tokens", "usage.output_tokens"),
            error=("errors[0]", "is_error"),
            match=(("type", "result"),),
            resets_at="rate_limit_info.resetsAt",
            limited=(("rate_limit_info.status", "rejected"),),
            wrong=(("terminal_reason", "prompt_too_long"),),
            ends=(("type", "result"),),
        ),
        signs=Signs(
            rate_limit=r"hit your .*limit|(?<!not your )usage limit|limit reached|out of extra usage",
            session_gone=r"no conversation found with session id|prompt_too_long|prompt is too long",
            overload=r"overloaded|API Error: 5\d\d|temporarily limiting requests|request rejected \(429\)",
        ),
        about="Claude Code",
        model="--model",
        tools="--allowedTools",
        only_tools="--tools",
        max_cost="--max-budget-usd",
        env=(("DISABLE_AUTOUPDATER", "1"),),
        logged_in=("claude", "auth", "status"),
    ),
    "codex": Preset(
        start=("codex", "exec", "--json", "--skip-git-repo-check", OPTIONS, "-"),
        resume=("codex", "exec", "--json", "--skip-git-repo-check", OPTIONS, "resume", "{session}", "-"),
        output=OutputForm(
            "jsonl",
            reply="item.text",
            session="thread_id",
            tokens=("usage.input_tokens", "usage.output_tokens"),
            error=("error.message",),
            match=(("type", "item.completed"), ("item.type", "agent_message")),
            ends=(("type", "turn.completed"), ("type", "turn.failed")),
        ),
        signs=Signs(
            rate_limit=r"usage limit|rate.?limit|out of credits|spend cap|quota exceeded",
            session_gone=r"no rollout found|thread not loaded",
            overload=r"at capacity|high demand|exceeded retry limit|stream disconnected",
        ),
        about="Codex CLI",
        cannot=("report what a run cost", "limit the tools of a run"),
        model="-m",
        cumulative=True,
    ),
    "gemini": Preset(
        start=("gemini", "-o", "json", "--skip-trust", OPTIONS),
        resume=("gemini", "-o", "json", "--skip-trust", OPTIONS, "-r", "{session}"),
        output=OutputForm(
            "json",
            reply="response",
            session="session_id",
            tokens=("stats.models.*.tokens.prompt", "stats.models.*.tokens.candidates"),
            error=("error.message",),
        ),
        signs=Signs(
            rate_limit=r"exhausted your|quota|rate.?limit|resource_exhausted|please retry in",
            session_gone=r"invalid session identifier",
            overload=r"overloaded|unavailable|\b503\b",
        ),
        about="Gemini CLI",
        cannot=("report what a run cost", "limit the tools of a run"),
        model="-m",
    ),
    "opencode": Preset(
        start=("opencode", "run", "--format", "json", OPTIONS),
        resume=("opencode", "run", "--format", "json", OPTIONS, "-s", "{session}"),
        output=OutputForm(
            "jsonl",
            reply="part.text",
            session="sessionID",
            cost="part.cost",
            tokens=("part.tokens.input", "part.tokens.output"),
            error=("error.data.message", "error.message"),
            match=(("type", "text"),),
            sums=True,
        ),
        signs=Signs(
            rate_limit=r"rate.?limit|usage limit|quota",
            session_gone=r"session not found",
            overload=r"overloaded|\b529\b|\b503\b",
        ),
        about="opencode",
        cannot=("limit the tools of a run", "stop at a cost", "say when a rate limit ends"),
        model="-m",
        env=(("OPENCODE_DISABLE_AUTOUPDATE", "1"),),
    ),
    "scripted": Preset(
        start=(OPTIONS,),
        resume=None,
        output=OutputForm(),
        signs=Signs(),
        about="a program of your own, given as args: it reads the prompt and prints the reply",
        cannot=("keep a session", "report what a run cost", "choose a model", "limit the tools of a run"),
    ),
}
