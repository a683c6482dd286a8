-- oldest: 12
-- Jobs that configuration files own: which file was applied last, from where, and what it said about each job.

CREATE TABLE fleets (
    name       text PRIMARY KEY,
    hash       text NOT NULL,          -- of the file and those it includes, as they were last applied
    refs       text NOT NULL,          -- JSON: the references in it, never their values
    applied_at bigint NOT NULL
);

CREATE TABLE fleet_files (
    fleet      text NOT NULL,
    place      text NOT NULL,          -- the node and the path of its file
    hash       text NOT NULL,          -- of what that node last applied
    applied_at bigint NOT NULL,
    PRIMARY KEY (fleet, place)
);

CREATE TABLE fleet_jobs (
    job_id  bigint PRIMARY KEY,
    fleet   text NOT NULL,
    enabled integer NOT NULL,          -- as the file said last; a person may have said otherwise since
    notes   text
);
CREATE INDEX fleet_jobs_fleet ON fleet_jobs (fleet, job_id);
