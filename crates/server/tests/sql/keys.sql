-- Primary keys that go and come. What psql prints of it on PostgreSQL 15 is keys.out, which
-- scripts/golden_sql.sh makes.
CREATE TABLE item (id int PRIMARY KEY, code text UNIQUE, n int, CHECK (n > 0));
CREATE INDEX ON item (n);
INSERT INTO item VALUES (1, 'one', 10), (2, 'two', 20), (3, 'three', 10);
ALTER TABLE item DROP CONSTRAINT item_pkey;
INSERT INTO item VALUES (1, 'four', 10);
INSERT INTO item VALUES (NULL, 'five', 10);
INSERT INTO item VALUES (5, 'one', 10);
SELECT * FROM item WHERE n = 10 ORDER BY code;
UPDATE item SET n = n + 1 WHERE id = 1;
SELECT * FROM item ORDER BY code;
\d item
ALTER TABLE item DROP CONSTRAINT item_pkey;
ALTER TABLE item DROP CONSTRAINT IF EXISTS item_pkey;
ALTER TABLE item ADD PRIMARY KEY (id);
ALTER TABLE item ADD CONSTRAINT by_code PRIMARY KEY (code);
INSERT INTO item VALUES (7, NULL, 10);
\d item
-- Another one in its place, in one statement.
ALTER TABLE item DROP CONSTRAINT by_code, ADD PRIMARY KEY (code, id);
ALTER TABLE item ADD PRIMARY KEY (n);
ALTER TABLE item ADD CONSTRAINT item_pkey PRIMARY KEY (code), DROP CONSTRAINT item_pkey;
\d item
SELECT * FROM item WHERE code = 'two';
-- What refers to it.
ALTER TABLE item DROP CONSTRAINT item_code_key;
CREATE TABLE part (item text REFERENCES item, note text);
INSERT INTO part VALUES ('one', 'a');
ALTER TABLE item DROP CONSTRAINT item_pkey;
ALTER TABLE item DROP CONSTRAINT item_pkey CASCADE;
INSERT INTO part VALUES ('none', 'b');
ALTER TABLE part ADD FOREIGN KEY (item) REFERENCES item;
ALTER TABLE part ADD FOREIGN KEY (item) REFERENCES item (code);
ALTER TABLE item ADD CONSTRAINT one_code UNIQUE (code);
ALTER TABLE part ADD FOREIGN KEY (item) REFERENCES item (code);
DELETE FROM part WHERE item = 'none';
ALTER TABLE part ADD FOREIGN KEY (item) REFERENCES item (code);
ALTER TABLE item DROP CONSTRAINT one_code;
ALTER TABLE item DROP CONSTRAINT one_code CASCADE;
DROP TABLE part;
-- The table that refers goes on by an index of its own.
CREATE TABLE owner (id int PRIMARY KEY);
CREATE TABLE pet (owner int REFERENCES owner ON DELETE CASCADE, n int, PRIMARY KEY (owner, n));
INSERT INTO owner VALUES (1), (2);
INSERT INTO pet VALUES (1, 1), (1, 2), (2, 1);
ALTER TABLE pet DROP CONSTRAINT pet_pkey;
DELETE FROM owner WHERE id = 1;
SELECT * FROM pet;
-- A column takes the key with it.
CREATE TABLE log (at int, line text, PRIMARY KEY (at, line));
INSERT INTO log VALUES (1, 'a'), (1, 'b'), (2, 'a');
ALTER TABLE log DROP COLUMN at;
INSERT INTO log VALUES ('a');
SELECT * FROM log ORDER BY line;
ALTER TABLE log ADD COLUMN at int GENERATED ALWAYS AS IDENTITY PRIMARY KEY;
INSERT INTO log (line) VALUES ('c') RETURNING at;
ALTER TABLE log DROP COLUMN at, ADD COLUMN at int;
SELECT * FROM log ORDER BY line;
-- In a block.
BEGIN;
ALTER TABLE owner DROP CONSTRAINT owner_pkey CASCADE;
INSERT INTO owner VALUES (2);
SELECT * FROM owner;
ROLLBACK;
INSERT INTO owner VALUES (2);
BEGIN;
ALTER TABLE owner DROP CONSTRAINT owner_pkey CASCADE;
ALTER TABLE owner ADD COLUMN name text;
ALTER TABLE owner ADD PRIMARY KEY (id);
INSERT INTO owner VALUES (3, 'c');
COMMIT;
SELECT * FROM owner ORDER BY id;
DELETE FROM owner WHERE id = 2;
SELECT * FROM pet;
DROP TABLE item, owner, pet, log;

-- Keys of reals, alone and beside others.
CREATE TABLE reals (a int, b bigint, x real, y real, PRIMARY KEY (a, b));
CREATE INDEX reals_x ON reals (x);
CREATE UNIQUE INDEX reals_y ON reals (y DESC);
INSERT INTO reals VALUES (1, 1, 1.5, 2), (1, 2, NULL, NULL), (2, 1, 'NaN', -1), (2, 2, -2, '-Infinity');
SELECT * FROM reals WHERE x > 1 ORDER BY x;
SELECT * FROM reals ORDER BY y DESC;
INSERT INTO reals VALUES (3, 1, 0, 2);
-- The name of an index is looked at last.
CREATE INDEX reals_x ON reals ((nothing + 1));
CREATE INDEX IF NOT EXISTS reals_x ON reals (x) WHERE nothing > 1;
CREATE INDEX reals_x ON reals (y);
CREATE INDEX IF NOT EXISTS reals_x ON reals (y);
CREATE TABLE eight (a real, b real, c real, d real, e real, f real, g real, h real, PRIMARY KEY (a, b, c, d, e, f, g, h));
INSERT INTO eight VALUES (1, 2, 3, 4, 5, 6, 7, 8), (1, 2, 3, 4, 5, 6, 7, 9);
INSERT INTO eight VALUES (1, 2, 3, 4, 5, 6, 7, 8);
SELECT h FROM eight WHERE a = 1 AND b = 2 AND c = 3 ORDER BY h;
DROP TABLE reals, eight;
