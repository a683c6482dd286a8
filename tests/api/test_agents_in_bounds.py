"""What an agent's token cannot do to others, to its operators, or to the store; tried against a running server."""

from __future__ import annotations

import pytest

from tests.api.conftest import Server
from tests.cli.terminal import Terminal
from tests.waiting import ended, eventually

CRON = {"type": "cron", "expression": "0 9 * * 1-5"}
MOST_JOBS = 6
MOST_BYTES = 50_000
CONFIG = """
server: {{sessions: {{url: '{url}', max: 1}}}}
limits: {{jobs_per_agent: {jobs}, bytes_per_agent: {size}}}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory, sessions):
    terminal = Terminal(tmp_path_factory.mktemp("server"))
    config = CONFIG.format(url=sessions.url, jobs=MOST_JOBS, size=MOST_BYTES)
    (terminal.folder / "wakeful.yaml").write_text(config)
    yield Server(terminal)
    terminal.close()


def put(client, slug, **more):
    return client.put(f"/api/schedule/{slug}", json={"prompt": "Summarise", "schedule": CRON, **more})


def make(client, name, **more):
    return client.post("/api/jobs", json={"name": name, "every": "6h", "kind": "note", **more})


def talk(client, slug):
    """Run a schedule to its end; the session it has then."""
    run = client.post(f"/api/schedule/{slug}/run").json()["runId"]
    assert ended(client, run)["outcome"] == "success"
    return client.get(f"/api/schedule/{slug}").json()["sessionId"]


def refused(answer, status, code, *words):
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert all(word in answer.json()["error"] for word in words), answer.text


# -- sessions ---------------------------------------------------------------------------------------------------------


@pytest.mark.promise("C4")
def test_an_agent_names_no_session_but_those_its_own_jobs_keep(client, client_for):
    fox, wolf = client_for("agent", "fox"), client_for("agent", "wolf")
    assert put(fox, "fox-talk").status_code == 201
    session = talk(fox, "fox-talk")
    named = {"prompt": "Tell me all", "session": session}
    assert put(wolf, "wolf-own").status_code == 201
    for answer in (
        put(wolf, "wolf-ear", sessionConfig={"sessionId": session}),
        put(wolf, "wolf-own", sessionConfig={"sessionId": session}),
        wolf.patch("/api/schedule/wolf-own", json={"sessionConfig": {"sessionId": session}}),
        wolf.patch("/api/jobs/wolf-own", json={"payload": named}),
        wolf.post("/api/jobs/wolf-own/run", json={"payload": named}),
        make(wolf, "wolf-job", kind="session", payload=named),
        wolf.put("/api/jobs/wolf-own", json={"every": "6h", "kind": "session", "payload": named}),
        put(wolf, "wolf-ear", sessionConfig={"sessionId": "a-guess"}),
    ):
        refused(answer, 403, "forbidden", "wolf may name only sessions that its own jobs keep")
    assert make(wolf, "wolf-note", payload=named).status_code == 201, "to another kind it is a text like others"
    refused(wolf.patch("/api/jobs/wolf-note", json={"kind": "session"}), 403, "forbidden")
    assert put(fox, "fox-more", sessionConfig={"sessionId": session}).status_code == 201
    assert put(client, "operators", sessionConfig={"sessionId": session}).status_code == 201


@pytest.mark.promise("C4")
def test_a_session_that_an_operator_named_stays_allowed_in_that_job(client, client_for):
    bear = client_for("agent", "bear")
    assert put(bear, "bear-job").status_code == 201
    given = client.patch("/api/schedule/bear-job", json={"sessionConfig": {"sessionId": "team-room"}})
    assert given.status_code == 200
    assert bear.patch("/api/schedule/bear-job", json={"prompt": "Anew"}).status_code == 200
    refused(put(bear, "bear-other", sessionConfig={"sessionId": "team-room"}), 403, "forbidden")


@pytest.mark.promise("C4")
def test_an_agent_crowds_out_no_sessions_but_its_own(client_for):
    hare, mole = client_for("agent", "hare"), client_for("agent", "mole")
    put(hare, "hare-talk")
    mine = talk(hare, "hare-talk")
    for number in range(3):
        put(mole, f"mole-{number}")
        talk(mole, f"mole-{number}")
    assert hare.get("/api/schedule/hare-talk").json()["sessionId"] == mine
    kept = [one["sessionId"] for one in mole.get("/api/schedule").json()]
    assert kept[:2] == [None, None], "one of each owner is kept"
    assert kept[2] is not None


# -- approval ---------------------------------------------------------------------------------------------------------


@pytest.mark.promise("X8")
def test_an_agent_cannot_shed_an_approval_by_making_its_job_again(client, client_for):
    lynx = client_for("agent", "lynx")
    make(lynx, "lynx-deploy")
    put(lynx, "lynx-talk")
    for name in ("lynx-deploy", "lynx-talk"):
        assert client.patch(f"/api/jobs/{name}", json={"approval": True}).status_code == 200
        for answer in (
            lynx.delete(f"/api/jobs/{name}"),
            lynx.patch(f"/api/jobs/{name}", json={"name": f"{name}-away"}),
            lynx.patch(f"/api/jobs/{name}", json={"approval": None}),
            lynx.put(f"/api/jobs/{name}", json={"every": "6h", "kind": "note"}),
        ):
            refused(answer, 403, "forbidden", f"{name} needs approval before every start; only an operator can")
    refused(lynx.delete("/api/schedule/lynx-talk"), 403, "forbidden", "only an operator")
    assert client.get("/api/jobs/lynx-talk").json()["options"]["approval"] is True
    assert client.delete("/api/jobs/lynx-talk").status_code == 204


# -- jobs of others ---------------------------------------------------------------------------------------------------


def test_an_agent_starts_nothing_after_jobs_it_cannot_see(client, client_for):
    stoat = client_for("agent", "stoat")
    secret = make(client, "secret-deploy").json()
    assert make(stoat, "stoat-first").status_code == 201
    own = stoat.post("/api/jobs", json={"name": "stoat-then", "after": "stoat-first", "kind": "note"})
    assert own.status_code == 201
    for upstream in ("secret-deploy", secret["id"], "not-there-yet"):
        body = {"after": upstream, "kind": "note"}
        for answer in (
            stoat.post("/api/jobs", json={"name": "stoat-spy", **body}),
            stoat.put("/api/jobs/stoat-spy", json=body),
            stoat.put("/api/jobs/stoat-then", json=body),
            stoat.patch("/api/jobs/stoat-then", json={"after": upstream}),
            stoat.patch("/api/jobs/stoat-then", json={"trigger": {"type": "after", "job": upstream}}),
        ):
            refused(answer, 400, "invalid_job", "of stoat to start after")
    assert stoat.get("/api/jobs/stoat-then").json()["trigger"]["job"] == "stoat-first"


def test_an_agent_takes_no_name_that_jobs_of_others_start_after(client, client_for):
    mink = client_for("agent", "mink")
    made = client.post("/api/jobs", json={"name": "restart", "after": "nightly-build", "kind": "note"})
    assert made.status_code == 201
    make(mink, "mink-job")
    for answer in (
        make(mink, "nightly-build"),
        put(mink, "nightly-build"),
        mink.put("/api/jobs/nightly-build", json={"every": "6h", "kind": "note"}),
        mink.patch("/api/jobs/mink-job", json={"name": "nightly-build"}),
    ):
        refused(answer, 403, "forbidden", "Another owner's jobs start after 'nightly-build'")
    assert make(client, "nightly-build").status_code == 201


# -- how much ---------------------------------------------------------------------------------------------------------


def test_an_agent_has_so_many_jobs_and_no_more(client, client_for):
    vole = client_for("agent", "vole")
    made = [make(vole, f"vole-{number}").status_code for number in range(MOST_JOBS)]
    assert made == [201] * MOST_JOBS
    for answer in (
        make(vole, "vole-more"),
        put(vole, "vole-more"),
        vole.put("/api/jobs/vole-more", json={"every": "6h", "kind": "note"}),
    ):
        refused(answer, 409, "quota", f"vole has {MOST_JOBS} jobs, and may have no more: remove one.")
    assert vole.patch("/api/jobs/vole-0", json={"payload": "other"}).status_code == 200
    assert vole.delete("/api/jobs/vole-0").status_code == 204
    assert make(vole, "vole-more").status_code == 201
    assert make(client, "operators-have-no-such-limit", owner="vole").status_code == 201


def test_an_agent_stores_so_much_and_no_more(client, client_for):
    shrew = client_for("agent", "shrew")
    half = "x" * (MOST_BYTES // 2)
    assert make(shrew, "shrew-one", payload=half).status_code == 201
    assert make(shrew, "shrew-two").status_code == 201
    for answer in (
        make(shrew, "shrew-three", payload=half),
        put(shrew, "shrew-three", prompt=half),
        shrew.put("/api/jobs/shrew-two", json={"every": "6h", "kind": "note", "payload": half}),
        shrew.patch("/api/jobs/shrew-two", json={"payload": half}),
        shrew.post("/api/jobs/shrew-two/run", json={"payload": half}),
    ):
        refused(answer, 409, "quota", f"shrew may store {MOST_BYTES} bytes")
    assert shrew.patch("/api/jobs/shrew-one", json={"payload": half.replace("x", "y")}).status_code == 200
    assert shrew.patch("/api/jobs/shrew-one", json={"payload": "short"}).status_code == 200
    assert shrew.patch("/api/jobs/shrew-two", json={"payload": half}).status_code == 200


def test_an_agent_gets_no_room_by_removing_jobs_or_through_its_keys(client_for):
    newt = client_for("agent", "newt")
    third = "x" * (MOST_BYTES // 3)
    for number in range(2):
        assert make(newt, f"newt-{number}", payload=third).status_code == 201
        assert newt.delete(f"/api/jobs/newt-{number}").status_code == 204
    refused(make(newt, "newt-more", payload=third), 409, "quota")
    toad = client_for("agent", "toad")
    body = {"name": "toad-one", "every": "6h", "kind": "note", "payload": third}
    assert toad.post("/api/jobs", json=body, headers={"Idempotency-Key": "k"}).status_code == 201
    refused(make(toad, "toad-two", payload=third), 409, "quota")


# -- names of tokens --------------------------------------------------------------------------------------------------


def test_a_token_of_a_name_that_was_used_before_inherits_nothing(server, client):
    def fresh():
        return server.client(server.terminal.ask("token", "create", "crow", "--role", "agent").out.strip())

    body = {"name": "crow-job", "every": "6h", "kind": "note", "payload": {"secret": 1}}
    with fresh() as old:
        made = old.post("/api/jobs", json=body, headers={"Idempotency-Key": "crow-key"}).json()
        assert make(old, "crow-gone").status_code == 201
        assert old.delete("/api/jobs/crow-gone").status_code == 204
        old.post("/api/jobs/crow-job/run")
    assert server.terminal.ask("token", "revoke", "crow").code == 0
    with fresh() as new:
        assert new.get("/api/jobs").json()["items"] == []
        assert new.get("/api/runs").json()["items"] == []
        assert new.get("/api/jobs/crow-job").status_code == 404
        assert new.delete("/api/jobs/crow-job").status_code == 404
        refused(new.put("/api/jobs/crow-job", json={"every": "6h", "kind": "note"}), 403, "forbidden")
        again = new.post("/api/jobs", json=body, headers={"Idempotency-Key": "crow-key"})
        assert (again.status_code, again.json()["code"]) == (409, "exists"), "its key was not used before"
    found = client.get("/api/jobs/crow-job").json()
    assert (found["id"], found["owner"]) == (made["id"], None), "it is there, without an owner"
    assert found["revision"] == made["revision"] + 1


def test_the_first_token_of_a_name_finds_the_jobs_that_were_made_for_it(server, client):
    assert make(client, "for-the-owl", owner="owl").status_code == 201
    with server.client(server.terminal.ask("token", "create", "owl", "--role", "agent").out.strip()) as owl:
        assert [job["name"] for job in owl.get("/api/jobs").json()["items"]] == ["for-the-owl"]


# -- long lists -------------------------------------------------------------------------------------------------------

DAYS = [f"{2030 + number // 336}-{number // 28 % 12 + 1:02}-{number % 28 + 1:02}" for number in range(1001)]


@pytest.mark.parametrize(
    ("options", "cap"),
    [
        ({"retry": 1_000_000}, "100"),
        ({"retry": 101}, "100"),
        ({"retry": {"times": 101}}, "100"),
        ({"retry": ["30s"] * 101}, "100"),
        ({"retry": {"delays": ["30s"] * 101}}, "100"),
        ({"backoff": ["30s"] * 101}, "100"),
        ({"labels": [f"label-{number}" for number in range(101)]}, "100"),
        ({"labels": ["x" * 201]}, "200"),
        ({"lanes": {f"lane-{number}": 1 for number in range(101)}}, "100"),
        ({"except": DAYS}, "1000"),
        ({"trigger": {"every": "6h", "except": DAYS}}, "1000"),
        ({"command": ["x"] * 10_001}, "10000"),
        ({"command": ["x"], "payload": {"env": {f"NAME_{number}": "" for number in range(1001)}}}, "1000"),
        ({"command": ["x"], "payload": {"pass_env": [f"NAME_{number}" for number in range(1001)]}}, "1000"),
        ({"command": ["x"], "payload": {"success_codes": [0] * 257}}, "256"),
    ],
)
def test_a_list_that_is_too_long_is_refused_with_how_long_it_may_be(client, options, cap):
    body = {"kind": "command" if "command" in options else "note"}
    options = {**options, **({} if "trigger" in options else {"every": "6h"})}
    make(client, "short")
    nested = {
        "options": {key: value for key, value in options.items() if key in ("retry", "backoff", "labels", "lanes")}
    }
    answers = [
        client.post("/api/jobs", json={"name": "long", **body, **options}),
        client.put("/api/jobs/long", json={**body, **options}),
        client.patch("/api/jobs/short", json=options),
    ]
    if nested["options"]:
        answers.append(client.post("/api/jobs", json={"name": "long", "every": "6h", **body, **nested}))
    for answer in answers:
        assert answer.status_code in (400, 422), answer.text[:300]
        assert cap in answer.json()["error"], answer.text[:300]
    assert client.get("/api/jobs/long").status_code == 404


def test_a_list_as_long_as_it_may_be_is_taken(client):
    body = {"retry": 100, "labels": [f"label-{number}" for number in range(100)], "except": DAYS[:1000]}
    assert make(client, "long-enough", **body).status_code == 201
    eventually(lambda: client.delete("/api/jobs/long-enough"), lambda answer: answer.status_code == 204)
