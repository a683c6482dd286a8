-- oldest: 17
-- The last attempt at an event that waits for a person is kept for as long as that takes: it is found by its run.

CREATE INDEX workflow_tasks_run ON workflow_tasks (run_id) WHERE run_id IS NOT NULL;
