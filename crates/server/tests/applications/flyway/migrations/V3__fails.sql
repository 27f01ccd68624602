CREATE TABLE half (id INTEGER);
INSERT INTO half VALUES ('no number');
