"""Every mistake of a file is reported at once, of structure, of meaning and of reference: each once, where it is."""

from __future__ import annotations

import pytest

from wakeful.config.loading import load
from wakeful.config.reading import ConfigError

pytestmark = pytest.mark.promise("D1")

WRONG = """\
servr: 1
server: {port: abc, hosst: x, hots: y}
limits: {min_interval: 5 minuten}
defaults: {timezone: Europe/Berlinn}
connectors:
  phone: {url: bogus, typ: x}
  phone: {url: bogus}
alerts: {to: fone, speed: 3}
jobs:
  a:
    cron: "99 * * * *"
    command: [echo, hi]
    timeout: 5 minutes
    deliver: {to: fone, on: sometimes}
    tiemout: 3m
    max_runs: -1
    retry: {times: x, on: y}
    jitter: 50
    jitter: 3
    active_hours: {start: "9", end: "25:00"}
    timezone: Nowhere/X
    lanes: {gpu: 0, cpu: 0}
  b:
    after: d
    url: "ht!tp://"
    headers: {A: 1, B: 2}
    commnd: [x]
  c:
    every: 5x
    at: 2026-13-01
    command: ls
    env: {A: 1, B: "${NOPE}"}
    cwd: "${HOME}"
  d: {after: b, command: [x], enabled: 3}
  e: {every: 1h, command: [x], start: "2026-02-01", until: "2026-01-01"}
  f: 3
agents:
  fox:
    runner: {preset: claud, timeout: 3 days}
    deliver: nowhere
    heartbeat: {every: 5x}
    schedules:
      one:
        cron: "99 * * * *"
        timeout: 5 minutes
        lanes: {gpu: 0}
        jitter: 50
        deliver: nowhere
        work: true
        hooks: {to: beeper, on: never}
        foo: 1
      two: {every: 5m, cron: "* * * * *", on_crash: never}
      three: {webhook: {verify: bogus}, active_hours: 9-25}
    budget: {runs_per_day: -1}
  Fox: {runner: {start: [x]}}
  wolf: {schedules: {x: {every: 1h, unti: x}}}
workflows: 3
"""
PLACES = """\
1:1 servr
2:10 server.port
2:21 server.hosst
2:31 server.hots
3:10 limits.min_interval
4:12 defaults.timezone
6:11 connectors.phone.url
6:23 connectors.phone.typ
7:3 connectors.phone
8:10 alerts.to
8:20 alerts.speed
11:5 jobs.a.cron
13:5 jobs.a.timeout
14:15 jobs.a.deliver.to
14:25 jobs.a.deliver.on
15:5 jobs.a.tiemout
16:5 jobs.a.max_runs
17:13 jobs.a.retry.times
17:23 jobs.a.retry.on
18:5 jobs.a.jitter
19:5 jobs.a.jitter
20:20 jobs.a.active_hours.start
20:32 jobs.a.active_hours.end
21:5 jobs.a.timezone
22:13 jobs.a.lanes.gpu
22:21 jobs.a.lanes.cpu
24:5 jobs.b.after
25:5 jobs.b.url
26:15 jobs.b.headers.A
26:21 jobs.b.headers.B
27:5 jobs.b.commnd
29:5 jobs.c.every
30:5 jobs.c.at
31:5 jobs.c.command
32:11 jobs.c.env.A
32:17 jobs.c.env.B
33:5 jobs.c.cwd
34:31 jobs.d.enabled
35:53 jobs.e.until
36:3 jobs.f
39:14 agents.fox.runner.preset
39:29 agents.fox.runner.timeout
40:5 agents.fox.deliver
41:17 agents.fox.heartbeat.every
44:9 agents.fox.schedules.one.cron
45:9 agents.fox.schedules.one.timeout
46:17 agents.fox.schedules.one.lanes.gpu
47:9 agents.fox.schedules.one.jitter
48:9 agents.fox.schedules.one.deliver
49:9 agents.fox.schedules.one.work
50:17 agents.fox.schedules.one.hooks.to
50:29 agents.fox.schedules.one.hooks.on
51:9 agents.fox.schedules.one.foo
52:13 agents.fox.schedules.two.every
52:43 agents.fox.schedules.two.on_crash
53:15 agents.fox.schedules.three.webhook.secret
53:25 agents.fox.schedules.three.webhook.verify
53:41 agents.fox.schedules.three.active_hours.start
53:41 agents.fox.schedules.three.active_hours.end
54:14 agents.fox.budget.runs_per_day
55:3 agents.Fox
56:3 agents.wolf.runner
56:37 agents.wolf.schedules.x.unti
57:1 workflows
"""


def test_every_mistake_of_a_file_is_reported_once_and_at_its_own_place(tmp_path):
    path = tmp_path / "wakeful.yaml"
    path.write_text(WRONG, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load(path, {})
    found = [f"{fault.line}:{fault.column} {fault.key}" for fault in caught.value.faults]
    assert found == PLACES.splitlines()
    assert all(fault.message.endswith((".", "?")) for fault in caught.value.faults)
