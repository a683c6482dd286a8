-- oldest: 12
-- Version 0.2: no node of version 0.1 may work beside this one. Alerts are keyed by their kind, events carry their fields by
-- name, and runs are fenced by their node's id, which is new with every incarnation.

ALTER TABLE runs DROP COLUMN token;
UPDATE alerts SET key = 'dead_' || key WHERE kind = 'dead_node' AND key LIKE 'node:%';
UPDATE alerts SET key = 'no_node' || substr(key, 11) WHERE kind = 'no_node' AND key LIKE 'no_handler:%';
UPDATE alerts SET key = 'old_transaction:database' WHERE kind = 'old_transaction';
