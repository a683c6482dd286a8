"""The transactions of the engine: claim what is due, settle what ended, recover what was cut off, alert."""
