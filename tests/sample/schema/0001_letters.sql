-- oldest: 1
CREATE TABLE letters (
    id      bigint PRIMARY KEY,
    job_id  bigint NOT NULL,
    run_id  bigint NOT NULL,
    at      bigint NOT NULL,
    arrived smallint               -- none while it is on its way
);
CREATE INDEX letters_job ON letters (job_id);

CREATE TABLE stamps (
    sheet integer PRIMARY KEY,
    left_over integer NOT NULL
);
