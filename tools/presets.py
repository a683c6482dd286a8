"""Writes docs/presets.md from the presets themselves: `python -m tools.presets`."""

from __future__ import annotations

from pathlib import Path

from wakeful.domains.agents.runners.presets import OPTIONS, PRESETS, Preset

PAGE = Path(__file__).parent.parent / "docs" / "presets.md"
RECORDINGS = PAGE.parents[1] / "tests" / "agents" / "recordings"
HEAD = """# Presets

The programs that Wakeful can call as [agents](agents.md), with `runner: {preset: NAME}`.
This page is made from the presets themselves (`python -m tools.presets`).

`make test-tools` runs the presets with the programs themselves, as far as those can be installed.
"""


def render() -> str:
    """The page."""
    columns = ("preset", "program", "session", "cost", "tokens", "limits", "known from")
    rows = [columns, ("---",) * len(columns), *(_row(name, preset) for name, preset in PRESETS.items())]
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return "\n".join([HEAD, table, *(_section(name, preset) for name, preset in PRESETS.items())])


def _row(name: str, preset: Preset) -> tuple[str, ...]:
    """What a preset reports."""
    program = "your own" if preset.start[0] == OPTIONS else f"`{preset.start[0]}`"
    session = "new each time" if preset.resume is None else "kept"
    cost = "yes" if preset.output.reports_cost else "no"
    return (f"[{name}](#{name})", program, session, cost, _tokens(preset), _limits(preset), _seen(name))


def _tokens(preset: Preset) -> str:
    if not preset.output.reports_tokens:
        return "no"
    return "those that came out" if "report the tokens that went in" in preset.cannot else "yes"


def _limits(preset: Preset) -> str:
    """Whether a rate limit is recognised, and when it ends."""
    if preset.signs.rate_limit is None or any("report a rate limit" in text for text in preset.cannot):
        return "no"
    return "yes, not when they end" if "say when a rate limit ends" in preset.cannot else "yes, and when they end"


def _seen(name: str) -> str:
    """The versions whose answers were recorded."""
    if name == "scripted":
        return "nothing"
    found = sorted(path.parent.name.rpartition("-")[2] for path in RECORDINGS.glob(f"{name}-*/*ok.txt"))
    return f"its output: {', '.join(dict.fromkeys(found))}" if found else "its documentation"


def _section(name: str, preset: Preset) -> str:
    takes = [key for key in ("model", "tools", "max_cost") if getattr(preset, key) is not None]
    resume = "every run begins a new session" if preset.resume is None else f"`{_shown(preset.resume)}`"
    rows = [
        ("what", preset.about),
        ("starts", f"`{_shown(preset.start)}`"),
        ("resumes", resume),
        ("takes", ", ".join(f"`{key}`" for key in (*takes, "args"))),
        ("passes", ", ".join(f"`{name}`" for name in preset.passes) or "nothing"),
        ("sets", ", ".join(f"`{key}={value}`" for key, value in preset.env) or "nothing"),
        ("with `mcp`", _mcp(preset)),
        ("reports cost", "yes" if preset.output.reports_cost else "no"),
        ("reports tokens", _tokens(preset)),
        ("reports limits", _limits(preset)),
        ("known from", _seen(name)),
        ("cannot", "; ".join(preset.cannot) or "nothing that Wakeful asks for"),
        *([("note", "; ".join(preset.hints))] if preset.hints else []),
    ]
    lines = [f"| {key} | {value} |" for key, value in rows]
    return "\n".join([f"## {name}", "", "| | |", "|---|---|", *lines, ""])


def _mcp(preset: Preset) -> str:
    """How it is told of the MCP endpoint of its run."""
    if preset.mcp is None:
        return "your program finds the file that `WAKEFUL_MCP_CONFIG` names" if preset.start[0] == OPTIONS else "no"
    form = " ".join(preset.mcp.args) or ", ".join(f"{name}={value}" for name, value in preset.mcp.env)
    return f"`{form}`"


def _shown(form: tuple[str, ...]) -> str:
    return " ".join("OPTIONS" if item == OPTIONS else item for item in form)


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    print(f"{PAGE.name} written")
