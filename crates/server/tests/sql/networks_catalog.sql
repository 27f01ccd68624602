-- What the catalog has of addresses of the internet.
CREATE TABLE hosts (address inet PRIMARY KEY, net cidr DEFAULT '10/8', CHECK (family(address) = 4 AND net >> address));
SELECT typname, typcategory, typispreferred, typinput, typarray, typstorage FROM pg_type WHERE typname IN ('inet', 'cidr') ORDER BY 1;
SELECT column_name, data_type, udt_name, column_default FROM information_schema.columns WHERE table_name = 'hosts' ORDER BY 1;
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'hosts'::regclass ORDER BY conname;
INSERT INTO hosts VALUES ('10.1.1.1');
INSERT INTO hosts VALUES ('11.1.1.1');
\d hosts
DROP TABLE hosts;
\set VERBOSITY sqlstate
SELECT 1::inet;
SELECT inet '1.2.3.4' << 1;
SELECT inet '1.2.3.4' = 'x'::text;
