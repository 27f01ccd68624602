-- What the catalog has of strings of bits.
SELECT pg_typeof(B'1'), pg_typeof(X'1'), pg_typeof(B'1' || B'0'), pg_typeof(B'1' & B'0');
CREATE TABLE flags (id int PRIMARY KEY, b bit(4) NOT NULL DEFAULT B'0000', v bit varying(6), o bit);
CREATE INDEX flags_b ON flags (b DESC, v);
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
    WHERE attrelid = 'flags'::regclass AND attnum > 0 ORDER BY attnum;
SELECT column_name, data_type, character_maximum_length, udt_name FROM information_schema.columns
    WHERE table_name = 'flags' ORDER BY ordinal_position;
SELECT pg_get_indexdef('flags_b'::regclass);
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'flags'::regclass;
SELECT typname, typcategory, typispreferred, typinput, typmodin, typarray FROM pg_type WHERE typname IN ('bit', 'varbit') ORDER BY 1;
\d flags
DROP TABLE flags;
\set VERBOSITY sqlstate
SELECT B'10' & 1;
SELECT '2'::bit(1);
SELECT 1::smallint::bit(4);
SELECT 1.5::bit(4);
SELECT B'1'::varbit::int;
SELECT B'1'::smallint;
CREATE TABLE wrong (b bit(0));
CREATE TABLE wrong (b varbit(90000000));
