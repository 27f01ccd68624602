-- Truth values: their texts, their order, and three-valued logic.
\set VERBOSITY sqlstate
\pset null NULL
CREATE TABLE truth (id int PRIMARY KEY, a boolean, b boolean);
INSERT INTO truth VALUES (1, true, true), (2, true, false), (3, true, NULL), (4, false, true),
    (5, false, false), (6, false, NULL), (7, NULL, true), (8, NULL, false), (9, NULL, NULL);
SELECT id, a AND b AS both, a OR b AS either, NOT a AS other, a = b AS same FROM truth ORDER BY id;
SELECT id, a IS TRUE, a IS NOT TRUE, a IS FALSE, a IS NOT FALSE, a IS UNKNOWN, a IS NOT UNKNOWN
    FROM truth WHERE b IS NULL ORDER BY id;
SELECT id, a IS DISTINCT FROM b FROM truth ORDER BY a DESC NULLS LAST, b NULLS FIRST;
SELECT bool 't', bool 'yes', bool 'on', bool '1', bool 'tr', bool ' true ', boolean 'FALSE';
SELECT bool 'f', bool 'no', bool 'off', bool '0', bool 'n';
SELECT bool 'o';
SELECT bool 'yess';
SELECT bool '';
SELECT bool '2';
SELECT true < false, true > false, true <= true, false <> true, true = NULL;
SELECT true::text, false::varchar, 't'::text::boolean, 0::boolean, 17::boolean, true::int;
SELECT count(*) FILTER (WHERE a), bool_and(a), bool_or(b), min(a::int), max(a::text) FROM truth;
SELECT a, count(*) FROM truth GROUP BY a HAVING count(b) = 2 ORDER BY a;
SELECT DISTINCT a OR b FROM truth ORDER BY 1;
SELECT id FROM truth WHERE a ORDER BY id;
SELECT id FROM truth WHERE NOT (a AND b) ORDER BY id;
SELECT id FROM truth WHERE a IN (false, NULL) ORDER BY id;
SELECT id FROM truth WHERE a NOT IN (false, NULL) ORDER BY id;
SELECT 1 WHERE 1;
SELECT true + true;
CREATE INDEX truth_a ON truth (a) WHERE a;
SELECT count(*) FROM truth WHERE a AND b IS NOT NULL;
DROP TABLE truth;
-- ISNULL behind each kind of value.
SELECT null isnull, true isnull, not null isnull, null::int isnull, 'a'::text isnull, $$a$$ isnull, e'a' isnull, 1.5::double precision isnull, case when true then null end isnull, current_date isnull, null notnull;
SELECT x is true isnull FROM (SELECT true AS x) q;
SELECT 1 WHERE null isnull;
SELECT null isnull = true, null isnull AS isnull;
