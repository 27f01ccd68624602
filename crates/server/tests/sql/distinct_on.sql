-- DISTINCT ON: the first row of each set with equal values.
CREATE TABLE reading (id int PRIMARY KEY, place text, at int, value numeric, note varchar(8));
CREATE INDEX reading_by_place ON reading (place);
INSERT INTO reading VALUES (1, 'b', 10, 1.5, 'x'), (2, 'a', 12, 2.50, 'y'), (3, 'a', 11, 3, NULL),
    (4, NULL, 5, 4, 'z'), (5, 'b', 20, NULL, 'x'), (6, NULL, 6, 1.50, NULL), (7, 'c', 1, 9, 'q');

SELECT DISTINCT ON (place) place, at, id FROM reading ORDER BY place, at DESC;
SELECT DISTINCT ON (place) id FROM reading ORDER BY place DESC NULLS LAST, id;
SELECT DISTINCT ON (1) place AS p, max(at) FROM reading GROUP BY place ORDER BY p;
SELECT DISTINCT ON (p) place AS p, id FROM reading ORDER BY p, id DESC LIMIT 2 OFFSET 1;
SELECT DISTINCT ON (note, place) note, place, id FROM reading ORDER BY place, note, id;
SELECT DISTINCT ON (value) value, id FROM reading ORDER BY value, id;
SELECT DISTINCT ON (at % 2) at, note FROM reading ORDER BY at % 2, at;
SELECT DISTINCT ON (place, place) place, id FROM reading ORDER BY place, id;
SELECT DISTINCT ON (place) place, count(*) OVER (PARTITION BY place) AS n, id FROM reading ORDER BY place, id DESC;
SELECT DISTINCT ON (row_number() OVER (ORDER BY id) / 3) id FROM reading ORDER BY row_number() OVER (ORDER BY id) / 3, id;
SELECT DISTINCT ON (a.place) a.place, b.id FROM reading a JOIN reading b ON b.place = a.place AND b.id > a.id ORDER BY a.place, b.id DESC;
SELECT x.id FROM (SELECT DISTINCT ON (place) id, place FROM reading ORDER BY place, at) x WHERE x.place IS NOT NULL ORDER BY 1;
SELECT DISTINCT ON (place) 'one', NULL, place FROM reading ORDER BY place;
SELECT DISTINCT ON (place) place, id FROM reading WHERE place = 'a' ORDER BY place, id;
(SELECT DISTINCT ON (place) id FROM reading ORDER BY place, id) UNION ALL SELECT 100 ORDER BY 1;
SELECT id, (SELECT DISTINCT ON (b.place) b.id FROM reading b WHERE b.place = a.place ORDER BY b.place, b.at DESC) FROM reading a ORDER BY id;
SELECT count(*) FROM (SELECT DISTINCT ON (place) * FROM reading) x;

SELECT DISTINCT ON (place) place, id FROM reading ORDER BY id;
SELECT DISTINCT ON (place, note) place, id FROM reading ORDER BY place, id, note;
SELECT DISTINCT ON (place, note) place, id FROM reading ORDER BY place, id;
SELECT DISTINCT ON (5) place FROM reading;
SELECT DISTINCT ON (nothing) place FROM reading;

CREATE TABLE latest (place text PRIMARY KEY, id int);
INSERT INTO latest SELECT DISTINCT ON (place) place, id FROM reading WHERE place IS NOT NULL ORDER BY place, at DESC;
SELECT * FROM latest ORDER BY place;
-- A column twice in ORDER BY, which says nothing the second time.
SELECT DISTINCT ON (place) place, id FROM reading ORDER BY place, at, place DESC;
SELECT DISTINCT ON (place) place, id FROM reading ORDER BY place, place, id;
SELECT DISTINCT ON (place, note) place, note, id FROM reading ORDER BY note, place, note DESC, id;
SELECT DISTINCT ON (place, note) place, note, id FROM reading ORDER BY place, place, id, note;
SELECT place, id FROM reading ORDER BY place, place DESC, id DESC, place;
SELECT DISTINCT place FROM reading ORDER BY place DESC, place;
