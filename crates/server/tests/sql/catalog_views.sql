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
SELECT table_name, is_updatable = 'NO' OR true AS known FROM information_schema.views
    WHERE table_schema = 'public' ORDER BY 1;
SELECT viewname, viewowner FROM pg_views WHERE schemaname = 'public' ORDER BY 1;
SELECT 'cheap'::regclass, 'names'::regclass::text, pg_get_viewdef('cheap'::regclass) IS NOT NULL AS known;
SELECT relname, relkind, relnatts FROM pg_class WHERE relname IN ('cheap', 'names', 'item') ORDER BY 1;
DROP VIEW names;
\dv
