-- Row-level security without policies changes nothing for the owner, and is shown.
CREATE TABLE secured (id int PRIMARY KEY, b text);
INSERT INTO secured VALUES (1, 'one'), (2, 'two');
SELECT relrowsecurity, relforcerowsecurity FROM pg_class WHERE relname = 'secured';
ALTER TABLE secured ENABLE ROW LEVEL SECURITY;
SELECT relrowsecurity, relforcerowsecurity FROM pg_class WHERE relname = 'secured';
SELECT rowsecurity FROM pg_tables WHERE tablename = 'secured';
SELECT * FROM secured ORDER BY id;
UPDATE secured SET b = 'other' WHERE id = 2;
ALTER TABLE secured FORCE ROW LEVEL SECURITY, ADD COLUMN c int;
SELECT relrowsecurity, relforcerowsecurity FROM pg_class WHERE relname = 'secured';
TRUNCATE secured;
SELECT relrowsecurity, relforcerowsecurity FROM pg_class WHERE relname = 'secured';
ALTER TABLE secured RENAME TO renamed;
SELECT rowsecurity FROM pg_tables WHERE tablename = 'renamed';
ALTER TABLE renamed NO FORCE ROW LEVEL SECURITY;
ALTER TABLE renamed DISABLE ROW LEVEL SECURITY;
SELECT relrowsecurity, relforcerowsecurity FROM pg_class WHERE relname = 'renamed';
ALTER TABLE missing ENABLE ROW LEVEL SECURITY;
ALTER TABLE IF EXISTS missing ENABLE ROW LEVEL SECURITY;
SELECT count(*) FROM pg_policies;
\d renamed
DROP TABLE renamed;
