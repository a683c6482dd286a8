-- oldest: 12
-- Whether nothing but a heartbeat's interval asked for a wake: it waits for the active hours, however it was delayed.

ALTER TABLE agent_wakes ADD COLUMN by_interval integer NOT NULL DEFAULT 0;

UPDATE agent_wakes SET by_interval = 1 WHERE reason = 'interval';
