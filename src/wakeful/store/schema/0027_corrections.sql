-- oldest: 14
-- Corrections that a hook answered to failures of workflows' code; draining; which file lists a workflow.

ALTER TABLE workflows ADD COLUMN draining integer NOT NULL DEFAULT 0;  -- producers wait, consumers finish what is there
ALTER TABLE workflows ADD COLUMN owner text;                           -- the configuration file that lists it
ALTER TABLE workflow_handlers ADD COLUMN fixes integer NOT NULL DEFAULT 0;  -- corrections asked for since it committed

CREATE TABLE workflow_fixes (
    id       bigint PRIMARY KEY,
    workflow text NOT NULL,
    handler  text NOT NULL,
    run_id   bigint NOT NULL,   -- the run that failed
    version  text NOT NULL,     -- the code that failed
    number   integer NOT NULL,  -- which try
    status   text NOT NULL,     -- asked, none, failed, proposed, accepted, applied, refused or lapsed
    node     bigint NOT NULL,   -- who asks
    at       bigint NOT NULL,
    ended_at bigint,            -- when it was answered
    before   text NOT NULL,     -- JSON: the source that failed, by file
    files    text,              -- JSON: the source that was answered, by file
    made     text,              -- the version that it is
    note     text,              -- what the hook says about it, or why it failed
    who      text               -- who accepted or refused it
);
CREATE INDEX workflow_fixes_workflow ON workflow_fixes (workflow, id);

-- Message ids have a retention of their own.
CREATE INDEX workflow_messages_event ON workflow_messages (event_id);
