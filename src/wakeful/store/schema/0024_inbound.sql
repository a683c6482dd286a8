-- oldest: 17
-- Requests from outside that start schedules of agents: the calls of webhooks, and chat messages.

CREATE TABLE agent_requests (
    id          bigint PRIMARY KEY,
    job_id      bigint NOT NULL,         -- of the schedule it starts; of the agent's wake job where it only wakes it
    type        text NOT NULL,           -- webhook or chat
    delivery_id text,                    -- what the sender calls it; a second one with the same is a duplicate
    replay_of   bigint,                  -- the request that a person let run again
    run_id      bigint NOT NULL,         -- the run that it asked for
    at          bigint NOT NULL,
    about       text NOT NULL,           -- JSON: headers of a webhook; connector and sender of a message
    body        text                     -- as it came; NULL once retention has taken it
);
CREATE UNIQUE INDEX agent_requests_delivery ON agent_requests (job_id, delivery_id) WHERE delivery_id IS NOT NULL;
CREATE INDEX agent_requests_job ON agent_requests (job_id, id);
CREATE INDEX agent_requests_at ON agent_requests (at);
CREATE INDEX agent_requests_body ON agent_requests (at) WHERE body IS NOT NULL;

-- Which schedules hear chat messages, found without a look at other jobs.
CREATE INDEX jobs_chat ON jobs (name) WHERE trigger = '{"type":"chat"}' AND removed_at IS NULL;

-- 1: a text that others wrote, which is only data.
ALTER TABLE agent_events ADD COLUMN outside smallint NOT NULL DEFAULT 0;
