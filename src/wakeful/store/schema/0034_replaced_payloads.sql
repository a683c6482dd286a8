-- oldest: 12
-- How often the payload of an event was replaced while it was pending: what was read before is not reserved after.

ALTER TABLE workflow_events ADD COLUMN revision integer NOT NULL DEFAULT 0;
