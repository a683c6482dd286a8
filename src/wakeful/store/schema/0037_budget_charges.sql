-- oldest: 12
-- What each run of an agent counts as, so that what a day has spent can be accounted for, and an unknown cost estimated.

CREATE TABLE budget_charges (
    run_id bigint PRIMARY KEY,
    agent  text NOT NULL,
    day    integer NOT NULL,             -- on which it counts, as in budget_days
    cost   bigint NOT NULL,              -- in millionths
    tokens bigint NOT NULL,
    basis  text NOT NULL                 -- where the cost is from: reported, max_cost, mean, unknown
);
CREATE INDEX budget_charges_reported ON budget_charges (agent, run_id) WHERE basis = 'reported';
CREATE INDEX budget_charges_day ON budget_charges (day);

ALTER TABLE budget_reservations ADD COLUMN basis text NOT NULL DEFAULT 'max_cost';  -- where its cost is from
