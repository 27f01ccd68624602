\pset null NULL
SELECT regexp_replace('foobarbaz', 'b..', 'X'), regexp_replace('foobarbaz', 'b..', 'X', 'g'), regexp_replace('foobarbaz', 'b(..)', 'X\1Y', 'g'), regexp_replace('Foo', 'f', 'x', 'i'), regexp_replace('a.b.c', '\.', '', 'g'), regexp_replace('abc', 'z', 'x'), regexp_replace('abc', 'b', '[\&]'), regexp_replace('abc', 'b', '\\'), regexp_replace(NULL, 'b', 'x');
SELECT regexp_replace('  many   blanks ', '\s+', ' ', 'g'), regexp_replace('Thomas', '.[mN]a.', 'M'), regexp_replace('123-456', '(\d+)-(\d+)', '\2-\1'), regexp_replace('abc', '', '-', 'g'), regexp_replace('aaa', 'a*', 'b', 'g'), regexp_replace('baac', 'a*', 'x', 'g');
SELECT regexp_match('foobarbequebaz', 'bar.*que'), regexp_match('foobarbequebaz', '(bar)(beque)'), regexp_match('foobarbequebaz', 'x'), regexp_match('abc', '(a)|(b)'), regexp_match('ABC', 'b', 'i'), (regexp_match('user@host.org', '@(.+)$'))[1];
SELECT regexp_match('abc', 'b', 'g');
SELECT regexp_match('abc', 'b', 'z');
SELECT regexp_matches('foobarbequebazilbarfbonk', '(b[^b]+)(b[^b]+)', 'g');
SELECT m[1] FROM regexp_matches('a1b22c333', '\d+', 'g') m;
SELECT * FROM regexp_matches('abc', 'z');
SELECT * FROM regexp_matches('abc', '.');
CREATE TABLE t (id int PRIMARY KEY, a text);
INSERT INTO t VALUES (1, 'x1y22'), (2, 'none');
SELECT id, regexp_replace(a, '\d', '#', 'g') FROM t WHERE a ~ '\d' ORDER BY id;
SELECT id, m FROM t, regexp_matches(a, '([a-z])(\d+)', 'g') m ORDER BY id, m;
