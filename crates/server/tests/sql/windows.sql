-- Window functions.
CREATE TABLE pay (id int PRIMARY KEY, dept text, name text, pay int, since date, bonus numeric(6,2), score float8);
CREATE INDEX pay_by_dept ON pay (dept);
INSERT INTO pay VALUES (1, 'a', 'Ann', 100, '2020-01-10', 1.50, 1.5), (2, 'a', 'Bob', 80, '2021-03-01', NULL, 2.25),
    (3, 'b', 'Cid', 90, '2020-06-15', 2.00, -1), (4, 'a', 'Dan', 80, '2019-11-30', 0.25, NULL),
    (5, 'b', 'Eve', NULL, NULL, 3.10, 7), (6, 'c', 'Fay', 70, '2022-02-02', NULL, 2.25), (7, 'b', 'Gus', 90, '2020-06-20', 1, 0),
    (8, NULL, 'Hal', 60, '2018-01-01', 5, 3), (9, NULL, NULL, 65, '2018-01-03', 5, 4);

-- Ranks.
SELECT id, row_number() OVER (ORDER BY pay DESC NULLS LAST, id) FROM pay ORDER BY id;
SELECT id, rank() OVER (ORDER BY pay), dense_rank() OVER (ORDER BY pay), percent_rank() OVER (ORDER BY pay), cume_dist() OVER (ORDER BY pay) FROM pay ORDER BY id;
SELECT id, rank() OVER (PARTITION BY dept ORDER BY pay DESC), row_number() OVER (PARTITION BY dept ORDER BY pay DESC, id) FROM pay ORDER BY id;
SELECT id, rank() OVER (), dense_rank() OVER (PARTITION BY dept), percent_rank() OVER (), cume_dist() OVER () FROM pay ORDER BY id;
SELECT id, ntile(4) OVER (ORDER BY id), ntile(2) OVER (PARTITION BY dept ORDER BY id), ntile(100) OVER (ORDER BY id), ntile(NULL) OVER () FROM pay ORDER BY id;

-- Other rows.
SELECT id, lag(id) OVER (ORDER BY id), lead(id) OVER (ORDER BY id), lag(name, 2) OVER (ORDER BY id), lead(pay, 2, -1) OVER (PARTITION BY dept ORDER BY id) FROM pay ORDER BY id;
SELECT id, lag(pay, id - 3, 0) OVER (ORDER BY id), lag(pay, NULL) OVER (ORDER BY id), lead(id, -1) OVER (ORDER BY id), lag(pay, 1, 2.5) OVER (ORDER BY id) FROM pay ORDER BY id;
SELECT id, first_value(name) OVER (PARTITION BY dept ORDER BY pay DESC, id), last_value(id) OVER (PARTITION BY dept ORDER BY pay), nth_value(id, 2) OVER (PARTITION BY dept ORDER BY id) FROM pay ORDER BY id;
SELECT id, last_value(id) OVER (PARTITION BY dept ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING), nth_value(id, id) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM pay ORDER BY id;

-- Aggregates.
SELECT id, sum(pay) OVER (), count(*) OVER (PARTITION BY dept), avg(pay) OVER (PARTITION BY dept), max(since) OVER (PARTITION BY dept), min(name) OVER () FROM pay ORDER BY id;
SELECT id, sum(pay) OVER (ORDER BY id), sum(pay) OVER (ORDER BY pay), count(pay) OVER (ORDER BY dept), sum(bonus) OVER (PARTITION BY dept ORDER BY id) FROM pay ORDER BY id;
SELECT id, string_agg(name, ',') OVER (ORDER BY id), array_agg(id) OVER (PARTITION BY dept ORDER BY id) FROM pay ORDER BY id;
SELECT id, bool_and(pay > 70) OVER (PARTITION BY dept), bool_or(pay > 95) OVER (PARTITION BY dept), count(*) FILTER (WHERE pay > 75) OVER (ORDER BY id) FROM pay ORDER BY id;
SELECT id, sum(score) OVER (ORDER BY id), avg(score) OVER (ORDER BY id ROWS 1 PRECEDING), jsonb_agg(id) OVER (PARTITION BY dept ORDER BY id) FROM pay ORDER BY id;
SELECT id, pay - avg(pay) OVER (PARTITION BY dept) AS above, 100 * pay / sum(pay) OVER () AS part FROM pay ORDER BY id;

