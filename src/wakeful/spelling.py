"""What somebody who misspelt a name may have meant."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str], number: int = 1) -> list[str]:
    """The known names that are spelled nearly like this one, the nearest first."""
    from difflib import get_close_matches  # only when something is wrong

    return get_close_matches(word, list(known), n=number)


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """A sentence to add, such as " Did you mean 'nightly'?"; where no name is near, the other one."""
    near = nearest(word, known)
    hint = f"Did you mean {near[0]!r}?" if near else otherwise
    return f" {hint}" if hint else ""
