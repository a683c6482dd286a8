-- oldest: 14
-- Handlers whose calls ended their process, since they last committed.

ALTER TABLE workflow_handlers ADD COLUMN crashes integer NOT NULL DEFAULT 0;
ALTER TABLE workflow_handlers ADD COLUMN blamed integer NOT NULL DEFAULT 0;  -- of these, where nothing else can have
