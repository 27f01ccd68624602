\pset null <null>
CREATE TABLE product (id int PRIMARY KEY, name text);
INSERT INTO product VALUES (1, 'pen'), (2, 'book'), (3, 'lamp');
SELECT FROM product WHERE id < 3;
SELECT;
SELECT now() > '2020-01-01', current_date > '2020-01-01', current_timestamp = now(), localtimestamp > '2020-01-01', current_date = now()::date, age(now()) < '1 day', extract(epoch FROM now()) > 0;
SELECT pg_typeof(1), pg_typeof('a'::varchar), pg_typeof(now()), pg_typeof(NULL), pg_typeof(ARRAY[1]);
CREATE TABLE stamped (id int PRIMARY KEY, day date DEFAULT CURRENT_DATE, at timestamp DEFAULT LOCALTIMESTAMP, note text DEFAULT lpad('x', 3, '-'));
INSERT INTO stamped (id) VALUES (1) RETURNING day = now()::date, at > '2020-01-01', note;
SELECT column_name, column_default FROM information_schema.columns WHERE table_name = 'stamped' AND column_name <> 'note' ORDER BY ordinal_position;
DROP INDEX CONCURRENTLY IF EXISTS nothing;
CHECKPOINT;
SET lock_timeout = '1s';
SHOW lock_timeout;
RESET lock_timeout;
CREATE TABLE drawn (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), at float8 DEFAULT random(), n int);
INSERT INTO drawn (n) VALUES (1), (2), (3);
SELECT count(DISTINCT id), count(DISTINCT at), bool_and(at >= 0 AND at < 1), bool_and(substr(id::text, 15, 1) = '4') FROM drawn;
SELECT column_name, column_default FROM information_schema.columns WHERE table_name = 'drawn' AND column_name <> 'n' ORDER BY ordinal_position;
SELECT n FROM drawn ORDER BY random() LIMIT 0;
-- A query of WITH has one answer, also where it is named twice.
WITH q AS (SELECT random() AS r FROM generate_series(1, 3)) SELECT count(*) FROM (SELECT r FROM q UNION SELECT r FROM q) x;
WITH q AS (SELECT random() AS r FROM generate_series(1, 3)) SELECT count(*) FROM (SELECT r FROM q EXCEPT SELECT r FROM q) x;
