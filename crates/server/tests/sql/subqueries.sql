-- Subqueries. What psql prints of it on PostgreSQL 15 is subqueries.out, which
-- scripts/golden_sql.sh makes.
CREATE TABLE dept (id int PRIMARY KEY, name text NOT NULL UNIQUE, budget numeric);
CREATE TABLE emp (id int PRIMARY KEY, dept_id int, name text, pay int, boss int);
CREATE INDEX emp_by_dept ON emp (dept_id);
CREATE TABLE empty (a int, b int);
INSERT INTO dept VALUES (1, 'tools', 100.5), (2, 'paper', NULL), (3, 'void', 7);
INSERT INTO emp VALUES (1, 1, 'Ada', 100, NULL), (2, 1, 'Bob', 80, 1), (3, 2, 'Eve', 90, 1), (4, NULL, 'Zoe', NULL, 3),
    (5, 2, NULL, 70, 3), (6, 1, 'Max', 80, 2);
-- Scalar.
SELECT (SELECT 1), (SELECT 'x'), (SELECT name FROM dept WHERE id = 2);
SELECT (SELECT name FROM dept WHERE id = 77) IS NULL;
SELECT name, (SELECT count(*) FROM emp e WHERE e.dept_id = d.id) AS staff FROM dept d ORDER BY id;
SELECT name, (SELECT max(pay) FROM emp WHERE dept_id = dept.id) FROM dept ORDER BY id;
SELECT e.name, e.pay - (SELECT avg(pay) FROM emp) AS above FROM emp e WHERE e.pay > (SELECT avg(pay) FROM emp) ORDER BY e.id;
SELECT name FROM emp WHERE id = (SELECT max(id) FROM emp);
SELECT name FROM emp WHERE pay = (SELECT max(pay) FROM emp e2 WHERE e2.dept_id = emp.dept_id) ORDER BY id;
SELECT name FROM emp e WHERE pay > (SELECT pay FROM emp WHERE id = e.boss) ORDER BY e.id;
SELECT coalesce((SELECT b.name FROM emp b WHERE b.id = e.boss), 'nobody') FROM emp e ORDER BY e.id;
SELECT (SELECT (SELECT d.name FROM dept d WHERE d.id = e.dept_id)) FROM emp e ORDER BY e.id;
SELECT d.id, (SELECT string_agg(x.name, ',') FROM (SELECT name FROM emp WHERE dept_id = d.id ORDER BY pay, id) x) FROM dept d ORDER BY 1;
SELECT id FROM emp ORDER BY (SELECT budget FROM dept WHERE dept.id = emp.dept_id) DESC NULLS LAST, id;
SELECT CASE WHEN (SELECT count(*) FROM emp) > 5 THEN 'many' ELSE 'few' END;
SELECT id FROM emp ORDER BY id LIMIT (SELECT 2) OFFSET (SELECT count(*) - 4 FROM emp);
SELECT dept_id, count(*), (SELECT name FROM dept WHERE id = dept_id) FROM emp GROUP BY dept_id ORDER BY dept_id;
SELECT dept_id, sum(pay) FROM emp GROUP BY dept_id HAVING sum(pay) > (SELECT min(budget) FROM dept) ORDER BY 1;
SELECT dept_id, max((SELECT d.budget FROM dept d WHERE d.id = emp.dept_id)) FROM emp GROUP BY dept_id ORDER BY 1;
SELECT id, name, (SELECT e.name) FROM emp e GROUP BY id, dept_id ORDER BY 1;
-- EXISTS.
SELECT name FROM dept d WHERE EXISTS (SELECT 1 FROM emp WHERE dept_id = d.id) ORDER BY id;
SELECT name FROM dept d WHERE NOT EXISTS (SELECT * FROM emp e WHERE e.dept_id = d.id AND e.pay > 80) ORDER BY id;
SELECT EXISTS (SELECT 1 FROM empty), EXISTS (SELECT count(*) FROM empty), NOT EXISTS (SELECT 1 FROM empty);
SELECT count(*) FROM emp WHERE EXISTS (SELECT 1 FROM dept);
SELECT id FROM emp e WHERE EXISTS (SELECT 1 FROM emp b WHERE b.boss = e.id AND EXISTS (SELECT 1 FROM emp c WHERE c.boss = b.id)) ORDER BY id;
SELECT d.name FROM dept d JOIN emp e ON e.dept_id = d.id WHERE EXISTS (SELECT 1 FROM emp x WHERE x.boss = e.id AND x.dept_id = d.id) ORDER BY e.id;
-- IN and NOT IN, also with NULLs and with no rows.
SELECT name FROM emp WHERE dept_id IN (SELECT id FROM dept WHERE budget IS NOT NULL) ORDER BY id;
SELECT id FROM emp WHERE dept_id NOT IN (SELECT id FROM dept WHERE name = 'paper') ORDER BY id;
SELECT id FROM emp WHERE id NOT IN (SELECT boss FROM emp) ORDER BY id;
SELECT id FROM emp WHERE id NOT IN (SELECT boss FROM emp WHERE boss IS NOT NULL) ORDER BY id;
SELECT id FROM emp WHERE id IN (SELECT boss FROM emp) ORDER BY id;
SELECT id FROM emp WHERE dept_id IN (SELECT a FROM empty) OR dept_id NOT IN (SELECT a FROM empty) ORDER BY id;
SELECT 1 IN (SELECT 1), 1 IN (SELECT 2), 1 IN (SELECT NULL::int), NULL::int IN (SELECT 1), NULL::int IN (SELECT a FROM empty), 1 NOT IN (SELECT NULL::int);
SELECT 1.0 IN (SELECT id FROM dept), 'tools' IN (SELECT name FROM dept), 2 IN (SELECT budget FROM dept);
SELECT name FROM emp e WHERE pay IN (SELECT pay FROM emp x WHERE x.dept_id = e.dept_id AND x.id <> e.id) ORDER BY id;
SELECT id FROM emp WHERE (dept_id, pay) IN (SELECT dept_id, max(pay) FROM emp GROUP BY dept_id) ORDER BY id;
SELECT id FROM emp WHERE (dept_id, boss) NOT IN (SELECT 1, NULL::int) ORDER BY id;
-- ANY and ALL.
SELECT id FROM emp WHERE pay >= ALL (SELECT pay FROM emp WHERE pay IS NOT NULL) ORDER BY id;
SELECT id FROM emp WHERE pay > ANY (SELECT pay FROM emp WHERE dept_id = 2) ORDER BY id;
SELECT id FROM emp WHERE pay < SOME (SELECT pay FROM emp WHERE dept_id = 2) ORDER BY id;
SELECT id FROM emp WHERE pay > ALL (SELECT pay FROM emp WHERE dept_id = 77) ORDER BY id;
SELECT 1 > ALL (SELECT a FROM empty), 1 > ANY (SELECT a FROM empty), 5 <> ALL (SELECT pay FROM emp), 80 <> ALL (SELECT pay FROM emp), 80 = ANY (SELECT pay FROM emp), 100 >= ALL (SELECT pay FROM emp), 1 < ANY (SELECT pay FROM emp);
SELECT 2 = ANY ('{1,2,3}'::int[]), 2 = ANY (ARRAY[1, NULL]);
-- Arrays.
SELECT ARRAY(SELECT id FROM dept ORDER BY id DESC), ARRAY(SELECT a FROM empty);
SELECT d.name, ARRAY(SELECT e.name FROM emp e WHERE e.dept_id = d.id ORDER BY e.pay, e.id) FROM dept d ORDER BY d.id;
-- In statements that write.
INSERT INTO empty VALUES ((SELECT count(*) FROM emp), (SELECT id FROM dept WHERE name = 'void')), (1, (SELECT max(a) FROM empty));
SELECT * FROM empty ORDER BY a;
INSERT INTO empty SELECT e.id, (SELECT d.id FROM dept d WHERE d.id = e.dept_id) FROM emp e WHERE e.id IN (SELECT boss FROM emp);
SELECT * FROM empty ORDER BY a, b;
UPDATE emp SET pay = (SELECT max(pay) FROM emp x WHERE x.dept_id = emp.dept_id) WHERE dept_id IN (SELECT id FROM dept WHERE name <> 'void');
SELECT id, pay FROM emp ORDER BY id;
UPDATE dept SET budget = (SELECT sum(pay) FROM emp WHERE dept_id = dept.id) RETURNING id, budget;
DELETE FROM emp WHERE pay < (SELECT avg(pay) FROM emp) RETURNING id;
DELETE FROM emp e WHERE NOT EXISTS (SELECT 1 FROM dept d WHERE d.id = e.dept_id) RETURNING id;
DELETE FROM empty WHERE (a, b) IN (SELECT id, dept_id FROM emp);
SELECT * FROM empty ORDER BY a, b;
-- Errors.
SELECT (SELECT id FROM dept);
SELECT (SELECT id, name FROM dept WHERE id = 1);
SELECT (SELECT x.id) FROM dept;
SELECT name FROM dept d WHERE EXISTS (SELECT 1 FROM emp WHERE nothing = d.id);
SELECT dept_id, (SELECT count(*) FROM dept d WHERE d.id = e.pay) FROM emp e GROUP BY dept_id;
CREATE TABLE bad (a int CHECK (a > (SELECT 1)));
CREATE TABLE bad (a int DEFAULT (SELECT 1));
-- BETWEEN of a query.
SELECT name FROM dept d WHERE (SELECT count(*) FROM emp e WHERE e.dept_id = d.id) BETWEEN 1 AND 2 ORDER BY name;
SELECT name FROM dept d WHERE (SELECT count(*) FROM emp e WHERE e.dept_id = d.id) NOT BETWEEN (SELECT 1) AND (SELECT max(id) FROM dept x WHERE x.id < d.id) ORDER BY name;
SELECT 2 BETWEEN 1 AND 2.5, '2' BETWEEN 1 AND 3, '10' BETWEEN '1' AND '2', 2.5 BETWEEN 3 AND '2', NULL BETWEEN 1 AND 2, 1 BETWEEN NULL AND 0, date '2024-01-02' BETWEEN '2024-01-01' AND '2024-01-03', 1 NOT BETWEEN 2 AND 3;
SELECT (1 BETWEEN 0 AND 2) BETWEEN false AND true, 5 BETWEEN (SELECT 6 BETWEEN 5 AND 7)::int AND 5;
SELECT 'x' BETWEEN 1 AND 2;
SELECT 1 BETWEEN 0 AND 'x';
-- Rows with a NULL on the left side.
CREATE TABLE pairs (id int PRIMARY KEY, g int);
INSERT INTO pairs VALUES (1, 1), (2, 2), (3, NULL);
SELECT (NULL::int, 2) IN (SELECT g, id FROM pairs), (NULL::int, 9) IN (SELECT g, id FROM pairs), (NULL::int, NULL::int) IN (SELECT g, id FROM pairs WHERE id = 1), (NULL::int, 2) IN (VALUES (2, 2)), (NULL::int, 2) = ANY (SELECT g, id FROM pairs), (NULL::int, 9) NOT IN (SELECT id, id FROM pairs), (NULL::int, 2) <> ALL (SELECT g, id FROM pairs), (NULL::int, 3) IN (SELECT g, id FROM pairs);
SELECT id FROM pairs a WHERE (g, id) NOT IN (SELECT b.id, b.id FROM pairs b WHERE b.id > 1) ORDER BY id;
SELECT id FROM pairs WHERE (NULL::int, id) NOT IN (SELECT g, id FROM pairs) ORDER BY id;
DELETE FROM pairs WHERE (g, id) NOT IN (SELECT 3, 3);
SELECT * FROM pairs ORDER BY id;
DROP TABLE pairs;
