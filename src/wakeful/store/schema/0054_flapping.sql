-- oldest: 12
-- How often an incident has opened of late.

CREATE INDEX alerts_key ON alerts (key, opened_at);
