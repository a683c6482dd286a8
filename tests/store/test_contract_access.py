"""What every store promises about tokens and kept answers."""

from __future__ import annotations

import pytest

from tests.store.samples import NOW, job
from wakeful.errors import InvalidSetting, TokenExists, TokenNotFound
from wakeful.kernel.actions import tokens
from wakeful.kernel.actions.recording import Origin
from wakeful.store.records import KeptAnswer, TokenRow

FOX = TokenRow("hash-1", "fox", "viewer", NOW, None, None)
BY_ADMIN = Origin("cli:root", "cli", 7)
ANSWER = KeptAnswer("fox", "key-1", "make a job", "hash", None, NOW)


def test_a_token_is_found_by_its_hash_and_by_nothing_else(store):
    assert store.write(lambda tx: tx.access.add_token(FOX)) is True
    assert store.read(lambda tx: [tx.access.token(key) for key in ("hash-1", "fox", "")]) == [FOX, None, None]


def test_a_name_belongs_to_one_valid_token(store):
    other = FOX._replace(hash="hash-2", created_at=NOW + 1)
    assert store.write(lambda tx: [tx.access.add_token(FOX), tx.access.add_token(other)]) == [True, False]
    assert store.write(lambda tx: [tx.access.revoke_token("fox", NOW + 2) for _ in range(2)]) == [True, False]
    assert store.write(lambda tx: tx.access.add_token(other)) is True
    assert store.read(lambda tx: tx.access.tokens()) == [other]
    assert store.read(lambda tx: tx.access.tokens(revoked=True)) == [other, FOX._replace(revoked_at=NOW + 2)]


def test_the_last_use_is_remembered(store):
    store.write(lambda tx: tx.access.add_token(FOX))
    store.write(lambda tx: tx.access.token_used("hash-1", NOW + 5))
    assert store.read(lambda tx: tx.access.token("hash-1")).last_used_at == NOW + 5


def test_a_secret_opens_until_it_is_revoked(store):
    secret = tokens.new_secret()
    store.write(lambda tx: tokens.create(tx, "fox", "agent", secret))
    assert store.read(lambda tx: tokens.find(tx, secret)).role == "agent"
    wrong = [
        secret[:-1],
        secret + "x",
        secret.removeprefix("wk_"),
        "",
        "wk_",
        "wk_" + "x" * 1000,
        tokens.hash_of(secret),
    ]
    assert store.read(lambda tx: [tokens.find(tx, text) for text in wrong]) == [None] * len(wrong)
    store.write(lambda tx: tokens.revoke(tx, "fox", BY_ADMIN))
    assert store.read(lambda tx: tokens.find(tx, secret)) is None


def test_what_cannot_be_a_token_is_refused(store):
    store.write(lambda tx: tokens.create(tx, "fox", "agent", "wk_1"))
    for name, role, error in (
        ("fox", "admin", TokenExists),
        ("x", "boss", InvalidSetting),
        ("", "admin", InvalidSetting),
    ):
        with pytest.raises(error):
            store.write(lambda tx, name=name, role=role: tokens.create(tx, name, role, "wk_2"))
    with pytest.raises(TokenNotFound):
        store.write(lambda tx: tokens.revoke(tx, "nobody", BY_ADMIN))


def test_the_first_token_is_made_once_in_a_stores_life(store):
    assert store.write(lambda tx: tokens.create_first(tx, "admin", "wk_1")) is True
    assert store.write(lambda tx: tokens.create_first(tx, "admin", "wk_2")) is False
    store.write(lambda tx: tokens.revoke(tx, "admin", BY_ADMIN))
    assert store.write(lambda tx: tokens.create_first(tx, "admin", "wk_3")) is False


def test_a_key_belongs_to_the_first_who_takes_it(store):
    assert store.write(lambda tx: tx.access.begin_answer(ANSWER)) is None
    assert store.write(lambda tx: tx.access.begin_answer(ANSWER._replace(request="other"))) == ANSWER
    assert store.write(lambda tx: tx.access.begin_answer(ANSWER._replace(caller="hen"))) is None
    store.write(lambda tx: tx.access.keep_answer("fox", "key-1", "made"))
    done = ANSWER._replace(answer="made")
    assert store.write(lambda tx: tx.access.begin_answer(ANSWER)) == done


def test_a_key_is_free_again_when_its_request_was_not_done_or_is_long_past(store):
    store.write(lambda tx: tx.access.begin_answer(ANSWER))
    store.write(lambda tx: tx.access.drop_answer("fox", "key-1"))
    assert store.write(lambda tx: tx.access.begin_answer(ANSWER)) is None
    assert store.write(lambda tx: [tx.access.prune_answers(NOW), tx.access.prune_answers(NOW + 1)]) == [0, 1]
    assert store.read(lambda tx: tx.access.answer("fox", "key-1")) is None


def test_what_is_kept_for_a_caller_is_counted_and_forgotten_together(store):
    for key in ("key-1", "key-2"):
        store.write(lambda tx, key=key: tx.access.begin_answer(ANSWER._replace(key=key)))
    store.write(lambda tx: tx.access.begin_answer(ANSWER._replace(caller="hen")))
    store.write(lambda tx: tx.access.keep_answer("fox", "key-1", "made"))
    size = 2 * len("key-1" + ANSWER.request) + len("made")
    assert store.read(lambda tx: [tx.access.answer_bytes(name) for name in ("fox", "cat")]) == [size, 0]
    assert store.write(lambda tx: tx.access.forget_answers("fox")) == 2
    assert store.read(lambda tx: [tx.access.answer(name, "key-1") is None for name in ("fox", "hen")]) == [True, False]


def test_a_name_that_is_used_again_inherits_nothing(store):
    store.add(job(1, owner="fox"))
    store.write(lambda tx: tokens.create(tx, "fox", "agent", "wk_1"))
    assert store.read(lambda tx: tx.jobs.by_id(1))[0].owner == "fox", "what was made for it"
    store.write(lambda tx: tx.access.begin_answer(ANSWER))
    with pytest.raises(TokenExists):
        store.write(lambda tx: tokens.create(tx, "fox", "agent", "wk_2"))
    assert store.read(lambda tx: tx.jobs.by_id(1))[0].owner == "fox", "and nothing is changed by what is refused"
    store.write(lambda tx: tokens.revoke(tx, "fox", BY_ADMIN))
    store.write(lambda tx: tokens.create(tx, "fox", "viewer", "wk_3"))
    assert store.read(lambda tx: tx.jobs.by_id(1))[0].owner is None
    assert store.read(lambda tx: tx.access.answer("fox", "key-1")) is None
