"""Whether agents can run at all within their budgets, and whether their schedules alone ask for more. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from wakeful.counting import counted
from wakeful.domains.agents.budgets.rules import BudgetLimits, Caps, caps_of, in_millionths, money, next_day, own_budget
from wakeful.domains.agents.hours import within_hours
from wakeful.domains.agents.naming import agent_of
from wakeful.domains.agents.runners.spec import reports_cost
from wakeful.triggers import Interval, TimedTrigger, Trigger, trigger_from_data

WEEK = 7
Place = tuple[str, ...]

# -- agents that can never run ----------------------------------------------------------------------------------------


def budget_problems(agent: Mapping[str, Any], *, usable: bool) -> Iterator[tuple[Place, str]]:
    """What is wrong with an agent's own budget, and where; `usable`: nothing is wrong with its runner."""
    where, per_day = ("budget", "cost_per_day"), (agent.get("budget") or {}).get("cost_per_day")
    most = _highest_cost(agent)
    if per_day is not None and most is not None and most[0] > per_day:
        named = ".".join(most[1])
        yield where, f"is {per_day:g}, and one run may cost {most[0]:g} ({named}): no run would ever start."
    if per_day is not None and most is None and usable and not reports_cost(agent["runner"]):
        what = "cannot be kept: this runner does not report what a run cost. Give runner.max_cost, which each run then"
        yield where, f"{what} counts; 0 if runs are free."


def never_affordable(agent: Mapping[str, Any], cost_per_day: float | None) -> tuple[Place, str] | None:
    """What is wrong with an agent of which one run alone may cost more than all agents together may in a day."""
    most = _highest_cost(agent)
    if most is None or cost_per_day is None or most[0] <= cost_per_day:
        return None
    what = f"is {most[0]:g}, and all agents together may cost {cost_per_day:g} a day (limits.cost_per_day)"
    return most[1], f"{what}: no run would ever start."


def _highest_cost(agent: Mapping[str, Any]) -> tuple[float, Place] | None:
    """What a run may cost at most, and where that is written; None where the runner has no limit."""
    own, fed = ((agent.get(key) or {}).get("max_cost") for key in ("runner", "untrusted"))
    if own is None:
        return None
    return (fed, ("untrusted", "max_cost")) if fed is not None and fed > own else (own, ("runner", "max_cost"))


# -- schedules that are more than a budget ----------------------------------------------------------------------------


class Scheduled(NamedTuple):
    """A job of an agent as a file has it."""

    name: str
    payload: Mapping[str, Any]
    trigger: Trigger


class Demand(NamedTuple):
    """What the schedules of an agent ask for on the busiest day of a week."""

    runs: int
    cost: int  # as far as it is known before: each run of a tool that reports none counts its max_cost
    most: int = 0  # with those of a tool that reports what they cost


def too_much(jobs: Iterable[Scheduled], limits: BudgetLimits, now: int) -> Iterator[tuple[str, str]]:
    """Budgets that the schedules alone exceed, and by how much: the place in the file, and a sentence."""
    runs, wholes = defaultdict[str, int](int), dict[str, Mapping[str, Any]]()
    for job in jobs:
        agent = agent_of(job.name)
        runs[agent] += _runs_a_day(job, now, limits.zone)
        if job.payload["does"] == "wake":
            wholes[agent] = job.payload
    asked = {agent: _demand(runs[agent], whole["runner"]) for agent, whole in wholes.items()}
    for agent, demand in asked.items():
        caps = caps_of(own_budget(wholes[agent].get("budget"), limits))
        yield from _exceeded(f"agents.{agent}.budget", "its schedules", demand, caps)
    together = Demand(sum(demand.runs for demand in asked.values()), sum(demand.cost for demand in asked.values()))
    yield from _exceeded("limits", "the schedules of all agents", together, limits.caps)


def uncounted(jobs: Iterable[Scheduled]) -> Iterator[tuple[str, str]]:
    """Agents to which a budget in money does not apply, since nobody knows what their runs cost."""
    for job in jobs:
        runner = job.payload.get("runner") or {}
        if job.payload["does"] == "wake" and runner.get("max_cost") is None and not reports_cost(runner):
            what = "does not report what a run cost, so limits.cost_per_day does not apply to it"
            yield f"agents.{agent_of(job.name)}.runner", f"{what}: give max_cost, 0 if runs are free."


def _exceeded(place: str, whose: str, demand: Demand, caps: Caps) -> Iterator[tuple[str, str]]:
    asks = f"{whose} ask for {counted(demand.runs, 'run')} a day"
    then = "later ones are passed over or wait for the next day. Raise it, or run them less often."
    if caps.runs is not None and demand.runs > caps.runs:
        yield f"{place}.runs_per_day", f"{asks}, and {caps.runs} may start: {then}"
    if caps.cost is not None and max(demand.cost, demand.most) > caps.cost:
        count = f"count {money(demand.cost)}" if demand.cost else f"may cost up to {money(demand.most)} (max_cost)"
        yield f"{place}.cost_per_day", f"{asks}, which {count}, and {money(caps.cost)} may be spent: {then}"


def _demand(runs: int, runner: Mapping[str, Any]) -> Demand:
    most = runs * (in_millionths(runner.get("max_cost")) or 0)
    return Demand(runs, 0 if reports_cost(runner) else most, most)


def _runs_a_day(job: Scheduled, now: int, zone: str) -> int:
    """How often a job calls its agent on the busiest of the next days; one that takes work items may have none."""
    payload = job.payload
    if payload.get("work") or payload["does"] == "wake":
        return 0
    data = job.trigger.to_data()
    if isinstance(job.trigger, Interval):
        data["type"] = "every"  # as often as it can, with runs that take no time
    trigger = within_hours(trigger_from_data(data), payload).resolved(now, zone)
    begins, counts = next_day(now, zone), list[int]()
    for _ in range(WEEK):
        ends = next_day(begins, zone)
        counts.append(trigger.count_slots(begins - 1, ends - 1))
        begins = ends
    most = trigger.max_runs if isinstance(trigger, TimedTrigger) else None
    return max(counts) if most is None else min(most, max(counts))
