-- Types of expressions: lengths and precisions that all have stay; of types of text the first stays.
\pset null -
CREATE TABLE c (v varchar(6), w varchar(6), x varchar(8), c4 char(4), c5 char(5), n numeric(10,2), t text, s timestamp(3), i int);
SELECT coalesce(v, w) a, coalesce(v, x) b, coalesce(v, t) c, coalesce(t, v) d, coalesce(c4, c4) e, coalesce(c4, c5) f, coalesce(v, c4) g, coalesce(c4, v) h, coalesce(n, n) i, coalesce(n, 1) j, coalesce(s, s) k, coalesce(v, 'x') l, coalesce(NULL, v) m, coalesce(v) n, coalesce(c4, t) o, coalesce(t, c4) p FROM c \gdesc
SELECT CASE WHEN true THEN v ELSE w END, CASE WHEN true THEN v END, CASE WHEN true THEN c4 END, CASE WHEN true THEN t ELSE v END, CASE WHEN true THEN v ELSE t END, CASE WHEN true THEN n WHEN false THEN n ELSE n END, CASE WHEN true THEN c4 ELSE c4 END, CASE WHEN true THEN 'x' ELSE v END, CASE i WHEN 1 THEN v ELSE x END FROM c \gdesc
SELECT greatest(v, w), greatest(v, x), least(c4, c4), greatest(n, n), nullif(v, w), nullif(c4, c4), nullif(n, 1), array[v, w], array[v, x], array[c4], array[n, n], array[t, v], array[v, t], array[v, NULL] FROM c \gdesc
SELECT lag(v) OVER (), lag(v, 1, w) OVER (), first_value(v) OVER () FROM c \gdesc
SELECT v FROM c UNION SELECT w FROM c \gdesc
SELECT v FROM c UNION SELECT x FROM c \gdesc
SELECT v FROM c UNION SELECT t FROM c \gdesc
SELECT t FROM c UNION SELECT v FROM c \gdesc
SELECT c4 FROM c UNION ALL SELECT v FROM c \gdesc
SELECT v FROM c UNION ALL SELECT NULL \gdesc
VALUES ('a'::varchar(3)), ('b'::varchar(3)) \gdesc
VALUES ('a'::varchar(3)), ('b'::text) \gdesc
SELECT (SELECT 1)::int4, (array['a'])[1]::char(4), (('{}'::text[])[2])::char(4), (CASE WHEN true THEN 1 END)::text \gdesc
INSERT INTO c (v, w, x, c4, c5, n, t) VALUES ('a', 'b', 'c', 'd', 'e', 1, 'f'), (NULL, 'a', 'a', 'a', 'a', 2, 'a');
SELECT coalesce(v, c4) || '|', coalesce(c4, v) || '|', coalesce(v, t), CASE WHEN v IS NULL THEN c4 ELSE w END || '|', array[v, t], greatest(v, w, x) FROM c ORDER BY n;
SELECT v IN (w, x), v IN (w, t), c4 IN (v, w), v IN (c4, c4), coalesce(v, w) = c4, nullif(v, w) = 'a' FROM c ORDER BY n;
CREATE TABLE d AS SELECT coalesce(v, w) a, array[v, w] e, coalesce(n, n) f FROM c;
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'd'::regclass AND attnum > 0 ORDER BY attnum;
-- A table without a primary key has no sequence to see.
SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1;
SELECT count(*) FROM information_schema.sequences;
SELECT count(*) FROM pg_sequences;
-- `real` stays beside integers and numerics where one of the values is chosen, not where they are compared.
CREATE TABLE r (r real, i int, b bigint);
INSERT INTO r VALUES (0.1, 2, 3);
SELECT coalesce(r, 1), greatest(r, b - 9), CASE WHEN true THEN r ELSE 2.5 END, array[r, 1], coalesce(i, r), coalesce(r, 0::float8), lag(r, 1, i) OVER () FROM r \gdesc
SELECT coalesce(r, 1), greatest(r, b - 9), CASE WHEN true THEN r ELSE 2.5 END, array[r, 1], lag(r, 1, i) OVER () FROM r;
SELECT nullif(r, 1), nullif(i, b), nullif(b, i), nullif(i, 2.5), nullif(b, r), nullif(date '2024-01-02', timestamp '2024-01-02 01:00') FROM r \gdesc
SELECT nullif(r, 1), nullif(i, b), nullif(i, 2::bigint), nullif(r, 0.1), nullif(date '2024-01-02', timestamp '2024-01-02 00:00') FROM r;
SELECT r IN (0.1, 2), r IN (0.1), r = 0.1, r NOT IN (0.1, 5), r IN (i, b), i IN (2, 2.5), r + 1, r BETWEEN 0.1 AND 0.1 FROM r;
