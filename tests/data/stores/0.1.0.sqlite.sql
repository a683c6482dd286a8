PRAGMA application_id = 1463896901;
PRAGMA user_version = 6;
BEGIN TRANSACTION;
CREATE TABLE alerts (
    id        INTEGER PRIMARY KEY,
    key       text NOT NULL,
    kind      text NOT NULL,
    job_id    bigint,
    message   text NOT NULL,
    opened_at bigint NOT NULL,
    last_at   bigint NOT NULL,
    times     integer NOT NULL,
    closed_at bigint,
    acked_at  bigint
);
CREATE TABLE chains (
    upstream text NOT NULL,
    job_id   bigint NOT NULL,
    on_end   text NOT NULL CHECK (on_end IN ('success', 'failure', 'any')),
    PRIMARY KEY (upstream, job_id)
);
CREATE TABLE events (
    id     INTEGER PRIMARY KEY,
    stream text NOT NULL,
    seq    bigint NOT NULL,
    at     bigint NOT NULL,
    body   text NOT NULL
);
INSERT INTO "events" VALUES(1,'job',1,1794997630919,'[["added",1779040949987805762,"tick"]]');
INSERT INTO "events" VALUES(2,'job',2,1794997631727,'[["added",1779040951682887236,"nightly"]]');
INSERT INTO "events" VALUES(3,'job',3,1794997632602,'[["added",1779040953519499757,"once"]]');
INSERT INTO "events" VALUES(4,'job',4,1794997633343,'[["added",1779040955073675965,"broken"]]');
INSERT INTO "events" VALUES(5,'job',5,1794997634203,'[["added",1779040956874539567,"late"]]');
INSERT INTO "events" VALUES(6,'job',6,1794997635052,'[["paused",1779040956874539567,"late"]]');
INSERT INTO "events" VALUES(7,'job',7,1794997635855,'[["added",1779040960339744763,"yearly"]]');
INSERT INTO "events" VALUES(8,'job',8,1794997636581,'[["added",1779040961862033518,"gone"]]');
INSERT INTO "events" VALUES(9,'run',1,1794997637370,'[["started",1779040963510168768,1779040961862033518,"manual"]]');
INSERT INTO "events" VALUES(10,'run',2,1794997637408,'[["finished",1779040963510168768,1779040961862033518,"success"]]');
INSERT INTO "events" VALUES(11,'job',9,1794997638129,'[["removed",1779040961862033518,"gone"]]');
INSERT INTO "events" VALUES(12,'run',5,1794997640727,'[["started",1779040970557061390,1779040949987805762,"schedule"],["started",1779040970557061391,1779040953519499757,"schedule"],["started",1779040970557061392,1779040955073675965,"schedule"]]');
INSERT INTO "events" VALUES(13,'run',8,1794997640804,'[["finished",1779040970557061390,1779040949987805762,"success"],["finished",1779040970557061391,1779040953519499757,"success"],["finished",1779040970557061392,1779040955073675965,"error"]]');
CREATE TABLE idempotency (
    caller     text NOT NULL,
    key        text NOT NULL,
    method     text NOT NULL,
    path       text NOT NULL,
    body_hash  text NOT NULL,
    status     integer,
    headers    text,
    body       text,
    created_at bigint NOT NULL,
    PRIMARY KEY (caller, key)
);
CREATE TABLE job_state (
    job_id           INTEGER PRIMARY KEY,
    revision         bigint NOT NULL,
    enabled          smallint NOT NULL,
    paused           smallint NOT NULL,
    due_at           bigint,
    next_at          bigint,
    slot             bigint,
    run_id           bigint,
    queued           integer NOT NULL,
    parked           text,
    ready_at         bigint,
    last_slot        bigint,
    last_run_id      bigint,
    last_run_at      bigint,
    last_finished_at bigint,
    last_outcome     text,
    last_error       text,
    errors           integer NOT NULL,
    crashes          integer NOT NULL,
    missed           integer NOT NULL,
    slot_runs        integer NOT NULL,
    backoff_until    bigint,
    notes            text
, failing_since bigint);
INSERT INTO "job_state" VALUES(1779040949987805762,1,1,0,1794997641919,1794997641919,1794997641919,NULL,0,NULL,NULL,1794997631919,1779040970557061390,1794997640727,1794997640804,'success',NULL,0,0,0,1,NULL,'["asks for a start every 1s; starts closer than 10s are left out"]',NULL);
INSERT INTO "job_state" VALUES(1779040951682887236,1,1,0,1795050000000,1795050000000,1795050000000,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,0,0,NULL,NULL,NULL);
INSERT INTO "job_state" VALUES(1779040953519499757,1,0,0,NULL,NULL,NULL,NULL,0,NULL,NULL,1767225600000,1779040970557061391,1794997640727,1794997640804,'success',NULL,0,0,0,1,NULL,NULL,NULL);
INSERT INTO "job_state" VALUES(1779040955073675965,1,1,0,1794997670804,1794997670804,1794997644343,NULL,0,NULL,NULL,1794997634343,1779040970557061392,1794997640727,1794997640804,'error','exited with code 3: it broke',1,0,0,1,1794997670804,'["asks for a start every 1s; starts closer than 10s are left out"]',1794997640804);
INSERT INTO "job_state" VALUES(1779040956874539567,1,1,1,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,0,0,NULL,NULL,NULL);
INSERT INTO "job_state" VALUES(1779040960339744763,1,1,0,1798779600000,1798779600000,1798779600000,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,0,0,NULL,NULL,NULL);
INSERT INTO "job_state" VALUES(1779040961862033518,2,0,0,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,1779040963510168768,1794997637370,1794997637408,'success',NULL,0,0,0,0,NULL,NULL,NULL);
CREATE TABLE jobs (
    id         INTEGER PRIMARY KEY,
    name       text NOT NULL,
    kind       text NOT NULL,
    owner      text,
    source     text NOT NULL,
    trigger    text NOT NULL,
    payload    text NOT NULL,
    options    text NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    removed_at bigint
);
INSERT INTO "jobs" VALUES(1779040949987805762,'tick','command',NULL,'cli','{"type":"every","interval":"1s","anchor":"2026-11-18T10:27:10.919Z","until":"2030-01-01T00:00:00Z"}','{"argv":["echo","tick"],"cwd":"/"}','{}',1794997630919,1794997630919,NULL);
INSERT INTO "jobs" VALUES(1779040951682887236,'nightly','command',NULL,'cli','{"type":"cron","expression":"0 2 * * 1-5","tz":"Europe/Berlin"}','{"argv":["./backup.sh","--full"],"cwd":"/"}','{"lanes":[["disk",1]]}',1794997631727,1794997631727,NULL);
INSERT INTO "jobs" VALUES(1779040953519499757,'once','command',NULL,'cli','{"type":"once","at":"2026-01-01T00:00:00Z"}','{"argv":["echo","once"],"cwd":"/"}','{}',1794997632602,1794997632602,NULL);
INSERT INTO "jobs" VALUES(1779040955073675965,'broken','command',NULL,'cli','{"type":"every","interval":"1s","anchor":"2026-11-18T10:27:13.343Z"}','{"argv":["sh","-c","echo it broke >&2; exit 3"],"cwd":"/"}','{}',1794997633343,1794997633343,NULL);
INSERT INTO "jobs" VALUES(1779040956874539567,'late','command',NULL,'cli','{"type":"cron","expression":"30 6 1 * *","tz":"UTC"}','{"argv":["echo","late"],"cwd":"/"}','{}',1794997634203,1794997634203,NULL);
INSERT INTO "jobs" VALUES(1779040960339744763,'yearly','command',NULL,'cli','{"type":"cron","expression":"0 5 1 1 *","tz":"UTC"}','{"argv":["echo","yearly"],"cwd":"/"}','{}',1794997635855,1794997635855,NULL);
INSERT INTO "jobs" VALUES(1779040961862033518,'gone','command',NULL,'cli','{"type":"every","interval":"1h","anchor":"2026-11-18T10:27:16.581Z"}','{"argv":["true"],"cwd":"/"}','{}',1794997636581,1794997638129,1794997638129);
CREATE TABLE lanes (
    key  text PRIMARY KEY,
    used integer NOT NULL
);
CREATE TABLE meta (
    key   text PRIMARY KEY,
    value text NOT NULL
);
INSERT INTO "meta" VALUES('oldest_schema','2');
INSERT INTO "meta" VALUES('schema','6');
INSERT INTO "meta" VALUES('incarnation','2');
INSERT INTO "meta" VALUES('alive_at','1794997640824');
CREATE TABLE nodes (
    id         INTEGER PRIMARY KEY,
    name       text NOT NULL,
    started_at bigint NOT NULL,
    seen_at    bigint NOT NULL,
    stopped_at bigint,
    details    text NOT NULL
, taken_by bigint, draining smallint NOT NULL DEFAULT 0, loop_at bigint);
INSERT INTO "nodes" VALUES(1779040963491337550,'cli:16884',1794997637358,1794997637429,1794997637429,'{"pid": 16884, "host": "vm", "pids": "pid:[4026531836]", "version": "0.1.0", "schema": 6, "kinds": ["command"], "labels": []}',NULL,0,NULL);
INSERT INTO "nodes" VALUES(1779040970491651690,'made-here',1794997640696,1794997640824,1794997640824,'{"pid": 16998, "host": "vm", "pids": "pid:[4026531836]", "version": "0.1.0", "schema": 6, "kinds": ["command", "session"], "labels": []}',NULL,0,NULL);
CREATE TABLE run_details (
    run_id     INTEGER PRIMARY KEY,
    payload    text,
    output     text,
    error_type text,
    error      text,
    trace      text,
    log_file   text,
    usage      text
, approval text);
INSERT INTO "run_details" VALUES(1779040963510168768,NULL,'{"exit_code":0,"output":""}',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "run_details" VALUES(1779040970557061390,NULL,'{"exit_code":0,"output":"tick\n"}',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "run_details" VALUES(1779040970557061391,NULL,'{"exit_code":0,"output":"once\n"}',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "run_details" VALUES(1779040970557061392,NULL,'{"exit_code":3,"output":"it broke\n"}','Failed','exited with code 3: it broke',NULL,NULL,NULL,NULL);
CREATE TABLE run_reports (
    run_id     INTEGER PRIMARY KEY,
    at         bigint NOT NULL,
    outcome    text NOT NULL CHECK (outcome IN ('success', 'error')),
    output     text,
    error_type text,
    error      text
);
CREATE TABLE run_watches (
    run_id INTEGER PRIMARY KEY,
    url    text NOT NULL,
    since  bigint NOT NULL
);
CREATE TABLE runs (
    id          INTEGER PRIMARY KEY,
    job_id      bigint NOT NULL,
    kind        text NOT NULL,
    reason      text NOT NULL,
    slot        bigint,
    attempt     integer NOT NULL,
    retry_of    bigint,
    caused_by   bigint,
    phase       text,
    status      text NOT NULL CHECK (status IN ('queued', 'active', 'waiting', 'done')),
    outcome     text CHECK (outcome IN ('success', 'noop', 'skipped', 'deferred', 'error', 'timeout', 'crashed',
                                        'cancelled', 'unknown')),
    due_at      bigint NOT NULL,
    started_at  bigint,
    finished_at bigint,
    node        bigint,
    token       bigint,
    lanes       text,
    cancel      smallint NOT NULL DEFAULT 0,
    CHECK ((status = 'done') = (finished_at IS NOT NULL)),
    CHECK ((status = 'done') = (outcome IS NOT NULL))
);
INSERT INTO "runs" VALUES(1779040963510168768,1779040961862033518,'command','manual',NULL,1,NULL,NULL,NULL,'done','success',1794997637367,1794997637370,1794997637408,1779040963491337550,1,NULL,0);
INSERT INTO "runs" VALUES(1779040970557061390,1779040949987805762,'command','schedule',1794997631919,1,NULL,NULL,NULL,'done','success',1794997631919,1794997640727,1794997640804,1779040970491651690,2,NULL,0);
INSERT INTO "runs" VALUES(1779040970557061391,1779040953519499757,'command','schedule',1767225600000,1,NULL,NULL,NULL,'done','success',1794997632602,1794997640727,1794997640804,1779040970491651690,2,NULL,0);
INSERT INTO "runs" VALUES(1779040970557061392,1779040955073675965,'command','schedule',1794997634343,1,NULL,NULL,NULL,'done','error',1794997634343,1794997640727,1794997640804,1779040970491651690,2,NULL,0);
CREATE TABLE sessions (
    job_id     INTEGER PRIMARY KEY,
    session    text NOT NULL,
    model      text NOT NULL,
    created_at bigint NOT NULL,
    used_at    bigint NOT NULL
);
CREATE TABLE skips (
    job_id  bigint NOT NULL,
    reason  text NOT NULL,
    times   bigint NOT NULL,
    last_at bigint NOT NULL,
    detail  text,
    PRIMARY KEY (job_id, reason)
);
CREATE TABLE streams (
    stream text PRIMARY KEY,
    seq    bigint NOT NULL
);
INSERT INTO "streams" VALUES('job',9);
INSERT INTO "streams" VALUES('run',8);
CREATE TABLE tokens (
    hash         text PRIMARY KEY,
    name         text NOT NULL,
    role         text NOT NULL CHECK (role IN ('viewer', 'operator', 'admin', 'agent')),
    created_at   bigint NOT NULL,
    revoked_at   bigint,
    last_used_at bigint
);
INSERT INTO "tokens" VALUES('4761fd20f5e81467cd84ec8d827dd18fa92444ee89941c2ec2cfcdb1e505194a','deploy','operator',1794997638975,NULL,NULL);
CREATE UNIQUE INDEX jobs_name ON jobs (name) WHERE removed_at IS NULL;
CREATE INDEX jobs_kind ON jobs (kind);
CREATE INDEX job_state_due ON job_state (due_at, job_id) WHERE due_at IS NOT NULL;
CREATE INDEX job_state_parked ON job_state (parked, ready_at, job_id) WHERE parked IS NOT NULL;
CREATE UNIQUE INDEX runs_slot ON runs (job_id, slot, attempt);
CREATE UNIQUE INDEX runs_retry_of ON runs (retry_of) WHERE retry_of IS NOT NULL;
CREATE INDEX runs_open ON runs (job_id) WHERE finished_at IS NULL;
CREATE INDEX chains_job ON chains (job_id);
CREATE INDEX events_stream ON events (stream, id);
CREATE UNIQUE INDEX alerts_open ON alerts (key) WHERE closed_at IS NULL;
CREATE INDEX nodes_alive ON nodes (seen_at) WHERE stopped_at IS NULL;
CREATE UNIQUE INDEX tokens_name ON tokens (name) WHERE revoked_at IS NULL;
CREATE INDEX idempotency_age ON idempotency (created_at);
CREATE INDEX sessions_used ON sessions (used_at, job_id);
COMMIT;
