"""The workflow of the demo: looks for invoices, and books each of them once."""

from __future__ import annotations

from typing import Any

from wakeful.demo.scripts import chance_of
from wakeful.domains.workflows import Context, Prepared, Workflow
from wakeful.triggers import Interval

workflow = Workflow("books")
book = workflow.consumer("book", subscribes=["invoices"])


@workflow.producer(Interval("2h"), publishes=["invoices"])
async def look(ctx: Context, state: dict[str, Any]) -> dict[str, Any]:
    """Publishes what is new; nothing at times."""
    seen = int(state.get("seen", 0))
    new = chance_of("books", seen, ctx.run_id).choice([0, 0, 1, 2])
    for number in range(seen + 1, seen + new + 1):
        item = await ctx.register_input("mail", "invoice", number, title=f"Invoice {number}")
        payload = {"number": number, "amount": 20 + number * 7 % 300}
        await ctx.publish("invoices", message_id=number, payload=payload, input=item)
    return {"seen": seen + new}


@book.prepare
async def prepare(ctx: Context, _: dict[str, Any]) -> Prepared:
    """Takes what waits."""
    waiting = await ctx.peek("invoices", limit=10)
    rows = [event.payload for event in waiting]
    title = f"Book {len(rows)} of {sum(row['amount'] for row in rows)}"
    return Prepared(reserve={"invoices": [event.id for event in waiting]}, data=rows, title=title)


async def write_rows(rows: list[dict[str, Any]]) -> int:
    """Where a real one would write to the books."""
    return len(rows)


@book.mutate
async def mutate(ctx: Context, prepared: Prepared) -> Any:
    """Writes the rows."""
    return await ctx.call(write_rows, prepared.data)
