-- COPY of temporary tables, and many rows in them.
\set VERBOSITY terse
CREATE TEMP TABLE t (a int PRIMARY KEY, b text);
COPY t FROM stdin;
1	one
2	two
3	\N
\.
COPY t TO stdout;
COPY (SELECT b FROM t WHERE a < 3 ORDER BY a) TO stdout WITH (FORMAT csv);
COPY t FROM stdin;
4	four
1	again
\.
SELECT count(*) FROM t;
BEGIN;
COPY t (a) FROM stdin;
10
11
\.
SELECT * FROM t ORDER BY a DESC LIMIT 3;
ROLLBACK;
SELECT count(*) FROM t;
INSERT INTO t SELECT g, repeat('x', 20) FROM generate_series(100, 20099) g;
SELECT count(*), sum(a), min(b), max(b) FROM t WHERE a >= 100;
SELECT a FROM t ORDER BY a DESC LIMIT 2;
CREATE INDEX t_b ON t (b, a);
SELECT a FROM t WHERE b = 'two';
UPDATE t SET b = 'even' WHERE a % 2 = 0;
SELECT b, count(*) FROM t GROUP BY b ORDER BY b;
DELETE FROM t WHERE a > 200;
SELECT count(*) FROM t;
CREATE TABLE logged (a int PRIMARY KEY, b text);
INSERT INTO logged SELECT * FROM t;
SELECT count(*), sum(a) FROM logged;
CREATE TEMP TABLE u AS SELECT * FROM logged WHERE a < 3;
BEGIN;
UPDATE t SET b = 'block' WHERE a < 3;
UPDATE logged SET b = t.b FROM t WHERE t.a = logged.a AND t.a < 3;
DELETE FROM t WHERE a = 1;
INSERT INTO logged SELECT t.a + 1000, t.b FROM t JOIN u ON u.a = t.a;
COMMIT;
SELECT * FROM logged WHERE a < 3 OR a > 1000 ORDER BY a;
SELECT * FROM t WHERE a < 4 ORDER BY a;
DROP TABLE t, u;
CREATE TEMP TABLE many AS SELECT g AS a, g % 10 AS b FROM generate_series(1, 120000) g;
BEGIN;
CREATE TEMP TABLE most AS SELECT a, b FROM many WHERE a > 5000;
CREATE INDEX most_b ON most (b);
COMMIT;
SELECT b, count(*), max(a) FROM most WHERE b < 2 GROUP BY b ORDER BY b;
