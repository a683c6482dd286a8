-- oldest: 12
-- With a change whose outcome is not known: what it failed with, and the trace below, whatever reconcile fails with.

ALTER TABLE workflow_runs ADD COLUMN mutate_error text;
