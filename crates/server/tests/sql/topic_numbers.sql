-- Whole numbers, numeric and floating point: bounds, rounding, texts.
\set VERBOSITY sqlstate
\pset null NULL
SELECT smallint '32767', int '-2147483648', bigint '9223372036854775807';
SELECT smallint '32768';
SELECT int '2147483648';
SELECT bigint '-9223372036854775809';
SELECT int ' 12 ', int '+5', int '-0';
SELECT int '1 2';
SELECT int '';
SELECT int '1.5';
SELECT 2147483647 + 1;
SELECT (-2147483648)::int / -1;
SELECT 32767::smallint + 1::smallint;
SELECT 7 / 2, -7 / 2, 7 % -2, -7 % 2, 5 / 0;
SELECT 5 % 0;
SELECT 2 & 3, 2 | 5, 6 # 3, ~5, 1 << 4, -16 >> 2;
SELECT 0.1 + 0.2, 1.10 * 2.000, 1 / 3.0, 10.00 / 4, 2.5 % 1, -2.5 % 1;
SELECT round(2.5), round(-2.5), round(2.675, 2), round(1234.5, -2), trunc(-2.789, 1), ceil(-0.5), floor(-0.5);
SELECT numeric '1e3', numeric '1.50', numeric '.5', numeric '5.', numeric '-0', numeric '1E-3';
SELECT numeric 'NaN' = 'NaN', numeric 'NaN' > 'Infinity', numeric '-Infinity' < -1e100, sign(numeric '-3.2');
SELECT numeric 'Infinity' - 'Infinity', numeric 'Infinity' * 0, 1 / numeric 'Infinity';
SELECT 1.0 / 0;
SELECT 123.456::numeric(5,2), 99.995::numeric(4,1);
SELECT 1234.5::numeric(5,2);
SELECT 2.5::int, 3.5::int, -2.5::int, 2.5::float8::int, 3.5::float8::int;
SELECT 1e20::numeric::bigint;
SELECT 'x'::numeric;
SELECT float8 '1e308' * 10;
SELECT float8 '1e-400';
SELECT float8 'NaN' = 'NaN', float8 'NaN' > 'Infinity', float8 '-0' = '0', float8 'Infinity' / 'Infinity';
SELECT 0.1::float8 + 0.2::float8, 1e15::float8, 1e16::float8, 123456789.5::float8, 1e-5::float8, 0.0001::float8;
SELECT 0.1::real, 16777217::real, 1e10::real, 1.5::real::float8, 0.1::real::float8, 0.1::real::numeric;
SELECT 1.5::float8::numeric, 1e-7::float8::numeric, 12345678901234567890::float8::numeric;
SELECT sqrt(2), power(2, 10), abs(-7), sign(-2.0), mod(-7, 3), div(7.5, 2), greatest(1, 2.5), least(3, NULL, 1);
SELECT sqrt(-1);
CREATE TABLE amounts (id int PRIMARY KEY, n numeric, m numeric(8,2), f float8, s smallint);
INSERT INTO amounts VALUES (1, 1.0, 1.0, 1, 1), (2, 1.00, 1.005, 2.5, -1), (3, 'NaN', 0, 'NaN', 0),
    (4, -1e30, -99.999, '-Infinity', 32767), (5, NULL, NULL, NULL, NULL);
SELECT * FROM amounts ORDER BY n, id;
SELECT id FROM amounts ORDER BY f DESC NULLS LAST, id;
SELECT count(DISTINCT n), count(n), sum(m), avg(s), min(f), max(f), sum(s) FROM amounts WHERE id <> 3;
SELECT id FROM amounts WHERE n = 1 OR m > 1 ORDER BY id;
SELECT id FROM amounts WHERE s BETWEEN -1 AND 1.5 ORDER BY id;
SELECT id FROM amounts WHERE f = 'NaN' OR f < '-1e300' ORDER BY id;
UPDATE amounts SET s = s + 1 WHERE id = 4;
UPDATE amounts SET m = 1000000 WHERE id = 4;
SELECT to_char(1234.5, '9,999.99'), to_char(-7, 'S999'), to_char(0.1, 'FM0.00'), to_char(485, '9999th'), to_hex(255);
DROP TABLE amounts;
