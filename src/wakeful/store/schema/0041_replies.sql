-- oldest: 12
-- Where the reply of each run in progress goes: as its agent's settings were when it started.

CREATE TABLE agent_replies (
    run_id     bigint PRIMARY KEY,
    goes_to    text,                     -- NULL: where the agent was last heard from
    recipient  text,                     -- the person who is answered
    limited_to text                      -- instead, where the run was fed by others
);