-- Frames.
SELECT id, sum(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING), sum(id) OVER (ORDER BY id ROWS 2 PRECEDING), sum(id) OVER (ORDER BY id ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING), sum(id) OVER (ORDER BY id ROWS BETWEEN 3 PRECEDING AND 2 PRECEDING) FROM pay ORDER BY id;
SELECT id, sum(id) OVER (ORDER BY id ROWS CURRENT ROW), sum(id) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING), count(*) OVER (ORDER BY id ROWS BETWEEN 1 FOLLOWING AND 0 FOLLOWING), sum(id) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) FROM pay ORDER BY id;
SELECT id, array_agg(id) OVER (ORDER BY pay, id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM pay ORDER BY id;
SELECT id, count(*) OVER (ORDER BY pay GROUPS 1 PRECEDING), sum(id) OVER (ORDER BY pay GROUPS BETWEEN CURRENT ROW AND 1 FOLLOWING), sum(id) OVER (ORDER BY pay GROUPS BETWEEN 2 PRECEDING AND 1 PRECEDING), sum(id) OVER (ORDER BY pay GROUPS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) FROM pay ORDER BY id;
SELECT id, pay, count(*) OVER (ORDER BY pay RANGE BETWEEN 10 PRECEDING AND 10 FOLLOWING), sum(pay) OVER (ORDER BY pay DESC RANGE BETWEEN 15 PRECEDING AND CURRENT ROW), count(*) OVER (ORDER BY pay RANGE BETWEEN 1 FOLLOWING AND 20 FOLLOWING) FROM pay ORDER BY id;
SELECT id, count(*) OVER (ORDER BY pay NULLS FIRST RANGE 5 PRECEDING), count(*) OVER (ORDER BY pay RANGE BETWEEN 5 PRECEDING AND UNBOUNDED FOLLOWING), count(*) OVER (ORDER BY pay NULLS FIRST RANGE BETWEEN UNBOUNDED PRECEDING AND 5 FOLLOWING) FROM pay ORDER BY id;
SELECT id, count(*) OVER (ORDER BY bonus RANGE BETWEEN 0.5 PRECEDING AND 0.5 FOLLOWING), count(*) OVER (ORDER BY score RANGE BETWEEN 1 PRECEDING AND 1.5 FOLLOWING) FROM pay ORDER BY id;
SELECT id, count(*) OVER (ORDER BY since RANGE BETWEEN '1 month' PRECEDING AND '10 days' FOLLOWING), count(*) OVER (ORDER BY since DESC RANGE BETWEEN INTERVAL '1 year' PRECEDING AND CURRENT ROW) FROM pay ORDER BY id;
SELECT id, count(*) OVER (ORDER BY id::bigint RANGE BETWEEN 2 PRECEDING AND 9223372036854775807 FOLLOWING) FROM pay ORDER BY id;
SELECT id, sum(id) OVER (ORDER BY pay RANGE BETWEEN CURRENT ROW AND CURRENT ROW), sum(id) OVER (PARTITION BY dept ORDER BY pay RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) FROM pay ORDER BY id;

-- Named windows.
SELECT id, sum(pay) OVER w, rank() OVER w, count(*) OVER (w RANGE 15 PRECEDING) FROM pay WINDOW w AS (PARTITION BY dept ORDER BY pay) ORDER BY id;
SELECT id, sum(pay) OVER w2, row_number() OVER w1 FROM pay WINDOW w1 AS (PARTITION BY dept ORDER BY id), w2 AS (w1) ORDER BY id;
SELECT id, sum(pay) OVER (p ORDER BY id), max(pay) OVER p FROM pay WINDOW p AS (PARTITION BY dept) ORDER BY id;
SELECT id FROM pay WINDOW unused AS (ORDER BY pay) ORDER BY id LIMIT 1;

-- With groups, order and other clauses.
SELECT dept, sum(pay), rank() OVER (ORDER BY sum(pay) DESC), sum(sum(pay)) OVER (ORDER BY dept) FROM pay GROUP BY dept ORDER BY dept;
SELECT dept, count(*) OVER () FROM pay GROUP BY dept HAVING count(*) > 1 ORDER BY dept;
SELECT count(*) OVER (), sum(count(*)) OVER () FROM pay;
SELECT upper(dept), lag(sum(pay)) OVER (ORDER BY upper(dept)) FROM pay GROUP BY upper(dept) ORDER BY 1;
SELECT id FROM pay ORDER BY row_number() OVER (ORDER BY pay DESC NULLS LAST, id) LIMIT 3;
SELECT DISTINCT dept, count(*) OVER (PARTITION BY dept) FROM pay ORDER BY dept;
SELECT * FROM (SELECT id, dept, row_number() OVER (PARTITION BY dept ORDER BY pay DESC, id) AS n FROM pay) x WHERE n = 1 ORDER BY id;
SELECT id, rank() OVER (ORDER BY (SELECT count(*) FROM pay b WHERE b.dept = pay.dept), id) FROM pay ORDER BY id;
SELECT id, (SELECT max(n) FROM (SELECT row_number() OVER (ORDER BY b.id) AS n FROM pay b WHERE b.dept = a.dept) x) FROM pay a ORDER BY id;
SELECT a.id, b.id, row_number() OVER (PARTITION BY a.id ORDER BY b.pay, b.id) FROM pay a JOIN pay b ON a.dept = b.dept WHERE a.id < b.id ORDER BY a.id, b.id;
SELECT x, sum(x) OVER (ORDER BY x) FROM (VALUES (1), (3), (2)) v(x) ORDER BY x;
SELECT g, sum(g) OVER (ORDER BY g ROWS 1 PRECEDING) FROM generate_series(1, 4) g ORDER BY g;
SELECT row_number() OVER (), 'a', NULL;
SELECT count(*) OVER () FROM pay WHERE false;
SELECT CASE WHEN rank() OVER (ORDER BY pay) = 1 THEN 'first' ELSE name END FROM pay ORDER BY id;
SELECT id, sum(pay) OVER (PARTITION BY dept ORDER BY id) = sum(pay) OVER (PARTITION BY dept ORDER BY id) FROM pay WHERE dept = 'a' ORDER BY 1;
SELECT id FROM pay WHERE dept = 'a' UNION ALL SELECT row_number() OVER (ORDER BY id) FROM pay WHERE dept = 'b' ORDER BY 1;
CREATE VIEW ranked AS SELECT id, dept, rank() OVER (PARTITION BY dept ORDER BY pay DESC) AS place FROM pay;
SELECT * FROM ranked WHERE place > 1 ORDER BY id;

-- Statements that write.
CREATE TABLE top (id int PRIMARY KEY, place bigint);
INSERT INTO top SELECT id, row_number() OVER (ORDER BY pay DESC NULLS LAST, id) FROM pay;
SELECT * FROM top ORDER BY place LIMIT 3;
UPDATE top SET place = n.r FROM (SELECT id, rank() OVER (ORDER BY id DESC) AS r FROM top) n WHERE n.id = top.id;
SELECT * FROM top ORDER BY id LIMIT 3;
DELETE FROM top WHERE id IN (SELECT id FROM (SELECT id, row_number() OVER (ORDER BY id) AS r FROM top) x WHERE r > 2);
SELECT count(*) FROM top;

-- What is refused.
SELECT id FROM pay WHERE row_number() OVER (ORDER BY id) = 1;
SELECT dept FROM pay GROUP BY dept HAVING rank() OVER () = 1;
SELECT rank() OVER () FROM pay GROUP BY rank() OVER ();
SELECT a.id FROM pay a JOIN pay b ON rank() OVER () = 1;
SELECT sum(rank() OVER ()) FROM pay;
SELECT sum(sum(pay) OVER ()) OVER () FROM pay;
SELECT rank() OVER (ORDER BY rank() OVER ()) FROM pay;
SELECT id FROM pay LIMIT row_number() OVER ();
UPDATE top SET place = rank() OVER ();
DELETE FROM top RETURNING rank() OVER ();
SELECT rank() FROM pay;
SELECT lower(name) OVER () FROM pay;
SELECT rank() OVER w FROM pay;
SELECT rank() OVER (w) FROM pay WINDOW w AS (ORDER BY id ROWS 1 PRECEDING);
SELECT rank() OVER (w PARTITION BY dept) FROM pay WINDOW w AS (ORDER BY id);
SELECT rank() OVER (w ORDER BY dept) FROM pay WINDOW w AS (ORDER BY id);
SELECT 1 FROM pay WINDOW w AS (ORDER BY id), w AS (ORDER BY pay);
SELECT count(DISTINCT pay) OVER () FROM pay;
SELECT array_agg(pay ORDER BY id) OVER () FROM pay;
SELECT rank() FILTER (WHERE true) OVER () FROM pay;
SELECT ntile(0) OVER (ORDER BY id) FROM pay;
SELECT nth_value(id, 0) OVER (ORDER BY id) FROM pay;
SELECT row_number(1) OVER () FROM pay;
SELECT sum(id) OVER (ORDER BY id ROWS -1 PRECEDING) FROM pay;
SELECT sum(id) OVER (ORDER BY id ROWS NULL PRECEDING) FROM pay;
SELECT sum(id) OVER (ORDER BY id ROWS id PRECEDING) FROM pay;
SELECT sum(id) OVER (ORDER BY pay RANGE -1 PRECEDING) FROM pay;
SELECT sum(id) OVER (ORDER BY pay RANGE 1.5 PRECEDING) FROM pay;
SELECT name, sum(pay) OVER (ORDER BY sum(pay)) FROM pay GROUP BY dept;
-- Queries that are kept in FILTER and in arguments.
CREATE TABLE kept (k int PRIMARY KEY, c int);
INSERT INTO kept VALUES (1, 2), (2, 1), (3, 2);
SELECT k, max(k) FILTER (WHERE k NOT IN (SELECT c FROM kept q)) OVER (ORDER BY c, k), sum((SELECT max(c) FROM kept q)) OVER (PARTITION BY c ORDER BY k), count(*) FILTER (WHERE 1 NOT IN (SELECT 1 FROM kept q)) OVER (ORDER BY k) FROM kept ORDER BY k;
DROP TABLE kept;
