-- oldest: 12
-- What one action did to many is kept together: a row for some hundreds, under the first subject with its sign changed.

ALTER TABLE actions ADD COLUMN subjects integer NOT NULL DEFAULT 1;
ALTER TABLE actions ADD COLUMN highest bigint;                    -- the last subject of several
ALTER TABLE actions ADD COLUMN members text;                      -- JSON: what was before and after, of each of several
ALTER TABLE actions ADD COLUMN undone integer NOT NULL DEFAULT 0; -- how many of several were brought back
ALTER TABLE actions ADD COLUMN restored text;                     -- JSON: which

-- Which incidents are open about these jobs is asked by everything that people do to them.
CREATE INDEX alerts_open_job ON alerts (job_id) WHERE closed_at IS NULL;
