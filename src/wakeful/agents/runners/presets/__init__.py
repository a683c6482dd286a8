"""Well-known agent programs, a file of data each.

A preset is added here and in `tests/agents/recordings`, which has what the program prints.
"""

from __future__ import annotations

from wakeful.agents.runners.presets.aider import AIDER
from wakeful.agents.runners.presets.amp import AMP
from wakeful.agents.runners.presets.claude import CLAUDE
from wakeful.agents.runners.presets.codex import CODEX
from wakeful.agents.runners.presets.copilot import COPILOT
from wakeful.agents.runners.presets.cursor import CURSOR
from wakeful.agents.runners.presets.gemini import GEMINI
from wakeful.agents.runners.presets.goose import GOOSE
from wakeful.agents.runners.presets.llm import LLM
from wakeful.agents.runners.presets.ollama import OLLAMA
from wakeful.agents.runners.presets.openclaw import OPENCLAW
from wakeful.agents.runners.presets.opencode import OPENCODE
from wakeful.agents.runners.presets.preset import NEW_SESSION, OPTIONS, SECONDS, Preset
from wakeful.agents.runners.presets.qwen import QWEN
from wakeful.agents.runners.presets.scripted import SCRIPTED

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
