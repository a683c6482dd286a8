-- oldest: 17
-- Work items and events belong to an agent by its name: they outlive its jobs and wait until it is back. Those that code
-- which does not know this adds beside it have no name yet: job_id says whose they are.

ALTER TABLE agent_events ADD COLUMN agent text;
UPDATE agent_events SET agent = (SELECT substr(name, 1, length(name) - 5) FROM jobs WHERE id = agent_events.job_id);
CREATE INDEX agent_events_agent ON agent_events (agent, id);
CREATE INDEX agent_events_unnamed ON agent_events (job_id) WHERE agent IS NULL;

ALTER TABLE agent_work ADD COLUMN agent text;
UPDATE agent_work SET agent = (SELECT substr(name, 1, length(name) - 5) FROM jobs WHERE id = agent_work.job_id);
-- What another system calls the same is there once: of an agent that was removed and came back, the newer one.
DELETE FROM agent_work WHERE id IN (
    SELECT older.id FROM agent_work older
    JOIN agent_work newer ON newer.agent = older.agent AND newer.external_id = older.external_id AND newer.id > older.id
);
CREATE INDEX agent_work_agent ON agent_work (agent, status, priority DESC, id);
CREATE INDEX agent_work_held_by ON agent_work (agent, id) WHERE held = 1;
CREATE INDEX agent_work_unnamed ON agent_work (job_id) WHERE agent IS NULL;
CREATE UNIQUE INDEX agent_work_called ON agent_work (agent, external_id) WHERE external_id IS NOT NULL;
