CREATE TABLE account (id int PRIMARY KEY, email text, status text NOT NULL DEFAULT 'new', rank int, hidden boolean NOT NULL DEFAULT false, deleted_at timestamp);
CREATE UNIQUE INDEX account_email ON account (lower(email)) WHERE deleted_at IS NULL;
CREATE INDEX ON account (rank) WHERE status = 'paid';
CREATE INDEX account_rank ON account (rank DESC, id) WHERE rank > 1 AND NOT hidden;
CREATE INDEX account_known ON account (status) WHERE email IS NOT NULL OR id < 3;
CREATE UNIQUE INDEX account_hidden ON account (hidden) WHERE hidden;
CREATE INDEX ON account ((rank + id));
CREATE INDEX ON account ((rank + id) DESC NULLS LAST, lower(email), lower(status), id);
CREATE INDEX account_coalesced ON account (COALESCE(email, status) DESC, (rank * 2 + 1), (email IS NULL));
CREATE INDEX account_names ON account (status) WHERE rank BETWEEN 1 AND 5 AND status IN ('new', 'paid');
CREATE INDEX account_text ON account (substr(email, 1, 2), length(status), (rank::bigint), (email || status), upper(replace(email, 'x', 'y')), split_part(email, '@', 2));
SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'account' ORDER BY 1;
\d account
\d account_email
\d account_rank
\d account_coalesced
SELECT c.relname, i.indnatts, i.indkey, i.indexprs IS NOT NULL, i.indpred IS NOT NULL, pg_get_expr(i.indpred, i.indrelid, true) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE c.relname LIKE 'account%' ORDER BY 1;
SELECT pg_get_indexdef('account_coalesced'::regclass, 1, true), pg_get_indexdef('account_coalesced'::regclass, 2, true), pg_get_indexdef('account_coalesced'::regclass, 3, true);
SELECT conname, contype FROM pg_constraint WHERE conrelid = 'account'::regclass ORDER BY 1;
ALTER TABLE account RENAME COLUMN rank TO place;
SELECT indexdef FROM pg_indexes WHERE indexname = 'account_rank';
ALTER TABLE account DROP COLUMN place;
SELECT indexname FROM pg_indexes WHERE tablename = 'account' ORDER BY 1;
\d account
