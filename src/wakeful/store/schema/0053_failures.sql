-- oldest: 12
-- What is not well is found by what failed, however much there is that did not.

CREATE INDEX runs_failed ON runs (id) WHERE outcome IN ('error', 'timeout', 'crashed');
CREATE INDEX job_state_failed ON job_state (job_id) WHERE last_error IS NOT NULL;
