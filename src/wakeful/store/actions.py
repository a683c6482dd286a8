"""Actions in the store: what people did to jobs, alerts and more, and what is needed to take it back.

What one action did to many is packed into few rows, so that it costs little more to keep than what it changed.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import compress
from operator import ne
from typing import Any, NamedTuple

from wakeful.store.rows import Verbs

PACKED = 500  # subjects in one row
_WRITE = json.JSONEncoder(separators=(",", ":")).encode


class ActionDetails(NamedTuple):
    """An action: when, what, who, and from where."""

    id: int
    at: int
    what: str
    actor: str
    via: str


class SubjectChange(NamedTuple):
    """What an action changed of one subject: the values of some fields as they were found, and as they were left."""

    subject: int
    name: str
    fields: tuple[str, ...]
    before: tuple[Any, ...]
    left: tuple[Any, ...]


class ActionRow(NamedTuple):
    """What one action did to one job, alert or other subject."""

    id: int
    subject: int
    at: int
    what: str
    actor: str
    via: str
    name: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]  # what of that is different now
    place: int | None = None  # the row it is kept in with others


class ActionHead(NamedTuple):
    """An action as a whole."""

    id: int
    at: int
    what: str
    actor: str
    via: str
    subjects: int
    undone: int  # how many of them were brought back
    name: str  # the first of them
    undone_at: int | None
    undone_by: str | None


class ActionPage(NamedTuple):
    """Some of an action's subjects, and where to continue: None at the end."""

    rows: list[ActionRow]
    cursor: int | None


_STANDS = "(undone_at IS NULL OR (subject < 0 AND undone < subjects))"
_HEAD = (
    "id, min(at), CASE WHEN min(what) = max(what) THEN min(what) ELSE 'apply' END, min(actor), min(via), "
    "sum(subjects), "
    "sum(CASE WHEN subject < 0 THEN undone WHEN undone_at IS NULL THEN 0 ELSE 1 END), "
    "min(name), max(undone_at), max(undone_by)"
)
_COLUMNS = (
    *("id", "subject", "at", "what", "actor", "via", "name", "before", "after"),
    *("subjects", "highest", "members"),
)
_READ = (*_COLUMNS, "restored")


class Actions(Verbs):
    """Verbs on actions; each call is part of the transaction it was made in."""

    def add(self, about: ActionDetails, changes: Sequence[SubjectChange]) -> None:
        """Keep what an action changed."""
        if changes:
            self._session.insert_soon("actions", _COLUMNS, list(_stored(about, changes)))

    def head(self, action_id: int) -> ActionHead | None:
        """The action of that id."""
        found = self._session.rows(f"SELECT {_HEAD} FROM actions WHERE id = ? GROUP BY id", (action_id,))
        return _head(found[0]) if found else None

    def rows(self, action_id: int, after: int, limit: int) -> ActionPage:
        """What is not taken back yet of an action, about `limit` subjects from that place on."""
        sql = (
            f"SELECT subject, subjects FROM actions WHERE id = ? AND abs(subject) > ? AND {_STANDS} "
            "ORDER BY abs(subject) LIMIT ?"
        )
        found = self._session.rows(sql, (action_id, after, limit))
        places, number = list[int](), 0
        for place, subjects in found:
            if places and number + subjects > limit:
                break
            places.append(place)
            number += subjects
        only = f"id = {int(action_id)} AND {_STANDS}"
        stored = self._session.select_in(_READ, "actions", "subject", places, only=only) if places else []
        rows = sorted((row for one in stored for row in _unpacked(one)), key=lambda row: row.subject)
        is_last = len(places) == len(found) < limit
        return ActionPage(rows, None if is_last or not places else abs(places[-1]))

    def newer(self, subjects: Sequence[int], action_id: int, but: Collection[str]) -> dict[int, ActionRow]:
        """What was done later to these, other than `but`, and stands: the latest of each."""
        if not subjects:
            return {}
        wanted = set(subjects)
        alone = f"id > {int(action_id)} AND {_STANDS}"
        stored = self._session.select_in(_READ, "actions", "subject", subjects, only=alone)
        together = (
            f"SELECT {', '.join(_READ)} FROM actions WHERE id > ? AND subject < 0 AND subject >= ? AND highest >= ? "
            f"AND {_STANDS}"
        )
        stored += self._session.rows(together, (action_id, -max(wanted), min(wanted)))
        rows = (row for one in sorted(stored, key=lambda one: one[0]) for row in _unpacked(one))
        return {row.subject: row for row in rows if row.subject in wanted and row.what not in but}

    def undone(self, rows: Sequence[ActionRow], now: int, who: str) -> None:
        """These, of one action, were brought back."""
        places: dict[int, list[int]] = {}
        for row in rows:
            if row.place is None:
                sql = "UPDATE actions SET undone_at = ?, undone_by = ? WHERE id = ? AND subject = ?"
                self._session.execute(sql, (now, who, row.id, row.subject))
            else:
                places.setdefault(row.place, []).append(row.subject)
        for place, subjects in places.items():
            found = self._session.rows("SELECT restored FROM actions WHERE id = ? AND subject = ?", (rows[0].id, place))
            restored = sorted({*json.loads(found[0][0] or "[]"), *subjects})
            what = "undone_at = ?, undone_by = ?, undone = ?, restored = ?"
            self._session.execute(
                f"UPDATE actions SET {what} WHERE id = ? AND subject = ?",
                (now, who, len(restored), _WRITE(restored), rows[0].id, place),
            )

    def before(self, action_id: int | None, limit: int) -> list[ActionHead]:
        """The newest actions first, from that id on."""
        where, params = ("WHERE id < ? ", (action_id,)) if action_id is not None else ("", ())
        sql = f"SELECT {_HEAD} FROM actions {where}GROUP BY id ORDER BY id DESC LIMIT ?"
        return [_head(row) for row in self._session.rows(sql, (*params, limit))]

    def about(self, subject: int, limit: int) -> list[ActionHead]:
        """The newest actions on one subject, alone or with others, the newest first."""
        alone = "SELECT id FROM actions WHERE subject = ? ORDER BY id DESC LIMIT ?"
        found = {int(row[0]) for row in self._session.rows(alone, (subject, limit))}
        together = (
            f"SELECT {', '.join(_READ)} FROM actions WHERE subject < 0 AND subject >= ? AND highest >= ? "
            "ORDER BY id DESC LIMIT ?"
        )
        for one in self._session.rows(together, (-subject, subject, limit)):
            if any(row.subject == subject for row in _unpacked((*one[:-1], None))):
                found.add(int(one[0]))
        heads = [self.head(number) for number in sorted(found, reverse=True)[:limit]]
        return [head for head in heads if head is not None]

    def latest(self, since: int, actor: tuple[str, str], but: Collection[str] = ()) -> int | None:
        """The newest action from that id on, of this person and other than `but`, that is not taken back."""
        others = f" AND what NOT IN ({', '.join('?' * len(but))})" if but else ""
        where = f"id >= ? AND actor = ? AND via = ? AND {_STANDS}{others}"
        sql = f"SELECT id FROM actions WHERE {where} ORDER BY id DESC LIMIT 1"
        found = self._session.rows(sql, (since, *actor, *sorted(but)))
        return int(found[0][0]) if found else None

    def prune(self, before_id: int, limit: int) -> int:
        """Delete actions older than that id, at most `limit` rows; how many there were."""
        return self._session.execute(
            "DELETE FROM actions WHERE (id, subject) IN "
            "(SELECT id, subject FROM actions WHERE id < ? ORDER BY id, subject LIMIT ?)",
            (before_id, limit),
        )


