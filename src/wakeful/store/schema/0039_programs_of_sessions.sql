-- oldest: 12
-- Which program keeps a session: another one does not know it.

ALTER TABLE agent_sessions ADD COLUMN program text NOT NULL DEFAULT '';
