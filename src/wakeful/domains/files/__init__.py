"""Fleets: jobs that a configuration file declares and owns.

What must stay true:
- a file touches only what it made: everything else in the store is left alone, also what another file made;
- applying a file that says what is stored changes nothing, and moves no time;
- a person's pause stays, and a due slot runs, also when the file has changed;
- values that a file refers to are never stored: the job keeps the reference, and the node that runs it looks it up.
"""

from __future__ import annotations

from wakeful.kernel.domain import Domain

DEFAULT_FLEET = "main"
CONFIG_ALERT = "config"

domain = Domain(
    "fleet",
    job_tables=("fleet_jobs",),
    simulated_tables=("fleets", "fleet_files", "fleet_jobs"),
    alerts={CONFIG_ALERT: "the configuration file has a mistake, or a change of it waits for a person"},
    section="jobs",
    settings="wakeful.config.job_schema:JobsSection",
    file_of="wakeful.domains.files.applying:file_of",
)
