-- oldest: 14
-- Jobs that are over, as opposed to those that were disabled: they leave with their history. Code that ignores the
-- column would keep what it ends and removes for ever.

ALTER TABLE job_state ADD COLUMN ended_at bigint;  -- since when no further time comes; NULL while one may

UPDATE job_state SET ended_at = last_finished_at
WHERE enabled = 0 AND last_finished_at IS NOT NULL AND (
    notes LIKE '%"finished 20%'
    OR (last_slot IS NOT NULL AND job_id IN (SELECT id FROM jobs WHERE trigger LIKE '{"type":"once"%'))
);
UPDATE job_state SET ended_at = (SELECT removed_at FROM jobs WHERE id = job_id)
WHERE job_id IN (SELECT id FROM jobs WHERE removed_at IS NOT NULL);

-- Counts by status read the first alone, and retention finds what is old enough without a look at any other job.
DROP INDEX job_state_stopped;
CREATE INDEX job_state_stopped ON job_state (paused, ended_at, last_outcome, job_id) WHERE enabled = 0 OR paused = 1;
CREATE INDEX job_state_ended ON job_state (ended_at, job_id) WHERE ended_at IS NOT NULL;

-- Jobs that programs declare with their handler: what a program no longer declares is found among these.
CREATE INDEX jobs_declared ON jobs (removed_at, name, kind, source, id) WHERE removed_at IS NULL AND kind = name;
