CREATE TABLE public.actions (
    id bigint NOT NULL,
    subject bigint NOT NULL,
    at bigint NOT NULL,
    what text NOT NULL COLLATE pg_catalog."C",
    actor text NOT NULL COLLATE pg_catalog."C",
    via text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    before text NOT NULL COLLATE pg_catalog."C",
    after text NOT NULL COLLATE pg_catalog."C",
    undone_at bigint,
    undone_by text COLLATE pg_catalog."C",
    subjects bigint DEFAULT 1 NOT NULL,
    highest bigint,
    members text,
    undone bigint DEFAULT 0 NOT NULL,
    restored text
);
CREATE TABLE public.agent_events (
    id bigint NOT NULL,
    job_id bigint NOT NULL,
    text text NOT NULL COLLATE pg_catalog."C",
    source text COLLATE pg_catalog."C",
    context_key text COLLATE pg_catalog."C",
    at bigint NOT NULL,
    run_id bigint,
    outside smallint DEFAULT 0 NOT NULL,
    hops bigint DEFAULT 0 NOT NULL,
    agent text,
    sender text
);
CREATE TABLE public.agent_limits (
    account text NOT NULL COLLATE pg_catalog."C",
    until bigint NOT NULL,
    why text NOT NULL COLLATE pg_catalog."C",
    since bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.agent_replies (
    run_id bigint NOT NULL,
    goes_to text COLLATE pg_catalog."C",
    recipient text COLLATE pg_catalog."C",
    limited_to text COLLATE pg_catalog."C"
);
CREATE TABLE public.agent_requests (
    id bigint NOT NULL,
    job_id bigint NOT NULL,
    type text NOT NULL COLLATE pg_catalog."C",
    delivery_id text COLLATE pg_catalog."C",
    replay_of bigint,
    run_id bigint NOT NULL,
    at bigint NOT NULL,
    about text NOT NULL COLLATE pg_catalog."C",
    body text COLLATE pg_catalog."C",
    digest text
);
CREATE TABLE public.agent_senders (
    run_id bigint NOT NULL,
    outside smallint DEFAULT 0 NOT NULL,
    events bigint DEFAULT 0 NOT NULL,
    question text,
    answer_until bigint
);
CREATE TABLE public.agent_sessions (
    name text NOT NULL COLLATE pg_catalog."C",
    agent text NOT NULL COLLATE pg_catalog."C",
    session text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    used_at bigint NOT NULL,
    tokens_in bigint NOT NULL,
    tokens_out bigint NOT NULL,
    program text DEFAULT ''::text NOT NULL
);
CREATE TABLE public.agent_wakes (
    job_id bigint NOT NULL,
    reason text NOT NULL COLLATE pg_catalog."C",
    due_at bigint NOT NULL,
    requested_at bigint NOT NULL,
    run_id bigint NOT NULL,
    hops bigint DEFAULT 0 NOT NULL,
    by_interval bigint DEFAULT 0 NOT NULL,
    outside smallint DEFAULT 0 NOT NULL
);
CREATE TABLE public.agent_work (
    id bigint NOT NULL,
    job_id bigint NOT NULL,
    title text NOT NULL COLLATE pg_catalog."C",
    body text COLLATE pg_catalog."C",
    external_id text COLLATE pg_catalog."C",
    priority bigint NOT NULL,
    status text NOT NULL COLLATE pg_catalog."C",
    run_id bigint,
    attempts bigint NOT NULL,
    created_at bigint NOT NULL,
    last_error text COLLATE pg_catalog."C",
    source text,
    mark text,
    held bigint DEFAULT 0 NOT NULL,
    agent text,
    CONSTRAINT agent_work_status_check CHECK ((status = ANY (ARRAY['ready'::text, 'claimed'::text, 'done'::text, 'failed'::text])))
);
CREATE TABLE public.alert_snoozes (
    job_id bigint NOT NULL,
    until bigint NOT NULL
);
CREATE TABLE public.alerts (
    id bigint NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    job_id bigint,
    message text NOT NULL COLLATE pg_catalog."C",
    opened_at bigint NOT NULL,
    last_at bigint NOT NULL,
    times bigint NOT NULL,
    closed_at bigint,
    acked_at bigint,
    notified_at bigint,
    snoozed_until bigint,
    data text
);
CREATE TABLE public.budget_charges (
    run_id bigint NOT NULL,
    agent text NOT NULL COLLATE pg_catalog."C",
    day bigint NOT NULL,
    cost bigint NOT NULL,
    tokens bigint NOT NULL,
    basis text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.budget_days (
    scope text NOT NULL COLLATE pg_catalog."C",
    day bigint NOT NULL,
    runs bigint NOT NULL,
    cost bigint NOT NULL,
    tokens bigint NOT NULL,
    held_runs bigint NOT NULL,
    held_cost bigint NOT NULL
);
CREATE TABLE public.budget_reservations (
    run_id bigint NOT NULL,
    agent text NOT NULL COLLATE pg_catalog."C",
    day bigint NOT NULL,
    cost bigint NOT NULL,
    basis text DEFAULT 'max_cost'::text NOT NULL
);
CREATE TABLE public.chains (
    upstream text NOT NULL COLLATE pg_catalog."C",
    job_id bigint NOT NULL,
    on_end text NOT NULL COLLATE pg_catalog."C",
    CONSTRAINT chains_on_end_check CHECK ((on_end = ANY (ARRAY['success'::text, 'failure'::text, 'any'::text])))
);
CREATE TABLE public.chat_messages (
    id bigint NOT NULL,
    connector text NOT NULL COLLATE pg_catalog."C",
    sender text NOT NULL COLLATE pg_catalog."C",
    name text COLLATE pg_catalog."C",
    role text NOT NULL COLLATE pg_catalog."C",
    text text NOT NULL COLLATE pg_catalog."C",
    at bigint NOT NULL,
    open smallint NOT NULL
);
CREATE TABLE public.connectors (
    name text NOT NULL COLLATE pg_catalog."C",
    type text NOT NULL COLLATE pg_catalog."C",
    "position" bigint NOT NULL,
    job_id bigint NOT NULL,
    rules text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL COLLATE pg_catalog."C",
    removed_at bigint
);
CREATE TABLE public.deliveries (
    id bigint NOT NULL,
    connector text COLLATE pg_catalog."C",
    recipient text COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    open smallint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    text text NOT NULL COLLATE pg_catalog."C",
    title text COLLATE pg_catalog."C",
    job_id bigint,
    job text COLLATE pg_catalog."C",
    run_id bigint,
    agent text COLLATE pg_catalog."C",
    outcome text COLLATE pg_catalog."C",
    extra text COLLATE pg_catalog."C",
    urgent smallint NOT NULL,
    attempts bigint NOT NULL,
    next_at bigint,
    last_error text COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    sent_at bigint,
    held_for text COLLATE pg_catalog."C",
    digest_id bigint,
    dedupe text COLLATE pg_catalog."C",
    spared bigint DEFAULT 0 NOT NULL,
    regular_at bigint,
    not_before bigint,
    queued_at bigint
);
CREATE TABLE public.delivery_attempts (
    id bigint NOT NULL,
    delivery_id bigint NOT NULL,
    connector text NOT NULL COLLATE pg_catalog."C",
    at bigint NOT NULL,
    ms bigint,
    ok smallint,
    error text COLLATE pg_catalog."C"
);
CREATE TABLE public.delivery_last (
    job_id bigint NOT NULL,
    outcome text NOT NULL COLLATE pg_catalog."C",
    hash text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.events (
    id bigint NOT NULL,
    stream text NOT NULL COLLATE pg_catalog."C",
    seq bigint NOT NULL,
    at bigint NOT NULL,
    body text NOT NULL COLLATE pg_catalog."C"
);
ALTER TABLE public.events ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.fleet_files (
    fleet text NOT NULL COLLATE pg_catalog."C",
    place text NOT NULL COLLATE pg_catalog."C",
    hash text NOT NULL COLLATE pg_catalog."C",
    applied_at bigint NOT NULL
);
CREATE TABLE public.fleet_jobs (
    job_id bigint NOT NULL,
    fleet text NOT NULL COLLATE pg_catalog."C",
    enabled bigint NOT NULL,
    notes text COLLATE pg_catalog."C"
);
CREATE TABLE public.fleets (
    name text NOT NULL COLLATE pg_catalog."C",
    hash text NOT NULL COLLATE pg_catalog."C",
    refs text NOT NULL COLLATE pg_catalog."C",
    applied_at bigint NOT NULL
);
CREATE TABLE public.idempotency (
    caller text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    method text NOT NULL COLLATE pg_catalog."C",
    path text NOT NULL COLLATE pg_catalog."C",
    body_hash text NOT NULL COLLATE pg_catalog."C",
    status bigint,
    headers text COLLATE pg_catalog."C",
    body text COLLATE pg_catalog."C",
    created_at bigint NOT NULL
);
CREATE TABLE public.interactions (
    agent text NOT NULL COLLATE pg_catalog."C",
    connector text NOT NULL COLLATE pg_catalog."C",
    sender text NOT NULL COLLATE pg_catalog."C",
    at bigint NOT NULL,
    id bigint NOT NULL
);
CREATE TABLE public.job_state (
    job_id bigint NOT NULL,
    revision bigint NOT NULL,
    enabled smallint NOT NULL,
    paused smallint NOT NULL,
    due_at bigint,
    next_at bigint,
    slot bigint,
    run_id bigint,
    queued bigint NOT NULL,
    parked text COLLATE pg_catalog."C",
    ready_at bigint,
    last_slot bigint,
    last_run_id bigint,
    last_run_at bigint,
    last_finished_at bigint,
    last_outcome text COLLATE pg_catalog."C",
    last_error text COLLATE pg_catalog."C",
    errors bigint NOT NULL,
    crashes bigint NOT NULL,
    missed bigint NOT NULL,
    slot_runs bigint NOT NULL,
    backoff_until bigint,
    notes text COLLATE pg_catalog."C",
    failing_since bigint,
    priority bigint DEFAULT 0 NOT NULL,
    ended_at bigint,
    counted_to bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='1000', autovacuum_analyze_scale_factor='0.05');
CREATE TABLE public.job_stops (
    job_id bigint NOT NULL,
    by_owner bigint NOT NULL
);
CREATE TABLE public.jobs (
    id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    owner text COLLATE pg_catalog."C",
    source text NOT NULL COLLATE pg_catalog."C",
    trigger text NOT NULL COLLATE pg_catalog."C",
    payload text NOT NULL COLLATE pg_catalog."C",
    options text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    removed_at bigint
);
CREATE TABLE public.lane_reservations (
    lane text NOT NULL COLLATE pg_catalog."C",
    job_id bigint NOT NULL
);
CREATE TABLE public.lane_sizes (
    job_id bigint NOT NULL,
    lane text NOT NULL COLLATE pg_catalog."C",
    size bigint NOT NULL
);
CREATE TABLE public.lanes (
    key text NOT NULL COLLATE pg_catalog."C",
    used bigint NOT NULL,
    size bigint,
    length bigint
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='500');
CREATE TABLE public.meta (
    key text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL COLLATE pg_catalog."C"
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='500');
CREATE TABLE public.monitors (
    job_id bigint NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL
);
CREATE TABLE public.nodes (
    id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    started_at bigint NOT NULL,
    seen_at bigint NOT NULL,
    stopped_at bigint,
    details text NOT NULL COLLATE pg_catalog."C",
    taken_by bigint,
    draining smallint DEFAULT 0 NOT NULL,
    loop_at bigint,
    held smallint DEFAULT 0 NOT NULL
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='500');
CREATE TABLE public.page_codes (
    hash text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    role text NOT NULL COLLATE pg_catalog."C",
    expires_at bigint NOT NULL,
    CONSTRAINT page_codes_role_check CHECK ((role = ANY (ARRAY['viewer'::text, 'operator'::text, 'admin'::text])))
);
CREATE TABLE public.page_sessions (
    hash text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    role text NOT NULL COLLATE pg_catalog."C",
    token_hash text COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    CONSTRAINT page_sessions_role_check CHECK ((role = ANY (ARRAY['viewer'::text, 'operator'::text, 'admin'::text])))
);
CREATE TABLE public.pairing_codes (
    hash text NOT NULL COLLATE pg_catalog."C",
    connector text NOT NULL COLLATE pg_catalog."C",
    role text NOT NULL COLLATE pg_catalog."C",
    expires_at bigint NOT NULL,
    tries bigint NOT NULL
);
CREATE TABLE public.pairing_tries (
    connector text NOT NULL COLLATE pg_catalog."C",
    sender text NOT NULL COLLATE pg_catalog."C",
    tries bigint NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE public.past_triggers (
    job_id bigint NOT NULL,
    since bigint NOT NULL,
    until bigint NOT NULL,
    trigger text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.people (
    connector text NOT NULL COLLATE pg_catalog."C",
    sender text NOT NULL COLLATE pg_catalog."C",
    role text NOT NULL COLLATE pg_catalog."C",
    name text COLLATE pg_catalog."C",
    source text NOT NULL COLLATE pg_catalog."C",
    paired_at bigint NOT NULL
);
CREATE TABLE public.press_answers (
    id bigint NOT NULL,
    connector text NOT NULL COLLATE pg_catalog."C",
    query text NOT NULL COLLATE pg_catalog."C",
    said text NOT NULL COLLATE pg_catalog."C",
    chat text COLLATE pg_catalog."C",
    message text COLLATE pg_catalog."C",
    buttons text COLLATE pg_catalog."C"
);
CREATE TABLE public.presses (
    delivery_id bigint NOT NULL,
    button bigint NOT NULL,
    sender text NOT NULL COLLATE pg_catalog."C",
    at bigint NOT NULL,
    said text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.priorities (
    level bigint NOT NULL
);
CREATE TABLE public.proposals (
    job_id bigint NOT NULL,
    asked_by text NOT NULL COLLATE pg_catalog."C",
    asked_in bigint,
    asked_at bigint NOT NULL,
    hops smallint DEFAULT 0 NOT NULL,
    outside smallint DEFAULT 0 NOT NULL,
    written text NOT NULL COLLATE pg_catalog."C",
    run_id bigint,
    expires_at bigint
);
CREATE TABLE public.receivers (
    account text NOT NULL COLLATE pg_catalog."C",
    connector text NOT NULL COLLATE pg_catalog."C",
    node bigint NOT NULL,
    until bigint NOT NULL,
    "position" bigint NOT NULL
);
CREATE TABLE public.run_details (
    run_id bigint NOT NULL,
    payload text COLLATE pg_catalog."C",
    output text COLLATE pg_catalog."C",
    error_type text COLLATE pg_catalog."C",
    error text COLLATE pg_catalog."C",
    trace text COLLATE pg_catalog."C",
    log_file text COLLATE pg_catalog."C",
    usage text COLLATE pg_catalog."C",
    approval text
);
CREATE TABLE public.run_reports (
    run_id bigint NOT NULL,
    at bigint NOT NULL,
    outcome text NOT NULL COLLATE pg_catalog."C",
    output text COLLATE pg_catalog."C",
    error_type text COLLATE pg_catalog."C",
    error text COLLATE pg_catalog."C",
    CONSTRAINT run_reports_outcome_check CHECK ((outcome = ANY (ARRAY['success'::text, 'error'::text])))
);
CREATE TABLE public.run_watches (
    run_id bigint NOT NULL,
    url text NOT NULL COLLATE pg_catalog."C",
    since bigint NOT NULL
);
CREATE TABLE public.runs (
    id bigint NOT NULL,
    job_id bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    reason text NOT NULL COLLATE pg_catalog."C",
    slot bigint,
    attempt bigint NOT NULL,
    retry_of bigint,
    caused_by bigint,
    phase text COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    outcome text COLLATE pg_catalog."C",
    due_at bigint NOT NULL,
    started_at bigint,
    finished_at bigint,
    node bigint,
    lanes text COLLATE pg_catalog."C",
    cancel smallint DEFAULT 0 NOT NULL,
    CONSTRAINT runs_check CHECK (((status = 'done'::text) = (finished_at IS NOT NULL))),
    CONSTRAINT runs_check1 CHECK (((status = 'done'::text) = (outcome IS NOT NULL))),
    CONSTRAINT runs_outcome_check CHECK ((outcome = ANY (ARRAY['success'::text, 'noop'::text, 'skipped'::text, 'deferred'::text, 'error'::text, 'timeout'::text, 'crashed'::text, 'cancelled'::text, 'unknown'::text]))),
    CONSTRAINT runs_status_check CHECK ((status = ANY (ARRAY['queued'::text, 'active'::text, 'waiting'::text, 'done'::text])))
)
WITH (fillfactor='90', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='1000', autovacuum_analyze_scale_factor='0.05');
CREATE TABLE public.sessions (
    job_id bigint NOT NULL,
    session text NOT NULL COLLATE pg_catalog."C",
    model text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    used_at bigint NOT NULL
);
CREATE TABLE public.skips (
    job_id bigint NOT NULL,
    reason text NOT NULL COLLATE pg_catalog."C",
    times bigint NOT NULL,
    last_at bigint NOT NULL,
    detail text COLLATE pg_catalog."C"
);
CREATE TABLE public.streams (
    stream text NOT NULL COLLATE pg_catalog."C",
    seq bigint NOT NULL
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='500');
CREATE TABLE public.stretches (
    job_id bigint NOT NULL,
    fate text NOT NULL COLLATE pg_catalog."C",
    first_slot bigint NOT NULL,
    last_slot bigint NOT NULL,
    slots bigint NOT NULL,
    since bigint NOT NULL,
    pattern text
);
CREATE TABLE public.tokens (
    hash text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    role text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    revoked_at bigint,
    last_used_at bigint,
    CONSTRAINT tokens_role_check CHECK ((role = ANY (ARRAY['viewer'::text, 'operator'::text, 'admin'::text, 'agent'::text])))
);
CREATE TABLE public.wakeful_schema (
    version bigint NOT NULL
);
CREATE TABLE public.workflow_actions (
    id bigint NOT NULL,
    workflow text NOT NULL COLLATE pg_catalog."C",
    at bigint NOT NULL,
    who text NOT NULL COLLATE pg_catalog."C",
    action text NOT NULL COLLATE pg_catalog."C",
    detail text COLLATE pg_catalog."C"
);
CREATE TABLE public.workflow_causes (
    event_id bigint NOT NULL,
    input_id bigint NOT NULL
);
CREATE TABLE public.workflow_events (
    id bigint NOT NULL,
    workflow text NOT NULL COLLATE pg_catalog."C",
    topic text NOT NULL COLLATE pg_catalog."C",
    message_id text NOT NULL COLLATE pg_catalog."C",
    seq bigint NOT NULL,
    payload text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    at bigint NOT NULL,
    run_id bigint,
    made_by bigint,
    settled_at bigint,
    reason text,
    revision bigint DEFAULT 0 NOT NULL,
    hops bigint DEFAULT 0 NOT NULL,
    CONSTRAINT workflow_events_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'reserved'::text, 'consumed'::text, 'skipped'::text])))
);
CREATE TABLE public.workflow_fixes (
    id bigint NOT NULL,
    workflow text NOT NULL COLLATE pg_catalog."C",
    handler text NOT NULL COLLATE pg_catalog."C",
    run_id bigint NOT NULL,
    version text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    status text NOT NULL COLLATE pg_catalog."C",
    node bigint NOT NULL,
    at bigint NOT NULL,
    ended_at bigint,
    before text NOT NULL COLLATE pg_catalog."C",
    files text COLLATE pg_catalog."C",
    made text COLLATE pg_catalog."C",
    note text COLLATE pg_catalog."C",
    who text COLLATE pg_catalog."C"
);
CREATE TABLE public.workflow_handlers (
    workflow text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    job_id bigint,
    type text NOT NULL COLLATE pg_catalog."C",
    subscribes text NOT NULL COLLATE pg_catalog."C",
    publishes text COLLATE pg_catalog."C",
    timeout bigint NOT NULL,
    state text DEFAULT '{}'::text NOT NULL COLLATE pg_catalog."C",
    wake_at bigint,
    open_run bigint,
    rounds bigint DEFAULT 0 NOT NULL,
    dirty bigint DEFAULT 0 NOT NULL,
    seen bigint DEFAULT 0 NOT NULL,
    fixes bigint DEFAULT 0 NOT NULL,
    crashes bigint DEFAULT 0 NOT NULL,
    blamed bigint DEFAULT 0 NOT NULL,
    on_failure text,
    keyed bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.workflow_inputs (
    id bigint NOT NULL,
    workflow text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL COLLATE pg_catalog."C",
    type text NOT NULL COLLATE pg_catalog."C",
    external_id text NOT NULL COLLATE pg_catalog."C",
    title text COLLATE pg_catalog."C",
    at bigint NOT NULL,
    skipped_at bigint,
    reason text COLLATE pg_catalog."C"
);
CREATE TABLE public.workflow_messages (
    workflow text NOT NULL COLLATE pg_catalog."C",
    topic text NOT NULL COLLATE pg_catalog."C",
    message_id text NOT NULL COLLATE pg_catalog."C",
    event_id bigint NOT NULL
);
CREATE TABLE public.workflow_nodes (
    workflow text NOT NULL COLLATE pg_catalog."C",
    node bigint NOT NULL,
    place text NOT NULL COLLATE pg_catalog."C",
    version text NOT NULL COLLATE pg_catalog."C",
    after bigint NOT NULL
);
CREATE TABLE public.workflow_runs (
    id bigint NOT NULL,
    job_id bigint NOT NULL,
    workflow text NOT NULL COLLATE pg_catalog."C",
    handler text NOT NULL COLLATE pg_catalog."C",
    type text NOT NULL COLLATE pg_catalog."C",
    retry_of bigint,
    version text NOT NULL COLLATE pg_catalog."C",
    phase text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    mutation text NOT NULL COLLATE pg_catalog."C",
    begins text NOT NULL COLLATE pg_catalog."C",
    watermark bigint NOT NULL,
    tries bigint DEFAULT 0 NOT NULL,
    reconcile_at bigint,
    reserved bigint DEFAULT 0 NOT NULL,
    prepared text COLLATE pg_catalog."C",
    result text COLLATE pg_catalog."C",
    wake_at bigint,
    title text COLLATE pg_catalog."C",
    error text COLLATE pg_catalog."C",
    notes text COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    failure text,
    refused bigint DEFAULT 0 NOT NULL,
    mutate_error text,
    hops bigint DEFAULT 0 NOT NULL,
    CONSTRAINT workflow_runs_mutation_check CHECK ((mutation = ANY (ARRAY['none'::text, 'in_flight'::text, 'applied'::text, 'skipped'::text]))),
    CONSTRAINT workflow_runs_phase_check CHECK ((phase = ANY (ARRAY['preparing'::text, 'prepared'::text, 'mutating'::text, 'mutated'::text, 'emitting'::text, 'committed'::text])))
);
CREATE TABLE public.workflow_steps (
    event_id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    status text NOT NULL COLLATE pg_catalog."C",
    attempts bigint NOT NULL,
    tries bigint DEFAULT 0 NOT NULL,
    caught bigint DEFAULT 0 NOT NULL,
    sure bigint DEFAULT 0 NOT NULL,
    run_id bigint NOT NULL,
    version text NOT NULL COLLATE pg_catalog."C",
    value text COLLATE pg_catalog."C",
    error text COLLATE pg_catalog."C",
    error_type text COLLATE pg_catalog."C",
    started_at bigint NOT NULL,
    ended_at bigint,
    until bigint NOT NULL,
    CONSTRAINT workflow_steps_status_check CHECK ((status = ANY (ARRAY['running'::text, 'done'::text, 'uncertain'::text, 'failed'::text])))
);
CREATE TABLE public.workflow_tasks (
    event_id bigint NOT NULL,
    workflow text NOT NULL COLLATE pg_catalog."C",
    handler text NOT NULL COLLATE pg_catalog."C",
    topic text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    seq bigint NOT NULL,
    revision bigint NOT NULL,
    status text NOT NULL COLLATE pg_catalog."C",
    tries bigint DEFAULT 0 NOT NULL,
    retry_at bigint,
    run_id bigint,
    error text COLLATE pg_catalog."C",
    accepted text COLLATE pg_catalog."C",
    working_node bigint,
    updated_at bigint NOT NULL,
    CONSTRAINT workflow_tasks_status_check CHECK ((status = ANY (ARRAY['ready'::text, 'queued'::text, 'running'::text, 'retrying'::text, 'uncertain'::text, 'parked'::text])))
);
CREATE TABLE public.workflow_versions (
    workflow text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    version text NOT NULL COLLATE pg_catalog."C",
    deployed_at bigint NOT NULL
);
CREATE TABLE public.workflows (
    name text NOT NULL COLLATE pg_catalog."C",
    version text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL COLLATE pg_catalog."C",
    paused bigint DEFAULT 0 NOT NULL,
    pause_note text COLLATE pg_catalog."C",
    issue text COLLATE pg_catalog."C",
    issue_handler text COLLATE pg_catalog."C",
    issue_run bigint,
    issue_message text COLLATE pg_catalog."C",
    backoff_until bigint,
    failures bigint DEFAULT 0 NOT NULL,
    event_seq bigint DEFAULT 0 NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    removed_at bigint,
    draining bigint DEFAULT 0 NOT NULL,
    owner text,
    working_run bigint,
    working_node bigint,
    working_since bigint
);
INSERT INTO public.actions VALUES (1779126232981390692, 1779126232855069569, 1795038296932, 'add', 'root', 'cli', 'tick', '{"run":null}', '{}', NULL, NULL, 1, NULL, NULL, 0, NULL);
INSERT INTO public.actions VALUES (1779126242714044999, 1779126242499427382, 1795038301555, 'add', 'root', 'cli', 'nightly', '{"run":null}', '{}', NULL, NULL, 1, NULL, NULL, 0, NULL);
INSERT INTO public.actions VALUES (1779126247696928041, 1779126247611004108, 1795038303993, 'add', 'root', 'cli', 'once', '{"run":null}', '{}', NULL, NULL, 1, NULL, NULL, 0, NULL);
INSERT INTO public.actions VALUES (1779126258266259971, 1779126258190515445, 1795038309018, 'add', 'root', 'cli', 'broken', '{"run":null}', '{}', NULL, NULL, 1, NULL, NULL, 0, NULL);
INSERT INTO public.actions VALUES (1779126268538044403, 1779126268298559474, 1795038313852, 'add', 'root', 'cli', 'late', '{"run":null}', '{}', NULL, NULL, 1, NULL, NULL, 0, NULL);
INSERT INTO public.actions VALUES (1779126274806290802, 1779126268298559474, 1795038316980, 'pause', 'root', 'cli', 'late', '{"revision":1,"enabled":1,"paused":0,"ended_at":null,"notes":null,"slot":1796106600000,"next_at":1796106600000,"errors":0,"crashes":0,"failing_since":null,"backoff_until":null,"run_id":null,"last_run_id":null,"removed":null}', '{"paused":1,"slot":null,"next_at":null}', NULL, NULL, 1, NULL, NULL, 0, NULL);
INSERT INTO public.actions VALUES (1779126279198396130, 1779126279105834054, 1795038319005, 'add', 'root', 'cli', 'yearly', '{"run":null}', '{}', NULL, NULL, 1, NULL, NULL, 0, NULL);
INSERT INTO public.actions VALUES (1779126281638950427, 1779126281635096762, 1795038320218, 'add', 'root', 'cli', 'gone', '{"run":null}', '{}', NULL, NULL, 1, NULL, NULL, 0, NULL);
INSERT INTO public.actions VALUES (1779126285051177958, 1779126281635096762, 1795038321852, 'remove', 'root', 'cli', 'gone', '{"revision":1,"enabled":1,"paused":0,"ended_at":null,"notes":null,"slot":1795041920218,"next_at":1795041920218,"errors":0,"crashes":0,"failing_since":null,"backoff_until":null,"run_id":null,"last_run_id":1779126283564346451,"removed":null}', '{"revision":2,"enabled":0,"ended_at":1795038321852,"slot":null,"next_at":null,"removed":1795038321852}', NULL, NULL, 1, NULL, NULL, 0, NULL);
INSERT INTO public.events VALUES (1, 'job', 1, 1795038296932, '[{"type":"added","job_id":1779126232855069569,"job":"tick"}]');
INSERT INTO public.events VALUES (2, 'job', 2, 1795038301555, '[{"type":"added","job_id":1779126242499427382,"job":"nightly"}]');
INSERT INTO public.events VALUES (3, 'job', 3, 1795038303993, '[{"type":"added","job_id":1779126247611004108,"job":"once"}]');
INSERT INTO public.events VALUES (4, 'job', 4, 1795038309018, '[{"type":"added","job_id":1779126258190515445,"job":"broken"}]');
INSERT INTO public.events VALUES (5, 'job', 5, 1795038313852, '[{"type":"added","job_id":1779126268298559474,"job":"late"}]');
INSERT INTO public.events VALUES (6, 'job', 6, 1795038316980, '[{"type":"paused","job_id":1779126268298559474,"job":"late"}]');
INSERT INTO public.events VALUES (7, 'job', 7, 1795038319005, '[{"type":"added","job_id":1779126279105834054,"job":"yearly"}]');
INSERT INTO public.events VALUES (8, 'job', 8, 1795038320218, '[{"type":"added","job_id":1779126281635096762,"job":"gone"}]');
INSERT INTO public.events VALUES (9, 'run', 1, 1795038321141, '[{"type":"started","run":1779126283564346451,"job_id":1779126281635096762,"job":"gone","reason":"manual"}]');
INSERT INTO public.events VALUES (10, 'run', 2, 1795038321155, '[{"type":"finished","run":1779126283564346451,"job_id":1779126281635096762,"job":"gone","outcome":"success"}]');
INSERT INTO public.events VALUES (11, 'job', 9, 1795038321852, '[{"type":"removed","job_id":1779126281635096762,"job":"gone"}]');
INSERT INTO public.events VALUES (12, 'run', 5, 1795038332720, '[{"type":"started","run":1779126307857404641,"job_id":1779126232855069569,"job":"tick","reason":"schedule"},{"type":"started","run":1779126307859482377,"job_id":1779126247611004108,"job":"once","reason":"schedule"},{"type":"started","run":1779126307859482378,"job_id":1779126258190515445,"job":"broken","reason":"schedule"}]');
INSERT INTO public.events VALUES (13, 'run', 8, 1795038333041, '[{"type":"finished","run":1779126307857404641,"job_id":1779126232855069569,"job":"tick","outcome":"success"},{"type":"finished","run":1779126307859482377,"job_id":1779126247611004108,"job":"once","outcome":"success"},{"type":"finished","run":1779126307859482378,"job_id":1779126258190515445,"job":"broken","outcome":"error"}]');
INSERT INTO public.job_state VALUES (1779126242499427382, 1, 1, 0, 1795050000000, 1795050000000, 1795050000000, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL, 0, NULL, 1795038301555);
INSERT INTO public.job_state VALUES (1779126268298559474, 1, 1, 1, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL, 0, NULL, 1795038316980);
INSERT INTO public.job_state VALUES (1779126279105834054, 1, 1, 0, 1798779600000, 1798779600000, 1798779600000, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL, 0, NULL, 1795038319005);
INSERT INTO public.job_state VALUES (1779126281635096762, 2, 0, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, 1779126283564346451, 1795038321141, 1795038321155, 'success', NULL, 0, 0, 0, 0, NULL, NULL, NULL, 0, 1795038321852, 1795038321852);
INSERT INTO public.job_state VALUES (1779126232855069569, 1, 1, 0, 1795038341932, 1795038341932, 1795038341932, NULL, 0, NULL, NULL, 1795038331932, 1779126307857404641, 1795038332720, 1795038333041, 'success', NULL, 0, 0, 3, 1, NULL, '["asks for a start every 1s; starts closer than 10s are left out"]', NULL, 0, NULL, 1795038331932);
INSERT INTO public.job_state VALUES (1779126247611004108, 1, 0, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, 1767225600000, 1779126307859482377, 1795038332720, 1795038333041, 'success', NULL, 0, 0, 0, 1, NULL, NULL, NULL, 0, 1795038333041, 1795038303993);
INSERT INTO public.job_state VALUES (1779126258190515445, 1, 1, 0, 1795038363041, 1795038363041, 1795038342018, NULL, 0, NULL, NULL, 1795038332018, 1779126307859482378, 1795038332720, 1795038333041, 'error', 'exited with code 3: it broke', 1, 0, 2, 1, 1795038363041, '["asks for a start every 1s; starts closer than 10s are left out"]', 1795038333041, 0, NULL, 1795038332018);
INSERT INTO public.jobs VALUES (1779126232855069569, 'tick', 'command', NULL, 'cli', '{"type":"every","interval":"1s","anchor":"2026-11-18T21:44:56.932Z","until":"2030-01-01T00:00:00Z"}', '{"cwd":"/","argv":["echo","tick"]}', '{}', 1795038296932, 1795038296932, NULL);
INSERT INTO public.jobs VALUES (1779126242499427382, 'nightly', 'command', NULL, 'cli', '{"type":"cron","expression":"0 2 * * 1-5","tz":"Europe/Berlin"}', '{"cwd":"/","argv":["./backup.sh","--full"]}', '{"lanes":[["disk",1]]}', 1795038301555, 1795038301555, NULL);
INSERT INTO public.jobs VALUES (1779126247611004108, 'once', 'command', NULL, 'cli', '{"type":"once","at":"2026-01-01T00:00:00Z"}', '{"cwd":"/","argv":["echo","once"]}', '{}', 1795038303993, 1795038303993, NULL);
INSERT INTO public.jobs VALUES (1779126258190515445, 'broken', 'command', NULL, 'cli', '{"type":"every","interval":"1s","anchor":"2026-11-18T21:45:09.018Z"}', '{"cwd":"/","argv":["sh","-c","echo it broke >&2; exit 3"]}', '{}', 1795038309018, 1795038309018, NULL);
INSERT INTO public.jobs VALUES (1779126268298559474, 'late', 'command', NULL, 'cli', '{"type":"cron","expression":"30 6 1 * *","tz":"UTC"}', '{"cwd":"/","argv":["echo","late"]}', '{}', 1795038313852, 1795038313852, NULL);
INSERT INTO public.jobs VALUES (1779126279105834054, 'yearly', 'command', NULL, 'cli', '{"type":"cron","expression":"0 5 1 1 *","tz":"UTC"}', '{"cwd":"/","argv":["echo","yearly"]}', '{}', 1795038319005, 1795038319005, NULL);
INSERT INTO public.jobs VALUES (1779126281635096762, 'gone', 'command', NULL, 'cli', '{"type":"every","interval":"1h","anchor":"2026-11-18T21:45:20.218Z"}', '{"cwd":"/","argv":["true"]}', '{}', 1795038320218, 1795038321852, 1795038321852);
INSERT INTO public.lane_sizes VALUES (1779126242499427382, 'disk', 1);
INSERT INTO public.lanes VALUES ('disk', 0, 1, NULL);
INSERT INTO public.meta VALUES ('lane_sizes', '1');
INSERT INTO public.meta VALUES ('oldest_schema', '17');
INSERT INTO public.meta VALUES ('schema', '92');
INSERT INTO public.meta VALUES ('domain_schemas', '{}');
INSERT INTO public.meta VALUES ('clock_steady', '{"since": 1795038321133, "distance": 1795031731353}');
INSERT INTO public.meta VALUES ('incarnation', '2');
INSERT INTO public.meta VALUES ('budgets', '{"runs_per_day": null, "cost_per_day": 20.0, "tokens_per_day": null, "timezone": "UTC", "each": 100}');
INSERT INTO public.meta VALUES ('alerts', '{"to": null, "after": 2, "cooldown": 3600000, "grace": 300000, "urgent": ["disabled", "failed", "missed", "down", "dead_node", "stalled"]}');
INSERT INTO public.meta VALUES ('server_url', 'http://127.0.0.1:33881');
INSERT INTO public.meta VALUES ('alive_at', '1795038333365');
INSERT INTO public.nodes VALUES (1779126283553415001, 'cli:vm-f46e7729', 1795038321137, 1795038321159, 1795038321159, '{"pid": 20540, "host": "vm", "pids": "pid:[4026531836]", "version": "0.3.0", "schema": 92, "min_interval": 3600000, "kinds": ["command", "http", "monitor"], "labels": []}', NULL, 0, NULL, 0);
INSERT INTO public.nodes VALUES (1779126307582445547, 'made-here', 1795038332604, 1795038333365, 1795038333365, '{"pid": 20859, "host": "vm", "pids": "pid:[4026531836]", "version": "0.3.0", "schema": 92, "min_interval": 3600000, "kinds": ["agent", "command", "delivery", "http", "monitor", "session"], "labels": []}', NULL, 0, NULL, 0);
INSERT INTO public.page_codes VALUES ('3f2b4a4b8308275e34d1471628fce795db4c7aabc2e76dee0e5df245f849d3c1', 'root', 'admin', 1795038932713);
INSERT INTO public.priorities VALUES (0);
INSERT INTO public.run_details VALUES (1779126283564346451, NULL, '{"exit_code":0,"output":""}', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.run_details VALUES (1779126307857404641, NULL, '{"exit_code":0,"output":"tick\n"}', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.run_details VALUES (1779126307859482377, NULL, '{"exit_code":0,"output":"once\n"}', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.run_details VALUES (1779126307859482378, NULL, '{"exit_code":3,"output":"it broke\n"}', 'Failed', 'exited with code 3: it broke', NULL, NULL, NULL, NULL);
INSERT INTO public.runs VALUES (1779126283564346451, 1779126281635096762, 'command', 'manual', NULL, 1, NULL, NULL, NULL, 'done', 'success', 1795038321138, 1795038321141, 1795038321155, 1779126283553415001, NULL, 0);
INSERT INTO public.runs VALUES (1779126307857404641, 1779126232855069569, 'command', 'schedule', 1795038331932, 1, NULL, NULL, NULL, 'done', 'success', 1795038297932, 1795038332720, 1795038333041, 1779126307582445547, NULL, 0);
INSERT INTO public.runs VALUES (1779126307859482377, 1779126247611004108, 'command', 'schedule', 1767225600000, 1, NULL, NULL, NULL, 'done', 'success', 1795038303993, 1795038332720, 1795038333041, 1779126307582445547, NULL, 0);
INSERT INTO public.runs VALUES (1779126307859482378, 1779126258190515445, 'command', 'schedule', 1795038332018, 1, NULL, NULL, NULL, 'done', 'error', 1795038310018, 1795038332720, 1795038333041, 1779126307582445547, NULL, 0);
INSERT INTO public.streams VALUES ('job', 9);
INSERT INTO public.streams VALUES ('run', 8);
INSERT INTO public.stretches VALUES (1779126232855069569, 'merged', 1795038297932, 1795038330932, 3, 0, NULL);
INSERT INTO public.stretches VALUES (1779126258190515445, 'merged', 1795038310018, 1795038331018, 2, 0, NULL);
INSERT INTO public.tokens VALUES ('e2680979c199a3ce75bd1b13b23e23dc5a655e13b2edbaf12ef893fc4e52dc5f', 'deploy', 'operator', 1795038323245, NULL, NULL);
INSERT INTO public.wakeful_schema VALUES (1);
INSERT INTO public.wakeful_schema VALUES (2);
INSERT INTO public.wakeful_schema VALUES (3);
INSERT INTO public.wakeful_schema VALUES (4);
INSERT INTO public.wakeful_schema VALUES (5);
INSERT INTO public.wakeful_schema VALUES (6);
INSERT INTO public.wakeful_schema VALUES (7);
INSERT INTO public.wakeful_schema VALUES (8);
INSERT INTO public.wakeful_schema VALUES (9);
INSERT INTO public.wakeful_schema VALUES (10);
INSERT INTO public.wakeful_schema VALUES (11);
INSERT INTO public.wakeful_schema VALUES (12);
INSERT INTO public.wakeful_schema VALUES (13);
INSERT INTO public.wakeful_schema VALUES (14);
INSERT INTO public.wakeful_schema VALUES (15);
INSERT INTO public.wakeful_schema VALUES (16);
INSERT INTO public.wakeful_schema VALUES (17);
INSERT INTO public.wakeful_schema VALUES (18);
INSERT INTO public.wakeful_schema VALUES (19);
INSERT INTO public.wakeful_schema VALUES (20);
INSERT INTO public.wakeful_schema VALUES (21);
INSERT INTO public.wakeful_schema VALUES (22);
INSERT INTO public.wakeful_schema VALUES (23);
INSERT INTO public.wakeful_schema VALUES (24);
INSERT INTO public.wakeful_schema VALUES (25);
INSERT INTO public.wakeful_schema VALUES (26);
INSERT INTO public.wakeful_schema VALUES (27);
INSERT INTO public.wakeful_schema VALUES (28);
INSERT INTO public.wakeful_schema VALUES (29);
INSERT INTO public.wakeful_schema VALUES (30);
INSERT INTO public.wakeful_schema VALUES (31);
INSERT INTO public.wakeful_schema VALUES (32);
INSERT INTO public.wakeful_schema VALUES (33);
INSERT INTO public.wakeful_schema VALUES (34);
INSERT INTO public.wakeful_schema VALUES (35);
INSERT INTO public.wakeful_schema VALUES (36);
INSERT INTO public.wakeful_schema VALUES (37);
INSERT INTO public.wakeful_schema VALUES (38);
INSERT INTO public.wakeful_schema VALUES (39);
INSERT INTO public.wakeful_schema VALUES (40);
INSERT INTO public.wakeful_schema VALUES (41);
INSERT INTO public.wakeful_schema VALUES (42);
INSERT INTO public.wakeful_schema VALUES (43);
INSERT INTO public.wakeful_schema VALUES (45);
INSERT INTO public.wakeful_schema VALUES (46);
INSERT INTO public.wakeful_schema VALUES (47);
INSERT INTO public.wakeful_schema VALUES (50);
INSERT INTO public.wakeful_schema VALUES (52);
INSERT INTO public.wakeful_schema VALUES (53);
INSERT INTO public.wakeful_schema VALUES (54);
INSERT INTO public.wakeful_schema VALUES (60);
INSERT INTO public.wakeful_schema VALUES (70);
INSERT INTO public.wakeful_schema VALUES (71);
INSERT INTO public.wakeful_schema VALUES (73);
INSERT INTO public.wakeful_schema VALUES (90);
INSERT INTO public.wakeful_schema VALUES (92);
SELECT pg_catalog.setval('public.events_id_seq', 13, true);
ALTER TABLE ONLY public.actions
    ADD CONSTRAINT actions_pkey PRIMARY KEY (id, subject);
ALTER TABLE ONLY public.agent_events
    ADD CONSTRAINT agent_events_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.agent_limits
    ADD CONSTRAINT agent_limits_pkey PRIMARY KEY (account);
ALTER TABLE ONLY public.agent_replies
    ADD CONSTRAINT agent_replies_pkey PRIMARY KEY (run_id);
ALTER TABLE ONLY public.agent_requests
    ADD CONSTRAINT agent_requests_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.agent_senders
    ADD CONSTRAINT agent_senders_pkey PRIMARY KEY (run_id);
ALTER TABLE ONLY public.agent_sessions
    ADD CONSTRAINT agent_sessions_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.agent_wakes
    ADD CONSTRAINT agent_wakes_pkey PRIMARY KEY (job_id);
ALTER TABLE ONLY public.agent_work
    ADD CONSTRAINT agent_work_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.alert_snoozes
    ADD CONSTRAINT alert_snoozes_pkey PRIMARY KEY (job_id);
ALTER TABLE ONLY public.alerts
    ADD CONSTRAINT alerts_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.budget_charges
    ADD CONSTRAINT budget_charges_pkey PRIMARY KEY (run_id);
ALTER TABLE ONLY public.budget_days
    ADD CONSTRAINT budget_days_pkey PRIMARY KEY (scope, day);
ALTER TABLE ONLY public.budget_reservations
    ADD CONSTRAINT budget_reservations_pkey PRIMARY KEY (run_id);
ALTER TABLE ONLY public.chains
    ADD CONSTRAINT chains_pkey PRIMARY KEY (upstream, job_id);
ALTER TABLE ONLY public.chat_messages
    ADD CONSTRAINT chat_messages_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.connectors
    ADD CONSTRAINT connectors_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.deliveries
    ADD CONSTRAINT deliveries_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.delivery_attempts
    ADD CONSTRAINT delivery_attempts_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.delivery_last
    ADD CONSTRAINT delivery_last_pkey PRIMARY KEY (job_id);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.fleet_files
    ADD CONSTRAINT fleet_files_pkey PRIMARY KEY (fleet, place);
ALTER TABLE ONLY public.fleet_jobs
    ADD CONSTRAINT fleet_jobs_pkey PRIMARY KEY (job_id);
ALTER TABLE ONLY public.fleets
    ADD CONSTRAINT fleets_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.idempotency
    ADD CONSTRAINT idempotency_pkey PRIMARY KEY (caller, key);
ALTER TABLE ONLY public.interactions
    ADD CONSTRAINT interactions_pkey PRIMARY KEY (agent, connector);
ALTER TABLE ONLY public.job_state
    ADD CONSTRAINT job_state_pkey PRIMARY KEY (job_id);
ALTER TABLE ONLY public.job_stops
    ADD CONSTRAINT job_stops_pkey PRIMARY KEY (job_id);
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.lane_reservations
    ADD CONSTRAINT lane_reservations_pkey PRIMARY KEY (lane, job_id);
ALTER TABLE ONLY public.lane_sizes
    ADD CONSTRAINT lane_sizes_pkey PRIMARY KEY (job_id, lane);
ALTER TABLE ONLY public.lanes
    ADD CONSTRAINT lanes_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.meta
    ADD CONSTRAINT meta_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.monitors
    ADD CONSTRAINT monitors_pkey PRIMARY KEY (job_id);
ALTER TABLE ONLY public.nodes
    ADD CONSTRAINT nodes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.page_codes
    ADD CONSTRAINT page_codes_pkey PRIMARY KEY (hash);
ALTER TABLE ONLY public.page_sessions
    ADD CONSTRAINT page_sessions_pkey PRIMARY KEY (hash);
ALTER TABLE ONLY public.pairing_codes
    ADD CONSTRAINT pairing_codes_pkey PRIMARY KEY (hash);
ALTER TABLE ONLY public.pairing_tries
    ADD CONSTRAINT pairing_tries_pkey PRIMARY KEY (connector, sender);
ALTER TABLE ONLY public.past_triggers
    ADD CONSTRAINT past_triggers_pkey PRIMARY KEY (job_id, until);
ALTER TABLE ONLY public.people
    ADD CONSTRAINT people_pkey PRIMARY KEY (connector, sender);
ALTER TABLE ONLY public.press_answers
    ADD CONSTRAINT press_answers_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.presses
    ADD CONSTRAINT presses_pkey PRIMARY KEY (delivery_id, button);
ALTER TABLE ONLY public.priorities
    ADD CONSTRAINT priorities_pkey PRIMARY KEY (level);
ALTER TABLE ONLY public.proposals
    ADD CONSTRAINT proposals_pkey PRIMARY KEY (job_id);
ALTER TABLE ONLY public.receivers
    ADD CONSTRAINT receivers_pkey PRIMARY KEY (account);
ALTER TABLE ONLY public.run_details
    ADD CONSTRAINT run_details_pkey PRIMARY KEY (run_id);
ALTER TABLE ONLY public.run_reports
    ADD CONSTRAINT run_reports_pkey PRIMARY KEY (run_id);
ALTER TABLE ONLY public.run_watches
    ADD CONSTRAINT run_watches_pkey PRIMARY KEY (run_id);
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (job_id);
ALTER TABLE ONLY public.skips
    ADD CONSTRAINT skips_pkey PRIMARY KEY (job_id, reason);
ALTER TABLE ONLY public.streams
    ADD CONSTRAINT streams_pkey PRIMARY KEY (stream);
ALTER TABLE ONLY public.stretches
    ADD CONSTRAINT stretches_pkey PRIMARY KEY (job_id, fate, first_slot, since);
ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT tokens_pkey PRIMARY KEY (hash);
ALTER TABLE ONLY public.wakeful_schema
    ADD CONSTRAINT wakeful_schema_pkey PRIMARY KEY (version);
ALTER TABLE ONLY public.workflow_actions
    ADD CONSTRAINT workflow_actions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.workflow_causes
    ADD CONSTRAINT workflow_causes_pkey PRIMARY KEY (event_id, input_id);
ALTER TABLE ONLY public.workflow_events
    ADD CONSTRAINT workflow_events_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.workflow_fixes
    ADD CONSTRAINT workflow_fixes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.workflow_handlers
    ADD CONSTRAINT workflow_handlers_pkey PRIMARY KEY (workflow, name);
ALTER TABLE ONLY public.workflow_inputs
    ADD CONSTRAINT workflow_inputs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.workflow_messages
    ADD CONSTRAINT workflow_messages_pkey PRIMARY KEY (workflow, topic, message_id);
ALTER TABLE ONLY public.workflow_nodes
    ADD CONSTRAINT workflow_nodes_pkey PRIMARY KEY (workflow, node);
ALTER TABLE ONLY public.workflow_runs
    ADD CONSTRAINT workflow_runs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.workflow_steps
    ADD CONSTRAINT workflow_steps_pkey PRIMARY KEY (event_id, name);
ALTER TABLE ONLY public.workflow_tasks
    ADD CONSTRAINT workflow_tasks_pkey PRIMARY KEY (event_id);
ALTER TABLE ONLY public.workflow_versions
    ADD CONSTRAINT workflow_versions_pkey PRIMARY KEY (workflow, number);
ALTER TABLE ONLY public.workflows
    ADD CONSTRAINT workflows_pkey PRIMARY KEY (name);
CREATE INDEX actions_subject ON public.actions USING btree (subject, id);
CREATE INDEX agent_events_agent ON public.agent_events USING btree (agent, id);
CREATE INDEX agent_events_job ON public.agent_events USING btree (job_id, id);
CREATE INDEX agent_events_run ON public.agent_events USING btree (run_id) WHERE (run_id IS NOT NULL);
CREATE INDEX agent_events_unnamed ON public.agent_events USING btree (job_id) WHERE (agent IS NULL);
CREATE INDEX agent_requests_at ON public.agent_requests USING btree (at);
CREATE INDEX agent_requests_body ON public.agent_requests USING btree (at) WHERE (body IS NOT NULL);
CREATE UNIQUE INDEX agent_requests_delivery ON public.agent_requests USING btree (job_id, delivery_id) WHERE (delivery_id IS NOT NULL);
CREATE UNIQUE INDEX agent_requests_digest ON public.agent_requests USING btree (job_id, digest) WHERE (digest IS NOT NULL);
CREATE INDEX agent_requests_job ON public.agent_requests USING btree (job_id, id);
CREATE INDEX agent_sessions_agent ON public.agent_sessions USING btree (agent, name);
CREATE INDEX agent_sessions_used ON public.agent_sessions USING btree (used_at);
CREATE INDEX agent_work_agent ON public.agent_work USING btree (agent, status, priority DESC, id);
CREATE UNIQUE INDEX agent_work_called ON public.agent_work USING btree (agent, external_id) WHERE (external_id IS NOT NULL);
CREATE UNIQUE INDEX agent_work_external ON public.agent_work USING btree (job_id, external_id) WHERE (external_id IS NOT NULL);
CREATE INDEX agent_work_held ON public.agent_work USING btree (job_id, id) WHERE (held = 1);
CREATE INDEX agent_work_held_by ON public.agent_work USING btree (agent, id) WHERE (held = 1);
CREATE INDEX agent_work_run ON public.agent_work USING btree (run_id) WHERE (status = 'claimed'::text);
CREATE INDEX agent_work_status ON public.agent_work USING btree (job_id, status, priority DESC, id);
CREATE INDEX agent_work_unnamed ON public.agent_work USING btree (job_id) WHERE (agent IS NULL);
CREATE INDEX alerts_key ON public.alerts USING btree (key, opened_at);
CREATE UNIQUE INDEX alerts_open ON public.alerts USING btree (key) WHERE (closed_at IS NULL);
CREATE INDEX alerts_open_job ON public.alerts USING btree (job_id) WHERE (closed_at IS NULL);
CREATE INDEX alerts_snoozed ON public.alerts USING btree (snoozed_until) WHERE (snoozed_until IS NOT NULL);
CREATE INDEX budget_charges_day ON public.budget_charges USING btree (day);
CREATE INDEX budget_charges_reported ON public.budget_charges USING btree (agent, run_id) WHERE (basis = 'reported'::text);
CREATE INDEX budget_days_day ON public.budget_days USING btree (day);
CREATE INDEX chains_job ON public.chains USING btree (job_id);
CREATE INDEX chat_messages_at ON public.chat_messages USING btree (at) WHERE (open = 0);
CREATE INDEX chat_messages_open ON public.chat_messages USING btree (connector, id) WHERE (open = 1);
CREATE INDEX deliveries_agent ON public.deliveries USING btree (agent, id) WHERE (agent IS NOT NULL);
CREATE INDEX deliveries_connector ON public.deliveries USING btree (connector, id);
CREATE UNIQUE INDEX deliveries_dedupe ON public.deliveries USING btree (dedupe) WHERE (dedupe IS NOT NULL);
CREATE INDEX deliveries_digest ON public.deliveries USING btree (digest_id) WHERE (digest_id IS NOT NULL);
CREATE INDEX deliveries_held ON public.deliveries USING btree (connector, held_for, id) WHERE (held_for IS NOT NULL);
CREATE INDEX deliveries_job ON public.deliveries USING btree (job, id) WHERE (job IS NOT NULL);
CREATE INDEX deliveries_run ON public.deliveries USING btree (run_id);
CREATE INDEX deliveries_status ON public.deliveries USING btree (status, id);
CREATE INDEX deliveries_waiting ON public.deliveries USING btree (connector, open, id) WHERE (open = 1);
CREATE INDEX delivery_attempts_connector ON public.delivery_attempts USING btree (connector, at);
CREATE INDEX delivery_attempts_delivery ON public.delivery_attempts USING btree (delivery_id, id);
CREATE INDEX events_stream ON public.events USING btree (stream, id);
CREATE INDEX fleet_jobs_fleet ON public.fleet_jobs USING btree (fleet, job_id);
CREATE INDEX idempotency_age ON public.idempotency USING btree (created_at);
CREATE INDEX job_state_due ON public.job_state USING btree (priority, due_at, job_id) WHERE (due_at IS NOT NULL);
CREATE INDEX job_state_ended ON public.job_state USING btree (ended_at, job_id) WHERE (ended_at IS NOT NULL);
CREATE INDEX job_state_failed ON public.job_state USING btree (job_id) WHERE (last_error IS NOT NULL);
CREATE INDEX job_state_parked ON public.job_state USING btree (parked, priority DESC, ready_at, job_id) WHERE (parked IS NOT NULL);
CREATE INDEX job_state_stopped ON public.job_state USING btree (paused, ended_at, last_outcome, job_id) WHERE ((enabled = 0) OR (paused = 1));
CREATE INDEX jobs_chat ON public.jobs USING btree (name) WHERE ((trigger = '{"type":"chat"}'::text) AND (removed_at IS NULL));
CREATE INDEX jobs_declared ON public.jobs USING btree (removed_at, name, kind, source, id) WHERE ((removed_at IS NULL) AND (kind = name));
CREATE INDEX jobs_kind_name ON public.jobs USING btree (kind, name) WHERE (removed_at IS NULL);
CREATE UNIQUE INDEX jobs_name ON public.jobs USING btree (name) WHERE (removed_at IS NULL);
CREATE INDEX jobs_owner_name ON public.jobs USING btree (owner, name) WHERE ((removed_at IS NULL) AND (owner IS NOT NULL));
CREATE INDEX jobs_removed ON public.jobs USING btree (id) WHERE (removed_at IS NOT NULL);
CREATE INDEX jobs_source_name ON public.jobs USING btree (source, name) WHERE (removed_at IS NULL);
CREATE INDEX lane_reservations_job ON public.lane_reservations USING btree (job_id);
CREATE INDEX lane_sizes_smallest ON public.lane_sizes USING btree (lane, size);
CREATE UNIQUE INDEX monitors_key ON public.monitors USING btree (key);
CREATE INDEX nodes_alive ON public.nodes USING btree (seen_at) WHERE (stopped_at IS NULL);
CREATE INDEX page_sessions_age ON public.page_sessions USING btree (expires_at);
CREATE INDEX press_answers_connector ON public.press_answers USING btree (connector, id);
CREATE INDEX presses_at ON public.presses USING btree (at);
CREATE INDEX proposals_waiting ON public.proposals USING btree (expires_at) WHERE (run_id IS NOT NULL);
CREATE INDEX runs_failed ON public.runs USING btree (id) WHERE (outcome = ANY (ARRAY['error'::text, 'timeout'::text, 'crashed'::text]));
CREATE INDEX runs_open ON public.runs USING btree (job_id) WHERE (finished_at IS NULL);
CREATE UNIQUE INDEX runs_retry_of ON public.runs USING btree (retry_of) WHERE (retry_of IS NOT NULL);
CREATE UNIQUE INDEX runs_slot ON public.runs USING btree (job_id, slot, attempt);
CREATE INDEX runs_unstarted ON public.runs USING btree (job_id, slot) WHERE ((started_at IS NULL) AND (finished_at IS NOT NULL) AND (attempt = 1) AND (slot IS NOT NULL));
CREATE INDEX sessions_used ON public.sessions USING btree (used_at, job_id);
CREATE INDEX stretches_age ON public.stretches USING btree (last_slot);
CREATE UNIQUE INDEX tokens_name ON public.tokens USING btree (name) WHERE (revoked_at IS NULL);
CREATE INDEX workflow_actions_workflow ON public.workflow_actions USING btree (workflow, id);
CREATE INDEX workflow_causes_input ON public.workflow_causes USING btree (input_id, event_id);
CREATE INDEX workflow_events_list ON public.workflow_events USING btree (workflow, id);
CREATE INDEX workflow_events_made ON public.workflow_events USING btree (made_by) WHERE (made_by IS NOT NULL);
CREATE INDEX workflow_events_old ON public.workflow_events USING btree (settled_at) WHERE (settled_at IS NOT NULL);
CREATE INDEX workflow_events_open ON public.workflow_events USING btree (workflow, topic, status, seq);
CREATE INDEX workflow_events_run ON public.workflow_events USING btree (run_id) WHERE (run_id IS NOT NULL);
CREATE INDEX workflow_events_waiting ON public.workflow_events USING btree (workflow, id) WHERE ((status = ANY (ARRAY['pending'::text, 'reserved'::text])) AND (settled_at IS NULL));
CREATE INDEX workflow_fixes_workflow ON public.workflow_fixes USING btree (workflow, id);
CREATE INDEX workflow_handlers_job ON public.workflow_handlers USING btree (job_id);
CREATE UNIQUE INDEX workflow_inputs_external ON public.workflow_inputs USING btree (workflow, source, type, external_id);
CREATE INDEX workflow_inputs_list ON public.workflow_inputs USING btree (workflow, id);
CREATE INDEX workflow_messages_event ON public.workflow_messages USING btree (event_id);
CREATE INDEX workflow_runs_job ON public.workflow_runs USING btree (job_id, id);
CREATE INDEX workflow_runs_workflow ON public.workflow_runs USING btree (workflow, id);
CREATE INDEX workflow_tasks_key ON public.workflow_tasks USING btree (workflow, handler, key, status, seq);
CREATE INDEX workflow_tasks_retry ON public.workflow_tasks USING btree (workflow, handler, retry_at) WHERE (status = 'retrying'::text);
CREATE INDEX workflow_tasks_run ON public.workflow_tasks USING btree (run_id) WHERE (run_id IS NOT NULL);
CREATE INDEX workflow_tasks_turn ON public.workflow_tasks USING btree (workflow, handler, status, seq);
