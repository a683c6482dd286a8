-- oldest: 12
-- Which places a job reserves that needs several lanes and waits for one of them: those it found before that one. Code
-- that does not know this gives such places away, and the job waits longer.

CREATE TABLE lane_reservations (
    lane   text NOT NULL,
    job_id bigint NOT NULL,
    PRIMARY KEY (lane, job_id)
);
CREATE INDEX lane_reservations_job ON lane_reservations (job_id);

-- How long runs in a lane usually take, in ms: a job that needs several waits for the one with the longest first.
ALTER TABLE lanes ADD COLUMN length bigint;
