"""A schedule in words whose moments are not known yet: `in 20 minutes` counts from the moment its job is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wakeful.errors import InvalidTrigger
from wakeful.triggers.base import TimedTrigger, Trigger
from wakeful.triggers.modifiers import PLAIN, modifiers
from wakeful.triggers.zones import system_zone, zone_name

if TYPE_CHECKING:
    from typing import Unpack

    from wakeful.triggers.modifiers import ModifierOptions


class Worded(TimedTrigger):
    """`Worded("tomorrow at 9")`: settled with the time and the zone of its storing. Modifiers become words."""

    __slots__ = ("text",)
    _fields = ("text", "tz")
    type = "when"
    text: str

    def __init__(self, words: str, tz: str | None = None, **options: Unpack[ModifierOptions]) -> None:
        given: object = words
        if not isinstance(given, str):
            raise InvalidTrigger(
                f'A schedule in words is a text such as "weekdays at 09:00", not {given!r:.40}.', "when"
            )
        beside = modifiers(**options).describe(None)
        text = words.strip() if '"' in words else " ".join(words.split())  # spaces in quotes are part of a name
        self._set(text=", ".join([text, *beside]), tz=zone_name(tz), modifiers=PLAIN)
        try:
            self.meant(0, "UTC")  # so that a mistake is found here
        except InvalidTrigger as error:
            if error.field != "until":  # start and until may lie the other way round then
                raise

    def meant(self, now_ms: int | None, zone: str | None) -> Trigger:
        """The trigger that the text means then and there."""
        from wakeful.triggers.sentences.reading import read_sentence  # loaded when somebody writes in words

        return read_sentence(self.text, now_ms, zone, self.tz)

    def plain(self, now_ms: int | None = None, zone: str | None = None) -> Trigger:
        """The trigger that it means, where that depends on nothing else; else itself."""
        from wakeful.triggers.sentences.times import PresentNeededError

        try:
            return self.meant(now_ms, zone)
        except PresentNeededError:
            return self

    def next_slot(self, after_ms: int, last_completed_ms: int | None = None) -> int | None:
        return self.meant(after_ms, system_zone()).next_slot(after_ms, last_completed_ms)

    def upcoming_slots(self, after_ms: int, n: int) -> list[int]:
        return self.meant(after_ms, system_zone()).upcoming_slots(after_ms, n)

    def latest_slot(self, after_ms: int, until_ms: int) -> int | None:
        return self.meant(after_ms, system_zone()).latest_slot(after_ms, until_ms)

    def count_slots(self, after_ms: int, until_ms: int) -> int:
        return self.meant(after_ms, system_zone()).count_slots(after_ms, until_ms)

    def closed_slots(self, after_ms: int, until_ms: int) -> int:
        return self.meant(after_ms, system_zone()).closed_slots(after_ms, until_ms)

    def period_at(self, slot: int) -> int | None:
        return self.meant(slot, system_zone()).period_at(slot)

    def min_gap_ms(self) -> int | None:
        return self.meant(0, system_zone()).min_gap_ms()

    def resolved(self, now_ms: int, zone: str, keep: Trigger | None = None) -> Trigger:
        return self.meant(now_ms, zone).resolved(now_ms, zone, keep)

    def describe(self) -> str:
        return f"{self.text} in {self.tz}" if self.tz else self.text

    def to_data(self) -> dict[str, Any]:
        return {"type": self.type, "words": self.text, **({"tz": self.tz} if self.tz else {})}

    def __repr__(self) -> str:
        return f"when({self.text!r}, tz={self.tz!r})" if self.tz else f"when({self.text!r})"
