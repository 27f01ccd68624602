-- Rows that are longer than 256 KiB.
CREATE TABLE document (id int PRIMARY KEY, kind text, body text, raw bytea);
INSERT INTO document VALUES (1, 'short', 'x', '\x01'), (2, 'long', repeat('ab', 200000), NULL), (3, 'longer', repeat('c', 1000000), decode(repeat('ff', 1000000), 'hex'));
SELECT id, kind, length(body), length(raw), md5(body) FROM document ORDER BY id;
-- Becomes longer, shorter and long again.
UPDATE document SET body = body || repeat('d', 300000) WHERE id = 1;
SELECT length(body), md5(body) FROM document WHERE id = 1;
UPDATE document SET body = left(body, 10) WHERE id = 3;
UPDATE document SET raw = NULL WHERE id = 3;
SELECT id, length(body), raw IS NULL AS none FROM document WHERE id = 3;
UPDATE document SET body = repeat('e', 700000) WHERE id = 3;
UPDATE document SET kind = kind || '!';
SELECT id, kind, length(body) FROM document ORDER BY id;
-- Its key changes.
UPDATE document SET id = 30 WHERE id = 3;
SELECT id, md5(body) FROM document ORDER BY body LIMIT 2;
SELECT count(*), sum(length(body)) FROM document;
-- In blocks, with savepoints.
BEGIN;
UPDATE document SET body = body || 'f' WHERE id >= 2;
SELECT id, length(body) FROM document ORDER BY id;
SAVEPOINT s;
DELETE FROM document WHERE id = 2;
INSERT INTO document VALUES (4, 'new', repeat('g', 500000));
ROLLBACK TO s;
INSERT INTO document VALUES (5, 'new', repeat('h', 500000));
COMMIT;
SELECT id, kind, length(body), md5(body) FROM document ORDER BY id;
-- Upserts, indexes, foreign keys and other types of columns.
INSERT INTO document VALUES (5, 'again', repeat('i', 600000)) ON CONFLICT (id) DO UPDATE SET body = document.body || excluded.body, kind = excluded.kind;
CREATE INDEX ON document (kind);
SELECT id, length(body) FROM document WHERE kind = 'again';
CREATE TABLE page (document int REFERENCES document ON UPDATE CASCADE ON DELETE CASCADE, at int, body text, PRIMARY KEY (document, at));
INSERT INTO page SELECT id, 1, body FROM document;
UPDATE document SET id = 31 WHERE id = 30;
DELETE FROM document WHERE id = 1;
SELECT document, length(body), md5(body) FROM page ORDER BY document;
ALTER TABLE document ADD COLUMN words jsonb DEFAULT '[]';
ALTER TABLE document ALTER COLUMN body TYPE varchar USING upper(body);
SELECT id, length(body), md5(body), words FROM document ORDER BY id;
CREATE TABLE copy_of AS SELECT * FROM document;
SELECT count(*), sum(length(body)) FROM copy_of;
DELETE FROM document WHERE id = 2;
TRUNCATE page;
INSERT INTO page SELECT id, 2, body FROM document;
SELECT document, at, length(body) FROM page ORDER BY document;
DROP TABLE page, copy_of;
DROP TABLE document;
