-- Members of queries that come to other rows for each row around them.
CREATE TABLE steps (id int PRIMARY KEY, part int, n int);
INSERT INTO steps VALUES (1, 1, 5), (2, 1, 5), (3, 1, 7), (4, 2, 5), (5, 2, 7), (6, 2, NULL), (7, 3, 7), (8, 3, 8), (9, 3, 7);
SELECT s.id FROM steps s WHERE s.n IN (SELECT o.n FROM steps o WHERE o.part = s.part AND o.id <> s.id) ORDER BY s.id;
SELECT s.id, s.n IN (SELECT o.n FROM steps o WHERE o.id > s.id), s.n NOT IN (SELECT o.n FROM steps o WHERE o.part > s.part) FROM steps s ORDER BY s.id;
SELECT s.id, s.n = ANY (SELECT o.n FROM steps o WHERE o.id < s.id), s.n = ALL (SELECT o.n FROM steps o WHERE o.part = s.part), (s.part, s.n) IN (SELECT o.part, o.n FROM steps o WHERE o.id > s.id) FROM steps s ORDER BY s.id;
SELECT s.id, CASE WHEN s.n + 0 = ANY (SELECT o.n + s.part - o.part FROM steps o WHERE o.id % 3 = s.id % 3) THEN 'in' ELSE 'out' END FROM steps s ORDER BY s.id DESC;
DROP TABLE steps;
