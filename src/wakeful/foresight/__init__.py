"""Foresight: what the stored jobs, or a file that is not applied yet, will do.

`simulate` runs a copy of the store with the real engine in virtual time; `forecast` counts the times of schedules and
multiplies them with what past runs used. Both start from a snapshot and touch nothing else: no program, no request, no
message, no file.

What must stay true:
- a simulation is decided by its snapshot, its question and its seed alone;
- it uses the engine that runs jobs, and replaces nothing but the handlers;
- its memory does not grow with the time that it simulates.
"""
