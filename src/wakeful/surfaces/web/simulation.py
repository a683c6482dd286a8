"""`/simulate`: what the jobs will do, drawn next to what they did."""

from __future__ import annotations

import shlex
from collections import defaultdict
from typing import Any, NamedTuple

from wakeful.counting import counted
from wakeful.errors import IntervalParseError, InvalidSetting, NotFound
from wakeful.foresight.beside import simulate_beside
from wakeful.foresight.question import SimulationRequest, faults_of, read_assumed, read_failing
from wakeful.foresight.recording import SimulatedRun
from wakeful.foresight.simulating import Simulation
from wakeful.kernel.views.timeline import Band, Mark, Row, Timeline, timeline
from wakeful.surfaces.web.drawings.timeline import draw_back, draw_head, draw_rows
from wakeful.surfaces.web.marks import look_of_job
from wakeful.surfaces.web.now import ticks_of
from wakeful.surfaces.web.pages import PageRequest, Region, WebPage
from wakeful.surfaces.web.remembering import Remembered
from wakeful.surfaces.web.rendering import money, number
from wakeful.triggers.durations import interval_ms

DAY_MS = 86_400_000
MOST_MS = 31 * DAY_MS
#: So many runs are simulated for a page at most; the command line and the API go further.
MOST_RUNS = 20_000
MOST_S = 10  # a page takes no longer
NOTES_SHOWN, JOBS_SHOWN = 20, 100
SPANS = {"1d": "a day", "7d": "a week", "30d": "30 days"}
FIELDS = ("assume", "fail", "down")


class SimulationView(NamedTuple):
    """A simulation, with the runs of each job."""

    done: Simulation
    marks: dict[str, list[Mark]]


DONE: Remembered[SimulationView] = Remembered()


def span_asked(asked: PageRequest) -> str:
    return asked.query.get("for") or "1d"


def question_of(asked: PageRequest) -> SimulationRequest:
    """The question of the address; InvalidSetting where it is none."""
    query = asked.query
    try:
        length = interval_ms(span_asked(asked))
    except IntervalParseError as error:
        raise InvalidSetting(f"for is a duration such as 7d: {error}.") from error
    if not 0 < length <= MOST_MS:
        raise InvalidSetting(f"for is more than nothing and at most 31d, not {span_asked(asked):.80}.")
    given = {name: _words(query.get(name, "")) for name in FIELDS}
    return SimulationRequest(
        length,
        seed=_seed(query.get("seed", "")),
        assume=read_assumed(given["assume"]),
        fail=read_failing(given["fail"]),
        down=given["down"],
        most_runs=MOST_RUNS,
    )


def _words(text: str) -> list[str]:
    """What is separated by spaces; a name with a space is quoted, as in a shell."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InvalidSetting(f"A quotation mark is missing in {text!r:.80}.") from error


def _seed(text: str) -> int:
    if text and not (text.isascii() and text.isdigit() and int(text[:11]) < 2**31):
        raise InvalidSetting(f"seed is a number from 0 to 2147483647, not {text!r:.80}.")
    return int(text[:11] or 1)


async def answer(asked: PageRequest, question: SimulationRequest) -> SimulationView:
    """Simulate, or give what was found a moment ago."""

    async def find() -> SimulationView:
        marks: dict[str, list[Mark]] = defaultdict(list)
        done = await simulate_beside(
            asked.scheduler, question, lambda run: marks[run.job].append(_mark(run)), most_s=MOST_S
        )
        return SimulationView(done, {name: sorted(found) for name, found in marks.items()})

    return await DONE.ask(asked.scheduler, repr(question), find)


def _mark(run: SimulatedRun) -> Mark:
    ended = run.ended_at if run.ended_at is not None else run.started_at
    return Mark(run.started_at, ended, run.outcome or "active", "")


async def simulation(asked: PageRequest) -> dict[str, Any]:
    """What will happen, or why the question cannot be answered."""
    shown = {"for": span_asked(asked), "spans": SPANS, "given": {name: asked.query.get(name, "") for name in FIELDS}}
    try:
        question = question_of(asked)
        found = await answer(asked, question)
        bands = [Band(one.begins, one.ends) for one in faults_of(question, found.done.begins, asked.times.zone).outages]
    except (InvalidSetting, NotFound) as error:
        return {**shown, "refused": str(error), "done": None}
    past = await asked.scheduler.read(
        lambda tx: timeline(tx, question.for_ms, question.for_ms, asked.scheduler.host.hidden_kinds)
    )
    line = joined(past, found, bands)
    hours = 2 if question.for_ms <= DAY_MS // 2 else 4 if question.for_ms <= DAY_MS else 24
    clock = asked.times.plain if hours < 24 else asked.times.day
    ticks = ticks_of(line, hours, asked.times)
    said = {job.name: job for job in found.done.jobs}
    return {
        **shown,
        "refused": None,
        "done": found.done,
        "sentence": sentence_of(found.done),
        "notes": found.done.notes[:NOTES_SHOWN],
        "jobs": sorted(found.done.jobs, key=lambda job: (-sum(job.skipped.values()), -job.runs, job.name))[:JOBS_SHOWN],
        "lanes": [lane for lane in found.done.lanes if lane.size is not None],
        "line": line,
        "back": draw_back(line, ticks),
        "head": draw_head(line, ticks, clock),
        "rows": [
            (row, drawn, look_of_job(row.job), said.get(row.job.name))
            for row, drawn in zip(line.rows, draw_rows(line.rows, line, clock), strict=True)
        ],
    }


def joined(past: Timeline, found: SimulationView, bands: list[Band]) -> Timeline:
    """The past as it was, and behind the line what the simulation did; jobs with a note about them first."""
    noted = {note.job for note in found.done.notes}
    rows = [Row(row.job, [*row.marks, *found.marks.get(row.job.name, [])], [], more_ahead=False) for row in past.rows]
    rows.sort(key=lambda row: row.job.name not in noted)
    return past._replace(now=found.done.begins, rows=rows, bands=[*past.bands, *bands])


def sentence_of(done: Simulation) -> str:
    """The answer in one sentence."""
    skipped = sum(sum(job.skipped.values()) for job in done.jobs)
    parts = [f"{number(done.total)} {'run' if done.total == 1 else 'runs'}"]
    parts += [f"{number(skipped)} {'slot' if skipped == 1 else 'slots'} without a run"] if skipped else []
    parts += [f"about {money(done.cost.expected)}"] if done.cost.expected else []
    parts += [f"{counted(len(done.notes), 'thing')} to know"] if done.notes else []
    return ", ".join(parts)


def twin(asked: PageRequest) -> str:
    """The command that says the same."""
    words = ["wakeful", "simulate", "--for", span_asked(asked)]
    if asked.query.get("seed"):
        words += ["--seed", asked.query["seed"]]
    try:
        for name in FIELDS:
            words += [word for one in _words(asked.query.get(name, "")) for word in (f"--{name}", one)]
    except InvalidSetting:
        return "wakeful simulate"
    return shlex.join(words)


page = WebPage(
    "simulate",
    "/simulate",
    lambda _: "Simulate",
    (Region("simulation", (), simulation),),
    twin,
    tab="more",
    role="operator",
)
