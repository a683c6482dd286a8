-- oldest: 12
-- Why a person skipped an event. And events that nothing waits for: settled_at is also when one was published to a topic
-- that no handler subscribes to, or when the last such handler was removed.

ALTER TABLE workflow_events ADD COLUMN reason text;

UPDATE workflow_events SET settled_at = at
WHERE status = 'pending' AND settled_at IS NULL
    AND EXISTS (SELECT 1 FROM workflows w WHERE w.name = workflow_events.workflow AND w.removed_at IS NULL)
    AND NOT EXISTS (
        SELECT 1 FROM workflow_handlers h WHERE h.workflow = workflow_events.workflow AND h.job_id IS NOT NULL
            AND replace(h.subscribes, '"' || workflow_events.topic || '"', '') <> h.subscribes
    );

DROP INDEX workflow_events_waiting;
CREATE INDEX workflow_events_waiting ON workflow_events (workflow, id)
    WHERE status IN ('pending', 'reserved') AND settled_at IS NULL;
