-- oldest: 7
-- What became of slots once their runs are pruned, and which trigger a job had before. Code that prunes without keeping
-- stretches would forget which slots were run, so none older than this may work beside it.

CREATE TABLE stretches (
    job_id     bigint NOT NULL,
    fate       text NOT NULL,          -- what became of these slots: ran
    first_slot bigint NOT NULL,
    last_slot  bigint NOT NULL,
    slots      bigint NOT NULL,        -- how many
    since      bigint NOT NULL,        -- when the trigger they belong to came into force; 0 for a job's first
    PRIMARY KEY (job_id, fate, first_slot, since)
);
CREATE INDEX stretches_age ON stretches (last_slot);

CREATE TABLE past_triggers (
    job_id  bigint NOT NULL,
    since   bigint NOT NULL,
    until   bigint NOT NULL,           -- when another trigger replaced it
    trigger text NOT NULL,             -- JSON
    PRIMARY KEY (job_id, until)
);
