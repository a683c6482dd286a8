"""The handler of http jobs: sends the request, and says what its answer means for the run."""

from __future__ import annotations

import asyncio
import os
from functools import cache

from wakeful.clock import Clock, SystemClock
from wakeful.domains.http.answer import HttpResponse, complaint, output_of, passes, retry_at
from wakeful.domains.http.secrets import secret_values, without
from wakeful.domains.http.sending import HttpSender, SendingFailed
from wakeful.domains.http.settings import HttpSettings
from wakeful.domains.http.spec import RequestSpec
from wakeful.kernel.model.run import Run
from wakeful.kernel.rules.outcome import Failed, Output, TransientError
from wakeful.triggers.durations import format_interval
from wakeful.triggers.moments import from_ms

MOST_TRIES = 5  # of one slot, because the other side asked for it


class RequestFailed(Failed):
    """The answer is not an expected one, or there is none and a retry would not help."""


class RequestFailedForNow(RequestFailed, TransientError):
    """The same request may succeed in a minute."""


class HttpKind:
    """The handler. Times come from the scheduler's clock."""

    def __init__(self, settings: HttpSettings, clock: Clock | None = None) -> None:
        self._settings = settings
        self._clock = clock if clock is not None else SystemClock()
        self._sender = HttpSender(settings, self._clock)

    async def __call__(self, run: Run) -> Output:
        """Send the request in the job's payload; the answer is the run's output, whether it is a good one or not."""
        spec = RequestSpec.to_send(run.payload, os.environ)
        try:
            async with asyncio.timeout(spec.timeout / 1000 if spec.timeout is not None else None):
                reply = await self._sender.send(spec)
        except TimeoutError:
            message = f"there was no answer within {format_interval(spec.timeout or 0)}"
            raise RequestFailedForNow(message, Output(None)) from None
        except SendingFailed as error:
            kind = RequestFailedForNow if error.passing else RequestFailed
            raise kind(without(str(error), secret_values(spec)), Output(None)) from None
        output = Output(output_of(spec, reply, self._settings.body_most))
        if spec.expects(reply.status):
            return output
        raise self._failure(spec, reply, output, run.attempt)

    def _failure(self, spec: RequestSpec, reply: HttpResponse, output: Output, attempt: int) -> RequestFailed:
        message = complaint(spec, reply)
        if not passes(reply.status):
            return RequestFailed(message, output)
        until = retry_at(reply.headers, from_ms(self._clock.now())) if attempt < MOST_TRIES else None
        return RequestFailedForNow(message, output, until=until)


@cache
def default_kind() -> HttpKind:
    """The handler of schedulers without settings for requests."""
    return HttpKind(HttpSettings())
