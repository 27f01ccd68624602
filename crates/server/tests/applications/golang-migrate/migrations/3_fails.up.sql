INSERT INTO person (id) VALUES (1);
