PRAGMA application_id = 1463896901;
PRAGMA user_version = 92;
BEGIN TRANSACTION;
CREATE TABLE actions (
    id        bigint NOT NULL,
    subject   bigint NOT NULL,
    at        bigint NOT NULL,
    what      text NOT NULL,
    actor     text NOT NULL,
    via       text NOT NULL,
    name      text NOT NULL,
    before    text NOT NULL,
    after     text NOT NULL,
    undone_at bigint,
    undone_by text, subjects integer NOT NULL DEFAULT 1, highest bigint, members text, undone integer NOT NULL DEFAULT 0, restored text,
    PRIMARY KEY (id, subject)
);
INSERT INTO "actions" VALUES(1779126134856861582,1779126134854934298,1795038250229,'add','root','cli','tick','{"run":null}','{}',NULL,NULL,1,NULL,NULL,0,NULL);
INSERT INTO "actions" VALUES(1779126137338405223,1779126137331755119,1795038251410,'add','root','cli','nightly','{"run":null}','{}',NULL,NULL,1,NULL,NULL,0,NULL);
INSERT INTO "actions" VALUES(1779126139443400619,1779126139441545587,1795038252416,'add','root','cli','once','{"run":null}','{}',NULL,NULL,1,NULL,NULL,0,NULL);
INSERT INTO "actions" VALUES(1779126142434313835,1779126142432159335,1795038253841,'add','root','cli','broken','{"run":null}','{}',NULL,NULL,1,NULL,NULL,0,NULL);
INSERT INTO "actions" VALUES(1779126146473003847,1779126146156434020,1795038255618,'add','root','cli','late','{"run":null}','{}',NULL,NULL,1,NULL,NULL,0,NULL);
INSERT INTO "actions" VALUES(1779126149256793831,1779126146156434020,1795038257099,'pause','root','cli','late','{"revision":1,"enabled":1,"paused":0,"ended_at":null,"notes":null,"slot":1796106600000,"next_at":1796106600000,"errors":0,"crashes":0,"failing_since":null,"backoff_until":null,"run_id":null,"last_run_id":null,"removed":null}','{"paused":1,"slot":null,"next_at":null}',NULL,NULL,1,NULL,NULL,0,NULL);
INSERT INTO "actions" VALUES(1779126150264547921,1779126150261131512,1795038257574,'add','root','cli','yearly','{"run":null}','{}',NULL,NULL,1,NULL,NULL,0,NULL);
INSERT INTO "actions" VALUES(1779126150889857046,1779126150887424729,1795038257874,'add','root','cli','gone','{"run":null}','{}',NULL,NULL,1,NULL,NULL,0,NULL);
INSERT INTO "actions" VALUES(1779126156272866161,1779126150887424729,1795038260453,'remove','root','cli','gone','{"revision":1,"enabled":1,"paused":0,"ended_at":null,"notes":null,"slot":1795041857874,"next_at":1795041857874,"errors":0,"crashes":0,"failing_since":null,"backoff_until":null,"run_id":null,"last_run_id":1779126153239119026,"removed":null}','{"revision":2,"enabled":0,"ended_at":1795038260453,"slot":null,"next_at":null,"removed":1795038260453}',NULL,NULL,1,NULL,NULL,0,NULL);
CREATE TABLE agent_events (
    id          INTEGER PRIMARY KEY,
    job_id      bigint NOT NULL,
    text        text NOT NULL,
    source      text,
    context_key text,
    at          bigint NOT NULL,
    run_id      bigint
, outside smallint NOT NULL DEFAULT 0, hops integer NOT NULL DEFAULT 0, agent text, sender text);
CREATE TABLE agent_limits (
    account text PRIMARY KEY,
    until   bigint NOT NULL,
    why     text NOT NULL
, since bigint NOT NULL DEFAULT 0);
CREATE TABLE agent_replies (
    run_id     INTEGER PRIMARY KEY,
    goes_to    text,
    recipient  text,
    limited_to text
);
CREATE TABLE agent_requests (
    id          INTEGER PRIMARY KEY,
    job_id      bigint NOT NULL,
    type        text NOT NULL,
    delivery_id text,
    replay_of   bigint,
    run_id      bigint NOT NULL,
    at          bigint NOT NULL,
    about       text NOT NULL,
    body        text
, digest text);
CREATE TABLE agent_senders (
    run_id  INTEGER PRIMARY KEY,
    outside smallint NOT NULL DEFAULT 0,
    events  integer NOT NULL DEFAULT 0
, question text, answer_until bigint);
CREATE TABLE agent_sessions (
    name       text PRIMARY KEY,
    agent      text NOT NULL,
    session    text NOT NULL,
    created_at bigint NOT NULL,
    used_at    bigint NOT NULL,
    tokens_in  bigint NOT NULL,
    tokens_out bigint NOT NULL
, program text NOT NULL DEFAULT '');
CREATE TABLE agent_wakes (
    job_id       INTEGER PRIMARY KEY,
    reason       text NOT NULL,
    due_at       bigint NOT NULL,
    requested_at bigint NOT NULL,
    run_id       bigint NOT NULL
, hops integer NOT NULL DEFAULT 0, by_interval integer NOT NULL DEFAULT 0, outside smallint NOT NULL DEFAULT 0);
CREATE TABLE agent_work (
    id          INTEGER PRIMARY KEY,
    job_id      bigint NOT NULL,
    title       text NOT NULL,
    body        text,
    external_id text,
    priority    integer NOT NULL,
    status      text NOT NULL CHECK (status IN ('ready', 'claimed', 'done', 'failed')),
    run_id      bigint,
    attempts    integer NOT NULL,
    created_at  bigint NOT NULL,
    last_error  text
, source text, mark text, held integer NOT NULL DEFAULT 0, agent text);
CREATE TABLE alert_snoozes (
    job_id INTEGER PRIMARY KEY,
    until  bigint NOT NULL
);
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
, notified_at bigint, snoozed_until bigint, data text);
CREATE TABLE budget_charges (
    run_id INTEGER PRIMARY KEY,
    agent  text NOT NULL,
    day    integer NOT NULL,
    cost   bigint NOT NULL,
    tokens bigint NOT NULL,
    basis  text NOT NULL
);
CREATE TABLE budget_days (
    scope     text NOT NULL,
    day       integer NOT NULL,
    runs      bigint NOT NULL,
    cost      bigint NOT NULL,
    tokens    bigint NOT NULL,
    held_runs bigint NOT NULL,
    held_cost bigint NOT NULL,
    PRIMARY KEY (scope, day)
);
CREATE TABLE budget_reservations (
    run_id INTEGER PRIMARY KEY,
    agent  text NOT NULL,
    day    integer NOT NULL,
    cost   bigint NOT NULL
, basis text NOT NULL DEFAULT 'max_cost');
CREATE TABLE chains (
    upstream text NOT NULL,
    job_id   bigint NOT NULL,
    on_end   text NOT NULL CHECK (on_end IN ('success', 'failure', 'any')),
    PRIMARY KEY (upstream, job_id)
);
CREATE TABLE chat_messages (
    id        INTEGER PRIMARY KEY,
    connector text NOT NULL,
    sender    text NOT NULL,
    name      text,
    role      text NOT NULL,
    text      text NOT NULL,
    at        bigint NOT NULL,
    open      smallint NOT NULL
);
CREATE TABLE connectors (
    name       text PRIMARY KEY,
    type       text NOT NULL,
    position   bigint NOT NULL,
    job_id     bigint NOT NULL,
    rules      text NOT NULL,
    source     text NOT NULL,
    removed_at bigint
);
CREATE TABLE deliveries (
    id         INTEGER PRIMARY KEY,
    connector  text,
    recipient  text,
    status     text NOT NULL,
    open       smallint NOT NULL,
    kind       text NOT NULL,
    text       text NOT NULL,
    title      text,
    job_id     bigint,
    job        text,
    run_id     bigint,
    agent      text,
    outcome    text,
    extra      text,
    urgent     smallint NOT NULL,
    attempts   integer NOT NULL,
    next_at    bigint,
    last_error text,
    created_at bigint NOT NULL,
    sent_at    bigint,
    held_for   text,
    digest_id  bigint,
    dedupe     text
, spared integer NOT NULL DEFAULT 0, regular_at bigint, not_before bigint, queued_at bigint);
CREATE TABLE delivery_attempts (
    id          INTEGER PRIMARY KEY,
    delivery_id bigint NOT NULL,
    connector   text NOT NULL,
    at          bigint NOT NULL,
    ms          bigint,
    ok          smallint,
    error       text
);
CREATE TABLE delivery_last (
    job_id  INTEGER PRIMARY KEY,
    outcome text NOT NULL,
    hash    text NOT NULL
);
CREATE TABLE events (
    id     INTEGER PRIMARY KEY,
    stream text NOT NULL,
    seq    bigint NOT NULL,
    at     bigint NOT NULL,
    body   text NOT NULL
);
INSERT INTO "events" VALUES(1,'job',1,1795038250229,'[{"type":"added","job_id":1779126134854934298,"job":"tick"}]');
INSERT INTO "events" VALUES(2,'job',2,1795038251410,'[{"type":"added","job_id":1779126137331755119,"job":"nightly"}]');
INSERT INTO "events" VALUES(3,'job',3,1795038252416,'[{"type":"added","job_id":1779126139441545587,"job":"once"}]');
INSERT INTO "events" VALUES(4,'job',4,1795038253841,'[{"type":"added","job_id":1779126142432159335,"job":"broken"}]');
INSERT INTO "events" VALUES(5,'job',5,1795038255618,'[{"type":"added","job_id":1779126146156434020,"job":"late"}]');
INSERT INTO "events" VALUES(6,'job',6,1795038257099,'[{"type":"paused","job_id":1779126146156434020,"job":"late"}]');
INSERT INTO "events" VALUES(7,'job',7,1795038257574,'[{"type":"added","job_id":1779126150261131512,"job":"yearly"}]');
INSERT INTO "events" VALUES(8,'job',8,1795038257874,'[{"type":"added","job_id":1779126150887424729,"job":"gone"}]');
INSERT INTO "events" VALUES(9,'run',1,1795038259004,'[{"type":"started","run":1779126153239119026,"job_id":1779126150887424729,"job":"gone","reason":"manual"}]');
INSERT INTO "events" VALUES(10,'run',2,1795038259141,'[{"type":"finished","run":1779126153239119026,"job_id":1779126150887424729,"job":"gone","outcome":"success"}]');
INSERT INTO "events" VALUES(11,'job',9,1795038260453,'[{"type":"removed","job_id":1779126150887424729,"job":"gone"}]');
INSERT INTO "events" VALUES(12,'run',5,1795038279927,'[{"type":"started","run":1779126197136108821,"job_id":1779126134854934298,"job":"tick","reason":"schedule"},{"type":"started","run":1779126197138928148,"job_id":1779126139441545587,"job":"once","reason":"schedule"},{"type":"started","run":1779126197138928149,"job_id":1779126142432159335,"job":"broken","reason":"schedule"}]');
INSERT INTO "events" VALUES(13,'run',6,1795038280244,'[{"type":"finished","run":1779126197136108821,"job_id":1779126134854934298,"job":"tick","outcome":"success"}]');
INSERT INTO "events" VALUES(14,'run',8,1795038280246,'[{"type":"finished","run":1779126197138928148,"job_id":1779126139441545587,"job":"once","outcome":"success"},{"type":"finished","run":1779126197138928149,"job_id":1779126142432159335,"job":"broken","outcome":"error"}]');
CREATE TABLE fleet_files (
    fleet      text NOT NULL,
    place      text NOT NULL,
    hash       text NOT NULL,
    applied_at bigint NOT NULL,
    PRIMARY KEY (fleet, place)
);
CREATE TABLE fleet_jobs (
    job_id  INTEGER PRIMARY KEY,
    fleet   text NOT NULL,
    enabled integer NOT NULL,
    notes   text
);
CREATE TABLE fleets (
    name       text PRIMARY KEY,
    hash       text NOT NULL,
    refs       text NOT NULL,
    applied_at bigint NOT NULL
);
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
CREATE TABLE interactions (
    agent     text NOT NULL,
    connector text NOT NULL,
    sender    text NOT NULL,
    at        bigint NOT NULL,
    id        bigint NOT NULL,
    PRIMARY KEY (agent, connector)
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
, failing_since bigint, priority integer NOT NULL DEFAULT 0, ended_at bigint, counted_to bigint NOT NULL DEFAULT 0);
INSERT INTO "job_state" VALUES(1779126134854934298,1,1,0,1795038289229,1795038289229,1795038289229,NULL,0,NULL,NULL,1795038279229,1779126197136108821,1795038279927,1795038280244,'success',NULL,0,0,2,1,NULL,'["asks for a start every 1s; starts closer than 10s are left out"]',NULL,0,NULL,1795038279229);
INSERT INTO "job_state" VALUES(1779126137331755119,1,1,0,1795050000000,1795050000000,1795050000000,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,0,0,NULL,NULL,NULL,0,NULL,1795038251410);
INSERT INTO "job_state" VALUES(1779126139441545587,1,0,0,NULL,NULL,NULL,NULL,0,NULL,NULL,1767225600000,1779126197138928148,1795038279927,1795038280246,'success',NULL,0,0,0,1,NULL,NULL,NULL,0,1795038280246,1795038252416);
INSERT INTO "job_state" VALUES(1779126142432159335,1,1,0,1795038310246,1795038310246,1795038289841,NULL,0,NULL,NULL,1795038279841,1779126197138928149,1795038279927,1795038280246,'error','exited with code 3: it broke',1,0,2,1,1795038310246,'["asks for a start every 1s; starts closer than 10s are left out"]',1795038280246,0,NULL,1795038279841);
INSERT INTO "job_state" VALUES(1779126146156434020,1,1,1,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,0,0,NULL,NULL,NULL,0,NULL,1795038257099);
INSERT INTO "job_state" VALUES(1779126150261131512,1,1,0,1798779600000,1798779600000,1798779600000,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,0,0,NULL,NULL,NULL,0,NULL,1795038257574);
INSERT INTO "job_state" VALUES(1779126150887424729,2,0,0,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,1779126153239119026,1795038259004,1795038259141,'success',NULL,0,0,0,0,NULL,NULL,NULL,0,1795038260453,1795038260453);
CREATE TABLE job_stops (
    job_id   INTEGER PRIMARY KEY,
    by_owner integer NOT NULL
);
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
INSERT INTO "jobs" VALUES(1779126134854934298,'tick','command',NULL,'cli','{"type":"every","interval":"1s","anchor":"2026-11-18T21:44:10.229Z","until":"2030-01-01T00:00:00Z"}','{"cwd":"/","argv":["echo","tick"]}','{}',1795038250229,1795038250229,NULL);
INSERT INTO "jobs" VALUES(1779126137331755119,'nightly','command',NULL,'cli','{"type":"cron","expression":"0 2 * * 1-5","tz":"Europe/Berlin"}','{"cwd":"/","argv":["./backup.sh","--full"]}','{"lanes":[["disk",1]]}',1795038251410,1795038251410,NULL);
INSERT INTO "jobs" VALUES(1779126139441545587,'once','command',NULL,'cli','{"type":"once","at":"2026-01-01T00:00:00Z"}','{"cwd":"/","argv":["echo","once"]}','{}',1795038252416,1795038252416,NULL);
INSERT INTO "jobs" VALUES(1779126142432159335,'broken','command',NULL,'cli','{"type":"every","interval":"1s","anchor":"2026-11-18T21:44:13.841Z"}','{"cwd":"/","argv":["sh","-c","echo it broke >&2; exit 3"]}','{}',1795038253841,1795038253841,NULL);
INSERT INTO "jobs" VALUES(1779126146156434020,'late','command',NULL,'cli','{"type":"cron","expression":"30 6 1 * *","tz":"UTC"}','{"cwd":"/","argv":["echo","late"]}','{}',1795038255618,1795038255618,NULL);
INSERT INTO "jobs" VALUES(1779126150261131512,'yearly','command',NULL,'cli','{"type":"cron","expression":"0 5 1 1 *","tz":"UTC"}','{"cwd":"/","argv":["echo","yearly"]}','{}',1795038257574,1795038257574,NULL);
INSERT INTO "jobs" VALUES(1779126150887424729,'gone','command',NULL,'cli','{"type":"every","interval":"1h","anchor":"2026-11-18T21:44:17.874Z"}','{"cwd":"/","argv":["true"]}','{}',1795038257874,1795038260453,1795038260453);
CREATE TABLE lane_reservations (
    lane   text NOT NULL,
    job_id bigint NOT NULL,
    PRIMARY KEY (lane, job_id)
);
CREATE TABLE lane_sizes (
    job_id bigint NOT NULL,
    lane   text NOT NULL,
    size   integer NOT NULL,
    PRIMARY KEY (job_id, lane)
);
INSERT INTO "lane_sizes" VALUES(1779126137331755119,'disk',1);
CREATE TABLE lanes (
    key  text PRIMARY KEY,
    used integer NOT NULL
, size integer, length bigint);
INSERT INTO "lanes" VALUES('disk',0,1,NULL);
CREATE TABLE meta (
    key   text PRIMARY KEY,
    value text NOT NULL
);
INSERT INTO "meta" VALUES('lane_sizes','1');
INSERT INTO "meta" VALUES('domain_schemas','{}');
INSERT INTO "meta" VALUES('oldest_schema','17');
INSERT INTO "meta" VALUES('schema','92');
INSERT INTO "meta" VALUES('clock_steady','{"since": 1795038258965, "distance": 1795031731353}');
INSERT INTO "meta" VALUES('incarnation','2');
INSERT INTO "meta" VALUES('alive_at','1795038280250');
INSERT INTO "meta" VALUES('budgets','{"runs_per_day": null, "cost_per_day": 20.0, "tokens_per_day": null, "timezone": "UTC", "each": 100}');
INSERT INTO "meta" VALUES('alerts','{"to": null, "after": 2, "cooldown": 3600000, "grace": 300000, "urgent": ["disabled", "failed", "missed", "down", "dead_node", "stalled"]}');
INSERT INTO "meta" VALUES('server_url','http://127.0.0.1:39025');
CREATE TABLE monitors (
    job_id     INTEGER PRIMARY KEY,
    key        text NOT NULL,
    created_at bigint NOT NULL
);
CREATE TABLE nodes (
    id         INTEGER PRIMARY KEY,
    name       text NOT NULL,
    started_at bigint NOT NULL,
    seen_at    bigint NOT NULL,
    stopped_at bigint,
    details    text NOT NULL
, taken_by bigint, draining smallint NOT NULL DEFAULT 0, loop_at bigint, held smallint NOT NULL DEFAULT 0);
INSERT INTO "nodes" VALUES(1779126153175569687,'cli:vm-a5ea1ff2',1795038258965,1795038259154,1795038259154,'{"pid": 19601, "host": "vm", "pids": "pid:[4026531836]", "version": "0.3.0", "schema": 92, "min_interval": 3600000, "kinds": ["command", "http", "monitor"], "labels": []}',NULL,0,NULL,0);
INSERT INTO "nodes" VALUES(1779126196723340705,'made-here',1795038279729,1795038280250,1795038280250,'{"pid": 19667, "host": "vm", "pids": "pid:[4026531836]", "version": "0.3.0", "schema": 92, "min_interval": 3600000, "kinds": ["agent", "command", "delivery", "http", "monitor", "session"], "labels": []}',NULL,0,NULL,0);
CREATE TABLE page_codes (
    hash       text PRIMARY KEY,
    name       text NOT NULL,
    role       text NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
    expires_at bigint NOT NULL
);
INSERT INTO "page_codes" VALUES('ed7839678b13a53b27c0312d08cb9c77e041df8bb59c7e6c75f18d2fca07f045','root','admin',1795038879975);
CREATE TABLE page_sessions (
    hash       text PRIMARY KEY,
    name       text NOT NULL,
    role       text NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
    token_hash text,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE pairing_codes (
    hash       text PRIMARY KEY,
    connector  text NOT NULL,
    role       text NOT NULL,
    expires_at bigint NOT NULL,
    tries      integer NOT NULL
);
CREATE TABLE pairing_tries (
    connector  text NOT NULL,
    sender     text NOT NULL,
    tries      integer NOT NULL,
    expires_at bigint NOT NULL,
    PRIMARY KEY (connector, sender)
);
CREATE TABLE past_triggers (
    job_id  bigint NOT NULL,
    since   bigint NOT NULL,
    until   bigint NOT NULL,
    trigger text NOT NULL,
    PRIMARY KEY (job_id, until)
);
CREATE TABLE people (
    connector text NOT NULL,
    sender    text NOT NULL,
    role      text NOT NULL,
    name      text,
    source    text NOT NULL,
    paired_at bigint NOT NULL,
    PRIMARY KEY (connector, sender)
);
CREATE TABLE press_answers (
    id        INTEGER PRIMARY KEY,
    connector text NOT NULL,
    query     text NOT NULL,
    said      text NOT NULL,
    chat      text,
    message   text,
    buttons   text
);
CREATE TABLE presses (
    delivery_id bigint NOT NULL,
    button      integer NOT NULL,
    sender      text NOT NULL,
    at          bigint NOT NULL,
    said        text NOT NULL,
    PRIMARY KEY (delivery_id, button)
);
CREATE TABLE priorities (
    level integer PRIMARY KEY
);
INSERT INTO "priorities" VALUES(0);
CREATE TABLE proposals (
    job_id     INTEGER PRIMARY KEY,
    asked_by   text NOT NULL,
    asked_in   bigint,
    asked_at   bigint NOT NULL,
    hops       smallint NOT NULL DEFAULT 0,
    outside    smallint NOT NULL DEFAULT 0,
    written    text NOT NULL,
    run_id     bigint,
    expires_at bigint
);
CREATE TABLE receivers (
    account   text PRIMARY KEY,
    connector text NOT NULL,
    node      bigint NOT NULL,
    until     bigint NOT NULL,
    position  bigint NOT NULL
);
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
INSERT INTO "run_details" VALUES(1779126153239119026,NULL,'{"exit_code":0,"output":""}',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "run_details" VALUES(1779126197136108821,NULL,'{"exit_code":0,"output":"tick\n"}',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "run_details" VALUES(1779126197138928148,NULL,'{"exit_code":0,"output":"once\n"}',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "run_details" VALUES(1779126197138928149,NULL,'{"exit_code":3,"output":"it broke\n"}','Failed','exited with code 3: it broke',NULL,NULL,NULL,NULL);
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
    lanes       text,
    cancel      smallint NOT NULL DEFAULT 0,
    CHECK ((status = 'done') = (finished_at IS NOT NULL)),
    CHECK ((status = 'done') = (outcome IS NOT NULL))
);
INSERT INTO "runs" VALUES(1779126153239119026,1779126150887424729,'command','manual',NULL,1,NULL,NULL,NULL,'done','success',1795038258995,1795038259004,1795038259141,1779126153175569687,NULL,0);
INSERT INTO "runs" VALUES(1779126197136108821,1779126134854934298,'command','schedule',1795038279229,1,NULL,NULL,NULL,'done','success',1795038251229,1795038279927,1795038280244,1779126196723340705,NULL,0);
INSERT INTO "runs" VALUES(1779126197138928148,1779126139441545587,'command','schedule',1767225600000,1,NULL,NULL,NULL,'done','success',1795038252416,1795038279927,1795038280246,1779126196723340705,NULL,0);
INSERT INTO "runs" VALUES(1779126197138928149,1779126142432159335,'command','schedule',1795038279841,1,NULL,NULL,NULL,'done','error',1795038254841,1795038279927,1795038280246,1779126196723340705,NULL,0);
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
CREATE TABLE stretches (
    job_id     bigint NOT NULL,
    fate       text NOT NULL,
    first_slot bigint NOT NULL,
    last_slot  bigint NOT NULL,
    slots      bigint NOT NULL,
    since      bigint NOT NULL, pattern text,
    PRIMARY KEY (job_id, fate, first_slot, since)
);
INSERT INTO "stretches" VALUES(1779126134854934298,'merged',1795038251229,1795038278229,2,0,NULL);
INSERT INTO "stretches" VALUES(1779126142432159335,'merged',1795038254841,1795038278841,2,0,NULL);
CREATE TABLE tokens (
    hash         text PRIMARY KEY,
    name         text NOT NULL,
    role         text NOT NULL CHECK (role IN ('viewer', 'operator', 'admin', 'agent')),
    created_at   bigint NOT NULL,
    revoked_at   bigint,
    last_used_at bigint
);
INSERT INTO "tokens" VALUES('e6df28a61c28bd98a809e1530ffb0adc36d0e645b7182b855b835b8702a63db5','deploy','operator',1795038262882,NULL,NULL);
CREATE TABLE workflow_actions (
    id       INTEGER PRIMARY KEY,
    workflow text NOT NULL,
    at       bigint NOT NULL,
    who      text NOT NULL,
    action   text NOT NULL,
    detail   text
);
CREATE TABLE workflow_causes (
    event_id bigint NOT NULL,
    input_id bigint NOT NULL,
    PRIMARY KEY (event_id, input_id)
);
CREATE TABLE workflow_events (
    id         INTEGER PRIMARY KEY,
    workflow   text NOT NULL,
    topic      text NOT NULL,
    message_id text NOT NULL,
    seq        bigint NOT NULL,
    payload    text NOT NULL,
    status     text NOT NULL CHECK (status IN ('pending', 'reserved', 'consumed', 'skipped')),
    at         bigint NOT NULL,
    run_id     bigint,
    made_by    bigint,
    settled_at bigint
, reason text, revision integer NOT NULL DEFAULT 0, hops integer NOT NULL DEFAULT 0);
CREATE TABLE workflow_fixes (
    id       INTEGER PRIMARY KEY,
    workflow text NOT NULL,
    handler  text NOT NULL,
    run_id   bigint NOT NULL,
    version  text NOT NULL,
    number   integer NOT NULL,
    status   text NOT NULL,
    node     bigint NOT NULL,
    at       bigint NOT NULL,
    ended_at bigint,
    before   text NOT NULL,
    files    text,
    made     text,
    note     text,
    who      text
);
CREATE TABLE workflow_handlers (
    workflow   text NOT NULL,
    name       text NOT NULL,
    job_id     bigint,
    type       text NOT NULL,
    subscribes text NOT NULL,
    publishes  text,
    timeout    bigint NOT NULL,
    state      text NOT NULL DEFAULT '{}',
    wake_at    bigint,
    open_run   bigint,
    rounds     integer NOT NULL DEFAULT 0,
    dirty      bigint NOT NULL DEFAULT 0,
    seen       bigint NOT NULL DEFAULT 0, fixes integer NOT NULL DEFAULT 0, crashes integer NOT NULL DEFAULT 0, blamed integer NOT NULL DEFAULT 0, on_failure text, keyed bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (workflow, name)
);
CREATE TABLE workflow_inputs (
    id          INTEGER PRIMARY KEY,
    workflow    text NOT NULL,
    source      text NOT NULL,
    type        text NOT NULL,
    external_id text NOT NULL,
    title       text,
    at          bigint NOT NULL,
    skipped_at  bigint,
    reason      text
);
CREATE TABLE workflow_messages (
    workflow   text NOT NULL,
    topic      text NOT NULL,
    message_id text NOT NULL,
    event_id   bigint NOT NULL,
    PRIMARY KEY (workflow, topic, message_id)
);
CREATE TABLE workflow_nodes (
    workflow text NOT NULL,
    node     bigint NOT NULL,
    place    text NOT NULL,
    version  text NOT NULL,
    after    integer NOT NULL,
    PRIMARY KEY (workflow, node)
);
CREATE TABLE workflow_runs (
    id           INTEGER PRIMARY KEY,
    job_id       bigint NOT NULL,
    workflow     text NOT NULL,
    handler      text NOT NULL,
    type         text NOT NULL,
    retry_of     bigint,
    version      text NOT NULL,
    phase        text NOT NULL
        CHECK (phase IN ('preparing', 'prepared', 'mutating', 'mutated', 'emitting', 'committed')),
    status       text NOT NULL,
    mutation     text NOT NULL CHECK (mutation IN ('none', 'in_flight', 'applied', 'skipped')),
    begins       text NOT NULL,
    watermark    bigint NOT NULL,
    tries        integer NOT NULL DEFAULT 0,
    reconcile_at bigint,
    reserved     integer NOT NULL DEFAULT 0,
    prepared     text,
    result       text,
    wake_at      bigint,
    title        text,
    error        text,
    notes        text,
    created_at   bigint NOT NULL,
    updated_at   bigint NOT NULL
, failure text, refused integer NOT NULL DEFAULT 0, mutate_error text, hops integer NOT NULL DEFAULT 0);
CREATE TABLE workflow_steps (
    event_id   bigint NOT NULL,
    name       text NOT NULL,
    number     integer NOT NULL,
    status     text NOT NULL CHECK (status IN ('running', 'done', 'uncertain', 'failed')),
    attempts   integer NOT NULL,
    tries      integer NOT NULL DEFAULT 0,
    caught     integer NOT NULL DEFAULT 0,
    sure       integer NOT NULL DEFAULT 0,
    run_id     bigint NOT NULL,
    version    text NOT NULL,
    value      text,
    error      text,
    error_type text,
    started_at bigint NOT NULL,
    ended_at   bigint,
    until      bigint NOT NULL,
    PRIMARY KEY (event_id, name)
);
CREATE TABLE workflow_tasks (
    event_id     INTEGER PRIMARY KEY,
    workflow     text NOT NULL,
    handler      text NOT NULL,
    topic        text NOT NULL,
    key          text NOT NULL,
    seq          bigint NOT NULL,
    revision     bigint NOT NULL,
    status       text NOT NULL
        CHECK (status IN ('ready', 'queued', 'running', 'retrying', 'uncertain', 'parked')),
    tries        integer NOT NULL DEFAULT 0,
    retry_at     bigint,
    run_id       bigint,
    error        text,
    accepted     text,
    working_node bigint,
    updated_at   bigint NOT NULL
);
CREATE TABLE workflow_versions (
    workflow    text NOT NULL,
    number      integer NOT NULL,
    version     text NOT NULL,
    deployed_at bigint NOT NULL,
    PRIMARY KEY (workflow, number)
);
CREATE TABLE workflows (
    name          text PRIMARY KEY,
    version       text NOT NULL,
    source        text NOT NULL,
    paused        integer NOT NULL DEFAULT 0,
    pause_note    text,
    issue         text,
    issue_handler text,
    issue_run     bigint,
    issue_message text,
    backoff_until bigint,
    failures      integer NOT NULL DEFAULT 0,
    event_seq     bigint NOT NULL DEFAULT 0,
    created_at    bigint NOT NULL,
    updated_at    bigint NOT NULL,
    removed_at    bigint
, draining integer NOT NULL DEFAULT 0, owner text, working_run bigint, working_node bigint, working_since bigint);
CREATE UNIQUE INDEX jobs_name ON jobs (name) WHERE removed_at IS NULL;
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
CREATE INDEX stretches_age ON stretches (last_slot);
CREATE INDEX lane_sizes_smallest ON lane_sizes (lane, size);
CREATE INDEX jobs_kind_name ON jobs (kind, name) WHERE removed_at IS NULL;
CREATE INDEX jobs_owner_name ON jobs (owner, name) WHERE removed_at IS NULL AND owner IS NOT NULL;
CREATE INDEX jobs_source_name ON jobs (source, name) WHERE removed_at IS NULL;
CREATE INDEX jobs_removed ON jobs (id) WHERE removed_at IS NOT NULL;
CREATE INDEX job_state_due ON job_state (priority, due_at, job_id) WHERE due_at IS NOT NULL;
CREATE INDEX job_state_parked ON job_state (parked, priority DESC, ready_at, job_id) WHERE parked IS NOT NULL;
CREATE INDEX fleet_jobs_fleet ON fleet_jobs (fleet, job_id);
CREATE INDEX job_state_stopped ON job_state (paused, ended_at, last_outcome, job_id) WHERE enabled = 0 OR paused = 1;
CREATE INDEX job_state_ended ON job_state (ended_at, job_id) WHERE ended_at IS NOT NULL;
CREATE INDEX jobs_declared ON jobs (removed_at, name, kind, source, id) WHERE removed_at IS NULL AND kind = name;
CREATE INDEX deliveries_status ON deliveries (status, id);
CREATE INDEX deliveries_connector ON deliveries (connector, id);
CREATE INDEX deliveries_run ON deliveries (run_id);
CREATE INDEX deliveries_digest ON deliveries (digest_id) WHERE digest_id IS NOT NULL;
CREATE UNIQUE INDEX deliveries_dedupe ON deliveries (dedupe) WHERE dedupe IS NOT NULL;
CREATE INDEX delivery_attempts_delivery ON delivery_attempts (delivery_id, id);
CREATE INDEX delivery_attempts_connector ON delivery_attempts (connector, at);
CREATE UNIQUE INDEX monitors_key ON monitors (key);
CREATE INDEX agent_events_job ON agent_events (job_id, id);
CREATE INDEX agent_events_run ON agent_events (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX agent_sessions_agent ON agent_sessions (agent, name);
CREATE INDEX agent_sessions_used ON agent_sessions (used_at);
CREATE INDEX agent_work_status ON agent_work (job_id, status, priority DESC, id);
CREATE INDEX agent_work_run ON agent_work (run_id) WHERE status = 'claimed';
CREATE UNIQUE INDEX agent_work_external ON agent_work (job_id, external_id) WHERE external_id IS NOT NULL;
CREATE INDEX workflow_handlers_job ON workflow_handlers (job_id);
CREATE INDEX workflow_runs_workflow ON workflow_runs (workflow, id);
CREATE INDEX workflow_runs_job ON workflow_runs (job_id, id);
CREATE INDEX workflow_events_open ON workflow_events (workflow, topic, status, seq);
CREATE INDEX workflow_events_list ON workflow_events (workflow, id);
CREATE INDEX workflow_events_run ON workflow_events (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX workflow_events_made ON workflow_events (made_by) WHERE made_by IS NOT NULL;
CREATE INDEX workflow_events_old ON workflow_events (settled_at) WHERE settled_at IS NOT NULL;
CREATE UNIQUE INDEX workflow_inputs_external ON workflow_inputs (workflow, source, type, external_id);
CREATE INDEX workflow_inputs_list ON workflow_inputs (workflow, id);
CREATE INDEX workflow_causes_input ON workflow_causes (input_id, event_id);
CREATE INDEX workflow_actions_workflow ON workflow_actions (workflow, id);
CREATE INDEX alerts_snoozed ON alerts (snoozed_until) WHERE snoozed_until IS NOT NULL;
CREATE INDEX chat_messages_open ON chat_messages (connector, id) WHERE open = 1;
CREATE INDEX chat_messages_at ON chat_messages (at) WHERE open = 0;
CREATE INDEX presses_at ON presses (at);
CREATE INDEX press_answers_connector ON press_answers (connector, id);
CREATE INDEX actions_subject ON actions (subject, id);
CREATE INDEX runs_unstarted ON runs (job_id, slot)
    WHERE started_at IS NULL AND finished_at IS NOT NULL AND attempt = 1 AND slot IS NOT NULL;
CREATE INDEX budget_days_day ON budget_days (day);
CREATE UNIQUE INDEX agent_requests_delivery ON agent_requests (job_id, delivery_id) WHERE delivery_id IS NOT NULL;
CREATE INDEX agent_requests_job ON agent_requests (job_id, id);
CREATE INDEX agent_requests_at ON agent_requests (at);
CREATE INDEX agent_requests_body ON agent_requests (at) WHERE body IS NOT NULL;
CREATE INDEX jobs_chat ON jobs (name) WHERE trigger = '{"type":"chat"}' AND removed_at IS NULL;
CREATE INDEX agent_work_held ON agent_work (job_id, id) WHERE held = 1;
CREATE INDEX workflow_fixes_workflow ON workflow_fixes (workflow, id);
CREATE INDEX workflow_messages_event ON workflow_messages (event_id);
CREATE INDEX deliveries_job ON deliveries (job, id) WHERE job IS NOT NULL;
CREATE INDEX deliveries_agent ON deliveries (agent, id) WHERE agent IS NOT NULL;
CREATE INDEX alerts_open_job ON alerts (job_id) WHERE closed_at IS NULL;
CREATE INDEX workflow_events_waiting ON workflow_events (workflow, id)
    WHERE status IN ('pending', 'reserved') AND settled_at IS NULL;
CREATE INDEX budget_charges_reported ON budget_charges (agent, run_id) WHERE basis = 'reported';
CREATE INDEX budget_charges_day ON budget_charges (day);
CREATE INDEX agent_events_agent ON agent_events (agent, id);
CREATE INDEX agent_events_unnamed ON agent_events (job_id) WHERE agent IS NULL;
CREATE INDEX agent_work_agent ON agent_work (agent, status, priority DESC, id);
CREATE INDEX agent_work_held_by ON agent_work (agent, id) WHERE held = 1;
CREATE INDEX agent_work_unnamed ON agent_work (job_id) WHERE agent IS NULL;
CREATE UNIQUE INDEX agent_work_called ON agent_work (agent, external_id) WHERE external_id IS NOT NULL;
CREATE UNIQUE INDEX agent_requests_digest ON agent_requests (job_id, digest) WHERE digest IS NOT NULL;
CREATE INDEX lane_reservations_job ON lane_reservations (job_id);
CREATE INDEX runs_failed ON runs (id) WHERE outcome IN ('error', 'timeout', 'crashed');
CREATE INDEX job_state_failed ON job_state (job_id) WHERE last_error IS NOT NULL;
CREATE INDEX alerts_key ON alerts (key, opened_at);
CREATE INDEX page_sessions_age ON page_sessions (expires_at);
CREATE INDEX workflow_tasks_turn ON workflow_tasks (workflow, handler, status, seq);
CREATE INDEX workflow_tasks_key ON workflow_tasks (workflow, handler, key, status, seq);
CREATE INDEX workflow_tasks_retry ON workflow_tasks (workflow, handler, retry_at) WHERE status = 'retrying';
CREATE INDEX proposals_waiting ON proposals (expires_at) WHERE run_id IS NOT NULL;
CREATE INDEX deliveries_waiting ON deliveries (connector, open, id) WHERE open = 1;
CREATE INDEX deliveries_held ON deliveries (connector, held_for, id) WHERE held_for IS NOT NULL;
CREATE INDEX workflow_tasks_run ON workflow_tasks (run_id) WHERE run_id IS NOT NULL;
COMMIT;
