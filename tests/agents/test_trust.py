"""Whose text is a request: paired people and the owner of a work directory by default, strangers never."""

from __future__ import annotations

import pytest

from tests.agents.test_chat_schedules import Phone, block, write
from tests.agents.test_directory_source import Inbox, working
from tests.agents.virtual_agents import agent
from tests.kernel.scene import at, virtual
from wakeful.domains.agents.agents_file import entries_of
from wakeful.domains.agents.prompting import DATA, REQUEST
from wakeful.errors import InvalidJob

LIMITED = {"deliver": "log"}


@pytest.fixture
def inbox(tmp_path):
    return Inbox(tmp_path / "inbox")


def sentence(prompt):
    """What a prompt says about its block, without the nonce."""
    return [said for said in (REQUEST, DATA) if said.partition("{nonce}")[2] in prompt]


@pytest.mark.promise("X18")
@virtual
@pytest.mark.parametrize(("trust", "said"), [(None, [REQUEST]), ("paired", [REQUEST]), ("none", [DATA])])
async def test_what_a_paired_person_writes_is_a_request_unless_nobody_is_trusted(scene, agents, trust, said):
    chat = {"connector": "phone"} if trust is None else {"connector": "phone", "trust": trust}
    async with agents.scheduler() as scheduler:
        Phone(scheduler)
        await scheduler.agents.apply({"a": agent(schedules={"talk": {"chat": chat}}, untrusted=LIMITED)})
        await scheduler.start()
        await write(scheduler, "Mail zoe@example.org that I am late.")
        await scene.sleep(5)
        (prompt,) = agents.prompts
        assert sentence(prompt) == said
        assert "Mail zoe@example.org that I am late." in block(prompt)
        (run,) = await scheduler.get_run_log("a.talk", 10)
        assert (run.output.get("untrusted") is True) == (said == [DATA])
        assert ("was given text from outside" in str(await scheduler.explain(run.id))) == (said == [DATA])


@virtual
@pytest.mark.parametrize(
    ("given", "said"), [(({}, 0o700), REQUEST), (({"trust": "none"}, 0o700), DATA), (({}, 0o777), DATA)]
)
async def test_a_file_is_a_request_where_only_the_user_could_write_it(scene, agents, inbox, given, said):
    keys, mode = given
    inbox.put("roof.md")
    (inbox.path / "new").chmod(mode)
    work = {"source": "directory", "path": str(inbox.path), **keys}
    async with agents.scheduler_with({"a": working(inbox, work=work)}) as scheduler:
        await scheduler.start()
        await scene.until(at(minutes=15))
        (prompt,) = agents.prompts
        assert sentence(prompt) == [said]
        assert "title: roof.md\nbody: Mend it." in block(prompt)
        run = (await scheduler.get_run_log("a.next", 10))[0]
        assert ("was given text from outside" in str(await scheduler.explain(run.id))) == (said == DATA)


@pytest.mark.parametrize(
    "work", [{"source": "github", "repo": "o/n", "trust": "paired"}, {"source": "queue", "trust": "paired"}]
)
def test_what_strangers_may_write_cannot_be_trusted(tmp_path, work):
    with pytest.raises(InvalidJob, match=f"agents.a.work.trust is not for the source {work['source']}"):
        entries_of({"a": agent(work=work)}, tmp_path, "UTC")


@virtual
async def test_a_prompt_names_a_file_by_the_path_that_it_has(scene, agents, inbox, tmp_path):
    inbox.put("roof.md")
    (tmp_path / "conf").mkdir()
    work = {"source": "directory", "path": f"{tmp_path}/conf/../inbox"}
    async with agents.scheduler_with({"a": working(inbox, work=work)}) as scheduler:
        await scheduler.start()
        await scene.until(at(minutes=15))
        assert f"path: {inbox.path}/doing/roof.md" in agents.prompts[0]
