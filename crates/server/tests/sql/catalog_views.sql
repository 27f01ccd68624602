-- What psql's commands and the standard's relations say of views. Not here, as it differs: the text of a
-- view's query, which PostgreSQL writes anew.
CREATE TABLE item (id integer PRIMARY KEY, name varchar(20) NOT NULL, price numeric(8,2));
CREATE VIEW cheap AS SELECT id, name, price FROM item WHERE price < 10;
CREATE VIEW names (called, number) AS SELECT name, id FROM cheap;
\d
\dv
\d cheap
\d names
SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1;
SELECT table_name, column_name, data_type, ordinal_position FROM information_schema.columns
    WHERE table_schema = 'public' ORDER BY 1, 4;
CREATE VIEW computed AS SELECT id + 1 AS more FROM item;
CREATE VIEW partly AS SELECT number, upper(called) AS loud FROM names ORDER BY number;
CREATE VIEW over_computed AS SELECT more FROM computed;
CREATE VIEW over_partly AS SELECT loud, number FROM names, LATERAL (SELECT 1 AS loud) l;
CREATE VIEW counted AS SELECT count(*) FROM item;
CREATE VIEW several AS SELECT DISTINCT name FROM item;
CREATE VIEW first AS SELECT id FROM item LIMIT 1;
CREATE VIEW none AS SELECT 1 AS one;
SELECT table_name, is_updatable, is_insertable_into, is_trigger_updatable, check_option
    FROM information_schema.views WHERE table_schema = 'public' ORDER BY 1;
SELECT table_name, is_insertable_into FROM information_schema.tables WHERE table_schema = 'public'
    ORDER BY 1;
SELECT table_name, column_name, is_updatable FROM information_schema.columns
    WHERE table_schema = 'public' ORDER BY 1, 2;
DROP VIEW computed, partly, over_computed, over_partly, counted, several, first, none;
SELECT viewname, viewowner FROM pg_views WHERE schemaname = 'public' ORDER BY 1;
SELECT 'cheap'::regclass, 'names'::regclass::text, pg_get_viewdef('cheap'::regclass) IS NOT NULL AS known;
SELECT relname, relkind, relnatts FROM pg_class WHERE relname IN ('cheap', 'names', 'item') ORDER BY 1;
DROP VIEW names;
\dv
-- JDBC's query of indexes has the function in FROM.
CREATE TABLE expanded (a int, b int, c int, PRIMARY KEY (c, a));
SELECT a.attname, ic.x, ic.n FROM pg_index i JOIN information_schema._pg_expandarray(i.indkey) ic ON 1 = 1 JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ic.x WHERE i.indrelid = 'expanded'::regclass ORDER BY ic.n;
SELECT * FROM information_schema._pg_expandarray(NULL::int[]);
SELECT e.x, n FROM information_schema._pg_expandarray(ARRAY[7, NULL]) AS e(x, n);
DROP TABLE expanded;
-- Arrays of names of types.
SELECT typname FROM pg_type WHERE oid = ANY ('{int,text,"double precision",int8}'::regtype[]) ORDER BY 1;
SELECT 'int4'::regtype = ANY ('{bigint,NULL}'::regtype[]), '{}'::regtype[] = '{}';
CREATE TABLE vectors (a int, b int, PRIMARY KEY (a, b));
SELECT oidvectortypes(indcollation), oidvectortypes(NULL) FROM pg_index WHERE indrelid = 'vectors'::regclass;
DROP TABLE vectors;
-- Measures of types, which jOOQ asks for.
SELECT information_schema._pg_char_max_length(1043, 44), information_schema._pg_char_max_length(25, -1), information_schema._pg_numeric_precision(1700, 655366), information_schema._pg_numeric_precision(23, -1), information_schema._pg_numeric_scale(1700, 655366), information_schema._pg_datetime_precision(1184, -1), information_schema._pg_datetime_precision(1114, 3), information_schema._pg_datetime_precision(1186, NULL);
