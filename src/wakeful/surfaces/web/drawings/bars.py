"""Runs as bars: good ones stand up, as tall as they were long; bad ones hang down; quiet ones are short."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from markupsafe import Markup

from wakeful.counting import counted
from wakeful.kernel.model.job import Run
from wakeful.kernel.views.history import Lately
from wakeful.surfaces.web.rendering import cut, visible

TALLEST, SHORTEST, QUIET_HEIGHT, DEPTH = 14, 3, 2, 7
BASE, STEP = 15, 6
FEWEST = 20  # bars that there is room for, so that a few are not wide
BAD = ("error", "timeout", "crashed", "unknown")
STILL = ("noop", "skipped", "deferred", "cancelled")


def tone_of(outcome: str | None) -> str:
    """How an outcome is drawn: ok, bad, quiet, or run while there is none."""
    return "run" if outcome is None else "bad" if outcome in BAD else "quiet" if outcome in STILL else "ok"


def sparkline(last: Lately) -> Markup:
    """The last runs in 120 by 24 pixels: one path for each tone."""
    took = sorted(run.took for run in last.runs if run.took is not None)
    scale = max(1, took[max(0, -(-len(took) * 95 // 100) - 1)]) if took else 1
    paths: dict[str, list[str]] = {}
    for number, run in enumerate(last.runs):
        tone, x = tone_of(run.outcome), 2 + STEP * number
        if tone == "bad":
            paths.setdefault(tone, []).append(f"M{x} 16v{DEPTH}")
        else:
            tall = max(SHORTEST, min(TALLEST, round(TALLEST * (run.took or 0) / scale)))
            paths.setdefault(tone, []).append(f"M{x} {BASE}v-{QUIET_HEIGHT if tone == 'quiet' else tall}")
    lines = [Markup('<path class="{}" d="{}"/>').format(tone, "".join(parts)) for tone, parts in paths.items()]
    about = Markup('<svg class="spark" role="img" aria-label="{}">').format(describe(last))
    return about + Markup('<path class="base" d="M0 15.5h120"/>') + Markup("").join(lines) + Markup("</svg>")


def describe(last: Lately) -> str:
    """`last 20: 17 good, 2 failed, 1 running`."""
    if not last.runs:
        return "no runs yet"
    words = {"ok": "good", "quiet": "quiet", "bad": "failed", "run": "open"}
    counts = Counter(tone_of(run.outcome) for run in last.runs)
    parts = [f"{counts[tone]} {word}" for tone, word in words.items() if counts[tone]]
    return f"last {len(last.runs)}: {', '.join(parts)}"


def durations(
    runs: Sequence[Run],
    times: Sequence[int | None],
    usual: int | None,
    most: int | None,
    edits: Sequence[tuple[int, str]] = (),
) -> Markup:
    """Runs side by side, the oldest first, with the usual duration and the one that 95 in 100 stay under.

    `edits` are changes of the job: before which run, and in words.
    """
    top = max(1, (most or 1) * 1.6)
    share = 100 / max(FEWEST, len(runs))
    parts = [
        Markup('<line class="p" x2="100%" y1="{0}" y2="{0}"/>').format(_height(level, top))
        for level in (usual, most)
        if level is not None
    ]
    for number, (run, took) in enumerate(zip(runs, times, strict=True)):
        parts.append(_bar(run, took, round(number * share + share * 0.15, 2), round(share * 0.7, 2), top))
    for number, words in edits:
        parts.append(
            Markup(
                '<line class="rev" x1="{0}%" x2="{0}%" y1="2" y2="108"/><text x="{0}%" dx="5" y="12">{1}</text>'
            ).format(round(number * share, 2), words)
        )
    parts.append(Markup('<line class="base" x2="100%" y1="88.5" y2="88.5"/>'))
    label = f"The last {counted(len(runs), 'run')}"
    return (
        Markup('<svg class="durations" role="group" aria-label="{}">').format(label)
        + Markup("").join(parts)
        + Markup("</svg>")
    )


def _height(took: float, top: float) -> int:
    return 88 - round(min(1.0, took / top) * 80)


def _bar(run: Run, took: int | None, left: float, width: float, top: float) -> Markup:
    tone = tone_of(run.outcome)
    if tone == "bad":
        return Markup(
            '<a href="/runs/{0}" aria-label="{1}"><rect class="b bad" x="{2}%" y="89" width="{3}%" height="18">'
            "<title>{1}</title></rect></a>"
        ).format(run.id, cut(visible(f"{run.outcome}: {run.error or ''}"), 140), left, width)
    y = 84 if tone == "quiet" else min(85, _height(took or 0, top))
    return Markup('<rect class="b {}" x="{}%" y="{}" width="{}%" height="{}"/>').format(tone, left, y, width, 88 - y)


def ledger_bar(parts: Sequence[tuple[str, int]]) -> Markup:
    """Every slot of a span as one bar: `parts` are what became of them and how many."""
    total, left, drawn = sum(count for _, count in parts), 0.0, []
    for name, count in parts:
        width = 100 * count / total if total else 0
        drawn.append(
            Markup('<rect class="{}" x="{}%" width="{}%" height="20"/>').format(name, round(left, 2), round(width, 2))
        )
        left += width
    return Markup("").join(drawn)


def meter(used: float, most: float, expected: float | None = None) -> Markup:
    """How much of a cap is used, and about how much will be."""
    parts = []
    if expected is not None and most:
        parts.append(
            Markup('<rect class="p" width="{}%" height="8"/>').format(round(min(100, 100 * expected / most), 1))
        )
    parts.append(Markup('<rect width="{}%" height="8"/>').format(round(min(100, 100 * used / most), 1) if most else 0))
    return Markup("").join(parts)
