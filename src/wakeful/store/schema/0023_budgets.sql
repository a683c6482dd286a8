-- oldest: 16
-- Budgets of agents: what was spent each day and what runs in progress may still cost; and a hold that claims read.

CREATE TABLE budget_days (
    scope     text NOT NULL,             -- fleet, or agent:NAME
    day       integer NOT NULL,          -- 20260131, in the zone of the budgets
    runs      bigint NOT NULL,           -- of runs that have ended
    cost      bigint NOT NULL,           -- in millionths
    tokens    bigint NOT NULL,
    held_runs bigint NOT NULL,           -- reserved for runs in progress
    held_cost bigint NOT NULL,
    PRIMARY KEY (scope, day)
);
CREATE INDEX budget_days_day ON budget_days (day);

CREATE TABLE budget_reservations (
    run_id bigint PRIMARY KEY,
    agent  text NOT NULL,
    day    integer NOT NULL,             -- on which it counts, whenever it ends
    cost   bigint NOT NULL
);

ALTER TABLE nodes ADD COLUMN held smallint NOT NULL DEFAULT 0;  -- 1: starts nothing; 2: sends nothing either
