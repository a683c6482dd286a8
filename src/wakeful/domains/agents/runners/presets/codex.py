"""Codex CLI: `codex exec`."""

from __future__ import annotations

from wakeful.domains.agents.runners.judging import Signs
from wakeful.domains.agents.runners.mcp_access import McpForm
from wakeful.domains.agents.runners.output import OutputForm
from wakeful.domains.agents.runners.presets.preset import OPTIONS, Preset

CODEX = Preset(
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
        done=(("type", "turn.completed"),),
        opens=(("type", "thread.started"), ("type", "turn.started")),
        complains=(("type", "error"),),
        complaint="message",
    ),
    signs=Signs(
        rate_limit=r"usage limit|rate.?limit|spend cap",
        session_gone=r"no rollout found|thread not loaded|exceeds the context window|context_length_exceeded",
        overload=(
            r"at capacity|high demand|exceeded retry limit|stream disconnected|unexpected status 5\d\d"
            r"|waiting for network|connection failed"
        ),
        quota=r"out of credits|quota exceeded",
    ),
    about="Codex CLI",
    passes=("CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "OPENAI_API_KEY"),
    cannot=("report what a run cost", "limit the tools of a run"),
    model="-m",
    hints=("it may only read unless `args` has `-s`, such as `workspace-write`",),
    mcp=McpForm(
        (
            *("-c", 'mcp_servers.wakeful.url="{url}"'),
            *("-c", 'mcp_servers.wakeful.bearer_token_env_var="WAKEFUL_TOKEN"'),
        )
    ),
    cumulative=True,
    login_keys=("CODEX_API_KEY", "CODEX_ACCESS_TOKEN"),
)
