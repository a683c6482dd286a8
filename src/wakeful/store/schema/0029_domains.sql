-- oldest: 12
-- The scripts of each domain outside Wakeful are counted by themselves: here, and no longer among Wakeful's numbers.

INSERT INTO meta (key, value) VALUES ('domain_schemas', '{}');
