-- Aggregates of rows in an order, and those that make JSON.
CREATE TABLE sale (id int PRIMARY KEY, shop text NOT NULL, item int, amount numeric(8,2), note text);
INSERT INTO sale VALUES (1, 'a', 3, 10.50, 'x'), (2, 'b', 1, NULL, NULL), (3, 'a', 1, 7, 'y'),
    (4, 'b', 2, 1.25, 'z'), (5, 'a', NULL, 3, 'x'), (6, 'c', NULL, NULL, NULL);

SELECT array_agg(id ORDER BY item) FROM sale;
SELECT array_agg(id ORDER BY item DESC) FROM sale;
SELECT array_agg(id ORDER BY item NULLS FIRST, id DESC) FROM sale;
SELECT shop, string_agg(note, ',' ORDER BY note DESC, id), count(*) FROM sale GROUP BY shop ORDER BY shop;
SELECT shop, array_agg(amount ORDER BY amount DESC NULLS LAST), array_agg(amount ORDER BY id) FROM sale GROUP BY shop ORDER BY shop;
SELECT string_agg(note, '/' || item::text ORDER BY item) FROM sale;
SELECT array_agg(DISTINCT shop ORDER BY shop DESC), array_agg(DISTINCT shop) FROM sale;
SELECT string_agg(DISTINCT note, ',') FROM sale;
SELECT array_agg(DISTINCT item ORDER BY item NULLS FIRST) FROM sale;
SELECT array_agg(DISTINCT shop ORDER BY id) FROM sale;
SELECT string_agg(DISTINCT shop, ',' ORDER BY shop || '') FROM sale;
SELECT sum(amount ORDER BY id), max(id ORDER BY shop), count(item ORDER BY id) FROM sale;
SELECT array_agg(id ORDER BY amount + 1, shop) FILTER (WHERE amount > 2) FROM sale;
SELECT array_agg(id ORDER BY id) FROM sale WHERE id > 100;
SELECT array_agg(NULL::int ORDER BY id) FROM sale WHERE id < 3;
SELECT shop, array_agg(id ORDER BY id DESC) AS ids FROM sale GROUP BY shop HAVING count(*) > 1 ORDER BY max(id ORDER BY id);
SELECT array_agg(count(*) ORDER BY id) FROM sale;
SELECT lower(note ORDER BY id) FROM sale;
SELECT (SELECT array_agg(o.id ORDER BY o.amount DESC) FROM sale o WHERE o.shop = s.shop AND o.amount IS NOT NULL) FROM sale s ORDER BY s.id;
SELECT count(*) FILTER (WHERE item IS NULL), sum(amount) FILTER (WHERE shop = 'a') FROM sale;

SELECT jsonb_agg(item ORDER BY id), jsonb_agg(note) FROM sale;
SELECT jsonb_agg(amount ORDER BY amount DESC) FROM sale;
SELECT shop, jsonb_object_agg(id, note ORDER BY id) FROM sale GROUP BY shop ORDER BY shop;
SELECT jsonb_object_agg(note, id) FROM sale;
SELECT jsonb_object_agg(shop, id ORDER BY id), jsonb_object_agg(shop, id ORDER BY id DESC) FROM sale;
SELECT jsonb_agg(id) FROM sale WHERE false;
SELECT jsonb_object_agg(id, id) FROM sale WHERE false;
SELECT jsonb_build_object('a', 1, 'b', NULL, 'c', true, 'd', 'x"y', 'e', 1.50, 'f', 2.5::float8);
SELECT jsonb_build_object(), jsonb_build_array();
SELECT jsonb_build_object('a');
SELECT jsonb_build_object(NULL, 1);
SELECT jsonb_build_object(1, 2, true, 3);
SELECT jsonb_build_array(1, 'a', NULL, ARRAY[1, 2], '{"k": [1]}'::jsonb, DATE '2024-02-29', TIMESTAMP '2024-02-29 12:30:00.5');
SELECT jsonb_build_array(TIMESTAMPTZ '2024-02-29 12:30:00+00', INTERVAL '1 day 2 hours', 'NaN'::float8, '{{1,2},{3,4}}'::int[], '\x00ff'::bytea);
SELECT to_jsonb(12::bigint), to_jsonb('a'::text), to_jsonb(NULL::int), to_jsonb(ARRAY['x', NULL]);
SELECT jsonb_build_object('id', id, 'tags', jsonb_build_array(shop, item)) FROM sale ORDER BY id LIMIT 2;
SELECT json_build_object('a', id, 'b', note)::jsonb FROM sale WHERE id = 1;
SELECT jsonb_build_object('all', jsonb_agg(jsonb_build_object('id', id, 'shop', shop) ORDER BY id DESC)) FROM sale WHERE id < 4;
CREATE TABLE kept (shop text PRIMARY KEY, ids text, whole jsonb);
INSERT INTO kept SELECT shop, string_agg(id::text, '-' ORDER BY id DESC), jsonb_agg(item ORDER BY id) FROM sale GROUP BY shop;
SELECT * FROM kept ORDER BY shop;
-- Queries within aggregates: an aggregate is one of the query whose columns it names.
SELECT max((SELECT s.id)), min((SELECT s.id + s.item)) FROM sale s;
SELECT shop, sum((SELECT count(*) FROM sale o WHERE o.shop = s.shop)) FROM sale s GROUP BY shop ORDER BY shop;
SELECT count(*) FILTER (WHERE EXISTS (SELECT 1 FROM sale o WHERE o.id > s.id)) FROM sale s;
SELECT (SELECT max((SELECT o.id + s.id)) FROM sale o) FROM sale s ORDER BY s.id LIMIT 2;
SELECT (SELECT max((SELECT o.id FROM sale i WHERE i.id = s.id)) FROM sale o) FROM sale s ORDER BY s.id LIMIT 2;
SELECT (SELECT count(*) FILTER (WHERE o.id > s.id) FROM sale o) FROM sale s ORDER BY s.id LIMIT 2;
SELECT (SELECT sum(o.id) FILTER (WHERE s.id = 1) FROM sale o) FROM sale s ORDER BY s.id LIMIT 2;
SELECT max((SELECT max(id) FROM sale));
SELECT 'none' FROM sale GROUP BY shop HAVING max((SELECT count(*) FROM sale o WHERE o.shop = 'b')) > 9;
