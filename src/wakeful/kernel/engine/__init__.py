"""The running engine: sleep until something is due, settle what ended, claim what is due, recover what was cut off."""
