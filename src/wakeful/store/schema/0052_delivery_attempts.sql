-- oldest: 17
-- What a message's attempts count, and until when its target asked to be left alone.

ALTER TABLE deliveries ADD COLUMN spared integer NOT NULL DEFAULT 0;  -- attempts that do not count: before their time, or cut off
ALTER TABLE deliveries ADD COLUMN regular_at bigint;                  -- when its turn is, while it is tried before that
ALTER TABLE deliveries ADD COLUMN not_before bigint;                  -- until when its target asked to be left alone
ALTER TABLE deliveries ADD COLUMN queued_at bigint;                   -- when a person queued it again: its age counts from then

-- A digest in another digest left its messages held for ever. One that waits is sent by itself; of one that is over
-- nobody knows whether all of its text arrived.
UPDATE deliveries SET status = 'unknown', held_for = NULL,
    last_error = 'its digest was put into another one: it may have arrived'
WHERE status = 'held' AND digest_id IN (
    SELECT id FROM deliveries WHERE kind = 'digest' AND digest_id IS NOT NULL AND status <> 'held'
);
UPDATE deliveries SET digest_id = NULL WHERE kind = 'digest' AND digest_id IS NOT NULL AND status = 'held';
