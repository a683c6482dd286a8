"""A phone that takes alerts in virtual time, and what it got."""

from __future__ import annotations


class Phone:
    """Takes messages, or fails with `error`; notes every one it took."""

    def __init__(self, scene):
        self._scene = scene
        self.error = None
        self.got = []
        self.times = []

    async def __call__(self, message):
        if self.error is not None:
            raise self.error
        self.got.append(message)
        self.times.append(self._scene.now)

    @property
    def titles(self):
        return [message.title for message in self.got]

    @property
    def texts(self):
        return [message.text for message in self.got]

    @property
    def events(self):
        return [(alert["kind"], alert["event"]) for message in self.got for alert in [message.data()["alert"]]]

    def clear(self):
        self.got.clear()
        self.times.clear()


def with_phone(scene, phone, *kinds, **options):
    """A scheduler whose connector `phone` leads to that phone."""
    scheduler = scene.scheduler(*kinds, **options)
    scheduler.connectors.register("phone", phone)
    return scheduler
