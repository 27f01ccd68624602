SELECT to_char(485, '999'), to_char(-485, '999'), to_char(485, '9 9 9'), to_char(1485, '9,999'), to_char(1234567.891, '9,999,999.99'), to_char(1234567.891, 'FM9,999,999.99'), to_char(12, '9,999'), to_char(0, '9.99'), to_char(0, '0.00'), to_char(0, '999'), to_char(0, 'FM999'), to_char(0.5, '99.9'), to_char(-0.5, '99.9'), to_char(0.5, 'FM99.9'), to_char(-0.5, 'FM99.9');
SELECT to_char(12, '0000'), to_char(-12, '0000'), to_char(12, 'FM0000'), to_char(12, '9990999.9'), to_char(12, 'FM9990999.9'), to_char(148.5, '999.999'), to_char(148.5, 'FM999.999'), to_char(148.5, 'FM999.990'), to_char(1234, '999'), to_char(-1234, '999'), to_char(1234.5, '999.99'), to_char(1234, 'FM999');
SELECT to_char(485, '999S'), to_char(-485, '999S'), to_char(-485, 'S999'), to_char(485, 'S999'), to_char(5, 'S999'), to_char(5, 'FMS999'), to_char(485, '999MI'), to_char(-485, '999MI'), to_char(485, 'FM999MI'), to_char(-485, 'MI999'), to_char(5, 'MI999'), to_char(485, 'SG999'), to_char(-485, '9SG99'), to_char(-485, '999PR'), to_char(485, '999PR'), to_char(485, 'FM999PR'), to_char(-4.5, '9.9PR'), to_char(-4.5, '9.9S'), to_char(4.5, 'S9.9');
SELECT to_char(482, '999th'), to_char(1, 'FM9th'), to_char(12, 'FM99TH'), to_char(3, '99th'), to_char(-3, '99th'), to_char(485, '"Good number:"999'), to_char(485.8, '"Pre:"999" Post:" .999'), to_char(7, 'a9x'), to_char(75.5, '99%'), to_char(75.5, 'FM99.9"%"');
SELECT to_char(125.8::float8, '999D9'), to_char(0.125::float8, '9.99'), to_char(0.375::float8, '9.99'), to_char(2.5::float4, '9.9'), to_char(1e10::float8, '99999999999.99'), to_char(-0.001::float8, '9.99'), to_char(-0.001, '9.99'), to_char(0.999, '9.9'), to_char(9.99, '9.9'), to_char(2::bigint, '99'), to_char(2::smallint, '09'), to_char(12345678901234567890.12, '99999999999999999999.99');
SELECT to_char(1.5, '.99'), to_char(0.5, '.99'), to_char(-0.5, '.99'), to_char(0.5, 'FM.99'), to_char(12, '99.'), to_char(0, 'FM9.9'), to_char(0, '9.'), to_char(0, 'FM99.99'), to_char(1000, '9G999D00'), to_char(5, '9,9,9'), to_char(5, '0,0,0'), to_char(5, ''), to_char(5, 'axy'), to_char(NULL::int, '9');
SELECT to_char(5, '9.9.9');
SELECT to_char(sum(x), 'FM999,999,990.00') FROM (VALUES (1000.5), (23456.25)) v(x);
CREATE TYPE mood AS ENUM ('sad', 'ok');
ALTER TYPE mood OWNER TO nvcaracal;
ALTER TYPE mood OWNER TO CURRENT_USER;
ALTER TYPE mood SET SCHEMA public;
ALTER TYPE mood OWNER TO nothing;
ALTER TYPE mood SET SCHEMA nowhere;
ALTER TYPE moods OWNER TO nvcaracal;
SELECT 'sad'::mood < 'ok'::mood;
-- A text that is as near to the next number is not the number's.
SELECT 1e23::float8, -1e23::float8, 1e22::float8, 1e24::float8, 9007199254740993::float8, 5e22::float8, '[1e23]'::jsonb, ARRAY[1e23::float8];
SELECT 1e23::float8::text = '1e23', 1e23::float8::text::float8 = 1e23::float8, 3.2e10::float4, 1.6777217e7::float4, 3355443.25::float4, 3355443.75::float4, 562949953421312.25::float8, 9.5e10::float4, 8589973e3::float4, 2.7e11::float4;
-- A backslash within quotes; floating-point numbers beyond their digits.
SELECT to_char(100, 'f"\ool"999'), to_char(100, '"\\a"999"x\"y"'), to_char(5, '\9 "\'), to_char(timestamp '2024-01-01', '"a\"b" \"q YYYY');
SELECT to_char(1e20::float8, '999999999999999999999D9') || '|', to_char(1234567890123.25::float8, '9999999999999D9999') || '|', to_char(1e14::float8, '999999999999999D99') || '|', to_char(1.5::real, '999999D9999') || '|';
SELECT to_char(1e15::float8, 'FM9999999999999999D99') || '|', to_char(1e15::float8, '9999999999999999D00') || '|', to_char(123456.5::real, '999999D00') || '|', to_char(12345.678::float8, 'FM99999D0000000000000') || '|', to_char(12345.678::float8, '99999D0000000000000S') || '|';
