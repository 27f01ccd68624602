CREATE TABLE thing (id serial PRIMARY KEY, name text, place bigint GENERATED ALWAYS AS IDENTITY);
INSERT INTO thing (name) VALUES ('a'), ('b');
SELECT setval('thing_id_seq', 41);
INSERT INTO thing (name) VALUES ('c') RETURNING id;
SELECT setval('thing_id_seq', 100, false);
INSERT INTO thing (name) VALUES ('d') RETURNING id;
SELECT setval('public.thing_id_seq', (SELECT max(id) + 5 FROM thing), true) AS last;
INSERT INTO thing (name) VALUES ('e') RETURNING id;
SELECT pg_catalog.setval('thing_id_seq'::regclass, 7);
INSERT INTO thing (name) VALUES ('f') RETURNING id;
-- As Django says it.
SELECT setval(pg_get_serial_sequence('"thing"', 'place'), coalesce(max("place"), 1),
    max("place") IS NOT null) FROM "thing";
INSERT INTO thing (name) VALUES ('g') RETURNING place;
DELETE FROM thing;
SELECT setval(pg_get_serial_sequence('"thing"', 'place'), coalesce(max("place"), 1),
    max("place") IS NOT null) FROM "thing";
INSERT INTO thing (name) VALUES ('h') RETURNING place;
-- Of rows, one after the other.
CREATE SEQUENCE numbers MAXVALUE 6 CYCLE;
SELECT setval('numbers', n) FROM generate_series(2, 3) n;
SELECT nextval('numbers');
SELECT setval('numbers', n) FROM generate_series(2, 3) n WHERE n > 5;
SELECT nextval('numbers');
SELECT setval('numbers', 6);
SELECT nextval('numbers');
CREATE SEQUENCE down INCREMENT -2 MAXVALUE 10;
SELECT setval('down', 3);
SELECT nextval('down');
SELECT setval('down', NULL);
SELECT setval('down', 5, NULL);
SELECT nextval('down');
ALTER SEQUENCE down INCREMENT 3;
SELECT nextval('down');
