-- oldest: 2
-- How many may run in a lane at once: the smallest size that any of its jobs gives.

CREATE TABLE lane_sizes (
    job_id bigint NOT NULL,
    lane   text NOT NULL,
    size   integer NOT NULL,
    PRIMARY KEY (job_id, lane)
);
CREATE INDEX lane_sizes_smallest ON lane_sizes (lane, size);

ALTER TABLE lanes ADD COLUMN size integer;  -- the smallest of the above; none while no job is in the lane

-- A store without jobs has nothing to count; in others the next start does it once.
INSERT INTO meta (key, value) SELECT 'lane_sizes', '1' WHERE NOT EXISTS (SELECT 1 FROM jobs);
