"""Webhooks that are sent again start one run."""

from __future__ import annotations

import hashlib
import hmac

import pytest

from tests.agents.hooks import SECRET, Sender, hook, signed
from tests.agents.virtual_agents import agent
from tests.kernel.scene import virtual
from wakeful.errors import InvalidJob

UNSIGNED = {"header": "X-Sig", "id": {"header": "X-Id"}}
TIMED = {"header": "X-Sig", "signed": "{timestamp}.{body}", "timestamp": {"header": "X-At"}, "id": {"header": "X-Id"}}


@pytest.mark.promise("X18")
@virtual
async def test_a_signed_request_runs_once_whatever_unsigned_id_it_is_sent_again_with(scene, agents):
    async with agents.scheduler() as scheduler:
        await scheduler.agents.apply({"a": agent(schedules={"deploy": hook()})})
        await scheduler.start()
        sender, body = Sender(scheduler), b'{"ref": "main"}'
        first = await sender.send(body, "d-1")
        for again in ("d-2", "d-3", None):
            found = await sender.send(body, again)
            assert found.json() == {**first.json(), "duplicate": True}
        # Signatures that are wrong stand beside the right one, which is another header.
        signature = signed(body)["X-Hub-Signature-256"]
        padded = await sender.post("a/deploy", body, {**signed(body), "X-Hub-Signature-256": f"sha256=00,{signature}"})
        assert padded.json() == {**first.json(), "duplicate": True}
        other = await sender.send(b'{"ref": "next"}', "d-1")
        assert other.json()["duplicate"]  # an id counts once, whatever is sent with it
        assert not (await sender.send(b'{"ref": "next"}', "d-4")).json()["duplicate"]
        await scene.sleep(60)
        assert len(agents.turns) == 2
    async with agents.scheduler() as scheduler:
        await scheduler.start()
        late = await Sender(scheduler).send(body, "d-9")
        assert late.json() == {**first.json(), "duplicate": True}


@virtual
async def test_a_request_without_its_id_and_then_with_one_runs_once(scene, agents):
    async with agents.scheduler() as scheduler:
        await scheduler.agents.apply({"a": agent(schedules={"deploy": hook()})})
        await scheduler.start()
        sender = Sender(scheduler)
        first = await sender.send(b"{}")
        assert (await sender.send(b"{}", "d-1")).json() == {**first.json(), "duplicate": True}


@virtual
@pytest.mark.parametrize("verify", [UNSIGNED, TIMED])
async def test_a_described_scheme_whose_id_is_not_signed_counts_what_is_signed_once(scene, agents, verify):
    async with agents.scheduler() as scheduler:
        await scheduler.agents.apply({"a": agent(schedules={"deploy": hook(verify)})})
        await scheduler.start()
        sender = Sender(scheduler)

        async def post(name, at=0):
            now = scheduler.clock.now() // 1000 + at
            message = f"{now}.{{}}".encode() if verify is TIMED else b"{}"
            digest = hmac.new(SECRET.encode(), message, hashlib.sha256).hexdigest()
            headers = {"X-Sig": digest, "X-Id": name, "X-At": str(now), "Content-Type": "application/json"}
            return (await sender.post("a/deploy", b"{}", headers)).json()

        first = await post("1")
        assert await post("2") == {**first, "duplicate": True}
        assert (await post("3", at=1))["duplicate"] == (verify is UNSIGNED)  # signed at another time, it is another


@virtual
async def test_the_same_text_with_the_secret_itself_is_another_request(scene, agents):
    async with agents.scheduler() as scheduler:
        await scheduler.agents.apply({"a": agent(schedules={"deploy": hook("bearer")})})
        await scheduler.start()
        headers = {"Authorization": f"Bearer {SECRET}"}
        found = [(await Sender(scheduler).post("a/deploy", b"ring", headers)).json() for _ in range(2)]
        assert [one["duplicate"] for one in found] == [False, False]


@virtual
async def test_a_secret_of_less_than_16_characters_verifies_nothing_wherever_it_comes_from(scene, agents, monkeypatch):
    async with agents.scheduler() as scheduler:
        for verify in ("github", "slack", "bearer", "standard", UNSIGNED):
            short = {"deploy": {"webhook": {"verify": verify, "secret": "MfKQ9r8GfYs1234"}}}
            with pytest.raises(InvalidJob, match="has 15 characters, and needs 16"):
                await scheduler.agents.apply({"a": agent(schedules=short)})
        from_outside = {"webhook": {"verify": "github", "secret": "${HOOK_SECRET}"}}
        monkeypatch.setenv("HOOK_SECRET", "short")
        await scheduler.agents.apply({"a": agent(schedules={"deploy": from_outside})})
        await scheduler.start()
        answer = await Sender(scheduler).send({}, "d-1", secret="short")  # noqa: S106 - planted
        assert (answer.status_code, answer.json()["code"]) == (503, "no_secret")
