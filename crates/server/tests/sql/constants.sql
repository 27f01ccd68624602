-- Functions of the system that say the same everywhere.
SELECT getdatabaseencoding(), pg_client_encoding(), current_schema(), current_user, session_user;
SELECT pg_is_in_recovery(), pg_my_temp_schema(), pg_is_other_temp_schema(1);
SELECT has_table_privilege('pg_class', 'select'), has_schema_privilege('public', 'usage'), has_schema_privilege('nvcaracal', 'public', 'usage'), has_database_privilege('postgres', 'connect'), has_column_privilege('pg_class', 'relname', 'select'), pg_has_role('nvcaracal', 'usage');
-- Comments are in comments.sql.
SELECT has_table_privilege('pg_class');
SELECT current_schema(1);
