"""ollama: models on this machine."""

from __future__ import annotations

from wakeful.domains.agents.runners.judging import Signs
from wakeful.domains.agents.runners.output import OutputForm
from wakeful.domains.agents.runners.presets.preset import OPTIONS, Preset

OLLAMA = Preset(
    start=("ollama", "run", "--hidethinking", "--nowordwrap", "--verbose", OPTIONS),
    resume=None,
    output=OutputForm(
        counted=r"(?m)^(?:prompt eval count:\s+(?P<tokens_in>\d+)|eval count:\s+(?P<tokens_out>\d+)) token",
    ),
    signs=Signs(
        failure=r"\AYou need to be signed in to Ollama",
        overload=r"could not connect to ollama|connection refused|server busy",
        quota=r"usage limit",
    ),
    about="ollama",
    passes=("OLLAMA_HOST",),
    cannot=("keep a session", "report what a run cost", "limit the tools of a run"),
    model="",
    needs_model=True,
    hints=("a model that is not there yet is downloaded",),
)
