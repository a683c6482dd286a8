"""What the engine's loop knows about itself between two steps: one value, changed only by its named transitions; and
what it counts.
"""

from __future__ import annotations


class Counters:
    """What the engine has done since it started; they only inform."""

    def __init__(self) -> None:
        self.checks = 0
        self.starts = 0
        self.last_check: int | None = None
        self.lost = 0
        self.clock_steps = 0


class LoopState:
    """Belongs to the engine's loop. Read anywhere; written by the transitions below alone."""

    __slots__ = ("admitted", "admitting", "changed", "recheck_store", "trouble", "turning", "unsure")

    def __init__(self) -> None:
        self.changed = True  # something changed since the last turn began
        self.recheck_store = False  # and it may be about a run, or come from elsewhere
        self.admitting = False  # whether our owner lets us start anything
        self.admitted = False  # whether we might start anything when we last looked
        self.turning = False  # whether a turn is under way
        self.unsure = False  # whether the store may hold claims of ours that we never heard of
        self.trouble: str | None = None  # what is wrong with the store right now

    # -- life ---------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        self.trouble = None
        self.changed = self.admitting = self.admitted = True

    def stop_admitting(self) -> None:
        self.admitting = False

    # -- what there is to do ------------------------------------------------------------------------------------------

    def note_change(self, *, recheck_store: bool = False) -> None:
        """There is something for the next turn to look at."""
        self.changed = True
        self.recheck_store = self.recheck_store or recheck_store

    def note_admission(self, *, admitted: bool) -> None:
        """While we may start nothing, due jobs are others'; once we may again, look at what there is."""
        if admitted and not self.admitted:
            self.note_change(recheck_store=True)
        self.admitted = admitted

    # -- a turn -------------------------------------------------------------------------------------------------------

    def begin_turn(self) -> bool:
        """Whether this turn is to recheck the store.

        Cleared before the transaction: a change committed after it must not be covered up by its answer.
        """
        recheck_store = self.recheck_store
        self.changed = self.recheck_store = False
        self.turning = True
        return recheck_store

    def end_turn(self) -> None:
        self.turning = False

    # -- trouble with the store ---------------------------------------------------------------------------------------

    def lose_claims(self) -> None:
        """The store may hold claims that are not going to be started here."""
        self.unsure = True

    def find_claims(self) -> None:
        """The store holds no claims but those that we know; what was released is due."""
        self.unsure = False
        self.note_change(recheck_store=True)

    def fail(self, trouble: str) -> bool:
        """The store did not answer as it should; whether that is new."""
        is_new = self.trouble is None
        self.trouble = trouble
        self.lose_claims()
        return is_new

    def recover(self) -> bool:
        """The store answers; whether that is new."""
        was_troubled = self.trouble is not None
        self.trouble = None
        return was_troubled
