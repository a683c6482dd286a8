-- oldest: 12
-- Messages are listed by the names of jobs and agents, which outlive them.

DROP INDEX deliveries_job;
CREATE INDEX deliveries_job ON deliveries (job, id) WHERE job IS NOT NULL;
CREATE INDEX deliveries_agent ON deliveries (agent, id) WHERE agent IS NOT NULL;
