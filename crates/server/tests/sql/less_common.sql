-- Clauses, operators and functions that applications use now and then.
CREATE TABLE t (a int PRIMARY KEY, b int, c text);
INSERT INTO t SELECT 5 ON CONFLICT (a) DO NOTHING;
INSERT INTO t SELECT 6, 7 UNION SELECT 5, 1 ORDER BY 1 ON CONFLICT DO NOTHING;
INSERT INTO t SELECT 5 AS a, 9 b ON CONFLICT (a) DO UPDATE SET b = excluded.b;
SELECT * FROM t ORDER BY a;
-- Rows that are distinct.
SELECT (1, 2) IS DISTINCT FROM (1, 3) AS x, (1, NULL) IS NOT DISTINCT FROM (1, NULL) AS y,
    (a, b) IS DISTINCT FROM (5, 9) AS z FROM t ORDER BY a;
\set VERBOSITY sqlstate
SELECT (1, 2) IS DISTINCT FROM (1, 2, 3);
\set VERBOSITY default
-- LIKE of arrays.
SELECT 'abc' LIKE ANY (ARRAY['a%', 'x']) AS a, 'abc' LIKE ALL (ARRAY['a%', 'x']) AS b,
    'abc' NOT LIKE ALL ('{x,y}') AS c, 'ABC' ILIKE ANY ('{a%}') AS d,
    'abc' LIKE ANY (ARRAY['x', NULL]) AS e, 'abc' LIKE SOME ('{abc}') AS f,
    'abc' NOT ILIKE ANY ('{A%,b%}') AS g, NULL LIKE ALL ('{}'::text[]) AS h,
    'abc' ~~ ANY ('{a%}') AS i, 'abc' !~~ ALL ('{b%}') AS j;
PREPARE likes (text[]) AS SELECT x FROM (VALUES ('apple'), ('pear'), (NULL)) v (x) WHERE x LIKE ANY ($1);
EXECUTE likes ('{a%,q%}');
-- OVERLAPS.
SELECT (date '2020-01-01', date '2020-02-01') OVERLAPS (date '2020-01-15', date '2020-03-01') AS a,
    (date '2020-01-01', interval '1 day') OVERLAPS (date '2020-01-15', interval '3 days') AS b,
    (date '2020-02-01', date '2020-01-01') OVERLAPS (date '2020-02-01', date '2020-03-01') AS c,
    (date '2020-01-01', date '2020-01-01') OVERLAPS (date '2020-01-01', date '2020-01-01') AS d,
    (time '10:00', time '12:00') OVERLAPS (time '11:59', interval '1 hour') AS e,
    (timestamp '2020-01-01', NULL) OVERLAPS (timestamp '2019-01-01', timestamp '2021-01-01') AS f,
    (timestamp '2020-01-01', NULL) OVERLAPS (timestamp '2022-01-01', timestamp '2021-01-01') AS g,
    (timestamptz '2020-01-01 00:00Z', timestamptz '2020-01-02 00:00Z')
        OVERLAPS (timestamptz '2020-01-02 00:00Z', timestamptz '2020-01-03 00:00Z') AS h,
    (timestamp '2020-01-01', NULL) OVERLAPS (timestamp '2019-01-01', timestamp '2019-02-01') AS i,
    (NULL::timestamp, NULL) OVERLAPS (timestamp '2019-01-01', timestamp '2019-02-01') AS j;
\set VERBOSITY sqlstate
SELECT (1, 2) OVERLAPS (3, 4, 5);
\set VERBOSITY default
-- Grouping.
SELECT a, b, count(*) FROM t GROUP BY DISTINCT ROLLUP (a, b), ROLLUP (a, c) ORDER BY 1, 2, 3;
SELECT a, b, count(*) FROM t GROUP BY GROUPING SETS (ROLLUP (a, b), CUBE (a, b), ()) ORDER BY 1, 2, 3;
SELECT a FROM t ORDER BY a FETCH FIRST NULL ROWS WITH TIES;
BEGIN;
DECLARE c CURSOR WITH HOLD FOR SELECT * FROM t FOR UPDATE;
ROLLBACK;
-- Values.
SELECT regr_count(y, x) FROM (VALUES (1e300::float8, 1e300::float8), (2, 3), (NULL, 1)) v (y, x);
SELECT percentile_disc(array[[0.1, 0.5], [0.9, 1]]) WITHIN GROUP (ORDER BY x) AS a,
    percentile_cont(array[[0, 0.25], [0.5, NULL]]) WITHIN GROUP (ORDER BY x) AS b
    FROM generate_series(1, 10) x;
