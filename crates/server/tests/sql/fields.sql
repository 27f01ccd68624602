-- Parts of points in time and of intervals, units that they are cut to, multiples, ages.
CREATE TABLE moments (id int PRIMARY KEY, t timestamp);
INSERT INTO moments VALUES (1, '2024-12-30 23:59:59.987654'), (2, '2000-12-31 00:00:01.5'), (3, '2001-01-01 12:34:56'),
    (4, '1999-10-10 10:10:10.10101'), (5, '0001-01-01 00:00:00'), (6, '0001-12-31 23:00 BC'), (7, '0100-03-01 01:02:03 BC'),
    (8, '0101-07-04 05:06:07 BC'), (9, '1969-12-31 23:59:58.25'), (10, 'infinity'), (11, '-infinity'), (12, '2005-01-01'),
    (13, '2006-01-01'), (14, '2008-12-29 06:00'), (15, '1900-02-28'), (16, '2010-01-03'), (17, '0010-05-05 BC'), (18, '1001-06-30');
SELECT id, extract(microseconds FROM t), extract(milliseconds FROM t), extract(second FROM t), extract(minute FROM t), extract(hour FROM t) FROM moments ORDER BY id;
SELECT id, extract(day FROM t), extract(dow FROM t), extract(isodow FROM t), extract(doy FROM t), extract(week FROM t), extract(month FROM t), extract(quarter FROM t) FROM moments ORDER BY id;
SELECT id, extract(year FROM t), extract(isoyear FROM t), extract(decade FROM t), extract(century FROM t), extract(millennium FROM t), extract(epoch FROM t) FROM moments ORDER BY id;
SELECT id, date_part('epoch', t), date_part('second', t), date_part('century', t), extract(isoyear FROM t::date), extract(day FROM t::date), extract(doy FROM t AT TIME ZONE 'UTC') FROM moments ORDER BY id;
SELECT id, date_trunc('microseconds', t), date_trunc('milliseconds', t), date_trunc('second', t), date_trunc('minute', t), date_trunc('hour', t), date_trunc('day', t) FROM moments ORDER BY id;
SELECT id, date_trunc('week', t), date_trunc('month', t), date_trunc('quarter', t), date_trunc('year', t) FROM moments ORDER BY id;
SELECT id, date_trunc('decade', t), date_trunc('century', t), date_trunc('millennium', t) FROM moments ORDER BY id;
SELECT id, to_char(t, 'YYYY-MM-DD HH24:MI:SS.US MS HH12 AM p.m. SSSS') FROM moments WHERE id NOT IN (10, 11) ORDER BY id;
SELECT id, to_char(t, 'Y YY YYY IYYY IYY IY I ID IW WW W D DDD CC J Q') FROM moments WHERE t > '0001-01-01' AND id <> 10 ORDER BY id;
SELECT id, to_char(t, 'FMMonth Month MONTH month FMMon MON mon FMDay Day DAY day Dy DY dy FMDDth DDTH FMHH24th') FROM moments WHERE t > '0001-01-01' AND id <> 10 ORDER BY id;
SELECT id, age(t, timestamp '2000-02-29 12:00'), age(timestamp '2000-02-29 12:00', t), t - timestamp '2000-02-29 12:00' FROM moments WHERE id NOT IN (10, 11) ORDER BY id;
SELECT date_trunc('dow', timestamp '2000-01-01');
SELECT extract(fortnight FROM timestamp '2000-01-01');
SELECT extract(hour FROM date '2000-01-01');
SELECT extract(day FROM time '10:00');
DROP TABLE moments;
CREATE TABLE lengths (id int PRIMARY KEY, i interval);
INSERT INTO lengths VALUES (1, '1234 years 11 mons 30 days 49:59:58.123456'), (2, '-1234 years -11 mons -30 days -49:59:58.123456'),
    (3, '5 mons -3 days 00:00:00.5'), (4, '0'), (5, '19 years 3 mons'), (6, '-1 mons +2 days -03:04:05.678'), (7, '999 years 11 mons'),
    (8, '1000 days 1 microsecond'), (9, '2 mons 15 days 12 hours'), (10, '-23:59:59.999999');
