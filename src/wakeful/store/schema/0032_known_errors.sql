-- oldest: 12
-- With a change whose outcome is not known: what its error said. And which run's threads still work after it has ended.

ALTER TABLE workflow_runs ADD COLUMN failure text;                        -- transient, approval or logic; null: it was cut off
ALTER TABLE workflow_runs ADD COLUMN refused integer NOT NULL DEFAULT 0;  -- the other side said no, or was never reached
ALTER TABLE workflows ADD COLUMN working_run bigint;
ALTER TABLE workflows ADD COLUMN working_node bigint;
ALTER TABLE workflows ADD COLUMN working_since bigint;
