-- What users did not make is not shown, and takes no names.
CREATE TABLE p (id int PRIMARY KEY, u int UNIQUE, x int);
CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p ON DELETE CASCADE, q int, r int REFERENCES p (u));
INSERT INTO p SELECT n, n, n FROM generate_series(1, 5) n;
INSERT INTO c SELECT n, n, n, n FROM generate_series(1, 5) n;
\d c
\di
SELECT indexname FROM pg_indexes WHERE tablename = 'c' ORDER BY 1;
SELECT relname, relhasindex FROM pg_class WHERE relname LIKE 'c%idx' OR relname = 'c' ORDER BY 1;
SELECT count(*) FROM pg_index WHERE indrelid = 'c'::regclass;
SELECT to_regclass('c_p_fkey_idx');
-- The name is free, and what is made is shown.
CREATE INDEX c_p_fkey_idx ON c (p);
\d c
DROP INDEX c_p_fkey_idx;
\d c
DELETE FROM p WHERE id = 1;
SELECT * FROM c ORDER BY id;
-- One that begins with the same columns.
CREATE INDEX wide ON c (p, q DESC);
DELETE FROM p WHERE id = 2;
SELECT * FROM c ORDER BY id;
DROP INDEX wide;
CREATE UNIQUE INDEX single ON c (p);
DROP INDEX single;
DELETE FROM p WHERE id = 3;
SELECT * FROM c ORDER BY id;
DELETE FROM p WHERE u = 4;
CREATE INDEX twice ON c (r);
ALTER TABLE c DROP CONSTRAINT c_r_fkey;
DROP INDEX twice;
SELECT * FROM c ORDER BY id;
-- Unique indexes are no constraints.
CREATE UNIQUE INDEX p_x ON p (x);
SELECT conname FROM pg_constraint WHERE conrelid = 'p'::regclass ORDER BY 1;
SELECT constraint_name, constraint_type FROM information_schema.table_constraints WHERE table_name = 'p' AND constraint_type <> 'CHECK' ORDER BY 1;
CREATE TABLE e (x int REFERENCES p (x));
DROP INDEX p_x;
DROP INDEX p_pkey;
DROP INDEX p_u_key;
DROP INDEX IF EXISTS nothing;
DROP INDEX p_x CASCADE;
\d e
-- Hidden keys take no names.
CREATE TABLE n (a int);
CREATE SEQUENCE n_row_seq;
CREATE INDEX n_row_key ON n (a);
\d n
\ds
INSERT INTO n VALUES (1), (2);
SELECT nextval('n_row_seq');
DROP INDEX n_row_key;
DROP SEQUENCE n_row_seq;
INSERT INTO n VALUES (3);
SELECT * FROM n ORDER BY a;
-- What constraints were stated to be.
CREATE TABLE d (a int REFERENCES p DEFERRABLE INITIALLY DEFERRED, b int REFERENCES p DEFERRABLE, c int REFERENCES p INITIALLY IMMEDIATE);
SELECT conname, condeferrable, condeferred, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'd'::regclass ORDER BY 1;
SELECT constraint_name, is_deferrable, initially_deferred FROM information_schema.table_constraints WHERE table_name = 'd' ORDER BY 1;
\d d
