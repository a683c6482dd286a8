# ruff: noqa: I001, I002
import os

from celery import Celery
from celery.schedules import crontab, solar
from datetime import timedelta

raise SystemExit("this module must not be imported")

app = Celery("proj", broker=os.environ["BROKER"])
app.conf.timezone = "Europe/London"
app.conf.beat_schedule = {
    "add-every-30-seconds": {"task": "proj.tasks.add", "schedule": 30.0, "args": (16, 16)},
    "monday-morning": {
        "task": "proj.tasks.report",
        "schedule": crontab(hour=7, minute=30, day_of_week="mon"),
        "kwargs": {"to": "team"},
        "options": {"queue": "slow"},
    },
    "cleanup": {"task": "proj.tasks.cleanup", "schedule": timedelta(hours=6)},
    "product": {"task": "proj.tasks.tick", "schedule": 60 * 5},
    "melbourne": {"task": "proj.tasks.sun", "schedule": solar("sunset", -37.8, 144.9)},
    "computed": {"task": "proj.tasks.tick", "schedule": float(os.environ.get("EVERY", "60"))},
}
