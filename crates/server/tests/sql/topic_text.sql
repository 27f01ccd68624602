-- Text, varchar and char: lengths, blanks, patterns, functions.
\set VERBOSITY sqlstate
\pset null NULL
SELECT 'a' < 'b', 'a' < 'B', 'abc' < 'abcd', '' < 'a', 'a ' = 'a', 'a '::char(3) = 'a', 'a '::varchar = 'a';
SELECT 'abcdef'::varchar(3), 'abcdef'::char(3), length('ab'::char(5)), 'ab'::char(5) || '|';
CREATE TABLE words (id int PRIMARY KEY, t text, v varchar(4), c char(4));
INSERT INTO words VALUES (1, 'one', 'one', 'one'), (2, 'Two ', 'Two ', 'Two '), (3, '', '', ''), (4, NULL, NULL, NULL);
INSERT INTO words (id, v) VALUES (5, 'toolong');
INSERT INTO words (id, c) VALUES (5, 'toolong');
INSERT INTO words (id, v, c) VALUES (5, 'abcd     ', 'abcd     ');
SELECT id, '[' || t || ']', '[' || v || ']', '[' || c || ']', length(c) FROM words ORDER BY id;
SELECT id FROM words WHERE c = 'one' ORDER BY id;
SELECT id FROM words WHERE t = 'Two' OR v = 'Two' ORDER BY id;
SELECT id FROM words WHERE t LIKE '%o%' ORDER BY id;
SELECT id FROM words WHERE t ILIKE 't_o_' ORDER BY id;
SELECT id FROM words WHERE t NOT LIKE '_%' ORDER BY id;
SELECT 'a%c' LIKE 'a\%c', 'abc' LIKE 'a\%c', 'a_c' LIKE 'a#_c' ESCAPE '#', 'a\c' LIKE 'a\c' ESCAPE '';
SELECT 'abc' LIKE 'ab\';
SELECT 'hawkeye' ~ 'k.y', 'hawkeye' ~* 'HAWK', 'x' !~ '^y$', regexp_replace('foobar', 'o+', '<&>'), regexp_match('ab12', '([a-z]+)(\d+)');
SELECT lower('ABC'), upper('abc'), initcap('hello wORLD'), reverse('abc'), repeat('ab', 3), repeat('x', -1);
SELECT substring('abcdef' from 2 for 3), substring('abc' from 0 for 2), substring('abc' from -1), substr('abcdef', 4), left('abc', -1), right('abc', 2);
SELECT substring('abc' from 2 for -1);
SELECT overlay('abcdef' placing '45' from 4), position('c' in 'abc'), position('' in 'abc'), strpos('abc', 'z');
SELECT trim(both 'x' from 'xxaxx'), trim('  a '), ltrim('zzya', 'xyz'), rtrim('abcc', 'c'), btrim('  a  ');
SELECT lpad('7', 3, '0'), rpad('ab', 5, 'xy'), lpad('abcdef', 3), split_part('a,b,c', ',', 2), split_part('a,b', ',', 5), split_part('a,b,c', ',', -1);
SELECT split_part('a', ',', 0);
SELECT replace('aabb', 'ab', '-'), translate('12345', '143', 'ax'), ascii('A'), chr(66), concat('a', NULL, 1, true), concat_ws('-', 'a', NULL, 'b');
SELECT chr(0);
SELECT string_agg(t, ',' ORDER BY id), string_agg(v, '/' ORDER BY id DESC) FROM words;
SELECT 'it''s', E'tab\there', E'\x41\u0042';
SELECT length('h' || chr(233)), octet_length('h' || chr(233)), upper('h' || chr(233)) = 'H' || chr(233);
SELECT bytea '\x0aff', octet_length(bytea '\x0aff'), bytea '\x01' < bytea '\x0100', bytea 'ab\\c';
SELECT bytea '\xabc';
SELECT string_to_array('a,b,,c', ','), string_to_array('', ','), array_to_string(array['a', NULL, 'b'], ',', '?');
DROP TABLE words;
SELECT right('abc', -2147483648), left('abc', -2147483648), right('abc', -2147483647), right('abc', 2147483647);
