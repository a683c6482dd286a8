-- oldest: 12
-- Monitors: the secret by which an outside job reports in. A key is looked up by itself.

CREATE TABLE monitors (
    job_id     bigint PRIMARY KEY,
    key        text NOT NULL,
    created_at bigint NOT NULL             -- of the key
);
CREATE UNIQUE INDEX monitors_key ON monitors (key);
