"""The timeline: one drawing a row, past on the left, what is to come on the right, now in the middle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
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
MOST_SHAPES = 40  # of a row, the newest ones; earlier ones are bars of their tone
ALL_SHAPES = 60  # of all rows together, though one of each
MOST_BARS = 150  # bars of all rows together that are drawn one by one
FEW = 4  # bars of a row that are drawn one by one where there are more
EDGE = 0.22  # about how much the edge of a bar adds to its width, in percent
OFF = 0.04  # how far from its place a bar of an even strip may be, in percent
ROOM = 15_000  # characters for all rows: with it a busy page stays within 32 KB
FRAME = 255  # characters of a row around its drawing
LEAST_ROWS, STEP_ROWS = 8, 4  # fewer rows are left out by so many at a time, so that they do not come and go
PATTERN, DASH = 120, 7  # about how many characters a line takes, and each of its dashes where they are uneven
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
    last: int
    run: str

    @property
    def width(self) -> float:
        return round(max(0.17, self.right - self.left), 2)


class Drawing(NamedTuple):
    """What is drawn of one row: runs with a shape of their own, and all others as bars."""

    row: Row
    shapes: list[tuple[Mark, int]]
    bars: list[Bar]


def draw_row(row: Row, line: Timeline, clock: Clock) -> Markup:
    """The runs and the coming starts of one job."""
    return draw_rows([row], line, clock)[0]


def draw_rows(rows: Sequence[Row], line: Timeline, clock: Clock) -> list[Markup]:
    """Each of them. What a page of many runs has to say of each is said of all that make up one strip."""
    scale = Scale(line.since, line.until)
    failing = sum(any(mark.what in SHAPES for mark in row.marks) for row in rows)
    most = max(1, ALL_SHAPES // max(1, failing))
    drawings = [_drawing(row, most, scale, line.now) for row in rows]
    many = len(rows) > 1 and sum(len(one.bars) for one in drawings) > MOST_BARS
    return [_drawn(one, line, scale, clock, FEW if many else None) for one in drawings]


def rows_with_room(rows: Sequence[tuple[Row, Markup]]) -> list[tuple[Row, Markup]]:
    """As many of them as a page has room for: where much is drawn, those that matter less are left to the list."""
    most = len(rows)
    by_rank = sorted((row.rank, len(drawn) + FRAME + 2 * len(row.job.name)) for row, drawn in rows)
    while most > LEAST_ROWS and sum(size for _, size in by_rank[:most]) > ROOM:
        most -= STEP_ROWS
    return [(row, drawn) for row, drawn in rows if row.rank < by_rank[most - 1][0] + 1] if most else []


def _drawing(row: Row, most: int, scale: Scale, now: int) -> Drawing:
    shaped = [mark for mark in row.marks if mark.what in SHAPES][-MOST_SHAPES:]
    near = list(_near(shaped, scale))[-most:]
    kept = sum(runs for _, runs in near)
    apart = set(shaped[-kept:] if kept else [])
    return Drawing(row, near, _merged([mark for mark in row.marks if mark not in apart], scale, now))


def _drawn(one: Drawing, line: Timeline, scale: Scale, clock: Clock, few: int | None) -> Markup:
    label = escape(describe_row(one.row, line, clock))
    if few is None:
        parts = [f'<svg role="group" aria-label="{label}"><use href="#back"/>', *_bars(one.bars, clock)]
    else:
        strips = _strips(one, scale, clock) if len(one.bars) > few else _bars(one.bars, clock)
        parts = [f'<svg role="group"><title>{label}</title><use href="#back"/>', *strips]
    parts += _shapes(one.shapes, scale, line.now, clock)
    parts += _ahead(one.row, scale)
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


def _bars(bars: Iterable[Bar], clock: Clock) -> Iterator[str]:
    for bar in bars:
        title = clock(bar.first) if bar.runs == 1 else f"{counted(bar.runs, 'run')} from {clock(bar.first)}"
        if bar.tone == "quiet" and bar.runs == 1:
            yield f'<circle class="b quiet" cx="{bar.left}%" cy="{LINE}" r="2.2"><title>{title}</title></circle>'
            continue
        drawn = f'<rect class="b {bar.tone}" x="{bar.left}%" width="{bar.width}%"><title>{title}</title></rect>'
        label = f"running since {clock(bar.first)}"
        is_link = bar.tone == "run" and bar.run
        yield f'<a href="/runs/{bar.run}" aria-label="{label}">{drawn}</a>' if is_link else drawn


def _strips(one: Drawing, scale: Scale, clock: Clock) -> Iterator[str]:
    """Bars of one look as the dashes of a line: a few numbers instead of an element for each."""
    hidden = [scale.at(mark.at) for mark, _ in one.shapes]
    for tone in ("ok", "bad", "crash", "wait", "quiet"):
        found = [bar for bar in one.bars if bar.tone == tone and (tone != "quiet" or bar.runs == 1)]
        parts = _even(found, hidden)
        if len(parts) * PATTERN < PATTERN + len(found) * DASH:
            yield from ("".join(_bars(part, clock)) if steps < 1 else _strip(part, steps) for part, steps in parts)
        else:
            yield _strip(found)
    yield from _bars((bar for bar in one.bars if bar.tone == "run" or (bar.tone == "quiet" and bar.runs > 1)), clock)


def _even(bars: Sequence[Bar], hidden: Sequence[float]) -> list[tuple[list[Bar], int]]:
    """Parts in which all bars are of one width and equally far apart, and of how many steps each is.

    A step at which a shape would cover a bar needs none.
    """
    parts: list[tuple[list[Bar], int]] = []
    for bar in bars:
        part, steps = parts[-1] if parts else ([], 0)
        if part and abs(bar.width - part[0].width) <= OFF:
            step = (part[-1].left - part[0].left) / steps if steps else bar.left - part[0].left
            more = round((bar.left - part[-1].left) / step) if step > 0 else 1
            is_there = abs(part[0].left + step * (steps + more) - bar.left) <= OFF
            covered = (part[-1].left + step * turn for turn in range(1, more))
            if is_there and all(any(abs(place - one) < NEAR / 2 for one in hidden) for place in covered):
                part.append(bar)
                parts[-1] = part, steps + more
                continue
        parts.append(([bar], 0))
    return parts


def _strip(bars: Sequence[Bar], steps: int = 0) -> str:
    """One line, of so many even steps if there are any."""
    tone, first, last = bars[0].tone, bars[0], bars[-1]
    edge, begin = (0.0, first.left) if tone == "quiet" else (EDGE, first.left - EDGE / 2)
    wide = [0.0 if tone == "quiet" else bar.width + edge for bar in bars]
    end = begin + last.left - first.left + wide[-1]
    if steps:
        dash = round(wide[0] * 100)
        pattern = f"{dash} {round((last.left - first.left) * 100 / steps - dash, 2):g}"
    else:
        gaps = [
            round((right.left - left.left - dash) * 100)
            for (left, right), dash in zip(pairwise(bars), wide, strict=False)
        ]
        pattern = " ".join(f"{round(dash * 100)} {gap}" for dash, gap in zip(wide, [*gaps, 0], strict=True))
    length = max(1, round((end - begin) * 100))
    about = f'x1="{begin:.4g}%" x2="{end:.4g}%" pathLength="{length}" stroke-dasharray="{pattern}"'
    # Rings are dots, and smaller ones on them.
    return f'<line class="s {tone}" {about}/>' + (f'<line class="s hole" {about}/>' if tone == "quiet" else "")


def _merged(marks: Sequence[Mark], scale: Scale, now: int) -> list[Bar]:
    found: list[Bar] = []
    for mark in marks:
        tone = _tone(mark)
        left, right = scale.at(mark.at), scale.at(mark.until if mark.until is not None else now)
        last = found[-1] if found else None
        together = last is not None and last.tone == tone and (last.first <= now) == (mark.at <= now)
        if last is not None and together and left - last.right < MERGED:
            found[-1] = last._replace(right=max(last.right, right), runs=last.runs + 1, last=mark.at, run=mark.run)
        else:
            found.append(Bar(left, right, tone, 1, mark.at, mark.at, mark.run))
    return found


def _tone(mark: Mark) -> str:
    if mark.what in SHAPES:
        return SHAPES[mark.what][1]
    return "run" if mark.until is None or mark.what == "active" else "quiet" if mark.what in QUIET else "ok"


def _shapes(shapes: Iterable[tuple[Mark, int]], scale: Scale, now: int, clock: Clock) -> Iterator[str]:
    for mark, runs in shapes:
        shape, tone = SHAPES[mark.what]
        label = f"{clock(mark.at)} {mark.what}" + (f", the last of {runs}" if runs > 1 else "")
        left = scale.at(mark.at)
        if mark.what == "waiting":
            yield f'<rect class="b wait" x="{left}%" width="{round(scale.at(now) - left, 2)}%"/>'
        about = f'class="i {tone}" x="{left}%" width="16" height="16"'
        drawn = f'<svg {about}><title>{label}</title><use href="#{shape}"/></svg>'
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
        yield f'<line class="f dots" x1="{first:g}%" x2="100%"/>'
        return
    if len(places) == 1:
        yield f'<line class="f" x1="{first:g}%" x2="{first:g}%" y1="9" y2="19"/>'
        return
    begin, end = round(first - TICK / 2, 2), round(last + TICK / 2, 2)
    about = f'pathLength="{round((end - begin) * 100)}" stroke-dasharray="{_dashes(places)}"'
    yield f'<line class="f each" x1="{begin:g}%" x2="{end:g}%" {about}/>'


def _dashes(places: Sequence[float]) -> str:
    """Dashes and gaps between these places, in hundredths of a percent; one of each where they are alike."""
    dash = round(TICK * 100)
    gaps = [max(0, round((right - left - TICK) * 100)) for left, right in pairwise(places)]
    if max(gaps) - min(gaps) <= 2:
        return f"{dash} {round((places[-1] - places[0]) * 100 / len(gaps) - dash, 2)}"
    return " ".join([*(f"{dash} {gap}" for gap in gaps), str(dash)])
