-- Texts of checks and defaults, which load again.
CREATE TABLE k (
    a int[] CONSTRAINT a CHECK (3 > ALL (a)),
    b int CONSTRAINT b CHECK (b <> ALL (ARRAY[1, 2])),
    c int CONSTRAINT c CHECK (c > ANY ('{1,2}')),
    d int[] CONSTRAINT d CHECK ((d[1:2]) = '{1,2}' OR d[:2] = d[2:] OR d[1] = 3 OR d[1][2] = 4),
    e text CONSTRAINT e CHECK (e LIKE 'a!%' ESCAPE '!' AND e NOT LIKE 'b%' ESCAPE 'x'),
    f text CONSTRAINT f CHECK (regexp_instr(f, 'a') > 0 AND regexp_substr(f, 'b', 2) IS NULL),
    g timestamptz DEFAULT make_timestamptz(2020, 1, 1, 0, 0, 0),
    i int CONSTRAINT i CHECK (coalesce(i, NULL::int) > 0),
    j int CONSTRAINT j CHECK (nullif(j, NULL::int) > 0 OR greatest(j, NULL::int) = 3),
    l text CONSTRAINT l CHECK (l LIKE ANY (ARRAY['a%', 'b%']))
);
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'k'::regclass ORDER BY 1;
SELECT pg_get_expr(adbin, adrelid) LIKE 'make_timestamptz(2020, 1, 1, 0, 0, %::double precision)' AS is_shown
    FROM pg_attrdef WHERE adrelid = 'k'::regclass;
-- Again, from what was shown.
SELECT format('ALTER TABLE k DROP CONSTRAINT %I, ADD CONSTRAINT %I %s', conname, conname, pg_get_constraintdef(oid))
    FROM pg_constraint WHERE conrelid = 'k'::regclass ORDER BY conname
\gexec
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'k'::regclass ORDER BY 1;
