-- Fields and digits of an interval's type.
SELECT interval '3' hour, interval '1-2' year to month, interval '1 2:3:4.567' day to second(1), interval(0) '1.6 s', '1 2:3:4'::interval day to hour, CAST('5' AS interval minute);
SELECT interval '3' day, interval '3' month, '1:2'::interval minute to second, '1:2'::interval hour to minute, interval '5' second(0), ('3'::text)::interval hour;
SELECT interval '1' year + interval '2' month, interval '1' day * 3, pg_typeof(interval '90' minute);
CREATE TABLE lengths (id int PRIMARY KEY, a interval hour, b interval hour to second(2), c interval(2), d interval day[]);
INSERT INTO lengths VALUES (1, '3', '1:2:3.456', '1.239 s', '{3,1 day 5 hours}');
INSERT INTO lengths SELECT 2, '90 min'::interval, '1:2:3.456'::interval, '1.239 s'::interval, NULL;
COPY lengths (id, a) FROM STDIN;
3	5
\.
SELECT * FROM lengths ORDER BY id;
SELECT a, b, c FROM lengths \gdesc
SELECT attname, atttypmod, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'lengths'::regclass AND attnum > 0 ORDER BY attnum;
SELECT column_name, data_type, interval_type, interval_precision, datetime_precision FROM information_schema.columns WHERE table_name = 'lengths' ORDER BY ordinal_position;
-- Forms of intervals.
SELECT 'P0001-02-03T04:05:06'::interval, '1 2 hours'::interval, '1:2.5'::interval, '00:00:60'::interval;
SELECT '1 d 1 d'::interval;
SELECT '00:00:61'::interval;
SELECT '178956971 years'::interval;
