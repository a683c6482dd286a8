-- oldest: 12
-- Who is signed in to the dashboard. Neither a code nor a cookie is kept, only its SHA-256.

CREATE TABLE page_codes (
    hash       text PRIMARY KEY,
    name       text NOT NULL,          -- who asked for the link, as actions are recorded
    role       text NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
    expires_at bigint NOT NULL
);

CREATE TABLE page_sessions (
    hash       text PRIMARY KEY,
    name       text NOT NULL,
    role       text NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
    token_hash text,                   -- of the token that was typed in: the session ends with it
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL
);
CREATE INDEX page_sessions_age ON page_sessions (expires_at);
