-- oldest: 1
-- The kernel's tables. A job's definition lies apart from its state, a run apart from its details: what the engine
-- writes for every run stays narrow. Times are epoch milliseconds. `integer` is 64 bits in both dialects.

CREATE TABLE meta (
    key   text PRIMARY KEY,
    value text NOT NULL
);

CREATE TABLE jobs (
    id         bigint PRIMARY KEY,
    name       text NOT NULL,
    kind       text NOT NULL,
    owner      text,
    source     text NOT NULL,
    trigger    text NOT NULL,          -- JSON
    payload    text NOT NULL,          -- JSON
    options    text NOT NULL,          -- JSON, only what differs from the defaults
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    removed_at bigint                  -- the row stays: history is kept under its name
);
CREATE UNIQUE INDEX jobs_name ON jobs (name) WHERE removed_at IS NULL;
CREATE INDEX jobs_kind ON jobs (kind);

CREATE TABLE job_state (
    job_id           bigint PRIMARY KEY,
    revision         bigint NOT NULL,  -- of the definition; every edit adds one
    enabled          smallint NOT NULL,
    paused           smallint NOT NULL,
    due_at           bigint,           -- the alarm: when the engine must look at this job next
    next_at          bigint,           -- when the next slot starts (jitter, stagger and backoff included)
    slot             bigint,           -- the nominal time the next start stands for
    run_id           bigint,           -- the run in progress (active or waiting)
    queued           integer NOT NULL, -- how many runs of this job wait as rows of their own
    parked           text,             -- what it waits for: a lane or a handler
    ready_at         bigint,           -- since when it has been ready and only waits for a lane
    last_slot        bigint,
    last_run_id      bigint,
    last_run_at      bigint,
    last_finished_at bigint,
    last_outcome     text,
    last_error       text,
    errors           integer NOT NULL, -- in a row
    crashes          integer NOT NULL, -- in a row
    missed           integer NOT NULL,
    slot_runs        integer NOT NULL, -- scheduled runs so far, for max_runs
    backoff_until    bigint,
    notes            text              -- JSON list: what a person should know about this job
);
CREATE INDEX job_state_due ON job_state (due_at, job_id) WHERE due_at IS NOT NULL;
CREATE INDEX job_state_parked ON job_state (parked, ready_at, job_id) WHERE parked IS NOT NULL;

CREATE TABLE runs (
    id          bigint PRIMARY KEY,    -- time-ordered
    job_id      bigint NOT NULL,
    kind        text NOT NULL,
    reason      text NOT NULL,
    slot        bigint,
    attempt     integer NOT NULL,
    retry_of    bigint,
    caused_by   bigint,
    phase       text,
    status      text NOT NULL CHECK (status IN ('queued', 'active', 'waiting', 'done')),
    outcome     text CHECK (outcome IN ('success', 'noop', 'skipped', 'deferred', 'error', 'timeout', 'crashed',
                                        'cancelled', 'unknown')),
    due_at      bigint NOT NULL,
    started_at  bigint,
    finished_at bigint,
    node        bigint,
    token       bigint,                -- the incarnation that may settle it
    lanes       text,                  -- JSON list: bounded lanes it holds
    cancel      smallint NOT NULL DEFAULT 0,
    CHECK ((status = 'done') = (finished_at IS NOT NULL)),
    CHECK ((status = 'done') = (outcome IS NOT NULL))
);
-- Serves three promises: a slot has one first attempt, an attempt is made once, and a job's history is found.
CREATE UNIQUE INDEX runs_slot ON runs (job_id, slot, attempt);
CREATE UNIQUE INDEX runs_retry_of ON runs (retry_of) WHERE retry_of IS NOT NULL;
CREATE INDEX runs_open ON runs (job_id) WHERE finished_at IS NULL;

CREATE TABLE run_details (
    run_id     bigint PRIMARY KEY,
    payload    text,                   -- JSON, where it is not simply the job's
    output     text,                   -- JSON
    error_type text,
    error      text,
    trace      text,
    log_file   text,
    usage      text                    -- JSON: tokens, cost
);

CREATE TABLE chains (
    upstream text NOT NULL,            -- a job's name
    job_id   bigint NOT NULL,
    on_end   text NOT NULL CHECK (on_end IN ('success', 'failure', 'any')),
    PRIMARY KEY (upstream, job_id)
);
CREATE INDEX chains_job ON chains (job_id);

CREATE TABLE lanes (
    key  text PRIMARY KEY,
    used integer NOT NULL
);

CREATE TABLE skips (
    job_id  bigint NOT NULL,
    reason  text NOT NULL,
    times   bigint NOT NULL,
    last_at bigint NOT NULL,
    detail  text,
    PRIMARY KEY (job_id, reason)
);

CREATE TABLE streams (
    stream text PRIMARY KEY,
    seq    bigint NOT NULL
);

CREATE TABLE events (
    id     bigint PRIMARY KEY,
    stream text NOT NULL,
    seq    bigint NOT NULL,            -- of the last event in this group
    at     bigint NOT NULL,
    body   text NOT NULL               -- JSON list: the group's events in order
);
CREATE INDEX events_stream ON events (stream, id);

CREATE TABLE alerts (
    id        bigint PRIMARY KEY,
    key       text NOT NULL,           -- the incident
    kind      text NOT NULL,
    job_id    bigint,
    message   text NOT NULL,
    opened_at bigint NOT NULL,
    last_at   bigint NOT NULL,
    times     integer NOT NULL,
    closed_at bigint,
    acked_at  bigint
);
CREATE UNIQUE INDEX alerts_open ON alerts (key) WHERE closed_at IS NULL;

CREATE TABLE nodes (
    id         bigint PRIMARY KEY,
    name       text NOT NULL,
    started_at bigint NOT NULL,
    seen_at    bigint NOT NULL,
    stopped_at bigint,
    details    text NOT NULL           -- JSON: host, pid, kinds, labels, version
);
