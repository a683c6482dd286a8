-- oldest: 2
-- Sessions that are kept from run to run, work that goes on elsewhere, and since when a job fails.

CREATE TABLE sessions (
    job_id     bigint PRIMARY KEY,
    session    text NOT NULL,          -- what the session server calls it
    model      text NOT NULL,          -- what it was made with; '' where nothing was asked for
    created_at bigint NOT NULL,
    used_at    bigint NOT NULL
);
CREATE INDEX sessions_used ON sessions (used_at, job_id);

CREATE TABLE run_watches (
    run_id bigint PRIMARY KEY,
    url    text NOT NULL,              -- where it can be asked how the run's work goes
    since  bigint NOT NULL
);

CREATE TABLE run_reports (
    run_id     bigint PRIMARY KEY,     -- of a run that is not waiting yet, or is to be tried again
    at         bigint NOT NULL,
    outcome    text NOT NULL CHECK (outcome IN ('success', 'error')),
    output     text,                   -- JSON
    error_type text,
    error      text
);

ALTER TABLE job_state ADD COLUMN failing_since bigint;  -- when the first of the errors in a row was
