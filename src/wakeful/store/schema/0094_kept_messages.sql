-- oldest: 17
-- What a run that waits wants sent when it ends well; how much of a message has arrived, of those that are sent in parts.

ALTER TABLE run_details ADD COLUMN messages text;
ALTER TABLE deliveries ADD COLUMN progress text;
