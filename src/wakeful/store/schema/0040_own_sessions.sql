-- oldest: 12
-- Schedules that were added beside the file have sessions of their own, even where their agent has a schedule of the
-- same name in it. What both shared stays with the file's.

UPDATE agent_sessions SET name = agent || '/job:' || substr(name, length(agent) + 2)
WHERE EXISTS (
    SELECT 1 FROM jobs j WHERE j.kind = 'agent' AND j.removed_at IS NULL AND j.owner = agent_sessions.agent
    AND j.name NOT LIKE '%.%' AND agent_sessions.name = agent_sessions.agent || '/' || j.name
) AND NOT EXISTS (
    SELECT 1 FROM jobs j WHERE j.kind = 'agent' AND j.removed_at IS NULL AND j.owner = agent_sessions.agent
    AND j.name = agent_sessions.agent || '.' || substr(agent_sessions.name, length(agent_sessions.agent) + 2)
);
