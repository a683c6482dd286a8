-- oldest: 11
-- Who starts first: a job's priority, derived from its options whenever it is written. Code that ignores it would leave
-- jobs of other priorities than 0 unseen.

ALTER TABLE job_state ADD COLUMN priority integer NOT NULL DEFAULT 0;

-- Every priority that a job has, or had: what is due is asked for once per level, from the highest on.
CREATE TABLE priorities (
    level integer PRIMARY KEY
);
INSERT INTO priorities (level) VALUES (0);

DROP INDEX job_state_due;
CREATE INDEX job_state_due ON job_state (priority, due_at, job_id) WHERE due_at IS NOT NULL;
DROP INDEX job_state_parked;
CREATE INDEX job_state_parked ON job_state (parked, priority DESC, ready_at, job_id) WHERE parked IS NOT NULL;