SELECT id, i, extract(microseconds FROM i), extract(milliseconds FROM i), extract(second FROM i), extract(minute FROM i), extract(hour FROM i), extract(day FROM i) FROM lengths ORDER BY id;
SELECT id, extract(month FROM i), extract(quarter FROM i), extract(year FROM i), extract(decade FROM i), extract(century FROM i), extract(millennium FROM i), extract(epoch FROM i) FROM lengths ORDER BY id;
SELECT id, date_part('epoch', i), date_part('second', i), date_part('month', i) FROM lengths ORDER BY id;
SELECT id, date_trunc('microseconds', i), date_trunc('milliseconds', i), date_trunc('second', i), date_trunc('minute', i), date_trunc('hour', i), date_trunc('day', i) FROM lengths ORDER BY id;
SELECT id, date_trunc('month', i), date_trunc('quarter', i), date_trunc('year', i), date_trunc('decade', i), date_trunc('century', i), date_trunc('millennium', i) FROM lengths ORDER BY id;
SELECT id, i * 0.5, i * -1.1, i * 3, i / 7, i / -0.3, -i FROM lengths ORDER BY id;
SELECT id, i::interval(0), i::interval(1), i::interval(3), i::interval(5) FROM lengths ORDER BY id;
SELECT id, timestamp '2000-02-29 12:00' + i, timestamp '2000-03-31 12:00' - i FROM lengths ORDER BY id;
SELECT a.id, b.id, a.i + b.i, a.i - b.i, a.i < b.i FROM lengths a JOIN lengths b ON b.id = a.id % 10 + 1 ORDER BY a.id;
SELECT min(i), max(i) FROM lengths;
SELECT interval '1 day' / 0;
SELECT interval '178000000 years' * 2;
SELECT interval '100000000 days' * 100;
SELECT date_trunc('week', interval '1 day');
SELECT extract(dow FROM interval '1 day');
SELECT date_trunc('nothing', interval '1 day');
DROP TABLE lengths;
-- The words and forms of intervals.
SELECT interval '1 y', interval '2 yr', interval '2 yrs', interval '1 mon', interval '2 months', interval '1 decade', interval '2 decs', interval '1 dec', interval '1 c', interval '2 cent', interval '2 centuries', interval '1 mil', interval '1 mils', interval '2 millennia';
SELECT interval '1 w', interval '2 weeks', interval '1 d', interval '2 h', interval '1 hr', interval '2 hrs', interval '5 m', interval '6 min', interval '6 mins', interval '7 s', interval '7 secs', interval '8 ms', interval '8 msecs', interval '9 us', interval '9 usecs';
SELECT interval '1.5 weeks', interval '-1.5 weeks', interval '0.7 days', interval '1.75 months', interval '-0.05 mons', interval '1.5 decades', interval '0.01 c', interval '1.0416666 years', interval '-0.125 years', interval '1.9999999 hours', interval '.5 s', interval '5. s', interval '+3 days', interval '3days4hours';
SELECT interval '1-11', interval '-1-11', interval '0-0', interval '1-2 3 4:5:6', interval '-1-2 +3 -4:05:06', interval '1 day 4:05', interval '@ 1 year 2 mons ago', interval '1 day -2:03:04.5 ago', interval '100:59:59.9999994';
SELECT interval 'P1Y', interval 'P1M', interval 'PT1M', interval 'P2W', interval 'P3DT4H5M6.789S', interval 'P-1Y-2M3DT-4H', interval 'PT0.000001S', interval 'P0.5Y', interval 'PT36H';
SELECT interval 'PT';
SELECT interval 'P1H';
SELECT interval 'PT1Y';
SELECT interval '178956970 years 7 mons', interval '-178956970 years -8 mons', interval '2147483647 days 2562047788:00:54.775807';
-- Points to the stretches that they are in.
SELECT date_bin('7 days', timestamp '2024-03-05 12:00', timestamp '2000-01-03'), date_bin('7 days', timestamp '1999-03-05 12:00', timestamp '2000-01-03'), date_bin('1 hour 30 min', timestamp '2000-01-01 01:29:59', timestamp '2000-01-01'), date_bin('1 day', timestamp 'infinity', timestamp '2000-01-01'), date_bin('1 us', timestamp '2000-01-01 00:00:00.5', timestamp '2000-01-01');
SELECT date_bin('1 month', timestamp '2024-03-05', timestamp '2000-01-01');
SELECT date_bin('0', timestamp '2024-03-05', timestamp '2000-01-01');
SELECT date_bin('-1 day', timestamp '2024-03-05', timestamp '2000-01-01');
SELECT date_bin('1 day', timestamp '2024-03-05', timestamp 'infinity');
-- Times of the day from their parts.
SELECT make_time(0, 0, 0), make_time(23, 59, 60), make_time(24, 0, 0), make_time(1, 2, 3.4567895), make_timestamp(-44, 3, 15, 1, 2, 3), make_date(-1, 1, 1);
SELECT make_time(24, 0, 0.1);
SELECT make_time(-1, 0, 0);
SELECT make_time(0, 60, 0);
SELECT make_time(0, 0, 61);
SELECT make_date(0, 1, 1);
