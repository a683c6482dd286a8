"""A program of the user's own."""

from __future__ import annotations

from wakeful.domains.agents.runners.judging import Signs
from wakeful.domains.agents.runners.output import OutputForm
from wakeful.domains.agents.runners.presets.preset import OPTIONS, Preset

SCRIPTED = Preset(
    start=(OPTIONS,),
    resume=None,
    output=OutputForm(),
    signs=Signs(),
    about="a program of your own, given as args: it reads the prompt and prints the reply",
    cannot=("keep a session", "report what a run cost", "choose a model", "limit the tools of a run"),
)
