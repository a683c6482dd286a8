-- oldest: 12
-- Messages to people: what waits to be sent and what was, every attempt, where it goes, and where people were last heard.

CREATE TABLE deliveries (
    id         bigint PRIMARY KEY,
    connector  text,                   -- none while there is nowhere to send it
    recipient  text,                   -- who it is for, where the connector knows several
    status     text NOT NULL,          -- pending, sending, sent, failed, unknown, held, expired
    open       smallint NOT NULL,      -- 1 while it stands in its connector's queue
    kind       text NOT NULL,          -- reply, output, alert, digest, test
    text       text NOT NULL,
    title      text,
    job_id     bigint,
    job        text,
    run_id     bigint,
    agent      text,
    outcome    text,
    extra      text,                   -- JSON for connectors that can show more than a text
    urgent     smallint NOT NULL,
    attempts   integer NOT NULL,
    next_at    bigint,                 -- when it is tried next, or released
    last_error text,
    created_at bigint NOT NULL,
    sent_at    bigint,
    held_for   text,                   -- quiet or restore
    digest_id  bigint,                 -- the digest it is part of
    dedupe     text
);
CREATE INDEX deliveries_queue ON deliveries (connector, id) WHERE open = 1;
CREATE INDEX deliveries_held ON deliveries (connector, id) WHERE held_for IS NOT NULL;
CREATE INDEX deliveries_status ON deliveries (status, id);
CREATE INDEX deliveries_connector ON deliveries (connector, id);
CREATE INDEX deliveries_run ON deliveries (run_id);
CREATE INDEX deliveries_job ON deliveries (job_id, id);
CREATE INDEX deliveries_digest ON deliveries (digest_id) WHERE digest_id IS NOT NULL;
CREATE UNIQUE INDEX deliveries_dedupe ON deliveries (dedupe) WHERE dedupe IS NOT NULL;

CREATE TABLE delivery_attempts (
    id          bigint PRIMARY KEY,
    delivery_id bigint NOT NULL,
    connector   text NOT NULL,
    at          bigint NOT NULL,
    ms          bigint,
    ok          smallint,              -- none while it is being sent, and where nobody knows
    error       text
);
CREATE INDEX delivery_attempts_delivery ON delivery_attempts (delivery_id, id);
CREATE INDEX delivery_attempts_connector ON delivery_attempts (connector, at);

CREATE TABLE connectors (
    name       text PRIMARY KEY,
    type       text NOT NULL,
    position   bigint NOT NULL,        -- in the order in which they were first registered
    job_id     bigint NOT NULL,        -- the job that sends what waits for it
    rules      text NOT NULL,          -- JSON: rate, attempts, quiet hours, max_age; never a secret
    source     text NOT NULL,          -- file or code
    removed_at bigint
);

CREATE TABLE interactions (
    agent     text NOT NULL,           -- empty: nobody in particular
    connector text NOT NULL,
    sender    text NOT NULL,
    at        bigint NOT NULL,
    id        bigint NOT NULL,
    PRIMARY KEY (agent, connector)
);

CREATE TABLE delivery_last (
    job_id  bigint PRIMARY KEY,
    outcome text NOT NULL,
    hash    text NOT NULL              -- of the last result, for jobs that send only changes
);
