-- oldest: 12
-- Handlers with steps: the events they have begun or are about to, and what each step of an event came to.

ALTER TABLE workflow_handlers ADD COLUMN on_failure text;                   -- stop or park; NULL: it has no steps
ALTER TABLE workflow_handlers ADD COLUMN keyed bigint NOT NULL DEFAULT 0;   -- number of the last event with a task

CREATE TABLE workflow_tasks (
    event_id     bigint PRIMARY KEY,
    workflow     text NOT NULL,
    handler      text NOT NULL,
    topic        text NOT NULL,
    key          text NOT NULL,                 -- of all tasks with the same one, one is worked on at a time
    seq          bigint NOT NULL,               -- of the event
    revision     bigint NOT NULL,               -- of the payload that the key was made of
    status       text NOT NULL
        CHECK (status IN ('ready', 'queued', 'running', 'retrying', 'uncertain', 'parked')),
    tries        integer NOT NULL DEFAULT 0,    -- attempts that failed
    retry_at     bigint,
    run_id       bigint,                        -- of the last attempt; NULL: it has not begun
    error        text,
    accepted     text,                          -- the version in which a person lets it go on with what is stored
    working_node bigint,                        -- where a thread of the last attempt may still be at work
    updated_at   bigint NOT NULL
);
CREATE INDEX workflow_tasks_turn ON workflow_tasks (workflow, handler, status, seq);
CREATE INDEX workflow_tasks_key ON workflow_tasks (workflow, handler, key, status, seq);
CREATE INDEX workflow_tasks_retry ON workflow_tasks (workflow, handler, retry_at) WHERE status = 'retrying';

CREATE TABLE workflow_steps (
    event_id   bigint NOT NULL,
    name       text NOT NULL,
    number     integer NOT NULL,                -- its place among the steps of the event
    status     text NOT NULL CHECK (status IN ('running', 'done', 'uncertain', 'failed')),
    attempts   integer NOT NULL,
    tries      integer NOT NULL DEFAULT 0,      -- how often it was reconciled
    caught     integer NOT NULL DEFAULT 0,      -- the handler went on after it had failed
    sure       integer NOT NULL DEFAULT 0,      -- it failed, and is known to have changed nothing
    run_id     bigint NOT NULL,                 -- of the last attempt
    version    text NOT NULL,                   -- of the code that called it last
    value      text,                            -- JSON: what it returned
    error      text,
    error_type text,
    started_at bigint NOT NULL,
    ended_at   bigint,
    until      bigint NOT NULL,                 -- when its time limit ends
    PRIMARY KEY (event_id, name)
);
