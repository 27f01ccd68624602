-- Text as it was given.
CREATE TABLE doc (id int PRIMARY KEY, body json, other jsonb);
INSERT INTO doc VALUES
    (1, '{"b": 1,  "a": [1, 2.50, {"x": "y"}], "b": 2}', '{"b": 1,  "a": [1, 2.50, {"x": "y"}], "b": 2}'),
    (2, ' [10, "zw\u00f6lf", null, [ ] , {}] ', ' [10, "zw\u00f6lf", null, [ ] , {}] '),
    (3, '"text"', '"text"'),
    (4, 'null', 'null'),
    (5, NULL, NULL),
    (6, '{"a": {"b": {"c": "deep", "n": null}}, "": 0}', '{"a": {"b": {"c": "deep", "n": null}}, "": 0}');
SELECT id, body, other FROM doc ORDER BY id;
SELECT id, body -> 'a' AS a, body ->> 'a' AS t, other -> 'a' AS b, other ->> 'a' AS u FROM doc ORDER BY id;
SELECT id, body -> 'b' AS b, body -> 1 AS one, body ->> 1 AS text, body -> -1 AS last, body ->> 2 AS none FROM doc ORDER BY id;
SELECT id, body #> '{a,b}' AS p, body #>> '{a,b,c}' AS t, body #> '{a,2,x}' AS x, body #>> '{a,-1}' AS l FROM doc ORDER BY id;
SELECT id, other #> '{a,b}' AS p, other #>> '{a,b,c}' AS t, other #> '{a,2,x}' AS x, other #>> '{a,-1}' AS l FROM doc ORDER BY id;
SELECT id, body #>> '{a,b,n}' AS n, body #> '{a,b,n}' AS m, body #> ARRAY['0'] AS z, body #> '{x,y}' AS no, body #>> '{}' AS whole FROM doc ORDER BY id;
SELECT body ->> '' FROM doc WHERE body ->> '' = '0';
SELECT id FROM doc WHERE (body -> 'a' -> 'b') ->> 'c' = 'deep';
-- Casts.
SELECT body::jsonb, other::json, body::text, '[1,  2]'::json::text AS t FROM doc WHERE id = 1;
UPDATE doc SET body = other, other = body WHERE id = 1;
UPDATE doc SET body = ('{"z":' || id || '}')::json WHERE id = 4 RETURNING body;
SELECT body, other FROM doc WHERE id = 1;
SELECT json '{"a":  1}' AS a, '{"a":1}'::json -> 'a' AS b, CAST('[]' AS json) AS c;
-- Made of values.
SELECT to_json(1), to_json('a"b'::text), to_json(ARRAY[1, 2]), to_json('{{a,NULL},{c,d}}'::text[]), to_json(true);
SELECT to_json('[1,  2]'::json), to_json('[1,  2]'::jsonb), to_json(NULL::int), to_json('NaN'::float8), to_json(1.50);
SELECT to_json(date '2024-02-29'), to_json(timestamp '2024-02-29 12:00:00'), to_json('2024-02-29 12:00:00+00'::timestamptz);
SELECT json_build_object('a', 1, 'b', '[1,  2]'::json, 'c', '{"x":1}'::jsonb, 'd', NULL, 5, ARRAY[1]);
SELECT json_build_object(), json_build_array(), json_build_array(1, 'a', NULL, ARRAY[1, 2], '{"a":  1}'::json);
SELECT json_agg(id ORDER BY id), json_agg(body -> 'a' ORDER BY id) FROM doc WHERE id < 4;
SELECT length(json_agg(ARRAY[id, id + 1] ORDER BY id)::text), json_object_agg(id, body ORDER BY id) FROM doc WHERE id < 3;
SELECT json_agg(id), json_object_agg(id, id) FROM doc WHERE id > 100;
SELECT jsonb_agg(body ORDER BY id), jsonb_build_object('a', body) FROM doc WHERE id = 2 GROUP BY id, body::text, other;
SELECT jsonb_agg(body ORDER BY id) FROM doc WHERE id = 2;
SELECT json_build_object('all', json_agg(json_build_object('id', id) ORDER BY id)) FROM doc WHERE id < 3;
SELECT body FROM doc WHERE id = 3 UNION ALL SELECT body FROM doc WHERE id = 3;
ALTER TABLE doc ALTER body TYPE jsonb USING body::jsonb, ALTER other TYPE json USING other::json;
SELECT body, other FROM doc ORDER BY id;
SELECT json_agg(body ORDER BY id) FILTER (WHERE id > 3) FROM doc;
-- A scalar is an array of itself for numbers, and for no path.
SELECT '1'::jsonb -> 0, '1'::jsonb -> -1, '1'::jsonb -> 1, '1'::jsonb -> -2, '"a"'::jsonb ->> 0, 'null'::jsonb -> 0, 'null'::jsonb ->> 0, '1'::json -> 0;
SELECT '1'::jsonb #> '{0}', '1'::jsonb #>> '{0}', '1'::jsonb -> 'a', '[1]'::jsonb -> 0 -> 0, '[1]'::jsonb #> '{0,0}', '{"a":1}'::jsonb -> 0;
-- Nothing goes from an empty value, whatever the path says.
SELECT '[]'::jsonb #- '{b,0}', '{}'::jsonb #- '{b,0}', '[]'::jsonb #- '{NULL}', jsonb_set('[]', '{b}', '1', false), jsonb_set('{}', '{b}', '1');
SELECT '[[]]'::jsonb #- '{0,b}';
SELECT jsonb_set('[]', '{b}', '1');
