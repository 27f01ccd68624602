CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE "Odd One" AS ENUM ('a b');
CREATE TABLE person (id int PRIMARY KEY, current mood NOT NULL DEFAULT 'ok', all_of mood[], odd "Odd One", CHECK (current > 'sad'));
CREATE INDEX person_current ON person (current);
CREATE VIEW happy AS SELECT id, current FROM person WHERE current = 'happy';
ALTER TYPE mood ADD VALUE 'fine' BEFORE 'happy';
\dT
\dT+
\dT mood
\d person
\d happy
SELECT typname, typlen, typbyval, typtype, typcategory, typispreferred, typdelim, typinput, typoutput, typreceive, typsend, typalign, typstorage, typnamespace::regnamespace, typelem <> 0 AS has_element, typarray <> 0 AS has_array FROM pg_type WHERE typname IN ('mood', '_mood') ORDER BY typname;
SELECT t.typname, e.enumlabel, row_number() OVER (PARTITION BY t.oid ORDER BY e.enumsortorder) FROM pg_enum e JOIN pg_type t ON t.oid = e.enumtypid ORDER BY 1, 3;
SELECT column_name, data_type, udt_schema, udt_name, column_default FROM information_schema.columns WHERE table_name = 'person' ORDER BY ordinal_position;
SELECT 'mood'::regtype, '"Odd One"'::regtype, 'mood[]'::regtype, 'public.mood'::regtype, '_mood'::regtype;
SELECT pg_typeof('ok'::mood), pg_typeof(ARRAY['ok'::mood]);
SELECT to_regtype('mood'), to_regtype('nomood');
SELECT format_type('mood'::regtype, NULL), format_type('mood[]'::regtype, -1), format_type('"Odd One"'::regtype, -1);
SELECT name, array_agg(label) AS labels FROM (SELECT t.typname AS name, t.oid AS oid, t.typarray AS array_oid, e.enumlabel AS label FROM pg_type t LEFT JOIN pg_enum e ON e.enumtypid = t.oid WHERE t.oid = 'mood'::regtype ORDER BY e.enumsortorder) x GROUP BY name, oid, array_oid;
SELECT a.attname, format_type(a.atttypid, a.atttypmod), t.typtype FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid WHERE a.attrelid = 'person'::regclass AND a.attnum > 0 ORDER BY a.attnum;
SELECT opcname FROM pg_opclass WHERE opcname = 'enum_ops' AND opcmethod = (SELECT oid FROM pg_am WHERE amname = 'btree');
COPY person FROM STDIN;
1	ok	{sad,ok}	a b
2	happy	\N	\N
\.
COPY person (id, current) FROM STDIN (FORMAT csv);
3,fine
\.
COPY person (id, current) FROM STDIN;
4	glad
\.
COPY person TO STDOUT;
COPY (SELECT current, all_of FROM person ORDER BY current DESC) TO STDOUT (FORMAT csv);
BEGIN;
CREATE TYPE later AS ENUM ('a', 'b');
CREATE TABLE uses (l later PRIMARY KEY);
INSERT INTO uses VALUES ('b'), ('a');
SELECT * FROM uses ORDER BY l DESC;
COMMIT;
BEGIN;
ALTER TYPE later RENAME VALUE 'a' TO 'z';
ALTER TYPE later RENAME TO sooner;
SELECT * FROM uses ORDER BY l;
ROLLBACK;
SELECT * FROM uses ORDER BY l;
DROP TYPE later;
DROP TYPE later CASCADE;
DROP TYPE "Odd One" CASCADE;
\d person
\dT
CREATE TABLE timed (id int, a time, b time(3) DEFAULT '10:00', c time[]);
\d timed
SELECT column_name, data_type, datetime_precision, udt_name FROM information_schema.columns WHERE table_name = 'timed' ORDER BY ordinal_position;
SELECT typname, typlen, typcategory, typinput, typmodin, typalign FROM pg_type WHERE typname IN ('time', '_time') ORDER BY 1;
CREATE TABLE from_system AS SELECT nspname::text AS name FROM pg_namespace WHERE nspname = 'public';
SELECT * FROM from_system;
CREATE TABLE made AS SELECT id, a, 'x'::varchar(3) AS b, 1.5::numeric(4,2) AS c, now() AS d, NULL AS e FROM timed WITH NO DATA;
\d made
BEGIN;
CREATE TABLE in_block AS SELECT 1 AS a;
INSERT INTO in_block VALUES (2);
CREATE TABLE of_block AS SELECT a + 1 AS a FROM in_block;
COMMIT;
SELECT * FROM of_block ORDER BY a;
BEGIN;
SELECT a INTO gone FROM of_block;
ROLLBACK;
SELECT * FROM gone;
SELECT id, a INTO chosen FROM timed WHERE id > 1;
SELECT * FROM chosen ORDER BY id;
SELECT 1 AS a INTO TABLE public.single;
SELECT * FROM single;
SELECT 1 AS a INTO single;
CREATE TYPE cast_mood AS ENUM ('sad', 'glad');
CREATE CAST (varchar AS cast_mood) WITH INOUT AS IMPLICIT;
CREATE CAST (text AS cast_mood) WITH INOUT AS ASSIGNMENT;
CREATE CAST (cast_mood AS varchar) WITH INOUT;
SELECT castsource::regtype, casttarget::regtype, castfunc, castcontext, castmethod
    FROM pg_cast WHERE castsource = 'cast_mood'::regtype OR casttarget = 'cast_mood'::regtype ORDER BY 1, 2;
DROP CAST (varchar AS cast_mood);
DROP CAST (text AS cast_mood);
DROP TYPE cast_mood CASCADE;
SELECT typname, typlen, typtype, typcategory, typelem, typarray, typinput, typreceive, typalign, typstorage FROM pg_type WHERE typname LIKE '%record' AND typname <> '_pg_record' ORDER BY oid;
SELECT pg_typeof(ROW(1)), 'record'::regtype, format_type(2287, NULL);
