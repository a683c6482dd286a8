"""GitHub Copilot CLI: `copilot`."""

from __future__ import annotations

from wakeful.domains.agents.runners.forms import LIMIT
from wakeful.domains.agents.runners.judging import Signs
from wakeful.domains.agents.runners.mcp_access import McpForm
from wakeful.domains.agents.runners.output import OutputForm
from wakeful.domains.agents.runners.presets.preset import NEW_SESSION, OPTIONS, Preset

# What it prints before it does anything, between a failed request and the next, and when it is stopped.
BETWEEN = (
    "session.skills_loaded", "session.mcp_servers_loaded", "session.tools_updated", "session.info", "session.error",
    "session.background_tasks_changed", "user.message", "assistant.turn_start", "assistant.turn_retry",
    "assistant.turn_end", "assistant.idle", "model.call_start", "model.call_finished", "model.call_final_result",
    "agent.interrupted", "abort",
)  # fmt: skip

COPILOT = Preset(
    start=("copilot", "-s", "--no-ask-user", "--output-format", "json", OPTIONS, "--session-id", NEW_SESSION),
    resume=("copilot", "-s", "--no-ask-user", "--output-format", "json", OPTIONS, "--resume={session}"),
    output=OutputForm(
        "jsonl",
        reply="data.content",
        session="sessionId",
        tokens=("data.outputTokens",),
        sums=True,
        error=("data.message",),
        status="data.statusCode",
        means=(("data.errorType", "rate_limit", LIMIT),),
        match=(("type", "assistant.message"),),
        fails=(("type", "session.error"),),
        ends=(("type", "result"),),
        opens=tuple(("type", name) for name in BETWEEN),
        complains=(("type", "model.call_failure"),),
        complaint="data.errorMessage",
        complaint_status="data.statusCode",
    ),
    signs=Signs(
        rate_limit=r"hit (?:a|your) rate limit|rate.?limit|session limits?|usage limit",
        session_gone=r"no session, task, or name matched",
        overload=r"Last error: 5\d\d|overloaded|fetch failed|ECONNREFUSED|ENOTFOUND",
        quota=r"quota|premium requests|insufficient",
        empty=r"no response was returned",
    ),
    about="GitHub Copilot CLI",
    mcp=McpForm(
        ("--additional-mcp-config", "@{file}", "--allow-tool", "wakeful"),
        entry=(("type", "http"), ("url", "{url}"), ("tools", ["*"])),
    ),
    passes=("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"),
    cannot=("report what a run cost", "report the tokens that went in", "limit the tools of a run"),
    model="--model",
    takes_paths=True,
    hints=("a tool that needs approval is denied unless `args` has `--allow-tool`, such as `--allow-tool=write`",),
    env=(("COPILOT_AUTO_UPDATE", "false"),),
)
