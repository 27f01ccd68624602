-- Dates, times, points in time and intervals.
\set VERBOSITY sqlstate
\pset null NULL
SET timezone = 'UTC';
SELECT date '2024-02-29', date 'January 8, 1999', date '1999-Jan-08', date '19990108', date '1/8/1999', date 'infinity';
SELECT date '2023-02-29';
SELECT date '2024-13-01';
SELECT date '2024-03-01' - date '2024-02-28', date '2024-01-31' + 1, date '2024-01-31' + interval '1 month', date '2024-03-31' - interval '1 month';
SELECT time '04:05:06.789', time '040506', time '04:05 AM', time '23:59:60', time '24:00:00', time '12:00' + interval '13 hours', time '01:00' - time '02:30';
SELECT time '25:00';
SELECT timestamp '2024-01-02 03:04:05.678901', timestamp '2024-01-02T03:04:05', timestamp '2024-01-02', timestamp '-infinity';
SELECT timestamptz '2024-01-02 03:04:05+02', timestamptz '2024-01-02 03:04:05 US/Pacific', timestamptz '2024-07-02 00:00 Europe/Berlin';
SELECT timestamp '2024-01-02 03:04' AT TIME ZONE 'US/Pacific', timestamptz '2024-01-02 03:04+00' AT TIME ZONE 'Asia/Tokyo';
SELECT timestamp '2024-03-01' - timestamp '2024-02-01 12:00', timestamp '2024-01-31' + interval '1 month 1 day 01:00';
SELECT interval '1 year 2 months 3 days 04:05:06.7', interval '1-2', interval '-1 day', interval '1.5 days', interval 'P1Y2M3DT4H5M6S', interval '90 minutes', interval '1 week';
SELECT interval '1 month' = interval '30 days', interval '1 day' = interval '24 hours', interval '1 year' > interval '360 days', interval '-1 month' < interval '0';
SELECT interval '1 month' * 1.5, interval '1 day' / 4, - interval '1 month 2 days', interval '1 month' + interval '36 hours';
SELECT interval 'one day';
SELECT extract(year from date '2024-02-29'), extract(week from date '2024-12-30'), extract(isoyear from date '2024-12-30'), extract(dow from date '2024-02-25'), extract(isodow from date '2024-02-25'), extract(doy from date '2024-03-01');
SELECT extract(epoch from timestamptz '2024-01-01 00:00+00'), extract(epoch from interval '1 month 1 day'), extract(second from time '01:02:03.5'), extract(quarter from date '2024-05-01'), date_part('hour', interval '25 hours');
SELECT date_trunc('week', timestamp '2024-02-29 12:34:56'), date_trunc('quarter', date '2024-05-15');
SELECT date_trunc('fortnight', timestamp '2024-01-01');
SELECT date_bin('15 minutes', timestamp '2024-01-01 12:34:56', timestamp '2001-01-01');
SELECT age(timestamp '2024-03-01', timestamp '2023-01-31'), age(date '2000-02-29', date '2001-02-28');
SELECT make_date(2024, 2, 29), make_time(1, 2, 3.5), make_timestamp(2024, 1, 2, 3, 4, 5.25), to_timestamp(86400.5), isfinite(date 'infinity');
SELECT make_date(2023, 2, 29);
SELECT to_char(timestamp '2024-02-09 15:04:05.678', 'YYYY-MM-DD HH12:MI:SS.MS AM'), to_char(date '2024-02-09', 'Dy, DD Mon YY'), to_char(timestamp '2024-02-09', 'FMMonth FMDDth');
SET timezone = 'America/New_York';
SELECT timestamptz '2024-03-10 01:30' + interval '1 hour', timestamptz '2024-03-10 01:30' + interval '1 day', timestamptz '2024-11-03 01:30';
SELECT timestamptz '2024-03-10 02:30', '2024-07-01 12:00+00'::timestamptz::date, '2024-07-01'::date::timestamptz;
SET timezone = 'UTC';
CREATE TABLE moments (id int PRIMARY KEY, d date, ts timestamp, tz timestamptz, i interval);
INSERT INTO moments VALUES (1, '2024-01-01', '2024-01-01 12:00', '2024-01-01 12:00+00', '1 month'),
    (2, '2024-01-02', '2024-01-02', '2024-01-01 14:00+02', '30 days'), (3, 'infinity', '-infinity', 'infinity', '29 days');
SELECT id FROM moments WHERE d < ts ORDER BY id;
SELECT count(DISTINCT i), min(i), max(d), min(ts) FROM moments WHERE id <> 2;
SELECT tz, count(*) FROM moments GROUP BY tz ORDER BY tz;
SELECT id FROM moments WHERE d = timestamp '2024-01-02' OR tz < '2024-01-01 12:00:01+00' ORDER BY id;
DROP TABLE moments;
