"""Amp: `amp -x`."""

from __future__ import annotations

from wakeful.domains.agents.runners.judging import Signs
from wakeful.domains.agents.runners.output import OutputForm
from wakeful.domains.agents.runners.presets.preset import OPTIONS, Preset

AMP = Preset(
    start=("amp", OPTIONS, "-x", "--stream-json"),
    resume=("amp", "threads", "continue", "{session}", OPTIONS, "-x", "--stream-json"),
    output=OutputForm(
        "jsonl",
        reply="result",
        session="session_id",
        tokens=("message.usage.input_tokens", "message.usage.output_tokens"),
        sums=True,
        error=("error", "is_error"),
        match=(("type", "result"),),
        fails=(("type", "result"),),
        ends=(("type", "result"),),
        opens=(("type", "system"), ("type", "user")),
        denied="permission_denials",
    ),
    signs=Signs(
        rate_limit=r"rate.?limit|too many requests|\b429\b",
        session_gone=r"thread\b.{0,80}\b(?:not found|does not exist)|no such thread|invalid thread",
        overload=r"couldn't connect to the amp server|failed: 5\d\d|overloaded|ECONNREFUSED|ENOTFOUND",
        quota=r"out of credits?|insufficient (?:credits?|balance)|usage limit",
    ),
    about="Amp",
    passes=("AMP_API_KEY",),
    cannot=(
        "report what a run cost",
        "choose a model: give `args: [-m, high]`, its mode",
        "limit the tools of a run",
        "say when a rate limit ends",
    ),
    takes_paths=True,
)
