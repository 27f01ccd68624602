-- A sequence in FROM, and what it gave last.
CREATE SEQUENCE plain;
SELECT last_value, is_called FROM plain;
SELECT nextval('plain'), nextval('plain');
SELECT last_value, is_called FROM plain;
SELECT setval('plain', 50, false);
SELECT last_value, is_called FROM plain;
SELECT setval('plain', 70);
SELECT p.last_value, p.is_called FROM public.plain AS p;
CREATE SEQUENCE down INCREMENT BY -5 START 100 MAXVALUE 1000 MINVALUE -1000;
SELECT last_value, is_called FROM down;
SELECT nextval('down'), nextval('down');
SELECT last_value, is_called FROM down;
CREATE TABLE counted (id serial PRIMARY KEY, other int GENERATED ALWAYS AS IDENTITY, note text);
INSERT INTO counted (note) VALUES ('a'), ('b'), ('c');
SELECT last_value, is_called FROM counted_id_seq;
SELECT last_value, is_called FROM counted_other_seq;
SELECT pg_sequence_last_value('counted_id_seq'::regclass), pg_sequence_last_value('plain'::regclass);
SELECT sum(last_value) FROM (SELECT last_value FROM plain UNION ALL SELECT last_value FROM down) AS both_of_them;
SELECT c.note FROM counted c, counted_id_seq s WHERE c.id = s.last_value;
SELECT count(*) FROM plain;
SELECT nothing FROM plain;
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SELECT last_value, is_called FROM counted_id_seq;
COMMIT;
DROP TABLE counted;
DROP SEQUENCE plain, down;
-- What pg_dump asks of defaults: it states one that takes numbers behind its sequence.
CREATE SEQUENCE far;
CREATE TABLE taking (id serial, other int DEFAULT nextval('far'), plain int DEFAULT 7);
SELECT d.classid::regclass, a.adnum, d.refclassid::regclass, d.refobjid::regclass, d.refobjsubid, d.deptype FROM pg_depend d JOIN pg_attrdef a ON a.oid = d.objid AND d.classid = 'pg_attrdef'::regclass WHERE a.adrelid = 'taking'::regclass ORDER BY 2, 6;
SELECT pg_typeof(x) FROM (SELECT oid FROM pg_class WHERE relname = 'taking' UNION ALL SELECT 'pg_class'::regclass) AS s (x) LIMIT 1;
SELECT pg_typeof(x) FROM (SELECT 'pg_class'::regclass UNION ALL SELECT oid FROM pg_class WHERE relname = 'taking') AS s (x) LIMIT 1;
DROP TABLE taking;
-- Views depend on what they select from.
CREATE TABLE base (a int, b int, c int);
CREATE VIEW over_it AS SELECT a FROM base WHERE c = 1;
SELECT r.rulename, r.ev_type, r.is_instead, d.classid::regclass, d.refobjid::regclass, d.refobjsubid, d.deptype FROM pg_rewrite r JOIN pg_depend d ON d.objid = r.oid AND d.classid = 'pg_rewrite'::regclass WHERE r.ev_class = 'over_it'::regclass ORDER BY 5, 6, 7;
DROP TABLE base CASCADE;
