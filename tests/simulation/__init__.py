"""Deterministic simulation: the real engine on a real store, in virtual time, with seeded faults."""
