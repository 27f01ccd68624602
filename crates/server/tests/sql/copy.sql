-- COPY. What psql prints of it on PostgreSQL 15 is copy.out, which scripts/golden_sql.sh makes.
\set ON_ERROR_STOP off
\pset null '<null>'
CREATE TABLE item (
    id integer PRIMARY KEY,
    name text,
    price numeric(8,2) DEFAULT 9.99,
    code char(4),
    sold date
);
COPY item FROM STDIN;
1	apple	1.5	ab	2024-02-29
2	tab\there, back\\slash\nline	\N	\N	\N
3		3	abcd	1999-12-31
\.
COPY item (id, name) FROM STDIN WITH (FORMAT csv, HEADER);
id,name
10,"comma, ""quote"" and
two lines"
11,
12,""
\.
COPY item (name, id) FROM STDIN (DELIMITER '|', NULL 'nix');
a\|b|20
nix|21
\x41\102|22
\.
SELECT * FROM item ORDER BY id;
COPY item TO STDOUT;
COPY item (id, name) TO STDOUT WITH CSV HEADER;
COPY item (code, name) TO STDOUT WITH (FORMAT csv, NULL 'null', QUOTE '''', ESCAPE '\', FORCE_QUOTE (code), DELIMITER ';');
COPY (SELECT id, price * 2 AS twice FROM item WHERE id < 5 ORDER BY id DESC) TO STDOUT WITH (HEADER);
-- Lines that are refused: nothing of their COPY is there.
COPY item (id, name) FROM STDIN;
30	x
31
\.
COPY item (id, name) FROM STDIN;
30	x	y
\.
COPY item (id, name) FROM STDIN;
30	x
x	y
\.
COPY item (id, sold) FROM STDIN WITH (FORMAT csv);
30,2024-01-01
31,soon
\.
COPY item (id, code) FROM STDIN;
30	abcde
\.
COPY item (id, name) FROM STDIN;
30	x
1	y
\.
SELECT count(*) FROM item WHERE id >= 30;
\copy item (id, nothing) FROM /dev/null
\copy nothing FROM /dev/null
\copy item FROM /dev/null WITH (DELIMITER 'a')
\copy item FROM /dev/null WITH (QUOTE '"')
\copy item FROM /dev/null WITH (FORMAT csv, DELIMITER '"')
-- Numbers and defaults come as by INSERT.
CREATE TABLE log (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, text text NOT NULL UNIQUE);
COPY log (text) FROM STDIN;
one
two
\.
INSERT INTO log (text) VALUES ('three') RETURNING id;
COPY log FROM STDIN (FORMAT csv);
70,seventy
\.
SELECT * FROM log ORDER BY id;
CREATE TABLE bare (a int, b text);
COPY bare FROM STDIN;
1	x
1	x
\.
COPY bare TO STDOUT (DELIMITER ',');
DROP TABLE item, log, bare;
