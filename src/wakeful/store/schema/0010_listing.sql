-- oldest: 7
-- What listings and counts are answered from. A page of jobs of a kind, an owner or a source is found in the order of
-- names. Jobs that are stopped are few, and so are removed ones: what is neither is counted as the rest. No run of a
-- job that goes on changes any of these.

CREATE INDEX jobs_kind_name ON jobs (kind, name) WHERE removed_at IS NULL;
CREATE INDEX jobs_owner_name ON jobs (owner, name) WHERE removed_at IS NULL AND owner IS NOT NULL;
CREATE INDEX jobs_source_name ON jobs (source, name) WHERE removed_at IS NULL;
CREATE INDEX jobs_removed ON jobs (id) WHERE removed_at IS NOT NULL;
CREATE INDEX job_state_stopped ON job_state (paused, job_id) WHERE enabled = 0 OR paused = 1;
DROP INDEX jobs_kind;
