-- oldest: 17
-- Jobs that their owner proposed or made itself over MCP: who asked, and in which run; what the owner wrote, by which
-- an edit of somebody else is recognised; the run that waits for a person's answer. Questions that runs ask.

CREATE TABLE proposals (
    job_id     bigint PRIMARY KEY,
    asked_by   text NOT NULL,                -- the agent, or the name of the token
    asked_in   bigint,                       -- the run of the agent
    asked_at   bigint NOT NULL,
    hops       smallint NOT NULL DEFAULT 0,  -- how many runs of agents led to it
    outside    smallint NOT NULL DEFAULT 0,  -- 1: the run that wrote it was given text from outside
    written    text NOT NULL,                -- a digest of the definition as its owner left it
    run_id     bigint,                       -- the run that waits for approval; NULL: none does
    expires_at bigint                        -- until when it waits for an answer
);
CREATE INDEX proposals_waiting ON proposals (expires_at) WHERE run_id IS NOT NULL;

ALTER TABLE agent_senders ADD COLUMN question text;        -- what its run asks a person when its call ends
ALTER TABLE agent_senders ADD COLUMN answer_until bigint;  -- until when an answer counts
