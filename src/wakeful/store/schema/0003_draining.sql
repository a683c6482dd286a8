-- oldest: 2
-- What a node is asked to do, and how far its loop is: both by the database's clock.

ALTER TABLE nodes ADD COLUMN draining smallint NOT NULL DEFAULT 0;  -- a person asked it to start nothing more
ALTER TABLE nodes ADD COLUMN loop_at bigint;                        -- when its loop last turned
