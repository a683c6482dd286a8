"""Values: things that are equal when their parts are, never change, and can be dictionary keys."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn, Self


class Value:
    """A frozen value. Plain slots rather than dataclasses: importing those would double the start-up time."""

    __slots__ = ()
    _fields: ClassVar[tuple[str, ...]] = ()

    def _set(self, **parts: object) -> None:
        for name, part in parts.items():
            object.__setattr__(self, name, part)

    def _parts(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self._fields])

    def _replaced(self, **parts: object) -> Self:
        """The same value with these parts changed, which are not checked again."""
        copy = object.__new__(type(self))
        for name in self._fields:
            object.__setattr__(copy, name, parts[name] if name in parts else getattr(self, name))
        return copy

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash((type(self), self._parts()))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} never changes: make a new one instead of setting {name}.")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} never changes: make a new one instead of deleting {name}.")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __getstate__(self) -> tuple[Any, ...]:
        return self._parts()

    def __setstate__(self, parts: tuple[Any, ...]) -> None:
        self._set(**dict(zip(self._fields, parts, strict=True)))
