"""Which PostgreSQL store is meant: each has a folder of its own, and no command shows its password."""

from __future__ import annotations

import hashlib

import psycopg
import pytest

from tests.cli.terminal import Terminal
from tests.service.real_time import real
from tests.store.postgres_server import postgres_url
from wakeful import Scheduler
from wakeful.errors import StoreUnusable
from wakeful.store.postgres_address import PostgresAddress
from wakeful.surfaces.api.server import first_token

SECRETS = "password=s3cr%40et&sslpassword=s3cret2"
VARIABLES = ("PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGSERVICE", "PGOPTIONS")


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "wakeful"


async def folder_and_token(url):
    async with Scheduler(url) as scheduler:
        token = await first_token(scheduler)
        return scheduler._store.folder, token.read_text()


@real
async def test_two_schemas_of_one_database_keep_their_first_tokens_apart(state):
    url = postgres_url()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA one; CREATE SCHEMA two")
    plain = await folder_and_token(url)
    one = await folder_and_token(f"{url}?options=-csearch_path%3Done")
    two = await folder_and_token(f"{url}?options=-c%20search_path%3Dtwo%2Cpublic")
    assert len({plain, one, two}) == len({plain[0], one[0], two[0]}) == 3
    assert await folder_and_token(f"{url}?options=-csearch_path%3Done") == one
    assert await folder_and_token(url) == plain
    assert len(list(state.iterdir())) == 3


@real
async def test_a_schema_that_the_role_chooses_counts_as_one_that_the_address_names():
    url = postgres_url()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA roles_own")
        connection.execute(f"ALTER DATABASE {connection.info.dbname} SET search_path = roles_own")
    async with Scheduler(url) as scheduler:
        assert scheduler._store.folder == PostgresAddress(url).folder("roles_own") != PostgresAddress(url).folder()


def test_the_folder_of_a_store_in_the_usual_schema_follows_from_server_and_database(state):
    mark = hashlib.sha256(b"db:5433/jobs").hexdigest()[:12]
    for url in ("postgresql://ada@db:5433/jobs", "postgresql://ben:x@db:5433/jobs?sslmode=prefer"):
        assert (
            PostgresAddress(url).folder("public") == PostgresAddress(url).folder() == state / f"postgresql-{mark}.logs"
        )


def test_whatever_distinguishes_two_stores_distinguishes_their_folders(monkeypatch):
    urls = ["db/jobs", "db:5433/jobs", "other/jobs", "db/other", "db/jobs?service=a", "db/jobs?service=b", ""]
    folders = [PostgresAddress(f"postgresql://{url}").folder() for url in urls]
    folders += [
        PostgresAddress("postgresql://db/jobs").folder("shop"),
        PostgresAddress("postgresql://db/jobs").folder("bank"),
    ]
    for name in VARIABLES[:-1]:
        monkeypatch.setenv(name, "1")
        folders.append(PostgresAddress("postgresql://").folder())
        monkeypatch.delenv(name)
    assert len(set(folders)) == len(folders)


def test_no_command_shows_a_password(tmp_path):
    url, terminal = f"{postgres_url()}?{SECRETS}", Terminal(tmp_path)
    host, database = url.split("@")[1].split("?", maxsplit=1)[0].split("/")
    wrong = [url.replace(database, "no_such_database"), f"host={host} {SECRETS.replace('&', ' ')} dbname={database}"]
    wrong += ["postgresql://127.0.0.1:1/nothing?" + SECRETS, "postgresql://ada:s3cret@s3cret@127.0.0.1:1/x"]
    wrong += [f"postgresql://127.0.0.1:1/nothing?{SECRETS}&no_such_setting=s3cret"]
    commands = ["add job --every 1h -- true", "list", "status", "doctor", "node list", "token list", "runs", "next"]
    try:
        for db in (url, *wrong):
            for command in (*commands, "show nothing", "doctor --json", "status --json"):
                said = terminal.ask("--db", db, *command.split())
                assert "s3cr" not in said.out + said.err, (command, db, said)
            said = terminal.ask("copy", db, "target.db")
            assert "s3cr" not in said.out + said.err, db
        server = terminal.start("serve", "--port", "0", "--db", url)
        assert "postgresql://wakeful@" in server.until("serving")
        server.until("listening")
        server.kill()
        assert "s3cr" not in "".join(map(str, server.ended()))
    finally:
        terminal.close()
    assert not [path for path in tmp_path.rglob("*") if "s3cr" in path.name]


def test_a_driver_that_repeats_a_password_is_not_repeated():
    address = PostgresAddress("postgresql://ada:p%40ss@db/jobs?sslpassword=key%2Fpass")
    assert address.hide('bad "p@ss" or p%40ss, key/pass, key%2Fpass') == 'bad "***" or ***, ***, ***'


@pytest.mark.parametrize("url", ["postgresql://db?password=s3cret@x", "postgresql://db/host%3Dx%20password%3Ds3cret"])
def test_an_address_that_hides_a_password_where_none_belongs_is_refused(url):
    with pytest.raises(StoreUnusable, match="cannot be read"):
        PostgresAddress(url)
