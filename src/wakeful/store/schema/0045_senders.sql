-- oldest: 17
-- Text from outside stays outside: which runs were given some, which wakes follow from such a run, and who left an
-- event. `outside` of an event: 1 others wrote it, 2 a run that was given such text did, 3 such a run caused it.

CREATE TABLE agent_senders (
    run_id  bigint PRIMARY KEY,
    outside smallint NOT NULL DEFAULT 0,   -- 1: it, or a run that led to it, was given text from outside
    events  integer NOT NULL DEFAULT 0     -- how many events it has left
);

ALTER TABLE agent_wakes ADD COLUMN outside smallint NOT NULL DEFAULT 0;
ALTER TABLE agent_events ADD COLUMN sender text;  -- the agent whose run left it, or a person's chat; NULL: all others
