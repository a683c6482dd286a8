-- oldest: 14
-- Workflows: their handlers with what each has stored, topics with their events, inputs with what they caused, and the
-- attempts of handlers, phase by phase.

CREATE TABLE workflows (
    name          text PRIMARY KEY,
    version       text NOT NULL,               -- hash of the code that was deployed last
    source        text NOT NULL,               -- code or file
    paused        integer NOT NULL DEFAULT 0,  -- by a person
    pause_note    text,
    issue         text,                        -- why the system lets nothing start; NULL: nothing is wrong
    issue_handler text,
    issue_run     bigint,
    issue_message text,
    backoff_until bigint,
    failures      integer NOT NULL DEFAULT 0,  -- transient ones in a row
    event_seq     bigint NOT NULL DEFAULT 0,   -- number of the event that was published last
    created_at    bigint NOT NULL,
    updated_at    bigint NOT NULL,
    removed_at    bigint
);

CREATE TABLE workflow_versions (
    workflow    text NOT NULL,
    number      integer NOT NULL,
    version     text NOT NULL,
    deployed_at bigint NOT NULL,
    PRIMARY KEY (workflow, number)
);

CREATE TABLE workflow_handlers (
    workflow   text NOT NULL,
    name       text NOT NULL,
    job_id     bigint,                         -- NULL: the deployed version has no such handler
    type       text NOT NULL,                  -- producer or consumer
    subscribes text NOT NULL,                  -- JSON list of topics
    publishes  text,                           -- JSON list of topics; NULL: any
    timeout    bigint NOT NULL,                -- of each call, in milliseconds
    state      text NOT NULL DEFAULT '{}',     -- JSON: what the handler returned last
    wake_at    bigint,                         -- as the last committed run asked for it
    open_run   bigint,                         -- the last attempt that did not commit, and is to be continued
    rounds     integer NOT NULL DEFAULT 0,     -- runs in a row that left something to do at once
    dirty      bigint NOT NULL DEFAULT 0,      -- number of the last event in a subscribed topic
    seen       bigint NOT NULL DEFAULT 0,      -- the same when the last committed run began
    PRIMARY KEY (workflow, name)
);
CREATE INDEX workflow_handlers_job ON workflow_handlers (job_id);

CREATE TABLE workflow_runs (
    id           bigint PRIMARY KEY,           -- of the run
    job_id       bigint NOT NULL,
    workflow     text NOT NULL,
    handler      text NOT NULL,
    type         text NOT NULL,
    retry_of     bigint,
    version      text NOT NULL,
    phase        text NOT NULL
        CHECK (phase IN ('preparing', 'prepared', 'mutating', 'mutated', 'emitting', 'committed')),
    status       text NOT NULL,
    mutation     text NOT NULL CHECK (mutation IN ('none', 'in_flight', 'applied', 'skipped')),
    begins       text NOT NULL,                -- prepare, mutate, reconcile or emit
    watermark    bigint NOT NULL,
    tries        integer NOT NULL DEFAULT 0,   -- how often the mutation was reconciled
    reconcile_at bigint,                       -- not before this
    reserved     integer NOT NULL DEFAULT 0,   -- how many events
    prepared     text,                         -- JSON: what prepare returned, but for the reservations
    result       text,                         -- JSON: what mutate returned
    wake_at      bigint,
    title        text,
    error        text,
    notes        text,                         -- JSON list of what the author should know
    created_at   bigint NOT NULL,
    updated_at   bigint NOT NULL
);
CREATE INDEX workflow_runs_workflow ON workflow_runs (workflow, id);
CREATE INDEX workflow_runs_job ON workflow_runs (job_id, id);

CREATE TABLE workflow_events (
    id         bigint PRIMARY KEY,
    workflow   text NOT NULL,
    topic      text NOT NULL,
    message_id text NOT NULL,
    seq        bigint NOT NULL,
    payload    text NOT NULL,
    status     text NOT NULL CHECK (status IN ('pending', 'reserved', 'consumed', 'skipped')),
    at         bigint NOT NULL,
    run_id     bigint,                         -- who reserved or consumed it
    made_by    bigint,                         -- the run that published it; NULL: a person
    settled_at bigint                          -- when it was consumed or skipped
);
CREATE INDEX workflow_events_open ON workflow_events (workflow, topic, status, seq);
CREATE INDEX workflow_events_waiting ON workflow_events (workflow, id) WHERE status IN ('pending', 'reserved');
CREATE INDEX workflow_events_list ON workflow_events (workflow, id);
CREATE INDEX workflow_events_run ON workflow_events (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX workflow_events_made ON workflow_events (made_by) WHERE made_by IS NOT NULL;
CREATE INDEX workflow_events_old ON workflow_events (settled_at) WHERE settled_at IS NOT NULL;

-- Every message id that was published; it stays when its event is pruned, so that nothing is published twice.
CREATE TABLE workflow_messages (
    workflow   text NOT NULL,
    topic      text NOT NULL,
    message_id text NOT NULL,
    event_id   bigint NOT NULL,
    PRIMARY KEY (workflow, topic, message_id)
);

CREATE TABLE workflow_inputs (
    id          bigint PRIMARY KEY,
    workflow    text NOT NULL,
    source      text NOT NULL,
    type        text NOT NULL,
    external_id text NOT NULL,
    title       text,
    at          bigint NOT NULL,
    skipped_at  bigint,
    reason      text                           -- a person's, for skipping it or running it again
);
CREATE UNIQUE INDEX workflow_inputs_external ON workflow_inputs (workflow, source, type, external_id);
CREATE INDEX workflow_inputs_list ON workflow_inputs (workflow, id);

CREATE TABLE workflow_causes (
    event_id bigint NOT NULL,
    input_id bigint NOT NULL,
    PRIMARY KEY (event_id, input_id)
);
CREATE INDEX workflow_causes_input ON workflow_causes (input_id, event_id);

-- What people did to a workflow.
CREATE TABLE workflow_actions (
    id       bigint PRIMARY KEY,
    workflow text NOT NULL,
    at       bigint NOT NULL,
    who      text NOT NULL,
    action   text NOT NULL,
    detail   text
);
CREATE INDEX workflow_actions_workflow ON workflow_actions (workflow, id);
