-- oldest: 17
-- How many runs of agents led to a wake or an event: a row of agents that wake each other comes to an end.

ALTER TABLE agent_wakes ADD COLUMN hops integer NOT NULL DEFAULT 0;
ALTER TABLE agent_events ADD COLUMN hops integer NOT NULL DEFAULT 0;
