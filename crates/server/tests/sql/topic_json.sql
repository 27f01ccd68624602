-- jsonb: texts, operators, order, functions.
\set VERBOSITY sqlstate
\pset null NULL
SELECT '{"b": 1, "a": [1, 2.50, null], "b": 2}'::jsonb, '[]'::jsonb, ' "x" '::jsonb, 'null'::jsonb, '1e2'::jsonb;
SELECT '{"a":1,}'::jsonb;
SELECT '[1 2]'::jsonb;
SELECT 'nul'::jsonb;
SELECT '{"a": {"b": [10, 20]}}'::jsonb -> 'a' -> 'b' -> 1, '{"a": {"b": [10, 20]}}'::jsonb #>> '{a,b,0}', '[1,2,3]'::jsonb -> -1, '{"a":null}'::jsonb ->> 'a', '{"a":1}'::jsonb -> 'z';
SELECT '{"a":1,"b":2}'::jsonb @> '{"a":1}', '[1,2,3]'::jsonb @> '[3,1]', '{"a":1}'::jsonb ? 'a', '["x","y"]'::jsonb ?| array['z','y'], '{"a":1,"b":2}'::jsonb ?& array['a','c'];
SELECT '{"a":1}'::jsonb || '{"b":2}', '[1]'::jsonb || '2', '{"a":1,"b":2}'::jsonb - 'a', '[1,2,3]'::jsonb - 1, '{"a":{"b":1}}'::jsonb #- '{a,b}';
SELECT jsonb_set('{"a":[1,2]}', '{a,0}', '9'), jsonb_set('{"a":1}', '{b}', '2'), jsonb_set('{"a":1}', '{b}', '2', false), jsonb_strip_nulls('{"a":null,"b":[null]}');
SELECT jsonb_typeof('1'), jsonb_typeof('[]'), jsonb_typeof('null'), jsonb_array_length('[1,2]');
SELECT jsonb_array_length('{}');
SELECT * FROM jsonb_each('{"x":1,"y":"z"}');
SELECT * FROM jsonb_each_text('{"x":1,"y":null}');
SELECT * FROM jsonb_array_elements('[1,{"a":2},null]') AS t(v);
SELECT * FROM jsonb_object_keys('{"c":1,"aa":2,"b":3}') AS k(name);
SELECT to_jsonb(1.50), to_jsonb('a"b'::text), to_jsonb(array[1, 2]), to_jsonb(date '2024-01-02'), jsonb_build_object('k', 1, 'l', NULL), jsonb_build_array(1, 'a', true);
SELECT '{"a":1}'::jsonb = '{"a":1.0}', '[1]'::jsonb < '[1,1]', '1'::jsonb < '"a"', 'true'::jsonb > '1';
SELECT '{"a": 1 , "a":2}'::json, '{"a": [1,2]}'::json -> 'a', '{"a":"x"}'::json ->> 'a';
CREATE TABLE docs (id int PRIMARY KEY, j jsonb);
INSERT INTO docs VALUES (1, '{"name":"ann","tags":["x"],"n":1}'), (2, '{"name":"bob","n":10.5}'), (3, NULL);
SELECT id, j ->> 'name', (j ->> 'n')::numeric + 1 FROM docs ORDER BY id;
SELECT id FROM docs WHERE j @> '{"name":"bob"}' OR j -> 'tags' ? 'x' ORDER BY id;
UPDATE docs SET j = jsonb_set(j, '{n}', '2') WHERE id = 1 RETURNING j;
SELECT jsonb_agg(j -> 'name' ORDER BY id), jsonb_object_agg(id, j -> 'n') FROM docs WHERE j IS NOT NULL;
DROP TABLE docs;
