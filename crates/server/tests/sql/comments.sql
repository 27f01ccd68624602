-- COMMENT ON: kept with its object, shown by psql and by the functions, gone with its object.
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE a (id serial PRIMARY KEY, b int UNIQUE, c text, CONSTRAINT positive CHECK (b > 0));
CREATE TABLE child (a_id int NOT NULL PRIMARY KEY REFERENCES a (id));
CREATE INDEX a_c ON a (c);
CREATE SEQUENCE numbers;
CREATE VIEW v AS SELECT id, b FROM a;
COMMENT ON TABLE a IS 'a table';
COMMENT ON COLUMN a.b IS E'a col\'umn';
COMMENT ON COLUMN public.a.c IS $$dollars$$;
COMMENT ON COLUMN v.id IS 'of a view';
COMMENT ON INDEX a_c IS 'an index';
COMMENT ON INDEX a_pkey IS 'index of a key';
COMMENT ON CONSTRAINT positive ON a IS 'more than 0';
COMMENT ON CONSTRAINT a_pkey ON a IS 'key';
COMMENT ON CONSTRAINT a_b_key ON public.a IS 'unique';
COMMENT ON CONSTRAINT child_a_id_fkey ON child IS 'refers';
COMMENT ON SEQUENCE numbers IS 'numbers';
COMMENT ON VIEW v IS 'a view';
COMMENT ON TYPE mood IS 'moods';
COMMENT ON SCHEMA public IS 'what users made';
\d+ a
\dd
SELECT obj_description('a'::regclass), obj_description('a'::regclass, 'pg_class'), col_description('a'::regclass, 2);
SELECT obj_description('a'::regclass, 'pg_type'), col_description('a'::regclass, 1), col_description('a'::regclass, 9);
SELECT conname, obj_description(oid, 'pg_constraint') FROM pg_constraint WHERE conrelid IN ('a'::regclass, 'child'::regclass) ORDER BY 1;
SELECT obj_description('mood'::regtype, 'pg_type'), obj_description('public'::regnamespace, 'pg_namespace');
SELECT c.relname, d.objsubid, d.description FROM pg_description d JOIN pg_class c ON c.oid = d.objoid AND d.classoid = 'pg_class'::regclass WHERE c.relnamespace = 'public'::regnamespace ORDER BY 1, 2;
-- What is wrong.
COMMENT ON TABLE nothing IS 'x';
COMMENT ON TABLE v IS 'x';
COMMENT ON VIEW a IS 'x';
COMMENT ON INDEX a IS 'x';
COMMENT ON SEQUENCE a IS 'x';
COMMENT ON TABLE a_c IS 'x';
COMMENT ON COLUMN a.nothing IS 'x';
COMMENT ON COLUMN nothing.a IS 'x';
COMMENT ON COLUMN b IS 'x';
COMMENT ON CONSTRAINT nothing ON a IS 'x';
COMMENT ON CONSTRAINT a_pkey ON nothing IS 'x';
COMMENT ON TYPE nothing IS 'x';
COMMENT ON SCHEMA nothing IS 'x';
\set VERBOSITY sqlstate
COMMENT ON TABLE a IS 3;
COMMENT ON TABLE a;
\set VERBOSITY default
-- Other names.
DROP VIEW v;
ALTER TABLE a RENAME TO d;
ALTER TABLE d RENAME COLUMN b TO e;
ALTER TABLE d RENAME CONSTRAINT positive TO above;
ALTER TABLE d RENAME CONSTRAINT a_pkey TO d_pkey;
ALTER INDEX a_c RENAME TO d_c;
ALTER SEQUENCE numbers RENAME TO counts;
ALTER TYPE mood RENAME TO temper;
SELECT obj_description('d'::regclass), col_description('d'::regclass, 2), obj_description('counts'::regclass), obj_description('temper'::regtype, 'pg_type');
SELECT conname, obj_description(oid, 'pg_constraint') FROM pg_constraint WHERE conrelid = 'd'::regclass ORDER BY 1;
SELECT relname, obj_description(oid) FROM pg_class WHERE relname IN ('d_c', 'd_pkey') ORDER BY 1;
-- They stay with other rows, other kinds, and other numbers.
TRUNCATE d, child;
ALTER TABLE d ALTER COLUMN c TYPE varchar(20);
ALTER SEQUENCE counts INCREMENT 3;
CREATE VIEW v AS SELECT id, e AS b FROM d;
COMMENT ON VIEW v IS 'a view';
COMMENT ON COLUMN v.id IS 'of a view';
CREATE OR REPLACE VIEW v AS SELECT id, e AS b, c FROM d;
SELECT obj_description('d'::regclass), col_description('d'::regclass, 3), obj_description('counts'::regclass), col_description('v'::regclass, 1), obj_description('v'::regclass);
-- They are replaced, removed, and go with their objects.
COMMENT ON TABLE d IS 'other';
COMMENT ON COLUMN d.e IS NULL;
COMMENT ON COLUMN d.c IS '';
COMMENT ON SCHEMA public IS NULL;
SELECT obj_description('d'::regclass), col_description('d'::regclass, 2), col_description('d'::regclass, 3), obj_description('public'::regnamespace, 'pg_namespace');
DROP VIEW v;
ALTER TABLE d DROP COLUMN c;
ALTER TABLE d DROP CONSTRAINT above, ADD CONSTRAINT above CHECK (e > 1);
DROP TABLE child;
DROP TYPE temper;
DROP SEQUENCE counts;
CREATE TABLE child (a int);
SELECT obj_description('child'::regclass), count(*) FROM pg_description WHERE description IN ('refers', 'moods', 'numbers', 'a view', 'of a view', 'more than 0', 'an index', 'dollars');
-- In blocks.
BEGIN;
COMMENT ON TABLE d IS 'in a block';
SELECT obj_description('d'::regclass);
SAVEPOINT s;
COMMENT ON TABLE d IS 'gone';
ROLLBACK TO s;
COMMIT;
SELECT obj_description('d'::regclass);
BEGIN;
COMMENT ON TABLE d IS NULL;
ROLLBACK;
SELECT obj_description('d'::regclass);
