-- oldest: 17
-- What waits for a connector is found without its record. Beside an index on all messages of a connector, SQLite does
-- not choose one on some of them with the same columns: it reads all that was ever sent.

DROP INDEX deliveries_queue;
DROP INDEX deliveries_held;
CREATE INDEX deliveries_waiting ON deliveries (connector, open, id) WHERE open = 1;
CREATE INDEX deliveries_held ON deliveries (connector, held_for, id) WHERE held_for IS NOT NULL;
