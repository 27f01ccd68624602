CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE person (
    id SERIAL PRIMARY KEY,
    name VARCHAR(40) NOT NULL DEFAULT 'x',
    mood mood DEFAULT 'ok',
    at TIMESTAMP WITH TIME ZONE DEFAULT now()
);
COMMENT ON TABLE person IS $$people; all of them$$;
INSERT INTO person (name) VALUES ('it''s; one'), ('two');
