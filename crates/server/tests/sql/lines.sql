-- String constants over several lines are one.
SELECT 'a'
    'b';
SELECT 'x''y' -- one
'z''', E'\x61'
'\x62''', date '2024-'
'01-01', interval '1'
' day';
-- Rows are written, and RETURNING is computed of them, one after the other.
CREATE TABLE r (i int PRIMARY KEY, t text NOT NULL);
INSERT INTO r VALUES (1, 'a');
INSERT INTO r VALUES (2, 'b'), (1, 'c') RETURNING 1 / (i - 2);
INSERT INTO r VALUES (1, 'b'), (2, 'c') RETURNING 1 / (i - 2);
INSERT INTO r VALUES (2, 'b'), (2, 'c') RETURNING 1 / i;
INSERT INTO r VALUES (2, 'b'), (3, NULL) RETURNING 1 / (i - 2);
INSERT INTO r VALUES (1, 'b'), (3, NULL);
INSERT INTO r VALUES (2, 'b'), (2, 'c'), (3, NULL) RETURNING 1 / (i - 1);
SELECT * FROM r;
