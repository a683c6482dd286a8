-- oldest: 17
-- Where the sender's id of a request is not signed, what is signed counts once, too.

ALTER TABLE agent_requests ADD COLUMN digest text;
CREATE UNIQUE INDEX agent_requests_digest ON agent_requests (job_id, digest) WHERE digest IS NOT NULL;
