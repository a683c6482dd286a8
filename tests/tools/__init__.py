"""Presets against the programs themselves: `make test-tools`."""
