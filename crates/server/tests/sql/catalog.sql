-- What psql's commands about the catalog print. Not here, as they differ: \l (the databases), \dx and
-- \dL (there are no extensions and no PL/pgSQL), \dF, and sizes (which are not known).
-- Comments are in comments.sql, indexes of foreign keys in hidden_indexes.sql.
CREATE TABLE branch (id integer PRIMARY KEY, city varchar(40) NOT NULL DEFAULT 'here', UNIQUE (city));
CREATE TABLE account (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    branch integer NOT NULL REFERENCES branch (id) ON DELETE CASCADE,
    owner text,
    balance numeric(12,2) DEFAULT 0 CHECK (balance >= 0),
    opened timestamptz DEFAULT now(),
    code char(3),
    note jsonb,
    UNIQUE (branch, code)
);
CREATE INDEX account_owner ON account (owner, opened DESC);
CREATE INDEX account_code ON account (code DESC NULLS LAST);
CREATE SEQUENCE numbers START 5 INCREMENT 2;
CREATE TABLE plain (a smallint, b boolean, c real, d double precision, e uuid, f date, g timestamp(3),
    h interval, i bytea, CONSTRAINT small CHECK (a > 0 AND a < 100 OR b), PRIMARY KEY (a, f));
\d
\dt
\dt acc*
\d branch
\d account
\d plain
\d+ branch
\d+ account
\d numbers
\d account_owner
\d account_pkey
\d nothing
\di
\ds
\dn
\du
\dv
\dm
\df
\dT
\dp
\dp account
\dt public.*
\dt nowhere.*
\dD
\dy
\des
\dRp
\ddp
\det
\dO nothing
\dd
\sf nothing
\drds
-- Queries of the catalog beside psql's own.
SELECT 'account'::regclass, 'account'::regclass::oid > 0 AS found, 'numeric'::regtype, to_regclass('nothing') AS nothing;
SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnum FROM pg_attribute a
    WHERE a.attrelid = 'public.account'::regclass AND a.attnum > 0 ORDER BY a.attnum;
SELECT conname, contype, conkey, confkey, confdeltype, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE conrelid IN ('account'::regclass, 'plain'::regclass) ORDER BY conname;
SELECT c.relname, i.indkey, i.indkey[0], array_to_string(i.indkey, ' '), i.indoption, i.indoption[1], pg_get_indexdef(i.indexrelid)
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = 'account'::regclass ORDER BY 1;
SELECT conname, unnest(conkey) AS own, generate_subscripts(conkey, 1) AS place FROM pg_constraint
    WHERE conrelid = 'plain'::regclass ORDER BY 1, 3;
SELECT k.place, a.attname FROM pg_constraint c CROSS JOIN LATERAL unnest(c.conkey) WITH ORDINALITY AS k(attnum, place)
    JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.attnum
    WHERE c.conname = 'plain_pkey' ORDER BY 1;
SELECT typname, typlen, typcategory, typelem::regtype, typarray::regtype FROM pg_type
    WHERE typname IN ('int4', '_int4', 'numeric', 'text', 'jsonb', 'bpchar', 'timestamptz') ORDER BY 1;
SELECT typname, typinput, typoutput, typreceive, typsend, typmodin, typmodout, typsubscript, typanalyze, typinput::oid
    FROM pg_type WHERE typname IN ('bool', 'int4', 'json', 'jsonb', 'interval', 'bpchar', 'numeric', '_int4', '_varchar', 'name')
    ORDER BY 1;
SELECT typname FROM pg_type WHERE typinput = 'pg_catalog.array_in'::regproc AND typname IN ('_text', 'text');
SELECT 'uuid_send'::regproc, to_regproc('nothing') IS NULL AS missing;
SELECT pg_get_serial_sequence('account', 'id'), pg_encoding_to_char(6), quote_ident('Odd "name"'), current_schemas(true);
SELECT n, n * 2 AS twice FROM generate_series(1, 9, 4) AS n;
SELECT * FROM generate_series(3, 1, -1) WITH ORDINALITY AS s(value, place);
SELECT x, x ~ '^a.c$', x !~ 'B', x ~* 'B' FROM unnest(ARRAY['abc', 'ABC', 'xyz']) AS x;
SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1;
SELECT column_name, ordinal_position, is_nullable, data_type, character_maximum_length, numeric_precision, numeric_scale,
    udt_name, is_identity, column_default
    FROM information_schema.columns WHERE table_name = 'account' ORDER BY 2;
SELECT constraint_name, constraint_type FROM information_schema.table_constraints
    WHERE table_schema = 'public' AND constraint_name NOT LIKE '%_not_null' ORDER BY 1;
SELECT constraint_name, column_name, ordinal_position, position_in_unique_constraint
    FROM information_schema.key_column_usage WHERE table_schema = 'public' ORDER BY 1, 3;
SELECT constraint_name, unique_constraint_name, update_rule, delete_rule
    FROM information_schema.referential_constraints ORDER BY 1;
SELECT sequence_name, data_type, start_value, increment, cycle_option FROM information_schema.sequences ORDER BY 1;
