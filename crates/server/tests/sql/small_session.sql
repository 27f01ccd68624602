BEGIN;
DECLARE plain CURSOR FOR SELECT 1;
DECLARE bytes BINARY CURSOR FOR SELECT 1;
SELECT name, is_binary FROM pg_cursors ORDER BY name;
COMMIT;
-- Parts of the distance of a zone.
SET timezone = 'America/St_Johns';
SELECT extract(timezone FROM timestamptz '2024-07-01 12:00+00'), extract(timezone_hour FROM timestamptz '2024-07-01 12:00+00'), extract(timezone_minute FROM timestamptz '2024-07-01 12:00+00');
SELECT date_part('timezone', timestamptz '2024-01-01 12:00+00'), date_part('timezone_minute', timestamptz '2024-01-01 12:00+00');
SET timezone = 'Asia/Kolkata';
SELECT extract(TIMEZONE FROM at), extract(timezone_hour FROM at), extract(timezone_minute FROM at) FROM (VALUES (timestamptz '2024-07-01 12:00+00'), ('1890-01-01 00:00+00'), ('infinity'), (NULL)) v(at);
SET timezone = 'UTC';
\pset tuples_only
SELECT current_setting('session_authorization') = session_user;
\set VERBOSITY sqlstate
-- Types without one in common.
SELECT coalesce(1, true);
SELECT coalesce('a'::text, 1);
SELECT greatest(1, now());
SELECT CASE WHEN true THEN 1 ELSE true END;
SELECT ARRAY[1, true];
SELECT 1 IN (1, true);
SELECT unnest(ARRAY[1], ARRAY[2]);
-- A query of WITH that is named twice is computed once.
WITH w AS (SELECT random() AS r FROM generate_series(1, 3)) SELECT count(*) FROM w a JOIN w b ON a.r = b.r;
WITH w AS (SELECT random() AS r FROM generate_series(1, 3)) SELECT count(DISTINCT r) FROM (SELECT r FROM w UNION ALL SELECT r FROM w) x;
WITH w AS (SELECT random() AS r FROM generate_series(1, 3)) SELECT count(*) FROM (SELECT r FROM w EXCEPT SELECT r FROM w) x;
