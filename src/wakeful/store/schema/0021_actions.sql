-- oldest: 12
-- What people did to jobs and alerts, a row for each of them: who, from where, what was before and what it left behind.

CREATE TABLE actions (
    id        bigint NOT NULL,         -- of the action; time-ordered
    subject   bigint NOT NULL,         -- a job or an alert
    at        bigint NOT NULL,
    what      text NOT NULL,           -- pause, resume, remove, acknowledge
    actor     text NOT NULL,           -- a token's name, a user's, or a program's
    via       text NOT NULL,           -- cli, api, code
    name      text NOT NULL,           -- the job's at that time, or the alert's id
    before    text NOT NULL,           -- JSON
    after     text NOT NULL,           -- JSON: what of that is different now
    undone_at bigint,
    undone_by text,
    PRIMARY KEY (id, subject)
);
CREATE INDEX actions_subject ON actions (subject, id);
