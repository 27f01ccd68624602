-- Foreign keys. What psql prints of it on PostgreSQL 15 is foreign.out, which scripts/golden_sql.sh
-- makes.
\set ON_ERROR_STOP off
CREATE TABLE branch (id int PRIMARY KEY, name text UNIQUE, a int, b text, UNIQUE (a, b));
CREATE TABLE teller (
    id int PRIMARY KEY,
    branch int REFERENCES branch,
    deputy int REFERENCES teller (id) ON DELETE SET NULL
);
CREATE TABLE item (
    id int PRIMARY KEY,
    branch bigint NOT NULL DEFAULT 9 REFERENCES branch ON DELETE CASCADE ON UPDATE CASCADE,
    name varchar(10) REFERENCES branch (name) ON DELETE SET DEFAULT ON UPDATE CASCADE DEFERRABLE INITIALLY DEFERRED,
    a int,
    b text,
    CONSTRAINT pair FOREIGN KEY (b, a) REFERENCES branch (b, a) ON DELETE RESTRICT
);
CREATE TABLE part (item int REFERENCES item ON DELETE CASCADE, note text, UNIQUE (item, note));
INSERT INTO branch VALUES (1, 'one', 1, 'x'), (2, 'two', 2, 'y'), (3, 'three', NULL, NULL), (9, 'nine', 9, 'z');
INSERT INTO teller VALUES (1, 1, NULL), (2, 1, 1), (3, NULL, 4), (4, 2, 3);
INSERT INTO teller VALUES (5, 7, NULL);
INSERT INTO teller VALUES (5, 1, 8);
UPDATE teller SET branch = 6 WHERE id = 1;
UPDATE teller SET branch = 3 WHERE id = 2;
DELETE FROM branch WHERE id = 1;
UPDATE branch SET id = 10 WHERE id = 2;
UPDATE branch SET name = 'eins' WHERE id = 1;
DELETE FROM teller WHERE id IN (3, 4);
DELETE FROM teller WHERE id = 1;
SELECT * FROM teller ORDER BY id;
INSERT INTO item VALUES (1, 1, 'eins', NULL, 'q'), (2, 2, 'two', 2, 'y'), (3, 3, NULL, NULL, NULL);
INSERT INTO item (id, a, b) VALUES (4, 2, 'x');
INSERT INTO item (id, branch) VALUES (4, 5);
INSERT INTO item (id) VALUES (4);
INSERT INTO part VALUES (1, 'a'), (1, 'b'), (3, 'c'), (4, NULL), (NULL, 'free');
DELETE FROM branch WHERE id = 2;
UPDATE teller SET branch = NULL;
UPDATE branch SET id = id + 100, name = name || '!' WHERE id IN (1, 3);
SELECT * FROM item ORDER BY id;
DELETE FROM branch WHERE id = 101;
SELECT * FROM item ORDER BY id;
SELECT * FROM part ORDER BY item, note;
INSERT INTO item (id, branch) VALUES (4, 77) ON CONFLICT (id) DO UPDATE SET branch = excluded.branch;
INSERT INTO item (id, branch) VALUES (4, 77) ON CONFLICT (id) DO UPDATE SET branch = 103 RETURNING id, branch;
DELETE FROM item WHERE branch = 103;
SELECT * FROM part ORDER BY item, note;
-- Keys that come in one statement.
INSERT INTO branch VALUES (2, 'two', 2, 'y'), (3, 'three', NULL, NULL);
INSERT INTO teller VALUES (20, 2, 21), (21, 2, 20);
COPY teller FROM STDIN;
30	2	31
31	3	30
\.
COPY teller FROM STDIN;
40	2	41
\.
SELECT id FROM teller ORDER BY id;
-- Definitions.
CREATE TABLE wrong (a int REFERENCES nothing);
CREATE TABLE wrong (a int REFERENCES branch (a));
CREATE TABLE wrong (a int REFERENCES branch (nothing));
CREATE TABLE wrong (a text REFERENCES branch);
CREATE TABLE wrong (a int, FOREIGN KEY (a, b) REFERENCES branch);
CREATE TABLE wrong (a int, b int, FOREIGN KEY (a, b) REFERENCES branch);
CREATE TABLE bare (a int);
CREATE TABLE wrong (a int REFERENCES bare);
TRUNCATE branch;
TRUNCATE item;
DROP TABLE item;
DROP TABLE branch, teller;
DROP TABLE item CASCADE;
INSERT INTO part VALUES (99, 'free again');
DROP TABLE branch, teller;
DROP TABLE part, bare;
