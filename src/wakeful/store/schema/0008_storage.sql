-- oldest: 2
-- How PostgreSQL keeps the tables that are written all the time. A line that begins with "-- postgresql:" is for it alone.

-- Rows that are written over and over: room on the page for the next version, and cleaned up after a few thousand
-- versions rather than after a fifth of the table.
-- postgresql: ALTER TABLE job_state SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_analyze_scale_factor = 0.05);
-- postgresql: ALTER TABLE runs SET (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_analyze_scale_factor = 0.05);

-- A handful of rows, each written every few seconds or with every run.
-- postgresql: ALTER TABLE lanes SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
-- postgresql: ALTER TABLE streams SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
-- postgresql: ALTER TABLE nodes SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
-- postgresql: ALTER TABLE meta SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
