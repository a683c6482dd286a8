-- oldest: 14
-- Alerts as messages: when one was last sent, until when none is, and what an incident is about beyond its message.

ALTER TABLE alerts ADD COLUMN notified_at bigint;    -- when the last message was stored; NULL while none was
ALTER TABLE alerts ADD COLUMN snoozed_until bigint;  -- no message before this time
ALTER TABLE alerts ADD COLUMN data text;             -- JSON: the run that asks, the jobs that were missed

CREATE INDEX alerts_snoozed ON alerts (snoozed_until) WHERE snoozed_until IS NOT NULL;

-- Jobs whose alerts are not sent before a time, also those that are not open yet.
CREATE TABLE alert_snoozes (
    job_id bigint PRIMARY KEY,
    until  bigint NOT NULL
);
