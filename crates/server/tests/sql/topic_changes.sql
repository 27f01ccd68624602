-- INSERT, UPDATE, DELETE, RETURNING, upserts, and parts that write.
\set VERBOSITY sqlstate
\pset null NULL
CREATE TABLE items (id int PRIMARY KEY, name text NOT NULL DEFAULT 'none', qty int CHECK (qty >= 0), code text UNIQUE);
INSERT INTO items VALUES (1, 'pen', 5, 'a'), (2, DEFAULT, 0, NULL), (3, 'ink', NULL, 'c') RETURNING id, name;
INSERT INTO items (id) VALUES (4) RETURNING *;
INSERT INTO items VALUES (5);
INSERT INTO items (id, qty) VALUES (6, -1);
INSERT INTO items (id, name) VALUES (7, NULL);
INSERT INTO items VALUES (1, 'again');
INSERT INTO items (id, code) VALUES (8, 'a');
INSERT INTO items (id, id) VALUES (1, 2);
INSERT INTO items (id, nothing) VALUES (1, 2);
INSERT INTO items (id) VALUES (9, 10);
INSERT INTO items SELECT id + 10, name, qty FROM items WHERE qty > 0;
INSERT INTO items (id, qty, code) VALUES (1, 9, 'z') ON CONFLICT DO NOTHING;
INSERT INTO items (id, qty, code) VALUES (1, 9, 'z') ON CONFLICT (id) DO UPDATE SET qty = items.qty + excluded.qty RETURNING id, qty, code;
INSERT INTO items (id, qty, code) VALUES (20, 1, 'a') ON CONFLICT (code) DO UPDATE SET name = 'by code' WHERE items.qty > 100;
INSERT INTO items (id, qty, code) VALUES (20, 1, 'a') ON CONFLICT (id) DO NOTHING;
INSERT INTO items (id, qty) VALUES (21, 1), (21, 2) ON CONFLICT (id) DO UPDATE SET qty = excluded.qty;
INSERT INTO items (id, qty) VALUES (21, 1) ON CONFLICT (name) DO NOTHING;
INSERT INTO items (id, qty) VALUES (22, 1), (22, 2) ON CONFLICT DO NOTHING RETURNING id, qty;
UPDATE items SET qty = qty + 1, name = upper(name) WHERE id < 4 RETURNING id, name, qty;
UPDATE items SET (name, qty) = ('both', 7) WHERE id = 4;
UPDATE items SET (name, qty) = (SELECT 'sub', count(*) FROM items) WHERE id = 4 RETURNING *;
UPDATE items SET qty = DEFAULT, name = DEFAULT WHERE id = 4 RETURNING *;
UPDATE items i SET qty = v.q FROM (VALUES (1, 100), (2, 200)) v(id, q) WHERE v.id = i.id RETURNING i.id, v.q;
UPDATE items SET id = 1 WHERE id = 2;
UPDATE items SET qty = -5 WHERE id = 1;
UPDATE items SET nothing = 1;
UPDATE items SET qty = 1, qty = 2;
DELETE FROM items WHERE id > 10 RETURNING id;
DELETE FROM items USING (SELECT 3 AS k) s WHERE items.id = s.k RETURNING items.*;
DELETE FROM items WHERE false;
WITH gone AS (DELETE FROM items WHERE id = 4 RETURNING *), kept AS (INSERT INTO items (id, qty) SELECT id + 100, 1 FROM gone RETURNING id) SELECT (SELECT count(*) FROM gone), (SELECT max(id) FROM kept), (SELECT count(*) FROM items);
SELECT * FROM items ORDER BY id;
TRUNCATE items;
SELECT count(*) FROM items;
DROP TABLE items;
