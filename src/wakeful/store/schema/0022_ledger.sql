-- oldest: 14
-- Every slot accounted for: up to when each job's slots have runs or stretches, stretches of slots that had no run, and
-- the exact slots of a stretch with gaps. Slots that older code lets go while it works beside this are unaccounted for.

ALTER TABLE job_state ADD COLUMN counted_to bigint NOT NULL DEFAULT 0;  -- all slots up to here are accounted for
ALTER TABLE stretches ADD COLUMN pattern text;  -- the slots, where gaps lie between them; NULL: all from first to last
UPDATE job_state SET counted_to =
    coalesce(slot - 1, last_slot, (SELECT created_at FROM jobs WHERE jobs.id = job_state.job_id), 0);
-- What passed before this is not on record: the record begins with the last thing that is known to have happened.
INSERT INTO meta (key, value) SELECT 'slots_kept_from', CAST(at AS text) FROM events ORDER BY id DESC LIMIT 1;
-- Runs that were claimed for a slot and never started.
CREATE INDEX runs_unstarted ON runs (job_id, slot)
    WHERE started_at IS NULL AND finished_at IS NOT NULL AND attempt = 1 AND slot IS NOT NULL;
