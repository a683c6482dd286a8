-- oldest: 16
-- Agents: what wakes them, what they are to hear, the sessions they keep, and accounts that are at their limit.

CREATE TABLE agent_wakes (
    job_id       bigint PRIMARY KEY,     -- of the agent's wake job
    reason       text NOT NULL,          -- the most important of those asked for
    due_at       bigint NOT NULL,
    requested_at bigint NOT NULL,
    run_id       bigint NOT NULL         -- the run that waits for it
);

CREATE TABLE agent_events (
    id          bigint PRIMARY KEY,
    job_id      bigint NOT NULL,         -- of the agent's wake job
    text        text NOT NULL,
    source      text,
    context_key text,                    -- a newer one with the same key replaces it
    at          bigint NOT NULL,
    run_id      bigint                   -- the run that it was given to; NULL: it waits
);
CREATE INDEX agent_events_job ON agent_events (job_id, id);
CREATE INDEX agent_events_run ON agent_events (run_id) WHERE run_id IS NOT NULL;

CREATE TABLE agent_sessions (
    name       text PRIMARY KEY,         -- reporter/standup, reporter/heartbeat, or the name that agents share
    agent      text NOT NULL,            -- who used it last
    session    text NOT NULL,            -- what the tool calls it
    created_at bigint NOT NULL,
    used_at    bigint NOT NULL,
    tokens_in  bigint NOT NULL,          -- counted so far, for tools that report the whole session
    tokens_out bigint NOT NULL
);
CREATE INDEX agent_sessions_agent ON agent_sessions (agent, name);
CREATE INDEX agent_sessions_used ON agent_sessions (used_at);

CREATE TABLE agent_limits (
    account text PRIMARY KEY,
    until   bigint NOT NULL,             -- when its rate limit ends
    why     text NOT NULL
);

CREATE TABLE agent_work (
    id          bigint PRIMARY KEY,
    job_id      bigint NOT NULL,         -- of the agent's wake job
    title       text NOT NULL,
    body        text,
    external_id text,
    priority    integer NOT NULL,
    status      text NOT NULL CHECK (status IN ('ready', 'claimed', 'done', 'failed')),
    run_id      bigint,                  -- who claimed it last
    attempts    integer NOT NULL,
    created_at  bigint NOT NULL,
    last_error  text
);
CREATE INDEX agent_work_status ON agent_work (job_id, status, priority DESC, id);
CREATE INDEX agent_work_run ON agent_work (run_id) WHERE status = 'claimed';
CREATE UNIQUE INDEX agent_work_external ON agent_work (job_id, external_id) WHERE external_id IS NOT NULL;
