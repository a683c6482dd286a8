-- oldest: 12
-- Why a person skipped an event.

ALTER TABLE workflow_events ADD COLUMN reason text;
