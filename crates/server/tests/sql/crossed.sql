\echo Foreign keys beside joins, queries in statements that write, and blocks.
CREATE TABLE owner (id int PRIMARY KEY, name text NOT NULL);
CREATE TABLE pet (id int PRIMARY KEY, owner int REFERENCES owner ON DELETE CASCADE, name text);
CREATE TABLE visit (pet int REFERENCES pet ON DELETE SET NULL ON UPDATE CASCADE, fee int);
INSERT INTO owner VALUES (1, 'a'), (2, 'b'), (3, 'c');
INSERT INTO pet VALUES (10, 1, 'x'), (11, 1, 'y'), (20, 2, 'z');
INSERT INTO visit VALUES (10, 5), (11, 6), (20, 7), (20, 8);
\echo Writes that name several tables keep the keys, too.
UPDATE pet SET owner = 9 FROM owner WHERE owner.id = pet.owner AND owner.name = 'a';
UPDATE pet SET owner = 3 FROM owner WHERE owner.id = pet.owner AND owner.name = 'b';
DELETE FROM owner USING pet WHERE pet.owner = owner.id AND pet.name = 'z';
SELECT * FROM pet ORDER BY id;
SELECT * FROM visit ORDER BY fee;
INSERT INTO pet SELECT id + 100, id + 50, name FROM owner;
INSERT INTO pet SELECT id + 100, id, name FROM owner
    WHERE EXISTS (SELECT 1 FROM pet WHERE pet.owner = owner.id);
WITH few AS (SELECT 77 AS pet, 1 AS fee) INSERT INTO visit SELECT pet, fee FROM few;
WITH few AS (SELECT max(id) AS pet FROM pet) INSERT INTO visit SELECT pet, 9 FROM few;
SELECT * FROM visit ORDER BY fee;
\echo In a block.
BEGIN;
INSERT INTO owner VALUES (4, 'd');
INSERT INTO pet VALUES (40, 4, 'w');
UPDATE pet SET id = id + 1000 WHERE owner IN (SELECT id FROM owner WHERE name = 'a');
SAVEPOINT here;
INSERT INTO pet VALUES (50, 5, 'v');
ROLLBACK TO here;
DELETE FROM owner WHERE id = 4;
SELECT count(*) FROM pet WHERE owner = 4;
COMMIT;
SELECT pet.id, visit.fee FROM pet LEFT JOIN visit ON visit.pet = pet.id ORDER BY 1, 2;
BEGIN;
DELETE FROM owner;
SELECT count(*) FROM pet;
ROLLBACK;
SELECT owner.name, count(pet.id) FROM owner LEFT JOIN pet ON pet.owner = owner.id
    GROUP BY owner.id ORDER BY 1;
BEGIN READ ONLY;
DELETE FROM pet USING owner WHERE owner.id = pet.owner;
ROLLBACK;
DROP TABLE owner;
DROP TABLE visit, pet, owner;
