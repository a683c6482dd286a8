"""What the Scheduler object shows: the library's calls, the seam for domains, and one attribute for the server."""

from __future__ import annotations

from wakeful import Scheduler

USERS = {
    "open", "close", "start", "stop", "run_forever",
    "job", "on_job_due", "add_job", "add_jobs", "update_job", "remove_job", "pause_job", "resume_job",
    "get_job", "list_jobs",
    "run_job", "run_here", "cancel_run", "retry_run", "complete_run", "approve_run", "reject_run",
    "get_run", "wait_for_run", "get_run_log", "get_run_stats", "log_path", "explain",
    "url", "is_running", "get_status", "get_state", "get_summary", "get_verdict", "running_count", "engine_holder",
    "list_alerts", "ack_alert", "list_actions", "undo", "get_ledger", "get_slot", "events", "subscribe",
    "list_nodes", "drain_node",
    "create_token", "list_tokens", "revoke_token",
    "connectors", "deliver", "agents", "workflows",
}  # fmt: skip
DOMAINS = {
    "transact",
    "look",
    "accompany",
    "clock",
    "handled_kinds",
    "node_id",
    "default_zone",
    "job_defaults",
    "max_running",
}
DOMAINS |= {"acting", "drafted", "hidden_kinds", "log_folder", "before_start", "offer_labels", "withdraw_labels"}
DOMAINS |= {"add_workflow", "write_at_start", "kinds", "new_id", "seen", "withhold"}
SERVER = {"server_side"}


def test_the_scheduler_shows_these_names_and_no_others():
    assert {name for name in dir(Scheduler) if not name.startswith("_")} == USERS | DOMAINS | SERVER
