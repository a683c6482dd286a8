-- oldest: 2
-- Who may ask over the network, and what was answered to requests that must not be done twice.

CREATE TABLE tokens (
    hash         text PRIMARY KEY,     -- SHA-256 of the token, in hexadecimal; the token itself is nowhere
    name         text NOT NULL,
    role         text NOT NULL CHECK (role IN ('viewer', 'operator', 'admin', 'agent')),
    created_at   bigint NOT NULL,
    revoked_at   bigint,
    last_used_at bigint                -- to the minute
);
CREATE UNIQUE INDEX tokens_name ON tokens (name) WHERE revoked_at IS NULL;

CREATE TABLE idempotency (
    caller     text NOT NULL,          -- a token's name
    key        text NOT NULL,
    method     text NOT NULL,
    path       text NOT NULL,
    body_hash  text NOT NULL,
    status     integer,                -- of the answer; none while the first request is being done
    headers    text,                   -- JSON
    body       text,
    created_at bigint NOT NULL,
    PRIMARY KEY (caller, key)
);
CREATE INDEX idempotency_age ON idempotency (created_at);
