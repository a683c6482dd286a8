"""What the Scheduler object shows: the library's calls, and one attribute each for domains and the server."""

from __future__ import annotations

from wakeful import Scheduler
from wakeful.scheduler.host import Host

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
DOMAINS = {"transact", "read", "clock", "add_workflow", "host"}
HOST = {
    "add_service", "before_start", "write_at_start", "offer_labels", "withdraw_labels", "withhold",
    "default_zone", "draft", "handled_kinds", "hidden_kinds", "log_folder", "new_id", "node_id", "origin", "seen",
}  # fmt: skip
SERVER = {"server_side"}


def test_the_scheduler_shows_these_names_and_no_others():
    assert {name for name in dir(Scheduler) if not name.startswith("_")} == USERS | DOMAINS | SERVER


def test_what_is_for_domains_and_surfaces_alone_is_on_its_host():
    assert {name for name in dir(Host) if not name.startswith("_")} == HOST