SELECT power(-1::float8, 1e308::float8) AS a, power(-1::float8, 3::float8) AS b;
SELECT power('-Infinity'::numeric, -189.44);
SELECT power('-Infinity'::numeric, -3) AS a, power('-Infinity'::numeric, 3) AS b;
SELECT '[' || to_char(123, '99.') || ']' AS a, '[' || to_char(12, '99.') || ']' AS b,
    '[' || to_char(123, '99D') || ']' AS c, '[' || to_char(1234, 'FM99.9') || ']' AS d;
SELECT to_timestamp('2020-02-29', 'YYYYMMDD') AS a, to_date('2020-00-10', 'YYYY-MM-DD') AS b,
    to_date('2020-000', 'YYYY-DDD') AS c;
\set VERBOSITY sqlstate
SELECT chr(-7);
SELECT chr(0);
\set VERBOSITY default
-- Generated columns.
CREATE TABLE g (a text, n int, b int GENERATED ALWAYS AS (num_nulls(a, n)) STORED,
    c text GENERATED ALWAYS AS (regexp_replace(a, 'x+', 'y')) STORED,
    d text GENERATED ALWAYS AS (quote_literal(n)) STORED);
INSERT INTO g VALUES ('axxb', NULL), (NULL, 7) RETURNING *;
-- A definition that may fail.
DO $$ BEGIN
    CREATE TYPE mood AS ENUM ('sad', 'ok');
EXCEPTION
    WHEN duplicate_object THEN null;
END $$;
DO 'BEGIN CREATE TYPE mood AS ENUM (''sad''); EXCEPTION WHEN duplicate_object THEN null; END';
SELECT enum_range(NULL::mood);
BEGIN;
DO $$ BEGIN ALTER TABLE t ADD CONSTRAINT positive CHECK (a > 0); EXCEPTION WHEN duplicate_object THEN null; END $$;
DO $$ BEGIN ALTER TABLE t ADD CONSTRAINT positive CHECK (a > 0); EXCEPTION WHEN duplicate_object THEN null; END $$;
INSERT INTO t VALUES (-1);
ROLLBACK;
\set VERBOSITY sqlstate
DO $$ BEGIN CREATE TABLE t (a int); EXCEPTION WHEN duplicate_object THEN null; END $$;
\set VERBOSITY default
CREATE TYPE color AS ENUM ($pga$red$pga$, $$blue$$);
COMMENT ON TYPE color IS $$it's a color$$;
SELECT enum_range(NULL::color), $$it's$$ AS text;
-- Identity columns with a name for their sequence.
CREATE TABLE v (id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY
    (sequence name "v_own" INCREMENT BY 2 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1), a int);
INSERT INTO v (a) VALUES (1), (2) RETURNING id;
SELECT pg_get_serial_sequence('v', 'id');
CREATE TABLE w (a varchar(20) array, b int ARRAY);
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'w'::regclass AND attnum > 0;
-- Settings of an application.
SET app.tenant = '7';
SELECT current_setting('app.tenant'), current_setting('app.none', true);
SELECT current_setting('app.none');
SHOW app.tenant;
BEGIN;
SET LOCAL app.tenant = '8';
SELECT current_setting('app.tenant') FROM t WHERE a = 5;
COMMIT;
SELECT current_setting('app.tenant') FROM t WHERE a = 5;
WITH s AS (SELECT set_config('app.tenant', '9', false) AS v) SELECT v FROM s;
SELECT current_setting('app.tenant');
RESET app.tenant;
SELECT current_setting('app.tenant') = '' AS is_empty;
-- What drivers and tools ask.
SELECT word, catcode, barelabel, catdesc, baredesc FROM pg_get_keywords() WHERE word < 'all' ORDER BY word;
SELECT string_agg(word, ',') FROM pg_catalog.pg_get_keywords() WHERE word LIKE 'x%' AND word <> ALL ('{xml,year}'::text[]);
SELECT relname FROM pg_catalog.pg_statio_all_tables WHERE schemaname = 'public' ORDER BY relname;
SELECT ('"' || 'pg_catalog' || '"."' || 'int4' || '"')::regtype::text;
CREATE TABLE ck (a int CHECK (a IN (1, 2)), s text, CONSTRAINT both_checked CHECK (s > 'a' AND a > 0));
SELECT column_name, constraint_name FROM information_schema.constraint_column_usage
    WHERE table_name = 'ck' ORDER BY 2, 1;
