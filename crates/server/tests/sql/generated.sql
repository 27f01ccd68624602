-- Generated columns.
CREATE TABLE g (a int PRIMARY KEY, b int GENERATED ALWAYS AS (a * 2) STORED, c text, d text GENERATED ALWAYS AS (upper(c)) STORED UNIQUE);
INSERT INTO g VALUES (1);
INSERT INTO g VALUES (2, DEFAULT, 'two');
INSERT INTO g (c, a) VALUES ('three', 3) RETURNING *;
INSERT INTO g (a, b) VALUES (4, DEFAULT) RETURNING b;
SELECT * FROM g ORDER BY a;
UPDATE g SET a = a + 10 WHERE a < 3 RETURNING *;
UPDATE g SET c = 'x', b = DEFAULT WHERE a = 3 RETURNING *;
INSERT INTO g VALUES (20, 5);
INSERT INTO g (a, b) SELECT 20, 5;
UPDATE g SET b = 5;
INSERT INTO g (a, c) VALUES (21, 'X');
INSERT INTO g (a, c) VALUES (3, 'y') ON CONFLICT (a) DO UPDATE SET c = excluded.c || excluded.d RETURNING *;
INSERT INTO g (a, c) VALUES (22, 'yy') ON CONFLICT (d) DO NOTHING;
UPDATE g SET c = v.c FROM (VALUES (4, 'four')) v (a, c) WHERE v.a = g.a RETURNING g.*;
SELECT a FROM g WHERE d = 'FOUR';
SELECT * FROM g ORDER BY a;
-- In keys, checks and indexes.
CREATE TABLE k (a int, b int GENERATED ALWAYS AS (a + 1) STORED PRIMARY KEY, c int GENERATED ALWAYS AS (a * a) STORED CHECK (c < 100) NOT NULL);
INSERT INTO k VALUES (1), (2);
INSERT INTO k VALUES (10);
INSERT INTO k VALUES (NULL);
INSERT INTO k VALUES (1);
UPDATE k SET a = a + 1 WHERE b = 3;
SELECT * FROM k ORDER BY b;
CREATE INDEX k_c ON k (c);
SELECT a FROM k WHERE c = 9;
DELETE FROM k WHERE b = 3;
SELECT * FROM k ORDER BY b;
-- What may not be.
\set VERBOSITY sqlstate
CREATE TABLE w (a int, b int GENERATED ALWAYS AS (b + 1) STORED);
CREATE TABLE w (a int, b int GENERATED ALWAYS AS (a) STORED, c int GENERATED ALWAYS AS (b) STORED);
CREATE TABLE w (a int, b timestamptz GENERATED ALWAYS AS (now()) STORED);
CREATE TABLE w (a int, b double precision GENERATED ALWAYS AS (random()) STORED);
CREATE TABLE w (a int, b int DEFAULT 1 GENERATED ALWAYS AS (a) STORED);
CREATE TABLE w (a int, b int GENERATED ALWAYS AS (a));
CREATE TABLE w (a int, b int GENERATED ALWAYS AS ((SELECT 1)) STORED);
CREATE TABLE w (a int, b int GENERATED ALWAYS AS (nothing) STORED);
-- ALTER TABLE
\set VERBOSITY default
ALTER TABLE g ADD COLUMN e int GENERATED ALWAYS AS (a + 100) STORED;
SELECT a, e FROM g ORDER BY a;
\set VERBOSITY sqlstate
ALTER TABLE g ADD COLUMN f int GENERATED ALWAYS AS (e) STORED;
ALTER TABLE g ALTER COLUMN e SET DEFAULT 3;
ALTER TABLE g ALTER COLUMN e DROP DEFAULT;
\set VERBOSITY default
ALTER TABLE g ALTER COLUMN c TYPE varchar(40);
ALTER TABLE g DROP COLUMN c;
ALTER TABLE g DROP COLUMN c CASCADE;
\d g
ALTER TABLE g RENAME COLUMN a TO z;
\d g
SELECT column_name, column_default, is_generated, generation_expression FROM information_schema.columns WHERE table_name = 'g' ORDER BY ordinal_position;
SELECT attname, attgenerated, atthasdef FROM pg_attribute WHERE attrelid = 'g'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum;
-- COPY leaves them out.
COPY k TO STDOUT;
COPY g (z, b) TO STDOUT;
COPY g FROM STDIN;
50
51
\.
COPY k FROM STDIN;
7
\.
SELECT * FROM g WHERE z >= 50 ORDER BY z;
SELECT * FROM k ORDER BY b;
-- Foreign keys that set columns.
CREATE TABLE p (id int PRIMARY KEY);
CREATE TABLE child (id int PRIMARY KEY, p int REFERENCES p ON DELETE SET NULL ON UPDATE CASCADE, q int GENERATED ALWAYS AS (coalesce(p, -1)) STORED);
INSERT INTO p VALUES (1), (2);
INSERT INTO child VALUES (1, 1), (2, 2);
UPDATE p SET id = 5 WHERE id = 1;
DELETE FROM p WHERE id = 2;
SELECT * FROM child ORDER BY id;
-- A view.
CREATE VIEW gv AS SELECT z, e FROM g;
INSERT INTO gv VALUES (60);
INSERT INTO gv VALUES (61, 3);
SELECT * FROM gv WHERE z >= 60;
-- Foreign keys whose actions would write to a generated column are refused.
CREATE TABLE of_key (a int PRIMARY KEY);
CREATE TABLE with_key (id int PRIMARY KEY, b int, d int GENERATED ALWAYS AS (b) STORED REFERENCES of_key ON DELETE SET NULL);
CREATE TABLE with_key (id int PRIMARY KEY, b int, d int GENERATED ALWAYS AS (b) STORED REFERENCES of_key ON DELETE CASCADE ON UPDATE RESTRICT);
ALTER TABLE with_key ADD FOREIGN KEY (d) REFERENCES of_key ON DELETE SET DEFAULT;
ALTER TABLE with_key ADD FOREIGN KEY (d) REFERENCES of_key ON UPDATE CASCADE;
DROP TABLE with_key, of_key;
