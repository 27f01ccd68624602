-- Numbers of columns have no gaps where others were dropped, as tools that read the catalog expect.
CREATE TABLE t (x int, y int PRIMARY KEY);
ALTER TABLE t DROP COLUMN x, ADD COLUMN z text;
\d t
SELECT attname, attnum, attisdropped, atttypid, attnotnull, atthasdef FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0 ORDER BY 2;
CREATE TABLE without_key (a int, b int);
ALTER TABLE without_key ADD COLUMN c int, DROP COLUMN a;
\d without_key
SELECT attrelid::regclass, count(*) = max(attnum), count(*) FILTER (WHERE attisdropped) > 0 FROM pg_attribute WHERE attrelid IN ('t'::regclass, 'without_key'::regclass) AND attnum > 0 GROUP BY 1 ORDER BY 1;
-- What pg_dump asks.
SELECT c.relname FROM pg_catalog.pg_class c WHERE c.relname OPERATOR(pg_catalog.=) ANY (ARRAY['t', 'q']) ORDER BY c.relname OPERATOR(pg_catalog.||) 'x';
SELECT count(*) FROM pg_shseclabel;
DROP TABLE t, without_key;
