-- INCLUDE and NULLS NOT DISTINCT.
CREATE TABLE goods (id int PRIMARY KEY, a int, b text, c text, UNIQUE (a) INCLUDE (b));
CREATE INDEX ON goods (b) INCLUDE (c, a);
CREATE UNIQUE INDEX goods_c ON goods (c) NULLS NOT DISTINCT;
CREATE UNIQUE INDEX goods_some ON goods (lower(b)) INCLUDE (a) NULLS NOT DISTINCT WHERE id > 100;
SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'goods' ORDER BY indexname;
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'goods'::regclass ORDER BY conname;
SELECT c.relname, c.relnatts, i.indnatts, i.indnkeyatts, i.indnullsnotdistinct, i.indkey
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE i.indrelid = 'goods'::regclass ORDER BY c.relname;
SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod)
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_index i ON i.indexrelid = c.oid
    WHERE i.indrelid = 'goods'::regclass ORDER BY c.relname, a.attnum;
SELECT pg_get_indexdef('goods_b_c_a_idx'::regclass, 1, true), pg_get_indexdef('goods_b_c_a_idx'::regclass, 3, true);
\d goods
SELECT relname, indexrelname, schemaname FROM pg_stat_user_indexes WHERE relname = 'goods' ORDER BY indexrelname;
INSERT INTO goods VALUES (1, NULL, 'x', 'one'), (2, NULL, 'y', NULL);
INSERT INTO goods VALUES (3, NULL, 'z', NULL);
INSERT INTO goods VALUES (3, NULL, 'z', NULL) ON CONFLICT (c) DO UPDATE SET b = 'again' RETURNING id, b, c;
INSERT INTO goods VALUES (3, NULL, 'z', NULL) ON CONFLICT DO NOTHING;
INSERT INTO goods VALUES (4, 4, 'four', '4'), (5, 4, 'five', '5');
UPDATE goods SET c = NULL WHERE id = 1;
SELECT * FROM goods ORDER BY id;
SELECT id FROM goods WHERE c IS NULL;
DELETE FROM goods WHERE c IS NULL;
INSERT INTO goods VALUES (6, NULL, 'six', NULL);
SELECT * FROM goods ORDER BY c, id;
INSERT INTO goods VALUES (101, 101, NULL, '101'), (102, 102, NULL, '102');
INSERT INTO goods VALUES (101, 101, NULL, '101');
INSERT INTO goods VALUES (102, 102, NULL, '102');
CREATE TABLE pairs (a int, b int, CONSTRAINT both_keys UNIQUE NULLS NOT DISTINCT (a, b), c int UNIQUE NULLS NOT DISTINCT);
INSERT INTO pairs VALUES (1, NULL, 1), (NULL, 1, 2), (NULL, NULL, 3);
INSERT INTO pairs VALUES (1, NULL, 4);
INSERT INTO pairs VALUES (NULL, NULL, 4);
INSERT INTO pairs VALUES (2, NULL, NULL);
INSERT INTO pairs VALUES (3, NULL, NULL);
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'pairs'::regclass ORDER BY conname;
CREATE TABLE alike (LIKE goods INCLUDING INDEXES);
SELECT indexdef FROM pg_indexes WHERE tablename = 'alike' ORDER BY indexname;
ALTER TABLE goods DROP COLUMN c;
SELECT indexname FROM pg_indexes WHERE tablename = 'goods' ORDER BY indexname;
ALTER TABLE pairs DROP CONSTRAINT both_keys;
INSERT INTO pairs VALUES (1, NULL, 9);
ALTER TABLE pairs ADD UNIQUE NULLS NOT DISTINCT (a, b);
ALTER TABLE pairs ADD UNIQUE (b) INCLUDE (a);
CREATE INDEX ON goods (a) INCLUDE (nothing);
CREATE TABLE twice (a int);
INSERT INTO twice VALUES (NULL), (NULL);
CREATE UNIQUE INDEX twice_a ON twice (a) NULLS NOT DISTINCT;
CREATE UNIQUE INDEX twice_a ON twice (a) NULLS DISTINCT;
DROP TABLE goods, pairs, alike, twice;
