-- MERGE.
CREATE TABLE stock (item text PRIMARY KEY, count int NOT NULL DEFAULT 7, note text DEFAULT 'new');
CREATE TABLE deliveries (item text, count int);
INSERT INTO stock VALUES ('a', 1, NULL), ('b', 2, NULL), ('c', 3, NULL), ('d', 4, NULL);
INSERT INTO deliveries VALUES ('a', 10), ('b', -2), ('e', 5), ('f', 0), ('c', 0);
MERGE INTO stock s USING deliveries d ON s.item = d.item
    WHEN MATCHED AND s.count + d.count = 0 THEN DELETE
    WHEN MATCHED AND d.count = 0 THEN DO NOTHING
    WHEN MATCHED THEN UPDATE SET count = s.count + d.count, note = 'more'
    WHEN NOT MATCHED AND d.count > 0 THEN INSERT (item, count) VALUES (d.item, d.count)
    WHEN NOT MATCHED THEN DO NOTHING;
SELECT * FROM stock ORDER BY item;
MERGE INTO stock USING (VALUES ('a', 5), ('g', 6)) AS v (item, count) ON stock.item = v.item
    WHEN MATCHED THEN UPDATE SET (count, note) = (v.count, DEFAULT)
    WHEN NOT MATCHED THEN INSERT VALUES (v.item, v.count, 'all');
SELECT * FROM stock ORDER BY item;
MERGE INTO stock AS t USING (SELECT 'h' AS item) AS v ON t.item = v.item
    WHEN NOT MATCHED THEN INSERT (item, count, note) VALUES (v.item, DEFAULT, DEFAULT);
MERGE INTO stock AS t USING (SELECT 'h' AS item) AS v ON t.item = v.item WHEN MATCHED THEN DELETE;
MERGE INTO stock AS t USING (SELECT 'zz' AS item) AS v ON t.item = v.item WHEN MATCHED THEN DELETE;
MERGE INTO stock AS t USING (SELECT 'a' AS item) AS v ON t.item = v.item WHEN MATCHED THEN DO NOTHING;
SELECT * FROM stock ORDER BY item;
-- A row that is hit twice.
MERGE INTO stock s USING (VALUES ('a', 1), ('a', 2)) AS v (item, n) ON s.item = v.item WHEN MATCHED THEN UPDATE SET count = n;
MERGE INTO stock s USING (VALUES ('a', 1), ('a', 2)) AS v (item, n) ON s.item = v.item
    WHEN MATCHED AND n = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET count = n;
MERGE INTO stock s USING (VALUES ('a', 1), ('a', 2)) AS v (item, n) ON s.item = v.item
    WHEN MATCHED AND n = 1 THEN UPDATE SET count = 100 WHEN MATCHED THEN DO NOTHING;
MERGE INTO stock s USING (VALUES ('x', 1), ('x', 2)) AS v (item, n) ON s.item = v.item WHEN NOT MATCHED THEN INSERT VALUES (v.item, n);
SELECT * FROM stock ORDER BY item;
-- NULLs, tables without a key, sequences, foreign keys.
CREATE TABLE log (id serial, item text, n int);
MERGE INTO log USING stock ON log.item = stock.item WHEN NOT MATCHED AND stock.note IS NOT NULL THEN INSERT (item, n) VALUES (stock.item, count) WHEN MATCHED THEN DELETE;
MERGE INTO log USING stock ON log.item = stock.item
    WHEN MATCHED AND NULL THEN DELETE WHEN MATCHED AND n > 5 THEN UPDATE SET n = n + 1 WHEN NOT MATCHED AND NULL THEN INSERT (item) VALUES ('no') WHEN NOT MATCHED THEN INSERT (item) VALUES (stock.item);
SELECT item, n FROM log ORDER BY item;
CREATE TABLE orders (id int PRIMARY KEY, item text REFERENCES stock ON DELETE CASCADE);
MERGE INTO orders o USING (VALUES (1, 'a'), (2, 'b')) AS v (id, item) ON o.id = v.id WHEN NOT MATCHED THEN INSERT VALUES (v.id, v.item);
MERGE INTO orders o USING (VALUES (1, 'a'), (2, 'e')) AS v (id, item) ON o.id = v.id WHEN NOT MATCHED THEN INSERT VALUES (v.id, v.item);
MERGE INTO stock s USING orders o ON s.item = o.item AND o.id = 2 WHEN MATCHED THEN DELETE;
SELECT * FROM orders;
-- In a block, prepared, and from a query of itself.
BEGIN;
PREPARE upsert (text, int) AS MERGE INTO stock s USING (SELECT $1 AS item, $2 AS n) v ON s.item = v.item
    WHEN MATCHED THEN UPDATE SET count = s.count + v.n WHEN NOT MATCHED THEN INSERT VALUES (v.item, v.n);
EXECUTE upsert ('p', 1);
EXECUTE upsert ('p', 2);
COMMIT;
MERGE INTO stock s USING (SELECT item || '2' AS item, count FROM stock) v ON s.item = v.item WHEN NOT MATCHED THEN INSERT VALUES (v.item, v.count);
SELECT item, count FROM stock ORDER BY item;
-- What is wrong.
\set VERBOSITY sqlstate
MERGE INTO stock s USING deliveries d ON s.item = d.item WHEN MATCHED THEN INSERT VALUES ('x', 1);
MERGE INTO stock s USING deliveries d ON s.item = d.item WHEN NOT MATCHED THEN DELETE;
MERGE INTO stock s USING deliveries d ON s.item = d.item WHEN MATCHED THEN DELETE WHEN MATCHED THEN DO NOTHING;
MERGE INTO stock s USING deliveries d ON s.item = d.item WHEN NOT MATCHED THEN INSERT VALUES (s.item, 1);
MERGE INTO stock s USING deliveries d ON s.item = d.item WHEN MATCHED THEN UPDATE SET nothing = 1;
MERGE INTO nothing s USING deliveries d ON s.item = d.item WHEN MATCHED THEN DELETE;
MERGE INTO stock s USING nothing d ON s.item = d.item WHEN MATCHED THEN DELETE;
MERGE INTO stock s USING deliveries d ON s.item = d.item WHEN NOT MATCHED THEN INSERT (item) VALUES (1, 2);
DROP TABLE stock, deliveries, log, orders;
