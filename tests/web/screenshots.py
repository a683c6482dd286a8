"""`make screenshots`: the main pages of the dashboard, as the README and the guide show them."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from tests.cli.terminal import Terminal
from tests.web.browsing import Browsing, settled
from tests.web.fleet import populate
from wakeful import Cron, NewJob, Scheduler, ids
from wakeful.kernel.context import Context
from wakeful.store.interface import Transaction
from wakeful.store.records import RunRow

IMAGES = Path(__file__).parents[2] / "docs" / "images"
HOUR_MS = 3_600_000
#: Jobs with a history: their minutes, how long one takes, and which of its runs failed.
FLEET = {
    "inbox": ("*/15 * * * *", 38_000, (9,)),
    "price-feed": ("*/30 * * * *", 3_000, (20, 21, 22)),
    "backup": ("0 */6 * * *", 390_000, ()),
    "embed-notes": ("20 * * * *", 660_000, (3,)),
    "standup": ("0 9 * * 1-5", 130_000, ()),
}
PICTURES = {
    "now-light": ("/", {"color_scheme": "light", "viewport": {"width": 1280, "height": 1040}}),
    "now-dark": ("/", {"color_scheme": "dark", "viewport": {"width": 1280, "height": 1040}}),
    "now-phone": ("/", {"viewport": {"width": 390, "height": 844}}),
    "jobs-light": ("/jobs", {"color_scheme": "light"}),
}


async def history(url: str) -> None:
    """A day of runs, made before the server starts."""
    async with Scheduler(url, timezone="Europe/Berlin") as scheduler:
        jobs = [
            NewJob(name, Cron(cron), kind="command", payload={"argv": ["true"]}) for name, (cron, _, _) in FLEET.items()
        ]
        added = await scheduler.add_jobs(jobs)
        await scheduler.transact(lambda tx, context: _past(tx, context, added), wakes=False)


def _past(tx: Transaction, _: Context, added: list[str]) -> None:
    rows = []
    for text, (cron, took, bad) in zip(added, FLEET.values(), strict=True):
        number = ids.number_of("job", text) or 0
        slots = Cron(cron, tz="Europe/Berlin").upcoming_slots(tx.now - 12 * HOUR_MS, 60)
        for turn, slot in enumerate(slot for slot in slots if slot < tx.now - took):
            outcome, length = ("error", took // 4) if turn in bad else ("success", took * (80 + turn * 37 % 50) // 100)
            rows.append(
                RunRow(
                    *(ids.first_id_at(slot) + number % 1000, number, "command", "manual", None, 1),
                    *(None, None, None, "done", outcome, slot, slot, slot + length),
                )
            )
    tx.runs.add(rows)


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="screenshots-") as folder:
        terminal = Terminal(Path(folder))
        asyncio.run(history(f"sqlite:///{folder}/.wakeful/wakeful.db"))
        browsing = Browsing(populate(terminal))
        try:
            browsing.run(_take)
        finally:
            browsing.close()
            terminal.close()


def _take(browsing: Browsing) -> None:
    for name, (path, context) in PICTURES.items():
        page = browsing.tab(path, **context)
        settled(page)
        page.screenshot(path=IMAGES / f"{name}.png", full_page=False)
        print(f"wrote docs/images/{name}.png")


if __name__ == "__main__":
    main()
