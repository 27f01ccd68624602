-- COPY in binary, and in blocks. What psql prints of it on PostgreSQL 15 is copy_binary.out, which
-- scripts/golden_sql.sh makes.
\pset null '<null>'
CREATE TABLE item (id integer PRIMARY KEY, name varchar(5), price numeric(8,2), sold timestamptz, info jsonb, flag boolean);
INSERT INTO item VALUES (1, 'apple', 1.5, '2024-02-29 12:00+00', '{"a": [1, null]}', true), (2, '', NULL, NULL, NULL, false);
\copy item TO PROGRAM 'od -An -v -tx1' (FORMAT binary)
\copy (SELECT id * 2, name FROM item WHERE id = 1) TO PROGRAM 'od -An -v -tx1' WITH BINARY
\copy (SELECT id FROM item WHERE false) TO PROGRAM 'od -An -v -tx1' (FORMAT 'binary')
\copy item (id, name) FROM PROGRAM 'printf "PGCOPY\n\377\r\n\000\000\000\000\000\000\000\000\000\000\002\000\000\000\004\000\000\000\007\000\000\000\003abc\000\002\000\000\000\004\000\000\000\010\377\377\377\377\377\377"' (FORMAT binary)
-- An extension of the header, and no end.
\copy item (id) FROM PROGRAM 'printf "PGCOPY\n\377\r\n\000\000\000\000\000\000\000\000\003xyz\000\001\000\000\000\004\000\000\000\011"' (FORMAT binary)
SELECT id, name FROM item ORDER BY id;
-- What is refused; nothing of it is there.
\copy item (id) FROM PROGRAM 'printf "20\n"' (FORMAT binary)
\copy item (id) FROM PROGRAM 'printf "PGCOPY\n\377\r\n\000\000\001\000\000\000\000\000\000"' (FORMAT binary)
\copy item (id) FROM PROGRAM 'printf "PGCOPY\n\377\r\n\000\000\002\000\000\000\000\000\000"' (FORMAT binary)
\copy item (id) FROM PROGRAM 'printf "PGCOPY\n\377\r\n\000\000\000\000\000\000\000\000\000\000\002"' (FORMAT binary)
\copy item (id) FROM PROGRAM 'printf "PGCOPY\n\377\r\n\000\000\000\000\000\000\000\000\000\000\001\377\377\377\376"' (FORMAT binary)
\copy item (id) FROM PROGRAM 'printf "PGCOPY\n\377\r\n\000\000\000\000\000\000\000\000\000\000\001\000\000\000\004\000\000"' (FORMAT binary)
\copy item (id) FROM PROGRAM 'printf "PGCOPY\n\377\r\n\000\000\000\000\000\000\000\000\000\377\377x"' (FORMAT binary)
\copy item (id, name) FROM PROGRAM 'printf "PGCOPY\n\377\r\n\000\000\000\000\000\000\000\000\000\000\002\000\000\000\004\000\000\000\047\000\000\000\006abcdef"' (FORMAT binary)
\copy item (id) FROM PROGRAM 'printf "PGCOPY\n\377\r\n\000\000\000\000\000\000\000\000\000\000\001\000\000\000\004\000\000\000\001"' (FORMAT binary)
SELECT count(*) FROM item;
COPY item TO STDOUT (FORMAT binary, DELIMITER ',');
COPY item TO STDOUT (FORMAT binary, NULL 'x');
COPY item TO STDOUT (FORMAT binary, HEADER);
COPY item TO STDOUT (FORMAT binary, QUOTE '"');
-- In a block it sees what the block has written.
BEGIN;
INSERT INTO item (id, name) VALUES (30, 'block');
COPY item (id, name) TO STDOUT;
COPY (SELECT count(*) FROM item) TO STDOUT (FORMAT csv, HEADER);
DELETE FROM item WHERE id = 30;
COPY item (id) TO STDOUT (FORMAT csv);
COPY nothing TO STDOUT;
ROLLBACK;
BEGIN READ ONLY;
COPY (SELECT id FROM item WHERE id < 3) TO STDOUT;
COMMIT;
BEGIN;
\copy item (id) FROM PROGRAM 'printf "PGCOPY\n\377\r\n\000\000\000\000\000\000\000\000\000\000\001\000\000\000\004\000\000\000\062\377\377"' (FORMAT binary)
COPY (SELECT max(id) FROM item) TO STDOUT;
COMMIT;
SELECT max(id) FROM item;
DROP TABLE item;
