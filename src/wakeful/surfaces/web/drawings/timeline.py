"""The timeline: one drawing a row, past on the left, what is to come on the right, now in the middle."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from markupsafe import Markup, escape

from wakeful.counting import counted
from wakeful.kernel.views.timeline import Mark, Row, Timeline

#: Outcomes that are links with a shape of their own; all others are bars.
SHAPES = {
    "error": ("error", "bad"),
    "timeout": ("timeout", "bad"),
    "crashed": ("crashed", "crash"),
    "unknown": ("unknown", "wait"),
    "waiting": ("waiting", "wait"),
}
QUIET = ("noop", "skipped", "deferred", "cancelled")
MERGED = 0.4  # bars that are closer than this, in percent, are one
DENSE = 0.75  # coming starts that are closer than this on average are a dotted line
TICK = 0.16  # the width of a coming start
NEAR = 0.8  # shapes of one outcome that are closer than this would hide one another: they are one
MOST_SHAPES = 40  # the newest ones; earlier ones are bars of their tone
LINE = 14

Clock = Callable[[int], str]


class Scale(NamedTuple):
    """Where a moment lies, in percent of the width."""

    since: int
    until: int

    def at(self, ms: int) -> float:
        share = (ms - self.since) / max(1, self.until - self.since)
        return round(min(1.0, max(0.0, share)) * 100, 2)


class Bar(NamedTuple):
    """Runs of one look that lie so close together that they are drawn as one."""

    left: float
    right: float
    tone: str
    runs: int
    first: int


def draw_row(row: Row, line: Timeline, clock: Clock) -> Markup:
    """The runs and the coming starts of one job."""
    scale = Scale(line.since, line.until)
    shaped = [mark for mark in row.marks if mark.what in SHAPES][-MOST_SHAPES:]
    apart = set(shaped)
    parts = [f'<svg role="group" aria-label="{escape(describe_row(row, line, clock))}"><use href="#back"/>']
    parts += _bars([mark for mark in row.marks if mark not in apart], scale, line.now, clock)
    parts += _shapes(shaped, scale, line.now, clock)
    parts += _ahead(row, scale)
    return Markup("".join(parts) + "</svg>")  # noqa: S704 - numbers, our own words, and a label that is escaped


def draw_back(line: Timeline, ticks: Sequence[int]) -> Markup:
    """What all rows have behind them: what is ahead, times in which nothing could run, a grid, and now."""
    scale = Scale(line.since, line.until)
    now = scale.at(line.now)
    parts = [Markup('<rect class="ahead" x="{}%" width="{}%" height="100%"/>').format(now, round(100 - now, 2))]
    for band in line.bands:
        left, right = scale.at(band.begin), scale.at(band.end)
        parts.append(
            Markup('<rect x="{}%" width="{}%" height="100%" fill="url(#hatch)"/>').format(left, round(right - left, 2))
        )
    parts += [Markup('<line class="grid" x1="{0}%" x2="{0}%" y2="100%"/>').format(scale.at(at)) for at in ticks]
    parts.append(Markup('<line class="now" x1="{0}%" x2="{0}%" y2="100%"/>').format(now))
    return Markup('<g id="back">') + Markup("").join(parts) + Markup("</g>")


def draw_head(line: Timeline, ticks: Sequence[int], clock: Clock) -> Markup:
    """The hours above the rows; on a narrow screen fewer of them."""
    scale = Scale(line.since, line.until)
    texts = []
    for number, at in enumerate(ticks):
        place = scale.at(at)
        if place < 3 or place > 97 or abs(place - scale.at(line.now)) < 5:
            continue
        name = " ".join(word for word, so in (("far", not 25 < place < 75), ("odd", number % 2 == 1)) if so)
        texts.append(Markup('<text class="{}" x="{}%" y="20">{}</text>').format(name, place, clock(at)))
    now = scale.at(line.now)
    tag = Markup(
        '<rect class="nowtag" x="{0}%" y="5" width="46" height="20" rx="4" transform="translate(-23)"/>'
        '<text class="n" x="{0}%" y="19">{1}</text>'
    ).format(now, clock(line.now))
    return Markup('<svg aria-hidden="true">') + Markup("").join(texts) + tag + Markup("</svg>")


def describe_row(row: Row, line: Timeline, clock: Clock) -> str:
    """The same in words."""
    done = [mark for mark in row.marks if mark.until is not None and mark.at <= line.now]
    ahead = [mark for mark in row.marks if mark.at > line.now]
    bad = [mark for mark in [*done, *ahead] if mark.what in SHAPES]
    parts = [f"{counted(len(done), 'run')} since {clock(line.since)}"]
    if ahead:
        parts.append(f"{len(ahead)} simulated")
    if bad:
        parts.append(f"{len(bad)} of them not well, the last at {clock(bad[-1].at)}")
    if any(mark.what == "active" for mark in row.marks):
        parts.append("running now")
    if any(mark.what == "waiting" for mark in row.marks):
        parts.append("waits for a person")
    if row.ahead:
        parts.append(f"next at {clock(row.ahead[0])}")
    return f"{row.job.name}: {', '.join(parts)}"


def _bars(marks: Sequence[Mark], scale: Scale, now: int, clock: Clock) -> Iterator[str]:
    for bar in _merged(marks, scale, now):
        title = clock(bar.first) if bar.runs == 1 else f"{counted(bar.runs, 'run')} from {clock(bar.first)}"
        if bar.tone == "quiet" and bar.runs == 1:
            yield f'<circle class="b quiet" cx="{bar.left}%" cy="{LINE}" r="2.2"><title>{title}</title></circle>'
        else:
            place = f'x="{bar.left}%" y="8" width="{round(max(0.17, bar.right - bar.left), 2)}%" height="12"'
            yield f'<rect class="b {bar.tone}" {place}><title>{title}</title></rect>'


def _merged(marks: Sequence[Mark], scale: Scale, now: int) -> list[Bar]:
    found: list[Bar] = []
    for mark in marks:
        tone = _tone(mark)
        left, right = scale.at(mark.at), scale.at(mark.until if mark.until is not None else now)
        last = found[-1] if found else None
        together = last is not None and last.tone == tone and (last.first <= now) == (mark.at <= now)
        if last is not None and together and left - last.right < MERGED:
            found[-1] = last._replace(right=max(last.right, right), runs=last.runs + 1)
        else:
            found.append(Bar(left, right, tone, 1, mark.at))
    return found


def _tone(mark: Mark) -> str:
    if mark.what in SHAPES:
        return SHAPES[mark.what][1]
    return "run" if mark.until is None or mark.what == "active" else "quiet" if mark.what in QUIET else "ok"


def _shapes(marks: Sequence[Mark], scale: Scale, now: int, clock: Clock) -> Iterator[str]:
    for mark, runs in _near(marks, scale):
        shape, tone = SHAPES[mark.what]
        label = f"{clock(mark.at)} {mark.what}" + (f", the last of {runs}" if runs > 1 else "")
        left = scale.at(mark.at)
        if mark.what == "waiting":
            yield f'<rect class="b wait" x="{left}%" y="9" width="{round(scale.at(now) - left, 2)}%" height="10"/>'
        about = f'class="i {tone}" x="{left}%" y="6" width="16" height="16"'
        drawn = f'<svg {about}><title>{label}</title><use href="#{shape}" x="-8"/></svg>'
        # What was simulated is no run that could be looked at.
        yield f'<a href="/runs/{mark.run}" aria-label="{label}">{drawn}</a>' if mark.run else drawn


def _near(marks: Sequence[Mark], scale: Scale) -> list[tuple[Mark, int]]:
    """The shapes that are drawn, and for how many each stands: the last of those that would hide one another."""
    found: list[tuple[Mark, int]] = []
    begin = 0.0
    for mark in marks:
        left = scale.at(mark.at)
        if found and found[-1][0].what == mark.what != "waiting" and left - begin < NEAR:
            found[-1] = mark, found[-1][1] + 1
        else:
            begin = left
            found.append((mark, 1))
    return found


def _ahead(row: Row, scale: Scale) -> Iterator[str]:
    """Coming starts as one line: dotted where they are many, else with a dash at each of them."""
    if not row.ahead:
        return
    places = [scale.at(at) for at in row.ahead]
    first, last = places[0], places[-1]
    is_dense = len(places) > 2 and (last - first) / (len(places) - 1) < DENSE
    if row.more_ahead or is_dense:
        yield f'<line class="f dots" x1="{first}%" x2="100%" y1="{LINE}" y2="{LINE}"/>'
        return
    if len(places) == 1:
        yield f'<line class="f" x1="{first}%" x2="{first}%" y1="9" y2="19"/>'
        return
    begin, end = round(first - TICK / 2, 2), round(last + TICK / 2, 2)
    about = f'pathLength="{round((end - begin) * 100)}" stroke-dasharray="{_dashes(places)}"'
    yield f'<line class="f each" x1="{begin}%" x2="{end}%" y1="{LINE}" y2="{LINE}" {about}/>'


def _dashes(places: Sequence[float]) -> str:
    """Dashes and gaps between these places, in hundredths of a percent; one of each where they are alike."""
    dash = round(TICK * 100)
    gaps = [max(0, round((right - left - TICK) * 100)) for left, right in pairwise(places)]
    if max(gaps) - min(gaps) <= 2:
        return f"{dash} {round((places[-1] - places[0]) * 100 / len(gaps) - dash, 2)}"
    return " ".join([*(f"{dash} {gap}" for gap in gaps), str(dash)])
