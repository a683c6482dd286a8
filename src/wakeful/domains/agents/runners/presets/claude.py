"""Claude Code: `claude -p`."""

from __future__ import annotations

from wakeful.domains.agents.runners.forms import LIMIT, OVERLOAD
from wakeful.domains.agents.runners.judging import Signs
from wakeful.domains.agents.runners.mcp_access import McpForm
from wakeful.domains.agents.runners.output import OutputForm
from wakeful.domains.agents.runners.presets.preset import OPTIONS, Preset

CLAUDE = Preset(
    start=("claude", "-p", "--output-format", "stream-json", "--verbose", OPTIONS),
    resume=("claude", "-p", "--output-format", "stream-json", "--verbose", OPTIONS, "--resume", "{session}"),
    output=OutputForm(
        "jsonl",
        reply="result",
        session="session_id",
        cost="total_cost_usd",  # newer versions have that of the whole session there
        own_cost="model_usage_since_last_result.*.costUSD",
        tokens=(
            "usage.input_tokens",
            "usage.cache_creation_input_tokens",
            "usage.cache_read_input_tokens",
            "usage.output_tokens",
        ),
        own_tokens=(
            "model_usage_since_last_result.*.inputTokens",
            "model_usage_since_last_result.*.cacheCreationInputTokens",
            "model_usage_since_last_result.*.cacheReadInputTokens",
            "model_usage_since_last_result.*.outputTokens",
        ),
        error=("errors[0]", "is_error"),
        status="api_error_status",
        means=(
            ("api_error", "usage_limit_reached", LIMIT),
            ("api_error", "connection_failed", OVERLOAD),
            ("api_error_type", "rate_limit_error", LIMIT),
            ("api_error_type", "overloaded_error", OVERLOAD),
        ),
        match=(("type", "result"),),
        resets_at="rate_limit_info.resetsAt",
        limited=(("rate_limit_info.status", "rejected"),),
        wrong=(("terminal_reason", "prompt_too_long"),),
        ends=(("type", "result"),),
        opens=(("type", "system"), ("type", "rate_limit_event")),
        complains=(("subtype", "api_retry"),),
        complaint="error",
        complaint_status="error_status",
        denied="permission_denials",
        version="claude_code_version",
    ),
    signs=Signs(
        rate_limit=(
            r"hit your .*limit|(?<!not your )usage limit|limit reached|out of extra usage"
            r"|rate.?limit"
        ),
        session_gone=(
            r"no conversation found with session id|does not match any session|prompt_too_long|prompt is too long"
        ),
        overload=(
            r"overloaded|API Error: 5\d\d|temporarily limiting requests|request rejected \(429\)|server_error"
            r"|unable to connect|connection (?:refused|error|reset|timed out)|ECONNREFUSED|ENOTFOUND|EAI_AGAIN"
        ),
        quota=r"credit balance is too low",
    ),
    about="Claude Code",
    passes=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN"),
    model="--model",
    tools="--allowedTools",
    only_tools="--tools",
    no_read=("--settings", '{"permissions":{"deny":["Read(//**)"]}}'),
    takes_paths=True,
    max_cost="--max-budget-usd",
    env=(("DISABLE_AUTOUPDATER", "1"),),
    login_keys=(
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CODE_USE_BEDROCK",
        "CLAUDE_CODE_USE_VERTEX",
    ),
    mcp=McpForm(("--mcp-config", "{file}", "--allowedTools", "mcp__wakeful")),
    logged_in=("claude", "auth", "status"),
)