def _head(row: Sequence[Any]) -> ActionHead:
    return ActionHead._make(row)._replace(subjects=int(row[5]), undone=int(row[6]))


# -- packing -----------------------------------------------------------------------------------------------------------


def _stored(about: ActionDetails, changes: Sequence[SubjectChange]) -> Iterator[tuple[Any, ...]]:
    """One alone as it is, several together."""
    ordered = sorted(changes)
    for begin in range(0, len(ordered), PACKED):
        part = ordered[begin : begin + PACKED]
        first, last = part[0], part[-1]
        if first is last:
            before, after = dict(zip(first.fields, first.before, strict=True)), dict(_after(first))
            yield (about.id, first.subject, *about[1:], first.name, _WRITE(before), _WRITE(after), 1, None, None)
        else:
            name = min(change.name for change in part)
            packed = _packed(part)
            yield (about.id, -first.subject, *about[1:], name, "{}", "{}", len(part), last.subject, packed)


def _after(change: SubjectChange) -> Iterator[tuple[str, Any]]:
    return compress(zip(change.fields, change.left, strict=True), map(ne, change.before, change.left))


def _packed(changes: Sequence[SubjectChange]) -> str:
    """Changes as `[form, subject, name, before, after]`; the fields, and what many have in common, are there once."""
    forms: dict[tuple[str, ...], int] = {}
    afters: dict[str, tuple[int, dict[str, Any]]] = {}
    members = []
    for change in changes:
        after = dict(_after(change))
        number, _ = afters.setdefault(repr(after), (len(afters), after))
        form = forms.setdefault(change.fields, len(forms))
        members.append((form, change.subject, change.name, change.before, number))
    return _WRITE({"forms": list(forms), "afters": [after for _, after in afters.values()], "members": members})


def _unpacked(stored: Sequence[Any]) -> Iterator[ActionRow]:
    """What a stored row keeps, except what was restored."""
    number, place, at, what, actor, via, name, before, after, _, _, members, restored = stored
    if members is None:
        yield ActionRow(number, place, at, what, actor, via, name, json.loads(before), json.loads(after))
        return
    pack, gone = json.loads(members), set(json.loads(restored or "[]"))
    for form, subject, own, values, left in pack["members"]:
        if subject not in gone:
            found = dict(zip(pack["forms"][form], values, strict=True))
            yield ActionRow(number, subject, at, what, actor, via, own, found, pack["afters"][left], place)
