-- Arrays: texts, elements, comparisons, functions, and in tables.
\set VERBOSITY sqlstate
\pset null NULL
SELECT '{1,2,3}'::int[], '{}'::int[], '{NULL,"NULL"}'::text[], '{"a,b","c\"d"}'::text[], ARRAY[1, NULL, 3];
SELECT '{1,2'::int[];
SELECT '{1,a}'::int[];
SELECT '1,2'::int[];
SELECT (ARRAY[10, 20, 30])[2], (ARRAY[10, 20])[5], (ARRAY[1, 2])[0];
SELECT ARRAY[1, 2] = ARRAY[1, 2], ARRAY[1, 2] < ARRAY[1, 3], ARRAY[1] < ARRAY[1, 0], ARRAY[2] > ARRAY[1, 9], ARRAY[NULL::int] = ARRAY[NULL::int];
SELECT ARRAY[1, 2] || 3, 0 || ARRAY[1], ARRAY[1] || ARRAY[2, 3], array_cat('{1}'::int[], '{}');
SELECT ARRAY[1, 2, 3] @> ARRAY[3, 1], ARRAY[1] <@ ARRAY[1, 2], ARRAY[1, 2] && ARRAY[2, 9], ARRAY[1, NULL] @> ARRAY[NULL]::int[];
SELECT cardinality('{1,2,3}'::int[]), array_length('{}'::int[], 1), array_upper(ARRAY[4, 5], 1), array_lower(ARRAY[4, 5], 1);
SELECT array_position(ARRAY['a', 'b', NULL], NULL), array_position(ARRAY[1, 2], 7), array_remove(ARRAY[1, 2, 1], 1), array_prepend(0, ARRAY[1]);
SELECT 2 = ANY (ARRAY[1, 2]), 3 = ANY (ARRAY[1, NULL]), 3 <> ALL (ARRAY[1, 2]), 1 <> ALL ('{}'::int[]);
SELECT unnest(ARRAY['x', 'y']) AS e, unnest(ARRAY[1, 2, 3]) AS n;
SELECT * FROM unnest(ARRAY[5, 6]) WITH ORDINALITY AS u(v, i);
SELECT array_agg(g ORDER BY g DESC) FROM generate_series(1, 4) g;
SELECT ARRAY(SELECT g * 2 FROM generate_series(1, 3) g);
CREATE TABLE lists (id int PRIMARY KEY, a int[] DEFAULT '{}', t text[]);
INSERT INTO lists VALUES (1, '{1,2}', '{a}'), (2, ARRAY[2, 3], NULL), (3, DEFAULT, ARRAY['x', NULL]);
SELECT * FROM lists ORDER BY a, id;
SELECT id FROM lists WHERE 2 = ANY (a) ORDER BY id;
SELECT id, e FROM lists, unnest(a) e ORDER BY id, e;
UPDATE lists SET a = a || 9 WHERE id = 3 RETURNING a;
SELECT a, count(*) FROM lists GROUP BY a ORDER BY a;
SELECT id, array_to_string(t, '+', '-') FROM lists ORDER BY id;
INSERT INTO lists VALUES (4, '{x}', NULL);
DROP TABLE lists;
SELECT ARRAY[]::int[], CAST(ARRAY[] AS text[]), ARRAY[]::varchar(3)[], ARRAY[]::int[] || 1, cardinality(ARRAY[]::numeric(4,2)[]), (ARRAY[]::date[])[1];
SELECT 1 = ANY (ARRAY[]::int[]), 1 <> ALL (ARRAY[]::int[]), ARRAY[]::int[] = '{}';
SELECT ARRAY[]::int;
SELECT ARRAY[];
SELECT ARRAY[]::nothing[];
-- Items and NULL arrays; items of wider types.
SELECT null::int[] || 5, 5 || null::int[], array_append(null::int[], 5), array_prepend(5, null::int[]), null::text[] || 'a'::text, 1 = ANY (null::int[] || 1), null::int[] || null::int;
CREATE TABLE na (id int PRIMARY KEY, a int[], b numeric[]);
INSERT INTO na VALUES (1, NULL, NULL), (2, '{7}', '{1.50}');
UPDATE na SET a = a || id, b = id || b RETURNING *;
SELECT array[1] || 2.5, array[1] || array[2.5], array[1.5] || 2, array[1] || 1.7::real, array[0.1::real] || 0.1::float8, array[1] || 3000000000, array[1::smallint] || 70000;
SELECT array[date '2024-01-01'] || timestamp '2024-01-01 10:00', timestamp '2024-01-01 10:00' || array[date '2024-01-01'];
SELECT array_append(array[1], 2.5), array_prepend(1.7, array[1]), array_cat(array[1], array[2.5]), array_position(array[1, 2], 2.5), array_position(array[1, 2], 2.0), array_remove(array[1, 2], 2.5), array_position(null::int[], 1), array_remove(null::int[], 1);
SELECT a || 0.5, b || a, a || '{8,9}' FROM na ORDER BY id;
SELECT '{1}'::int[] || true;
SELECT true || '{}'::int[];
SELECT '{1}'::int[] || null::text;
SELECT array['a'] || 1;
SELECT array_append(array[1], 'x'::text);
SELECT array_cat(array[1], 2);
SELECT a || '8' FROM na;
