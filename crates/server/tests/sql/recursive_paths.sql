-- Paths of a recursive query as arrays: functions of arrays are for queries only.
\pset null NULL
CREATE TABLE edge (a int, b int, PRIMARY KEY (a, b));
INSERT INTO edge VALUES (1, 2), (2, 3), (3, 1), (3, 4), (5, 6);
WITH RECURSIVE walk(a, path) AS (SELECT 1, ARRAY[1] UNION ALL SELECT e.b, w.path || e.b FROM walk w JOIN edge e ON e.a = w.a WHERE NOT e.b = ANY(w.path)) SELECT a, path FROM walk ORDER BY a;
WITH RECURSIVE walk(a, path, is_cycle) AS (SELECT 1, ARRAY[1], false UNION ALL SELECT e.b, w.path || e.b, e.b = ANY(w.path) FROM walk w JOIN edge e ON e.a = w.a WHERE NOT is_cycle) SELECT * FROM walk ORDER BY path;
