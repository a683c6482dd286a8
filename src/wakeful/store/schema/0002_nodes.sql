-- oldest: 2
-- What several nodes need to know about each other. Times in `nodes` are those of the database's clock.

ALTER TABLE nodes ADD COLUMN taken_by bigint;  -- the node that declared it dead and took over its runs
CREATE INDEX nodes_alive ON nodes (seen_at) WHERE stopped_at IS NULL;
