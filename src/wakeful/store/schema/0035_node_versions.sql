-- oldest: 12
-- Which version of each workflow's code the nodes have that share the store.

CREATE TABLE workflow_nodes (
    workflow text NOT NULL,
    node     bigint NOT NULL,          -- one incarnation of it
    place    text NOT NULL,            -- what stays the same when the node starts again
    version  text NOT NULL,
    after    integer NOT NULL,         -- the number of what was deployed when that place was given it; 0: nothing
    PRIMARY KEY (workflow, node)
);
