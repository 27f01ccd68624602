-- What has no type is an array where one is asked for, or an item.
SELECT array_append(NULL, 1), array_prepend(1, NULL), array_cat(NULL, ARRAY[1]), array_cat(ARRAY[1], NULL), array_cat(NULL, NULL);
SELECT array_append(NULL, 'a'), array_prepend('a', NULL), array_append(NULL, NULL), array_prepend(NULL, NULL);
SELECT array_append(NULL, 1.5), array_append(NULL, date '2024-01-01'), array_append(NULL, 'x'::varchar), array_cat(NULL, '{1}'::int[]);
SELECT array_append('{1}', 2), array_append('{a}', 'b'), array_cat('{1}', ARRAY[2.5]), array_prepend(NULL, '{1}'::int[]);
SELECT pg_typeof(array_append(NULL, 1)), pg_typeof(array_append(NULL, 'a')), pg_typeof(array_cat(NULL, NULL)), pg_typeof(array_append(NULL, 1.5));
SELECT array_append('{a}', 2);
SELECT array_append(1, 2);
SELECT array_cat(1, ARRAY[2]);
SELECT array_append(ARRAY[1], 'x'::text);
SELECT NULL || ARRAY[1], ARRAY[1] || NULL, '{2}' || ARRAY[1], ARRAY[1] || 2.5, 2.5 || ARRAY[1], ARRAY[1] || ARRAY[2.5];
\set VERBOSITY sqlstate
SELECT ARRAY[1] || 'x'::text;
SELECT true || ARRAY[1];
\set VERBOSITY default
-- Names of columns, and what they are called like.
SELECT CASE WHEN true THEN 2.0 ELSE '1'::double precision END, CASE WHEN true THEN 1 ELSE n END, CASE WHEN true THEN 1 ELSE n::text::int END, CASE WHEN true THEN 'a' ELSE upper('b') END, CASE WHEN true THEN n ELSE (SELECT 5 AS q) END, CASE WHEN true THEN 1 END FROM (VALUES (1)) v(n);
SELECT n::text, (n + 1)::text, -n::int, upper('a')::varchar, (SELECT 1)::text, (SELECT n)::text, EXISTS (SELECT 1)::text, (n = 1)::text, NULL::int, true::text, ARRAY[1]::text[] FROM (VALUES (1)) v(n);
SELECT interval '1' hour, interval(2) '1 h', timestamp(3) '2024-01-01', int4 '1', '1'::interval hour to second(2), '1'::float(3), 'a'::"char", '1'::dec(3);
SELECT n ISNULL, n isnull AND true, (n) notnull, 1 isnull AS isnull FROM (VALUES (1)) v(n);
SELECT current_schema, current_schema() AS a, 1 AS current_role WHERE current_role IS NOT NULL;
SELECT current_schema;
