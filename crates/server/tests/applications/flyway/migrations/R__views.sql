CREATE OR REPLACE VIEW visit_of AS SELECT p.name FROM person p;
