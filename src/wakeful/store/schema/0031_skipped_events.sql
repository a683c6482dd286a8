-- oldest: 12
-- Why a person skipped an event. And events that nothing waits for: settled_at is also when one was published to a topic
-- that no handler subscribes to.

ALTER TABLE workflow_events ADD COLUMN reason text;

DROP INDEX workflow_events_waiting;
CREATE INDEX workflow_events_waiting ON workflow_events (workflow, id)
    WHERE status IN ('pending', 'reserved') AND settled_at IS NULL;
