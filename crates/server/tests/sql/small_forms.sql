-- The distance of the zone UTC, and what has none.
SELECT extract(timezone FROM timestamptz '2024-07-01 12:00+05');
SELECT extract(timezone FROM timestamp '2024-07-01 12:00');
SELECT extract(timezone_hour FROM time '12:00');
-- avg of intervals.
SELECT avg(i), sum(i), count(i) FROM (VALUES (interval '1 day'), (interval '2 days 3 hours'), (NULL)) v(i);
SELECT g, avg(i) FROM (VALUES (1, interval '1 month'), (1, '2 days'), (2, '-00:00:01')) v(g, i) GROUP BY g ORDER BY g;
SELECT avg(i) FROM (SELECT interval '1 day' WHERE false) v(i);
SELECT g, avg(i) OVER (ORDER BY g) FROM (VALUES (1, interval '1 hour'), (2, '2 hours')) v(g, i) ORDER BY g;
-- Rows of functions beside the rows of a query.
CREATE TABLE pairs (a int, b int);
INSERT INTO pairs VALUES (1, 1), (2, NULL);
SELECT g FROM generate_series(1, 3) g WHERE row(g, g) <> ALL (SELECT a, b FROM pairs WHERE b IS NOT NULL) ORDER BY g;
SELECT g FROM generate_series(1, 3) g WHERE row(g, g) = ANY (SELECT a, b FROM pairs) ORDER BY g;
SELECT g FROM generate_series(1, 3) g WHERE row(g, g) IN (SELECT a, b FROM pairs) ORDER BY g;
SELECT g FROM generate_series(1, 3) g WHERE row(g) NOT IN (SELECT a FROM pairs) ORDER BY g;
-- Dates with a word that says nothing.
SELECT date 'on-2024-01-02';
SELECT date 'at/01/02/2024';
SELECT date 'on 2024-01-02';
-- Arrays of other dimensions.
SELECT array_cat('{{1,2}}'::int[], ARRAY[3, 4]), ARRAY[1, 2] || '{{3,4}}'::int[];
SELECT array_cat('{{1,2}}'::int[], ARRAY[3]);
SELECT interval '9223372036854775807 us';
-- The length of a column of VALUES is one that all have.
CREATE TABLE of_values AS VALUES ('a'::varchar(3), 1.5::numeric(4, 1)), ('bcdef'::varchar(5), 2.25::numeric(4, 2));
INSERT INTO of_values VALUES ('longer than that', 1.125);
SELECT * FROM of_values;
-- NOT binds weaker than IS and comparisons.
SELECT NOT EXISTS (SELECT 1) IS NULL, NOT EXISTS (SELECT 1) ISNULL, NOT EXISTS (SELECT 1) IS NOT NULL, NOT EXISTS (SELECT 1 WHERE false) <= true, NOT EXISTS (SELECT 1) IS DISTINCT FROM NULL;
SELECT a ISNULL ISNULL, a ISNULL FROM (VALUES (1), (NULL)) v(a);
-- NULLs in a list are not looked at for each row.
CREATE TABLE with_nulls (id int PRIMARY KEY, a int);
INSERT INTO with_nulls SELECT i, CASE WHEN i <= 2000 THEN i END FROM generate_series(1, 3000) i;
DELETE FROM with_nulls WHERE id + 5000 NOT IN (SELECT a FROM with_nulls) OR id + 5000 IN (SELECT a FROM with_nulls);
SELECT count(*), count(*) FILTER (WHERE (id + 5000 IN (SELECT a FROM with_nulls)) IS NULL), count(*) FILTER (WHERE (id, 1) IN (SELECT a, 1 FROM with_nulls WHERE id < 10)), count(*) FILTER (WHERE ((id, 2) IN (SELECT a, 2 FROM with_nulls WHERE id > 1999)) IS NULL), count(*) FILTER (WHERE ((id, 2) IN (SELECT a, 1 FROM with_nulls WHERE id > 1999)) IS NULL) FROM with_nulls WHERE id % 100 = 1;
DROP TABLE with_nulls;
-- Collations by bytes, with their schema as dumps have it.
CREATE TABLE collated (a text COLLATE pg_catalog."C" PRIMARY KEY, b text COLLATE "POSIX");
CREATE INDEX ON collated (b COLLATE pg_catalog."C");
INSERT INTO collated VALUES ('b', 'B'), ('B', 'a');
SELECT a FROM collated ORDER BY a;
DROP TABLE collated;
