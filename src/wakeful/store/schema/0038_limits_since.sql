-- oldest: 12
-- Since when no run of an account at its rate limit has succeeded; 0: met before this was stored.

ALTER TABLE agent_limits ADD COLUMN since bigint NOT NULL DEFAULT 0;
