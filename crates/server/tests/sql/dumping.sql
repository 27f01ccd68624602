-- What pg_dump asks of a server before it writes anything.
\set QUIET off
SELECT set_config(name, 'dump', false) AS value FROM pg_settings WHERE name = 'application_name';
SHOW application_name;
SELECT set_config(name, 'dump', false) AS value FROM pg_catalog.pg_settings WHERE name = 'no.such_setting';
SELECT typname, typname[0] = '_' AND typelem <> 0 AS isarray FROM pg_type WHERE typname IN ('int4', '_int4', 'text')
    ORDER BY 1;
SELECT relname[0], relname[2], relname[63] IS NULL FROM pg_class WHERE relname = 'pg_class';
