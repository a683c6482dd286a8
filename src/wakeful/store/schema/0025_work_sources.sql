-- oldest: 17
-- Work items that come from elsewhere: a directory or the issues of a repository.

ALTER TABLE agent_work ADD COLUMN source text;                      -- where it is from; NULL: added to the queue
ALTER TABLE agent_work ADD COLUMN mark text;                        -- JSON: how the source knows our claim
ALTER TABLE agent_work ADD COLUMN held integer NOT NULL DEFAULT 0;  -- 1: the source may know it as ours

CREATE INDEX agent_work_held ON agent_work (job_id, id) WHERE held = 1;
