-- oldest: 12
-- How often what led to an event went from one workflow to another: a loop between workflows comes to an end.

ALTER TABLE workflow_events ADD COLUMN hops integer NOT NULL DEFAULT 0;
ALTER TABLE workflow_runs ADD COLUMN hops integer NOT NULL DEFAULT 0;  -- the most of the events it reserved
