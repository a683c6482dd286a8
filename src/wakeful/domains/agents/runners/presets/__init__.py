"""Well-known agent programs, a file of data each.

A preset is added here and in `tests/agents/recordings`, which has what the program prints.
"""

from __future__ import annotations

from wakeful.domains.agents.runners.presets.aider import AIDER
from wakeful.domains.agents.runners.presets.amp import AMP
from wakeful.domains.agents.runners.presets.claude import CLAUDE
from wakeful.domains.agents.runners.presets.codex import CODEX
from wakeful.domains.agents.runners.presets.copilot import COPILOT
from wakeful.domains.agents.runners.presets.cursor import CURSOR
from wakeful.domains.agents.runners.presets.gemini import GEMINI
from wakeful.domains.agents.runners.presets.goose import GOOSE
from wakeful.domains.agents.runners.presets.llm import LLM
from wakeful.domains.agents.runners.presets.ollama import OLLAMA
from wakeful.domains.agents.runners.presets.openclaw import OPENCLAW
from wakeful.domains.agents.runners.presets.opencode import OPENCODE
from wakeful.domains.agents.runners.presets.preset import NEW_SESSION, OPTIONS, SECONDS, Preset
from wakeful.domains.agents.runners.presets.qwen import QWEN
from wakeful.domains.agents.runners.presets.scripted import SCRIPTED

__all__ = ["NEW_SESSION", "OPTIONS", "PRESETS", "SECONDS", "Preset"]

PRESETS: dict[str, Preset] = {
    "claude": CLAUDE,
    "codex": CODEX,
    "gemini": GEMINI,
    "opencode": OPENCODE,
    "qwen": QWEN,
    "copilot": COPILOT,
    "cursor": CURSOR,
    "amp": AMP,
    "goose": GOOSE,
    "aider": AIDER,
    "openclaw": OPENCLAW,
    "llm": LLM,
    "ollama": OLLAMA,
    "scripted": SCRIPTED,
}
