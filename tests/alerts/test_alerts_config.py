"""`alerts` in a file: what is wrong with it is found, with the line, and secrets are not repeated."""

from __future__ import annotations

import pytest

from tests.alerts.phones import Phone, with_phone
from tests.kernel.scene import failing, virtual
from wakeful import Manual
from wakeful.config.loading import load_config
from wakeful.config.reading import ConfigError
from wakeful.domains.alerts.configuration import AlertsSection, reload
from wakeful.kernel.rules.alerting import DEFAULTS, AlertRules

CONNECTOR = "connectors:\n  phone: {type: log}\n"


def faults(tmp_path, text):
    path = tmp_path / "wakeful.yaml"
    path.write_text(CONNECTOR + text)
    with pytest.raises(ConfigError) as error:
        load_config(path)
    return [(fault.line, fault.message) for fault in error.value.faults]


def rules(tmp_path, text):
    path = tmp_path / "wakeful.yaml"
    path.write_text(CONNECTOR + text)
    return load_config(path).alerts.rules()


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("alerts: {to: phnoe}", 3, "alerts.to: there is no connector named 'phnoe'. Did you mean 'phone'?"),
        ("alerts:\n  to: phone\n  cooldwn: 1h", 5, "There is no key 'cooldwn' in alerts. Did you mean 'cooldown'?"),
        ("alerts:\n  after: 0", 4, "alerts.after must be at least 1, not 0."),
        ("alerts: {after: often}", 3, "alerts.after must be a whole number"),
        ("alerts: {cooldown: soon}", 3, "alerts.cooldown must be a duration such as 30m or 1h"),
        ("alerts: {grace: 0}", 3, "alerts.grace must be longer than nothing"),
        ("alerts: {urgent: [nope]}", 3, "alerts.urgent.0 must be a kind of alert"),
        ("alerts: phone", 3, "alerts must be a section with keys of its own"),
        ("alerts: {dead_man_url: 'ftp://a/PLANTED'}", 3, "alerts.dead_man_url must be an address such as https://"),
    ],
)
def test_a_mistake_is_found_with_its_line(tmp_path, text, line, part):
    ((found, message),) = faults(tmp_path, text)
    assert (found, part in message) == (line, True), message
    assert "PLANTED" not in message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", DEFAULTS),
        ("alerts: {to: phone}", DEFAULTS._replace(to="phone")),
        ("alerts: {to: last, after: 1, cooldown: 0, grace: 30s, urgent: []}", AlertRules("last", 1, 0, 30_000, ())),
        ("alerts: {to: none}", DEFAULTS),
    ],
)
def test_what_a_file_says_is_what_every_process_knows(tmp_path, text, expected):
    assert rules(tmp_path, text) == expected


@virtual
async def test_a_running_server_takes_over_where_alerts_go(scene):
    first, second = Phone(scene), Phone(scene)
    async with with_phone(scene, first) as scheduler:
        scheduler.connectors.register("other", second)
        await reload(scheduler, AlertsSection(to="phone", after=1))
        scene.act = failing("broken")
        await scheduler.add_job("a", Manual())
        await scheduler.start()
        await scheduler.run_job("a")
        await scene.sleep(5)
        await reload(scheduler, AlertsSection(to="other", after=1))
        await scheduler.add_job("b", Manual())
        await scheduler.run_job("b")
        await scene.sleep(5)
    assert (first.titles, second.titles) == (["a: failing"], ["b: failing"])
