-- The last numbers of sequences, for all of them.
\pset null none
CREATE SEQUENCE plain;
CREATE SEQUENCE down INCREMENT -2 MAXVALUE 10 START 10;
CREATE TABLE counted (id serial, other int GENERATED ALWAYS AS IDENTITY (START 5));
SELECT sequencename, last_value FROM pg_sequences ORDER BY 1;
SELECT nextval('plain'), nextval('plain'), nextval('down');
INSERT INTO counted DEFAULT VALUES;
SELECT setval('counted_id_seq', 40);
SELECT sequencename, last_value, start_value, increment_by FROM pg_sequences ORDER BY 1;
SELECT setval('plain', 9, false);
SELECT last_value FROM pg_sequences WHERE sequencename = 'plain';
DROP TABLE counted;
DROP SEQUENCE plain, down;
\set VERBOSITY sqlstate
