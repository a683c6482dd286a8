-- What several nodes need to know about each other. Times in `nodes` are those of the database's clock.

ALTER TABLE nodes ADD COLUMN taken_by bigint;  -- the node that declared it dead and took over its runs
CREATE INDEX nodes_alive ON nodes (seen_at) WHERE stopped_at IS NULL;

-- So that two nodes that start at the same moment find a row to wait for, and get numbers of their own.
INSERT INTO meta (key, value) VALUES ('incarnation', '0') ON CONFLICT (key) DO NOTHING;
