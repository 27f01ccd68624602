\set VERBOSITY sqlstate
-- json
CREATE TABLE doc (id int PRIMARY KEY, body json);
INSERT INTO doc VALUES (1, '{"a": 1}');
INSERT INTO doc VALUES (7, '{"a": 1');
INSERT INTO doc VALUES (7, '');
UPDATE doc SET body = '[ 1 ]'::text WHERE id = 1;
SELECT json_build_object('a');
SELECT json_build_object(NULL, 1);
SELECT json_object_agg(NULL::text, 1);
SELECT body = body FROM doc;
SELECT DISTINCT body FROM doc;
SELECT body FROM doc ORDER BY body;
SELECT count(*) FROM doc GROUP BY body;
SELECT body FROM doc UNION SELECT body FROM doc;
SELECT min(body) FROM doc;
-- Views.
CREATE TABLE thing (id int PRIMARY KEY, name text, size int, note text);
CREATE VIEW large AS SELECT id, name AS title, size, size * 2 AS doubled FROM thing WHERE size > 10;
CREATE VIEW plain (key, label) AS SELECT id, name FROM thing;
INSERT INTO plain VALUES (4, 'd');
INSERT INTO plain VALUES (4, 'again');
INSERT INTO large (id, doubled) VALUES (10, 4);
INSERT INTO large (id, note) VALUES (10, 'z');
UPDATE large SET doubled = 2;
-- Views that are none.
CREATE VIEW counted AS SELECT size, count(*) FROM thing GROUP BY size;
CREATE VIEW once AS SELECT DISTINCT size FROM thing;
CREATE VIEW joined AS SELECT a.id, b.name FROM thing a JOIN thing b ON a.id = b.id;
CREATE VIEW few AS SELECT id FROM thing LIMIT 1;
CREATE VIEW both_of AS SELECT id FROM thing UNION ALL SELECT size FROM thing;
INSERT INTO counted VALUES (1, 2);
UPDATE once SET size = 1;
DELETE FROM joined;
UPDATE few SET id = 1;
DELETE FROM both_of;
-- setval
CREATE TABLE numbered (id serial);
CREATE SEQUENCE numbers MAXVALUE 6;
SELECT setval('numbers', 0);
SELECT setval('numbers', 7);
SELECT setval('numbered', 1);
SELECT setval('numbered_id_seq', 3000000000);
SELECT setval('nothing', 1);
-- String constants that no line end parts, or of which one is between dollars.
SELECT 'a' 'b';
SELECT 'a' /* no line ends */
'b';
SELECT $$a$$
'b';
