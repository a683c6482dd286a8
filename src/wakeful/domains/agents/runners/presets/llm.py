"""llm: the models of its plugins, without tools of their own."""

from __future__ import annotations

from wakeful.domains.agents.runners.judging import Signs
from wakeful.domains.agents.runners.output import OutputForm
from wakeful.domains.agents.runners.presets.preset import OPTIONS, Preset

LLM = Preset(
    start=("llm", "prompt", "--json", OPTIONS),
    resume=("llm", "prompt", "--json", OPTIONS, "--cid", "{session}"),
    output=OutputForm(
        "json",
        reply="[-1].response",
        session="[-1].conversation_id",
        tokens=("*.input_tokens", "*.output_tokens"),
    ),
    signs=Signs(
        rate_limit=r"error code: 429|rate.?limit|usage limit",
        session_gone=r"no conversation found",
        overload=r"error code: 5\d\d|overloaded|connection error",
        quota=r"quota|insufficient|credit balance",
    ),
    about="llm, version 0.32 or newer",
    passes=("OPENAI_API_KEY", "ANTHROPIC_API_KEY"),
    cannot=("report what a run cost", "limit the tools of a run", "say when a rate limit ends"),
    model="-m",
    hints=("it keeps a session only while its log is on (`llm logs on`)",),
)
