"""Writes docs/presets.md from the presets themselves: `python -m tools.presets`."""

from __future__ import annotations

from pathlib import Path

from wakeful.agents.runners.presets import OPTIONS, PRESETS, Preset

PAGE = Path(__file__).parent.parent / "docs" / "presets.md"
HEAD = """# Presets

Programs that [agents](agents.md) can be: `runner: {preset: NAME}`. This page is made from the presets themselves
(`python -m tools.presets`).
"""


def render() -> str:
    """The page."""
    return "\n".join([HEAD, *(_section(name, preset) for name, preset in PRESETS.items())])


def _section(name: str, preset: Preset) -> str:
    takes = [key for key in ("model", "tools", "max_cost") if getattr(preset, key) is not None]
    resume = "every run begins a new session" if preset.resume is None else f"`{_shown(preset.resume)}`"
    rows = [
        ("what", preset.about),
        ("starts", f"`{_shown(preset.start)}`"),
        ("resumes", resume),
        ("takes", ", ".join(f"`{key}`" for key in (*takes, "args"))),
        ("sets", ", ".join(f"`{key}={value}`" for key, value in preset.env) or "nothing"),
        ("reports cost", "yes" if preset.output.cost else "no"),
        ("reports tokens", "yes" if preset.output.tokens else "no"),
        ("cannot", "; ".join(preset.cannot) or "nothing that Wakeful asks for"),
    ]
    lines = [f"| {key} | {value} |" for key, value in rows]
    return "\n".join([f"## {name}", "", "| | |", "|---|---|", *lines, ""])


def _shown(form: tuple[str, ...]) -> str:
    return " ".join("OPTIONS" if item == OPTIONS else item for item in form)


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    print(f"{PAGE.name} written")
