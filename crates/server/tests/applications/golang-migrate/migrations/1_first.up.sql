CREATE TABLE person (
    id serial PRIMARY KEY,
    name varchar(40) NOT NULL DEFAULT 'x'
);
CREATE INDEX person_name ON person (name);
INSERT INTO person (name) VALUES ('Ada'), ('Bob');
