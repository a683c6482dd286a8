-- oldest: 17
-- Who stopped a job that has an owner: a caller that is limited to the jobs it owns starts none that others stopped.

CREATE TABLE job_stops (
    job_id   bigint PRIMARY KEY,
    by_owner integer NOT NULL             -- 1: the owner itself
);

-- Wrong pairing codes of each sender: whoever guesses is no longer heard, and the code stays valid for others.

CREATE TABLE pairing_tries (
    connector  text NOT NULL,
    sender     text NOT NULL,
    tries      integer NOT NULL,
    expires_at bigint NOT NULL,
    PRIMARY KEY (connector, sender)
);
