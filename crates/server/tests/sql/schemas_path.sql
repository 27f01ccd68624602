-- Where names without a schema are looked for: search_path.
SHOW search_path;
SELECT current_schema(), current_schemas(false), current_schemas(true);
CREATE SCHEMA a;
CREATE SCHEMA b;
CREATE TABLE t (x text);
INSERT INTO t VALUES ('public');
SET search_path TO a, b;
SHOW search_path;
SELECT current_schema(), current_schemas(false), current_schemas(true);
CREATE TABLE t (x text);
INSERT INTO t VALUES ('a');
CREATE TABLE b.t (x text);
INSERT INTO b.t VALUES ('b');
CREATE TABLE b.only_b (x text, y serial);
INSERT INTO only_b VALUES ('only') RETURNING *;
SELECT * FROM t;
SELECT 't'::regclass, 'b.t'::regclass, 'public.t'::regclass, 'only_b'::regclass;
PREPARE asked AS SELECT * FROM t;
EXECUTE asked;
SET search_path TO b, a;
EXECUTE asked;
SELECT * FROM t;
SELECT 't'::regclass, 'a.t'::regclass;
SET search_path = public;
EXECUTE asked;
SELECT * FROM only_b;
RESET search_path;
SELECT * FROM t;
-- Missing schemas are passed over.
SET search_path TO nothing, a;
SELECT current_schema(), current_schemas(true);
SELECT * FROM t;
SET search_path TO nothing;
SELECT current_schema(), current_schemas(true);
SELECT * FROM t;
CREATE TABLE u (x int);
CREATE TYPE u AS ENUM ('x');
CREATE SEQUENCE u;
CREATE VIEW u AS SELECT 1;
CREATE TABLE u AS SELECT 1;
SELECT relname FROM pg_class WHERE relname = 'pg_class';
SET search_path TO '';
SHOW search_path;
SELECT 'public.t'::regclass, 'pg_class'::regclass, 'information_schema.tables'::regclass;
SET search_path TO "A b", "$user", public;
SHOW search_path;
CREATE SCHEMA "A b";
SELECT current_schema();
CREATE SCHEMA nvcaracal;
SET SCHEMA 'a';
SHOW search_path;
SET search_path TO DEFAULT;
SELECT current_schema(), current_schemas(true);
CREATE TABLE mine (x int);
SELECT relnamespace::regnamespace FROM pg_class WHERE relname = 'mine';
DROP SCHEMA nvcaracal CASCADE;
SELECT current_schema();
-- A path of a block.
BEGIN;
SET LOCAL search_path TO a;
SELECT * FROM t;
CREATE TABLE made (x int PRIMARY KEY);
INSERT INTO made VALUES (1);
INSERT INTO t VALUES ('more');
SAVEPOINT s;
SET LOCAL search_path TO b;
INSERT INTO t VALUES ('rolled back');
SELECT current_schema();
ROLLBACK TO s;
SELECT current_schema();
COMMIT;
SELECT current_schema();
SELECT * FROM a.t ORDER BY x;
SELECT * FROM b.t ORDER BY x;
SELECT * FROM a.made;
SELECT * FROM made;
SELECT set_config('search_path', 'b, public', false);
SELECT * FROM t;
SELECT set_config('search_path', 'b public', false);
-- The system's relations are found where the path says.
SET search_path TO information_schema;
SELECT schema_name FROM schemata WHERE schema_name = 'a';
SET search_path TO b, pg_catalog;
CREATE TABLE b.pg_class (x text);
SELECT * FROM pg_class;
SELECT 'pg_class'::regclass, 'pg_catalog.pg_class'::regclass;
RESET search_path;
SELECT count(*) > 10 FROM pg_class;
DROP TABLE b.pg_class;
-- Types and views keep what they were made of.
SET search_path TO a;
CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE TABLE moods (m mood DEFAULT 'happy' CHECK (m <> 'sad'));
CREATE VIEW v AS SELECT t.x, 'sad'::mood AS m FROM t;
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'moods'::regclass;
RESET search_path;
SELECT * FROM a.v ORDER BY x;
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'a.moods'::regclass;
INSERT INTO a.moods DEFAULT VALUES RETURNING *;
INSERT INTO a.moods VALUES ('sad');
CREATE VIEW w AS SELECT x FROM t;
SET search_path TO b;
SELECT * FROM public.w;
SELECT * FROM a.v ORDER BY x;
\d a.t
\d a.moods
\d a.made
\dn
\dt
\dt a.*
\dt *.t
\dT a.*
\di a.*
\ds b.*
\dv a.*
SET search_path TO a, b, public;
\dt
\d
\d only_b
LOCK TABLE b.t;
VACUUM b.t;
ANALYZE a.t, only_b;
VACUUM b.nothing;
COPY b.t FROM STDIN;
copied
\.
COPY a.t TO STDOUT;
COPY only_b (x) TO STDOUT;
SET search_path TO b;
COPY t TO STDOUT;
COPY nothing.t TO STDOUT;
RESET search_path;
\set VERBOSITY terse
-- Schemas go with what is in them, and what depends on that.
CREATE SCHEMA gone;
CREATE TABLE gone.parent (id int PRIMARY KEY);
CREATE TABLE gone.child (id serial, p int REFERENCES gone.parent);
CREATE VIEW gone.v AS SELECT id FROM gone.child;
CREATE VIEW outside AS SELECT id FROM gone.v;
CREATE TYPE gone.kind AS ENUM ('x');
CREATE SEQUENCE gone.numbers;
CREATE TABLE stays (id int REFERENCES gone.parent, k gone.kind, x int);
DROP SCHEMA gone;
DROP SCHEMA gone, b CASCADE;
\d stays
SELECT * FROM outside;
DROP SCHEMA public CASCADE;
CREATE TABLE t (id int);
SELECT current_schema();
CREATE SCHEMA public;
CREATE TABLE t (id int);
INSERT INTO t VALUES (1) RETURNING *;
ALTER SCHEMA public RENAME TO before;
SELECT * FROM before.t;
SELECT * FROM t;
CREATE SCHEMA public;
CREATE TABLE t (x text);
SELECT * FROM t;
\dt *.t
