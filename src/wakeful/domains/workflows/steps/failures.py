"""How steps fail: so that the handler may catch it, or so that only the next attempt, or a person, can continue."""

from __future__ import annotations

from wakeful.domains.workflows.failures import LogicError


class StepFailed(Exception):
    """A step has failed. A handler may catch it and continue, for example to undo what earlier steps did.

    Once it continues with another step, the failure is on record: later attempts raise it again, and do not repeat the
    step. Uncaught, it ends the attempt, and the next one does the step again. `step` is the name of the step and
    `error_type` the class of the error, which is also the `__cause__` in the attempt in which it was raised.
    """

    def __init__(self, step: str, message: str, error_type: str | None = None) -> None:
        super().__init__(message)
        self.step = step
        self.error_type = error_type


class StepUncertain(LogicError):
    """It is not known whether a step happened; `delay`: when reconcile is asked again, None: a person must say."""

    def __init__(self, step: str, why: str, delay: int | None) -> None:
        super().__init__(f"it is not known whether the step {step!r} happened: {why}")
        self.step = step
        self.why = why
        self.delay = delay


class RemovedStep(LogicError):
    """The event has a step on record that this version of the code does not call."""

    def __init__(self, step: str, new: str | None = None) -> None:
        super().__init__(f"the step {step!r} is on record, and this version of the code does not call it")
        self.step = step
        self.new = new
