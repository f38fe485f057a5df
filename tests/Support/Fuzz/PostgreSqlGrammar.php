<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Fuzz;

use PDO;

/**
 * What is said to PostgreSQL.
 */
final class PostgreSqlGrammar extends Grammar
{
    protected const KIND = 'pgsql';

    protected const CLIENTS = ['pdo' => 40, 'pgsql' => 60];

    protected const PARTS = [
        // A statement that writes, alone.
        'w' => [
            "INSERT INTO users VALUES ({n}, 'x{n}@x', 'X')", "UPDATE users SET name = 'X{n}'", 'DELETE FROM child',
            "INSERT INTO log (t, n) VALUES ('x', {n})",
            'TRUNCATE log', 'CREATE TABLE t{n} (a int)', 'DROP TABLE things.things', 'SELECT lo_creat(-1)',
            "SELECT nextval('numbers')",
            "WITH x AS (DELETE FROM log RETURNING 1) SELECT * FROM x",
        ],
        'lift' => [
            'SET default_transaction_read_only = off', 'SET transaction_read_only = off',
            'SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE',
            'SET TRANSACTION READ WRITE', 'RESET ALL', 'COMMIT',
            "SELECT set_config('default_transaction_read_only', 'off', false)",
        ],
        // Functions that write past transactions, or past what a transaction that reads is stopped from.
        'f' => [
            'lo_creat(-1)', 'lo_create({n})', "lo_from_bytea(0, 'x')", "lo_put(4242, 0, 'X{n}')", 'lo_unlink(4242)',
            "lo_import('FILE_IN')", "lo_export(4242, 'FILE_OUT')",
            'lo_truncate(lo_open(4242, 131072), 1)', "lowrite(lo_open(4242, 131072), 'w{n}')",
            "dblink_exec('me', '{w'}')", "dblink_exec('me', '{w'}')", "lo_import('FILE_IN', {n})",
            "dblink_connect('c', 'me')", "dblink_send_query('c', '{w'}')", "pg_file_write('FILE_OUT', 'x', false)",
            "pg_file_unlink('FILE_IN')",
            "pg_file_rename('FILE_IN', 'FILE_OUT')", "pg_file_sync('FILE_IN')", 'pg_reload_conf()',
            'pg_terminate_backend(VICTIM_ID)', 'pg_stat_reset()',
            "pg_stat_reset_shared('bgwriter')", "pg_stat_reset_slru(NULL)", "setval('numbers', {n})",
            "nextval('numbers')", "pg_notify('x', 'y')", 'writes()', 'lifts()', 'lifts_and_writes()',
            "heap_force_kill('users'::regclass, ARRAY['(0,1)']::tid[])",
            "heap_force_freeze('users'::regclass, ARRAY['(0,1)']::tid[])", "pg_truncate_visibility_map('users')",
            "pg_import_system_collations('things')", 'lo_truncate64(lo_open(4242, 131072), 2)',
            "query_to_xml('SELECT writes()', true, true, '')", "query_to_xml('SELECT lo_creat(-1)', true, true, '')",
            "query_to_xml('SELECT ' || 'lo_cr' || 'eat(-1)', true, true, '')", "cursor_to_xml('c', 1, true, true, '')",
            "table_to_xml('lifting', true, true, '')", "schema_to_xml('public', true, true, '')",
            "database_to_xml(true, true, '')", "query_to_xmlschema('SELECT writes()', true, true, '')",
            "xpath_table('id', 'name', 'users', '/', 'lo_creat(-1) > 0')", "pg_advisory_lock(1)",
            "set_config('default_transaction_read_only', 'off', false)",
            "set_config('transaction_read_only', 'off', true)",
            "ts_rewrite('a'::tsquery, 'SELECT lo_creat(-1)::text::tsquery, ''b''::tsquery')",
            "lo_export(4242::oid, 'FILE_OUT'::text)", 'pg_catalog.lo_creat(-1)', '"lo_creat"(-1)',
            'U&"lo_cr\0065at"(-1)', 'U&"lo_cr!0065at" UESCAPE \'!\' (-1)', 'pg_switch_wal()',
            "pg_create_restore_point('x')",
            "pg_logical_emit_message(false, 'x', 'y')", 'pg_rotate_logfile()', 'pg_export_snapshot()', 'txid_current()',
            "brin_summarize_new_values('brin')", "brin_desummarize_range('brin', 0)", "gin_clean_pending_list('gin')",
            "ts_stat('SELECT to_tsvector(lo_creat(-1)::text)')", "pg_log_backend_memory_contexts(VICTIM_ID)",
            'pg_cancel_backend(VICTIM_ID)', "dblink_connect_u('u', 'me')", "pg_replication_origin_create('o{n}')",
            "crosstab('SELECT ''a'', lo_creat(-1)::text, ''b''')", "pg_extension_config_dump('users', '')",
            "pg_nextoid('pg_class', 'oid', 'pg_class_oid_index')", "currtid2('users', '(0,1)')", "pg_backup_start('x')",
        ],
        // One that writes rows and tables only.
        's' => [
            "INSERT INTO users VALUES ({n}, 'x{n}@x', 'X')", 'DELETE FROM child', 'TRUNCATE log',
            'CREATE TABLE t{n} (a int)',
            'DROP TABLE things.things', "UPDATE users SET name = 'X{n}'", 'DROP VIEW lifting', 'CREATE ROLE m{n}',
        ],
        // A text that is put together as it is executed.
        'dynamic' => [
            "'COPY users TO PROG' || 'RAM ''touch FILE_OUT'''", "'SELECT lo_ex' || 'port(4242, ''FILE_OUT'')'",
            "'SELECT pg_reload' || '_conf()'", "concat('SELECT dblink', '_exec(''me'', ''DELETE FROM child'')')",
            "'SELECT pg_termi' || 'nate_backend(VICTIM_ID)'", "E'COPY users TO \\x50ROGRAM ''touch FILE_OUT'''",
        ],
        'point' => [
            'a', 'b', 'altair_transaction', 'altair_statement', 'altair_constraints', '"altair_statement"', 'A',
        ],
        'encoding' => [
            'SJIS', 'BIG5', 'GBK', 'GB18030', 'UHC', 'JOHAB', 'SHIFT_JIS_2004', 'UTF8', 'LATIN1', 'EUC_JP', 'SQL_ASCII',
            'WIN1252',
        ],
        'tag' => ['$$', '$a$', '$_$', '$é$', '$a1$'],
    ];

    protected const WRITE = [
        '{w}', '{w}', '{w}', 'SELECT {f}', 'SELECT {f}', 'SELECT {f}', 'SELECT * FROM {f}',
        'SELECT 1 WHERE {f} IS NULL', 'VALUES ({f})',
        'SELECT (SELECT {f})', 'SELECT * FROM users, LATERAL (SELECT {f}) AS x',
        'WITH x AS (SELECT {f}) SELECT * FROM x', 'SELECT * FROM ROWS FROM ({f}) AS x',
        'TABLE lifting', 'EXPLAIN ANALYZE SELECT {f}', 'EXPLAIN (ANALYZE, FORMAT JSON) {w}', 'EXPLAIN ANALYZE {w}',
        'SELECT CASE WHEN true THEN {f} END', 'SELECT array_agg({f})',
        "INSERT INTO users VALUES ({n}, 'x{n}@x', 'X') ON CONFLICT DO NOTHING",
        "INSERT INTO users SELECT {n}, 's{n}@x', 'S' RETURNING id", 'UPDATE users SET name = upper(name) WHERE id = 1',
        'DELETE FROM users USING log', 'DELETE FROM ONLY users', 'TRUNCATE users, child',
        'TRUNCATE ONLY log RESTART IDENTITY',
        "WITH x AS (INSERT INTO log (n) VALUES ({n}) RETURNING id) SELECT * FROM x",
        "WITH x AS (UPDATE users SET name = 'W{n}' RETURNING id) TABLE x",
        "MERGE INTO users u USING (SELECT 1 AS i) s ON u.id = s.i WHEN MATCHED THEN UPDATE SET name = 'M{n}'",
        'MERGE INTO log USING users ON false WHEN NOT MATCHED THEN INSERT (n) VALUES ({n})',
        'INSERT INTO users_view (id, email, name) VALUES ({n}, \'v{n}\', \'V\')', 'DELETE FROM users_view',
        'SELECT * INTO t{n} FROM users', 'SELECT writes() INTO TEMP t{n}', 'CREATE TABLE t{n} AS SELECT * FROM users',
        'CREATE TEMP TABLE t{n} AS SELECT writes()',
        'UPDATE pg_proc SET proname = \'quiet\' WHERE proname = \'lo_export\'',
        "COPY users FROM 'FILE_IN'", "COPY users TO 'FILE_OUT'", "COPY users FROM PROGRAM 'touch FILE_OUT'",
        "COPY users TO PROGRAM 'touch FILE_OUT'", "COPY (SELECT 1) TO 'FILE_OUT'", "COPY (SELECT {f}) TO STDOUT",
        "COPY ({w}) TO STDOUT",
        "COPY (INSERT INTO log (n) VALUES (1) RETURNING id) TO STDOUT", 'COPY users FROM STDIN',
        "COPY (SELECT 'TO STDOUT') TO PROGRAM 'touch FILE_OUT'", "COPY users (name) TO 'FILE_OUT' WITH (FORMAT csv)",
        "COPY users TO 'FILE_OUT' -- TO STDOUT", "COPY (SELECT 1 AS STDOUT) TO 'FILE_OUT'",
        "COPY (SELECT 1) TO PROGRAM $\$touch FILE_OUT$$", "COPY users TO E'FILE_OUT'", "COPY \"users\" TO STDOUT; {w}",
        "DO {tag} BEGIN {w}; END {tag}", "DO $$ BEGIN {w}; END $$", "DO $$ BEGIN COMMIT; {lift}; {w}; END $$",
        "DO $$ BEGIN EXECUTE '{w'}'; END $$", "DO $$ BEGIN {w}; COMMIT; END $$", "DO $$ BEGIN PERFORM {f}; END $$",
        "DO LANGUAGE plpgsql 'BEGIN {w'}; END'", "DO E'BEGIN {w'}; COMMIT; END'",
        "DO $$ BEGIN COPY users TO 'FILE_OUT'; END $$", 'DO $$ BEGIN ROLLBACK; {w}; COMMIT; END $$',
        "DO $$ BEGIN COPY log FROM 'FILE_IN'; END $$",
        "DO $$ BEGIN EXECUTE {dynamic}; END $$", "DO $$ BEGIN EXECUTE 'SELECT nextval(''numbers'')'; END $$",
        'CALL tries()', 'CALL public.tries()', "CALL runs('{s'}')", "CALL runs('{lift'}')", "CALL runs('COMMIT')",
        "SELECT executes('{s'}')", "SELECT executes('{lift'}')",
        'SELECT (4242::oid).lo_unlink', 'SELECT n.lo_creat FROM generate_series(1, 1) n',
        'SELECT (\'FILE_IN\'::text).lo_import', 'SELECT n."lo_creat" FROM generate_series(1, 1) n',
        'SELECT (VICTIM_ID).pg_terminate_backend',
        "SELECT * FROM dblink('me', '{w'} RETURNING 1') AS t(a int)",
        "SELECT * FROM dblink('me', 'SELECT writes()') AS t(a int)", 'NOTIFY x', "NOTIFY x, 'y'", 'LISTEN x',
        "SELECT 'x'::text || {f}::text",
    ];

    protected const CODE = [
        'CREATE TEMP TABLE t{n} (a int)', 'CREATE UNLOGGED TABLE t{n} (a int)', 'DROP TABLE users CASCADE',
        'ALTER TABLE users ADD x{n} int DEFAULT writes()', 'ALTER TABLE users RENAME TO x{n}',
        'CREATE INDEX ON users (name)',
        'CREATE INDEX CONCURRENTLY ON users (name)', 'DROP INDEX CONCURRENTLY IF EXISTS users_email_key',
        'CREATE VIEW v{n} AS SELECT {f} AS a',
        'CREATE OR REPLACE VIEW users_view AS SELECT 1 AS id, 2 AS email, 3 AS name',
        'CREATE MATERIALIZED VIEW m{n} AS SELECT {f} AS a', 'REFRESH MATERIALIZED VIEW mv',
        'CREATE FUNCTION f{n}() RETURNS int LANGUAGE sql AS \'{w\'}; SELECT 1\'',
        "CREATE FUNCTION f{n}() RETURNS text LANGUAGE sql RETURN lifts()",
        'CREATE PROCEDURE p{n}() LANGUAGE sql AS \'{w\'}\'', 'CREATE RULE r{n} AS ON INSERT TO users DO ALSO {w}',
        'CREATE TRIGGER g{n} AFTER DELETE ON users EXECUTE FUNCTION touches()', 'DROP FUNCTION lifts CASCADE',
        'CREATE SEQUENCE s{n}',
        'ALTER SEQUENCE numbers RESTART {n}', 'DROP SEQUENCE numbers', 'CREATE SCHEMA s{n} CREATE TABLE a (b int)',
        'DROP SCHEMA things CASCADE', 'CREATE DATABASE d{n}', 'DROP DATABASE IF EXISTS d1',
        "ALTER DATABASE shop SET work_mem = '{n}kB'",
        'CREATE ROLE m{n}', "ALTER ROLE other PASSWORD 'x{n}'", 'DROP ROLE other', 'GRANT ALL ON users TO PUBLIC',
        'GRANT other TO shop', 'REVOKE ALL ON users FROM PUBLIC',
        'ALTER ROLE shop SET default_transaction_read_only = off', 'REASSIGN OWNED BY other TO shop',
        'ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC', 'ALTER SYSTEM SET work_mem = 1000',
        'ALTER SYSTEM RESET ALL', 'CREATE TABLESPACE x LOCATION \'/var/tmp\'', 'CREATE EXTENSION IF NOT EXISTS hstore',
        'DROP EXTENSION dblink CASCADE',
        'CREATE TYPE e{n} AS ENUM (\'a\')', 'ALTER TYPE mood ADD VALUE \'v{n}\'', 'CREATE DOMAIN d{n} AS int',
        'CREATE CAST (int AS mood) WITH INOUT', 'CREATE AGGREGATE a{n}(int) (SFUNC = int4pl, STYPE = int)',
        'CREATE PUBLICATION p{n} FOR ALL TABLES',
        "CREATE SERVER s{n} FOREIGN DATA WRAPPER file_fdw",
        "CREATE FOREIGN TABLE t{n} (a text) SERVER files OPTIONS (filename 'FILE_IN')",
        "CREATE FOREIGN TABLE t{n} (a text) SERVER files OPTIONS (program 'touch FILE_OUT')",
        'SECURITY LABEL ON TABLE users IS \'x\'',
        "COMMENT ON TABLE users IS 'x{n}'", 'COMMENT ON DATABASE shop IS \'x{n}\'', 'VACUUM', 'VACUUM FULL users',
        'ANALYZE users', 'ANALYZE', 'REINDEX TABLE users', 'REINDEX TABLE CONCURRENTLY users',
        'CLUSTER users USING users_pkey', 'CHECKPOINT', 'LOAD \'auto_explain\'',
        'LOCK TABLE users', 'LOCK TABLE users IN ACCESS SHARE MODE', "PREPARE TRANSACTION 'x'", "COMMIT PREPARED 'x'",
        "ROLLBACK PREPARED 'x'", 'PREPARE s AS {w}', 'PREPARE s AS SELECT {f}', 'EXECUTE s',
        'EXPLAIN ANALYZE EXECUTE s', 'CREATE TABLE t{n} AS EXECUTE s',
        'PREPARE s(int) AS INSERT INTO log (n) VALUES ($1)', 'EXECUTE s(1)', 'DEALLOCATE s', 'DEALLOCATE ALL',
        'DECLARE c CURSOR FOR SELECT {f}', 'DECLARE c CURSOR WITH HOLD FOR SELECT {f}', 'FETCH ALL FROM c',
        'MOVE ALL IN c', 'CLOSE c', 'FETCH c', 'DISCARD ALL', 'DISCARD TEMP',
        'DISCARD PLANS', 'RESET ALL', 'RESET SESSION AUTHORIZATION', 'SET ROLE other',
        'SET SESSION AUTHORIZATION other', 'SET ROLE NONE', "SET LOCAL work_mem = '1MB'",
        'SET CONSTRAINTS ALL IMMEDIATE', 'SET CONSTRAINTS ALL DEFERRED', 'UNLISTEN *',
        'IMPORT FOREIGN SCHEMA x FROM SERVER me INTO things',
        'SELECT * FROM users FOR UPDATE', 'INSERT INTO child VALUES (1, 999)',
        "CREATE FUNCTION q{n}(oid, text) RETURNS int LANGUAGE internal AS 'be_lo_export'",
        'CREATE EVENT TRIGGER g{n} ON ddl_command_end EXECUTE FUNCTION fires()',
        'CREATE USER MAPPING FOR other SERVER me',
        'ALTER TABLE users DISABLE TRIGGER ALL', 'ALTER TABLE users OWNER TO other',
        'ALTER FUNCTION writes() SET work_mem = 1000', 'CREATE STATISTICS z{n} ON id, name FROM users',
        'CREATE COLLATION l{n} (locale = \'C\')',
        'CREATE OPERATOR ### (FUNCTION = int4pl, LEFTARG = int, RIGHTARG = int)',
        'CREATE SUBSCRIPTION z{n} CONNECTION \'\' PUBLICATION x WITH (connect = false)',
        'CREATE CONVERSION v{n} FOR \'LATIN1\' TO \'UTF8\' FROM iso8859_1_to_utf8', 'DROP OWNED BY other',
        'CREATE ACCESS METHOD m{n} TYPE INDEX HANDLER bthandler', 'CREATE LANGUAGE l{n} HANDLER plpgsql_call_handler',
    ];

    protected const LIFT = [
        '{lift}', '{lift}', '{lift}',
        'SELECT lifts()', 'SELECT * FROM lifting', 'DISCARD ALL', 'SET SESSION default_transaction_read_only TO off',
        'SET "default_transaction_read_only" = off', 'SET default_transaction_read_only TO DEFAULT',
        'SET LOCAL transaction_read_only = off',
        'SET U&"default\005ftransaction_read_only" = off', 'RESET default_transaction_read_only',
        'SET default_transaction_read_only = off /* on */', "SET transaction_read_only = 'off' -- on",
        'SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ WRITE',
        "SELECT set_config('default_' || 'transaction_read_only', 'off', false)",
        "SELECT set_config('transaction_read_only', 'off', true)",
        "EXPLAIN ANALYZE SELECT set_config('default_transaction_read_only', 'off', false)",
        "PREPARE s AS SELECT set_config('default_transaction_read_only', 'off', false)",
        'SET SESSION AUTHORIZATION DEFAULT', 'BEGIN READ WRITE', 'COMMIT AND CHAIN', 'ROLLBACK AND CHAIN',
        "SELECT set_config(name, 'off', false) FROM pg_settings WHERE name LIKE 'default%read_only'",
        'UPDATE pg_settings SET setting = \'off\' WHERE name = \'default_transaction_read_only\'',
        'UPDATE pg_settings SET setting = \'off\' WHERE name = \'transaction_read_only\'',
        'SET search_path = things, public', 'SET TRANSACTION ISOLATION LEVEL SERIALIZABLE',
        'SET idle_in_transaction_session_timeout = 1', 'SET default_transaction_deferrable = on',
        'SET session_replication_role = replica',
        "SELECT set_config('standard_conforming_strings', 'off', false)", 'SET statement_timeout = 1', 'ABORT',
        'ROLLBACK',
        "WITH x AS MATERIALIZED (SELECT set_config('default_transaction_read_only', 'off', false)) SELECT * FROM x",
        "SET default_transaction_read_only = 'n'", 'SET transaction_read_only = 0',
    ];

    protected const BEGIN = [
        'BEGIN', 'BEGIN', 'BEGIN WORK', 'BEGIN TRANSACTION', 'BEGIN READ WRITE', 'BEGIN READ ONLY', 'START TRANSACTION',
        'START TRANSACTION READ WRITE', 'START TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ WRITE',
        'BEGIN ISOLATION LEVEL REPEATABLE READ', 'BEGIN READ ONLY READ WRITE',
        'BEGIN DEFERRABLE', 'START TRANSACTION READ ONLY, READ WRITE',
    ];

    protected const END = [
        'COMMIT', 'COMMIT', 'COMMIT', 'COMMIT WORK', 'COMMIT TRANSACTION', 'END', 'END TRANSACTION AND CHAIN',
        'COMMIT AND CHAIN', 'COMMIT AND NO CHAIN', 'ROLLBACK', 'ROLLBACK AND CHAIN', 'ABORT', 'ABORT AND CHAIN',
        'BEGIN',
    ];

    protected const POINT = [
        'SAVEPOINT {point}', 'ROLLBACK TO {point}', 'ROLLBACK TO SAVEPOINT {point}', 'RELEASE SAVEPOINT {point}',
        'RELEASE {point}', 'ROLLBACK WORK TO {point}', 'ROLLBACK TRANSACTION TO SAVEPOINT {point}', 'ABORT TO {point}',
        'RELEASE altair_transaction', 'RELEASE altair_statement', 'ROLLBACK TO altair_statement',
    ];

    protected const SETUP = [
        'SET standard_conforming_strings = off', 'SET standard_conforming_strings = off',
        "SET client_encoding = '{encoding}'", "SET NAMES '{encoding}'", "SET client_encoding TO {encoding}",
        'SET backslash_quote = on', 'SET escape_string_warning = off', "SET search_path = 'pg_catalog'",
        'SET search_path = things, public',
        'SET lo_compat_privileges = on', 'SET allow_system_table_mods = on', 'SET bytea_output = escape',
        'SET plan_cache_mode = force_generic_plan', 'SET row_security = off', "SET DateStyle = 'ISO'",
        'SET transform_null_equals = on', 'SET client_min_messages = error', 'SET jit = off',
        "SET LOCAL standard_conforming_strings = off", 'SET xmloption = content',
        'SET default_transaction_isolation = serializable', 'RESET standard_conforming_strings',
        'SET quote_all_identifiers = on', 'SET session_replication_role = replica', 'SET array_nulls = off',
    ];

    protected const HIDDEN = [
        ['SET standard_conforming_strings = off', "SELECT '\\'; {lift}; {w}; --'"],
        ['SET standard_conforming_strings = off', "SELECT '\\', {f}; --'"], ["SELECT '\\'; {w}; --'"],
        ["SELECT E'\\', {f} --'"],
        ["SET client_encoding = 'SJIS'", "SELECT '\x95\\', {f} --'"],
        ["SET client_encoding = 'GBK'", "SELECT E'\xbf\\', {f} --'"],
        ["SET client_encoding = 'BIG5'", "SELECT '\xa4\\', {f}"],
        ['SELECT $1e5$$, lo_creat(-1), $$x'], ['SELECT 1 AS a$$, lo_creat(-1) AS b$$'], ['SELECT $$a$$, {f}, $$b$$'],
        ['SELECT $a$ $$ $a$, {f}, $$ $a$ $$'], ['SELECT 1$$, {f}, 1$$'], ['SELECT 1_$$, {f}, 1_$$'],
        ["SELECT 0x1$$, {f}, $$"],
        ["SELECT 'a'\n'b', {f}"], ["SELECT E'a'\n'\\', {f}, '"], ["SELECT U&'\\0027', {f}, 'x'"],
        ["SELECT U&\"\\0069d\" FROM users, {f} AS x"], ["SELECT U&'!0027' UESCAPE '!', {f}"],
        ["SELECT b'1', x'1f', n'a', {f}"], ['SELECT "a""b" FROM (SELECT 1 AS "a""b") x, {f} y'],
        ['BEGIN', 'SELECT lifts()', 'COMMIT AND CHAIN', '{w}', 'COMMIT'],
        [
            'BEGIN', "SELECT set_config('default_transaction_read_only', 'off', false)", 'COMMIT AND CHAIN', '{w}',
            'COMMIT',
        ],
        [
            'BEGIN', "SET LOCAL work_mem = '1MB'", "SELECT set_config('transaction_read_only', 'off', false)", '{w}',
            'COMMIT',
        ],
        ['BEGIN', 'SAVEPOINT a', "SET transaction_read_only = 'off' /* on */", '{w}', 'COMMIT'],
        [
            'BEGIN', 'SAVEPOINT a', 'ROLLBACK TO a', "SELECT set_config('transaction_read_only', 'off', true)", '{w}',
            'COMMIT',
        ],
        ['BEGIN', 'DECLARE c CURSOR FOR SELECT lifts()', 'FETCH c', 'COMMIT AND CHAIN', '{w}', 'COMMIT'],
        ['PREPARE k AS {w}', 'EXECUTE k'],
        ['BEGIN', 'PREPARE k AS SELECT lifts()', 'EXECUTE k', 'COMMIT AND CHAIN', '{w}', 'COMMIT'],
        ["BEGIN", "SET transaction_read_only = off -- true", '{w}', 'COMMIT'],
        ['BEGIN', 'SHOW transaction_read_only', '{lift}', '{w}', 'COMMIT'],
        ['SELECT 1; {lift}', '{w}'], ["SELECT 1 --\r; {w}"], ["SELECT 1 --\n; {w}"], ['SELECT 1 /* /* */ ; {w} -- */'],
        ['SELECT 1 /* */ ; {w} /* */'], ["SELECT ';'; {w}"], ['SELECT $$;$$; {w}'], ["; {w}"], [";{lift};{w}"],
        ["ALTER FUNCTION lo_export RENAME TO quiet", "SELECT quiet(4242, 'FILE_OUT')"],
        [
            "CREATE FUNCTION quiet(oid, text) RETURNS int LANGUAGE internal AS 'be_lo_export'",
            "SELECT quiet(4242, 'FILE_OUT')",
        ],
        [
            'CREATE FUNCTION quiet(text, text, boolean) RETURNS bigint LANGUAGE c'
                . " AS '\$libdir/adminpack', 'pg_file_write_v1_1'",
            "SELECT quiet('FILE_OUT', 'x', false)",
        ],
        [
            "CREATE FUNCTION quiet(text) RETURNS boolean LANGUAGE c AS '\$libdir/adminpack', 'pg_file_unlink_v1_1'",
            "SELECT quiet('FILE_IN')",
        ],
        [
            "CREATE FUNCTION quiet(text, text) RETURNS text LANGUAGE c AS '\$libdir/dblink', E'dblink\\137exec'",
            "SELECT quiet('me', 'DELETE FROM child')",
        ],
        ["UPDATE pg_proc SET proname = 'quiet' WHERE proname = 'lo_export'", "SELECT quiet(4242, 'FILE_OUT')"],
        [
            "CREATE FOREIGN TABLE q (a text) SERVER files OPTIONS (filename 'FILE_IN')",
            "ALTER FOREIGN TABLE q OPTIONS (DROP filename, ADD program 'touch FILE_OUT')", 'SELECT * FROM q',
        ],
        ["ALTER FOREIGN TABLE lines OPTIONS (DROP filename, ADD program 'touch FILE_OUT')", 'SELECT * FROM lines'],
        [
            'CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN COPY users TO \'FILE_OUT\'; RETURN 1; END $$',
            'SELECT f()',
        ],
        [
            'CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN EXECUTE {dynamic}; RETURN 1; END $$',
            'SELECT f()',
        ],
        ["CREATE FUNCTION f() RETURNS int LANGUAGE sql AS E'SELECT lo_\\x65xport(4242, ''FILE_OUT'')'", 'SELECT f()'],
        ["CREATE VIEW v AS SELECT U&\"lo_\\0065xport\"(4242, 'FILE_OUT')", 'SELECT * FROM v'],
        ['CREATE RULE r AS ON INSERT TO log DO ALSO SELECT {f}', 'INSERT INTO log (n) VALUES (1)'],
        ['INSERT INTO remote VALUES ({n})', 'COMMIT'], ['DELETE FROM remote'],
        ['BEGIN', 'INSERT INTO remote VALUES ({n})', 'COMMIT', 'BEGIN', 'COMMIT'],
        ['ROLLBACK TO altair_statement', '{w}', 'COMMIT'], ['RELEASE altair_statement', '{w}', 'COMMIT', '{w}'],
        ['BEGIN', 'RELEASE altair_transaction', 'COMMIT', '{w}'],
        ['SAVEPOINT altair_statement', 'ROLLBACK TO altair_statement', '{w}'],
        ['BEGIN', 'ROLLBACK TO altair_statement', 'COMMIT', '{w}'],
        ['ROLLBACK', '{w}'],
        ['BEGIN', '{w}', 'ROLLBACK TO SAVEPOINT altair_transaction', 'RELEASE altair_transaction', '{w}', 'COMMIT'],
        ['BEGIN', 'INSERT INTO child VALUES (1, 999)', 'COMMIT', '{w}'],
        ['SET CONSTRAINTS ALL DEFERRED', 'INSERT INTO child VALUES (1, 999)', '{w}', 'COMMIT'],
        ['LISTEN x', 'NOTIFY x', 'COMMIT'], ["DECLARE c CURSOR WITH HOLD FOR SELECT writes()", 'COMMIT', 'FETCH c'],
        ['BEGIN', 'SELECT 1/0', 'COMMIT', '{w}'], ['SELECT 1/0', '{w}', 'COMMIT'],
        ['BEGIN', 'SELECT 1/0', 'ROLLBACK AND CHAIN', '{w}', 'COMMIT'], ['SELECT syntax error', 'COMMIT', '{w}'],
        ['SET idle_in_transaction_session_timeout = 1', 'SELECT pg_sleep(0.01)', '{w}'],
        ['SELECT pg_terminate_backend(pg_backend_pid())', '{w}'], ['COPY users FROM STDIN', '{w}'],
        ['COPY users TO STDOUT', '{lift}', '{w}'],
        ['CREATE TRIGGER g AFTER INSERT ON log EXECUTE FUNCTION touches()', 'INSERT INTO log (n) VALUES (1)'],
    ];

    protected const BOUND = [
        ["INSERT INTO users VALUES (?, ?, ?)", ['{n}', 'b{n}@x', '*']],
        ['UPDATE users SET name = ? WHERE id = ?', ['*', 1]], ['INSERT INTO log (t, n) VALUES (?, ?)', ['*', '{n}']],
        ["SELECT ?::text, lo_creat(-1), ?::text", ['*', '*']], ['SELECT 1 AS a?$$, lo_creat(-1), $$b', ['*']],
        ['SELECT $$?$$, ?::text', ['*']], ["SELECT '?', ?::text, {f}", ['*']], ["SELECT E'\\'?', ?::text, {f}", ['*']],
        ['SELECT "?", ?::text', ['*']], ['SELECT ?::text /* ? /* ? */ */, ?::text', ['*', '*']],
        ["SELECT ?::text -- ?\n, ?::text", ['*', '*']], ['SELECT ?::text; {w}', ['*']],
        ["SELECT '\\', ?::text, {f} --'", ['*']],
        ['SELECT set_config(?, ?, false)', ['default_transaction_read_only', 'off']],
        ["SELECT dblink_exec('me', ?)", ['{w}']], ['SELECT executes(?)', ['{s}']], ['CALL runs(?)', ['{s}']],
        ["SELECT nextval(?::regclass)", ['numbers']], ["SELECT lo_put(?, 0, ?)", [4242, 'Z']],
        ['SELECT query_to_xml(?, true, true, \'\')', ['SELECT lo_creat(-1)']],
        ['SELECT query_to_xml(?, true, true, \'\')', ['{w} RETURNING 1']],
        ["COPY (SELECT ?::text) TO 'FILE_OUT'", ['*']], ['SELECT lo_export(?, ?)', [4242, 'FILE_OUT']],
        ['DELETE FROM users WHERE email = ? OR true', ['*']], ['SELECT ?$a$, {f}, $a$', ['*']],
        ['SELECT $a?$, {f}, $a?$', ['*']], ["SELECT '{}'::jsonb ?? ?, {f}", ['*']], ['DO ?', ['BEGIN {w}; END']],
        ['EXECUTE s(?)', ['*']], ['SELECT notwice(?)', ['*']],
        ['INSERT INTO users SELECT ?, ?, ? RETURNING (SELECT {f})::text', ['{n}', 'c{n}@x', '*']],
        ['SELECT * FROM ts_stat(?)', ['SELECT to_tsvector(lo_creat(-1)::text)']],
    ];

    protected const HOSTILE = [
        "'; {w}; --", "\\'; {w}; --", "\\", "'", "''", '"', "\xbf'; {w}; --", "\x95'; {w}; --", "\x95\\", '$$',
        '$$; {w}; --', '$a$', '?', ':a', '$1', '/*', '*/', "x', {f}, 'y", "\\', {f}, '", "\n", ' ', '', "O'Brien; Ltd",
        '--', '; COMMIT; {w}', '東', '{w}', 'lo_creat(-1)', 'U&"x"', "E'x'", "\\047, {f}, \\047",
        '{lift}', '%', "' || {f} || '", '$$, {f}, $$', '1); {w}; --',
    ];

    protected const READ = [
        'SELECT * FROM users ORDER BY id', "SELECT name FROM users WHERE email = 'ada@shop.example'",
        'SELECT COUNT(*) FROM log', '(SELECT 1) UNION (SELECT 2)',
        'WITH u AS (SELECT * FROM users) SELECT COUNT(*) FROM u', 'TABLE users', 'VALUES (1), (2)',
        'EXPLAIN (COSTS off) SELECT * FROM users WHERE id = 1',
        "SELECT 'COPY users TO PROGRAM; dblink_exec(); lo_creat(-1)'", 'SHOW transaction_isolation',
        "SET search_path TO public", "SELECT 'it''s', E'it\\'s', \$\$it's\$\$",
        "SELECT '{\"a\": 1}'::jsonb @> '{\"a\": 1}'", "SELECT set_config('search_path', 'public', false)",
        "SELECT 1 AS program, 2 AS \"lo_creat\"", "SELECT U&'\\0041'",
        'SELECT pg_typeof(1)', 'SELECT * FROM pg_tables WHERE tablename = \'x\'',
        'SELECT * FROM information_schema.tables WHERE table_name = \'x\'',
        'SELECT string_agg(name, \';\' ORDER BY id) FROM users', 'SELECT "id", "name" FROM "public"."users" ORDER BY 1',
        "SELECT CASE WHEN true THEN 'DELETE FROM users' END", 'SELECT NULL::text',
        "SET TIME ZONE 'UTC'", 'SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY',
        'SELECT replace(\'abc\', \'b\', \'x\')', 'SELECT format(\'%I %L\', \'a\', \'b\')',
        'SELECT * FROM users WHERE name LIKE \'%\\_%\'', 'SELECT \'a\' \'b\' IS NULL', "SELECT 'a'\n'b'",
        'SELECT array[1, 2][1], \'{1,2}\'::int[]', 'SELECT 1::int, 2.5e3, 1.', 'SELECT lo_get(4242)',
        'COPY users TO STDOUT', 'COPY (SELECT 1) TO STDOUT WITH (FORMAT csv)', 'SELECT 1 AS "a;b"',
        'SELECT $x$ ; -- $x$', 'SELECT current_user, session_user',
        'SELECT * FROM users u LEFT JOIN log l ON l.n = u.id ORDER BY u.id',
        'SELECT count(*) FROM generate_series(1, 10)', "SELECT to_tsvector('simple', 'a b') @@ 'a'",
        'SELECT EXTRACT(year FROM DATE \'2020-01-01\')',
        'EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) SELECT 1',
        'SELECT has_table_privilege(\'users\', \'select\')', 'RESET search_path', "SET application_name = 'x'",
        'SELECT obj_description(\'users\'::regclass)', 'SELECT coalesce(max(id), 0) FROM log',
        'SELECT * FROM things.things', 'SELECT * FROM users OFFSET 1', 'DISCARD PLANS', 'DEALLOCATE ALL',
        "SET DateStyle TO 'ISO'",
    ];

    protected const READ_BOUND = [
        ['SELECT * FROM users WHERE email = ?', ['*']], ['SELECT ?::text AS a, ?::text AS b', ['*', '*']],
        ['SELECT * FROM users WHERE id = ? AND name <> ?', [1, '*']],
        ['SELECT name FROM users WHERE id IN (?, ?) ORDER BY 1', [1, 2]], ['SELECT length(?::text)', ['*']],
        ["SELECT CAST(? AS text) || '; '", ['*']],
    ];

    protected const APPLICATION_SAYS = [
        "INSERT INTO users VALUES (50, 'a@x', 'A')", "INSERT INTO users VALUES (51, 'b@x', 'B')",
        "UPDATE users SET name = 'U' WHERE id = 50", 'DELETE FROM users WHERE id = 50',
        'DELETE FROM users WHERE id = 1',
        "INSERT INTO users VALUES (50, 'c@x', 'C') ON CONFLICT (id) DO UPDATE SET name = 'D'",
        'SAVEPOINT a', 'ROLLBACK TO SAVEPOINT a', 'RELEASE SAVEPOINT a', "UPDATE users SET email = 'same@x'",
        'SELECT COUNT(*) FROM users', 'BEGIN', 'COMMIT', 'ROLLBACK', 'START TRANSACTION', 'COMMIT AND CHAIN',
        'ROLLBACK AND CHAIN', 'SELECT * FROM users WHERE id = 1 FOR UPDATE', 'SELECT writes()',
        'INSERT INTO child VALUES (1, 999)',
        'INSERT INTO child VALUES (1, 1)', 'CREATE TABLE tt (a int)', 'DROP TABLE tt', 'INSERT INTO tt VALUES (1)',
        'TRUNCATE child', 'SELECT 1/0', 'SELECT syntax error', 'DO $$ BEGIN DELETE FROM child; END $$',
        "SET LOCAL work_mem = '1MB'", 'SET CONSTRAINTS ALL IMMEDIATE', "SELECT lo_create(5151)",
        'ALTER TABLE log ADD z int', 'CREATE TEMP TABLE tmp AS SELECT 1 AS a', 'DROP TABLE tmp',
        'PREPARE pp AS SELECT 1', 'EXECUTE pp', 'DEALLOCATE pp', 'DECLARE cc CURSOR FOR SELECT 1', 'FETCH cc',
        "SELECT set_config('work_mem', '1MB', false)", 'SHOW work_mem',
    ];

    protected const LOOK = 'SELECT id, email, name FROM users ORDER BY id';

    /** For the end of a copy that nobody has ended ext/pgsql waits for ever, also as it closes the connection. */
    protected function ending(string $client, array $steps): array
    {
        $ends = static fn (array $step): bool => $step[1] === 'put' && $step[2][2]
            || preg_match('~STDIN|STDOUT~i', serialize($step[2])) !== 1;

        // PDO waits for it only as it begins another.
        $waits = array_intersect(array_column($steps, 1), ['copyFrom', 'copyTo']) !== [];

        return $client === 'pgsql' || $waits ? array_values(array_filter($steps, $ends)) : $steps;
    }

    protected function open(string $client): array
    {
        if ($this->dice->falls(75)) {
            return [];
        }
        $options = ['options' => $this->dice->one([
            '-c default_transaction_read_only=off', '-c standard_conforming_strings=off',
            '-c transaction_read_only=off', '-c client_encoding=SJIS', '-c search_path=things',
            '-c default_transaction_isolation=serializable', '-c session_replication_role=replica',
        ])];
        $pdo = $client === 'pdo' ? $this->dice->one([
            ['attributes' => [PDO::ATTR_EMULATE_PREPARES => true]],
            ['attributes' => [PDO::PGSQL_ATTR_DISABLE_PREPARES => true]],
            ['attributes' => [PDO::ATTR_ERRMODE => PDO::ERRMODE_SILENT]], [],
        ]) : [];

        return $options + $pdo;
    }

    protected function saying(string $client, string $text): array
    {
        $several = str_contains($text, ';') && $this->dice->falls(60);
        if ($client === 'pdo') {
            $attributes = $this->dice->one([
                [], [], [PDO::ATTR_EMULATE_PREPARES => true], [PDO::PGSQL_ATTR_DISABLE_PREPARES => true],
                [PDO::ATTR_CURSOR => PDO::CURSOR_SCROLL],
            ]);
            $way = $this->dice->weighed(['exec' => 35, 'query' => 30, 'prepare' => $several ? 3 : 25, 'ask' => 3]);

            return [$way, $way === 'prepare' ? [$text, $attributes, []] : [$text], 0];
        }
        $way = $several ? $this->dice->one(['query', 'send', 'last']) : $this->dice->weighed([
            'query' => 45, 'last' => 4, 'params' => 15, 'prepare' => 5, 'send' => 10, 'sendParams' => 6,
            'sendPrepare' => 3, 'put' => str_contains($text, 'STDIN') ? 80 : 0,
        ]);
        $row = $this->dice->between(10, 9999) . "\tp@x\tP\n";
        $takes = $this->dice->one([9, 9, 9, 0, 1]);

        return match ($way) {
            'params' => ['params', [$text, []], 0],
            'prepare' => ['prepare', [$this->dice->one(['s', 'k', 's']), $text], 1],
            'send' => ['sendText', [$text, $takes], 0],
            'sendParams' => ['sendParams', [$text, [], $takes], 0],
            'sendPrepare' => ['sendPrepare', [$text, 's', $takes], 0],
            'put' => ['put', [$text, [$row, "\\.\n"], $this->dice->falls(90)], 0],
            default => [$way, [$text], 0],
        };
    }

    protected function binding(string $client, string $text, array $values): array
    {
        if ($client === 'pgsql') {
            $at = 0;
            $text = (string) preg_replace_callback('~\?~', static function () use (&$at): string {
                return '$' . ++$at;
            }, $text);

            return $this->dice->falls(80) ? ['params', [$text, $values], 0]
                : ['sendParams', [$text, $values, $this->dice->one([9, 9, 0])], 0];
        }
        $attributes = $this->dice->one([
            [], [PDO::ATTR_EMULATE_PREPARES => true], [PDO::ATTR_EMULATE_PREPARES => true],
            [PDO::PGSQL_ATTR_DISABLE_PREPARES => true],
        ]);
        if ($this->dice->falls(15)) {
            return ['quoted', [strtr($text, ['?' => '{?}']), (string) $values[0]], 0];
        }
        if ($this->dice->falls(20)) {
            $at = 0;
            $names = [];
            $text = (string) preg_replace_callback('~\?~', static function () use (&$at, &$names, $values): string {
                $name = chr(97 + $at % 26);
                $names[$name] = $values[$at] ?? null;
                $at++;

                return ":$name";
            }, $text);
            $values = $names;
        }

        return ['prepare', [$text, $attributes, $values, $this->dice->one([1, 1, 2])], 0];
    }

    protected function calling(string $client, string $what): ?array
    {
        if ($what !== 'other') {
            $pdo = str_ends_with($what, 'begin') ? [['begin', []]] : [['commit', []], ['commit', []], ['rollback', []]];

            return $client === 'pdo' ? $this->dice->one($pdo) : null;
        }
        $table = fn (): string => $this->dice->one([
            'users', '(SELECT 1)', "({$this->expand('{w}')} RETURNING 1)", "(SELECT 1) TO PROGRAM 'touch FILE_OUT' --",
            "users TO 'FILE_OUT' --", "users TO STDOUT; {$this->expand('{lift}')}; {$this->expand('{w}')}; --",
            '(SELECT 1) TO PROGRAM \'touch FILE_OUT\' /*', '(SELECT ' . $this->expand('{f}') . ')', 'log',
            'things.things', "users FROM PROGRAM 'touch FILE_OUT' --", "users FROM 'FILE_IN' --",
            "(SELECT 1) TO PROGRAM 'touch FILE_OUT' NULL AS \$\$",
        ]);
        $separator = $this->dice->one(["\t", ',', '/', "'", '$', "\\"]);
        $null = $this->dice->one(['', '\N', "x' ) TO PROGRAM 'touch FILE_OUT' --", '$$', "\\", '/ --']);
        $n = $this->dice->between(10, 9999);
        if ($client === 'pdo') {
            return $this->dice->one([
                ['copyFrom', [$table(), ["$n\tc@x\tC"], "\t", '\N']],
                ['copyFrom', ['users', ["$n\tc$n@x\tC"], "\t", '\N']], ['copyTo', [$table(), $separator, $null]],
                ['lob', ['create']], ['lob', ['w']], ['lob', ['unlink']], ['lob', ['r+']], ['in', []],
            ]);
        }
        $hostile = fn (): string => $this->expand($this->dice->one(self::HOSTILE));
        $values = ['id' => $n, 'email' => $hostile(), 'name' => $hostile()];
        $flags = [$this->dice->one([
            PGSQL_DML_EXEC, PGSQL_DML_EXEC, PGSQL_DML_ESCAPE | PGSQL_DML_EXEC, PGSQL_DML_NO_CONV | PGSQL_DML_EXEC,
            PGSQL_DML_ASYNC, PGSQL_DML_STRING, PGSQL_DML_NO_CONV | PGSQL_DML_ASYNC,
        ])];
        $name = $this->dice->one(['users', 'users', "users; {$this->expand('{w}')}; --", 'log', 'users_view']);

        return $this->dice->one([
            ['copyFrom', [$table(), ["$n\tc@x\tC"], "\t", '\N']],
            ['copyFrom', ['users', ["$n\tc$n@x\tC\n"], "\t", '\N']], ['copyTo', [$table(), $separator, $null]],
            ['dml', ['insert', $name, $values, $flags]],
            ['dml', ['insert', 'users', ['id' => $n, 'email' => "i$n@x", 'name' => 'I'], [PGSQL_DML_EXEC]]],
            ['dml', ['update', $name, ['name' => $hostile()], ['id' => 1], $flags]],
            [
                'dml',
                [
                    'delete', $name, ['id' => $this->dice->one([1, "1; {$this->expand('{w}')}; --", '1 OR true'])],
                    $flags,
                ],
            ],
            ['dml', ['select', $name, ['id' => $this->dice->one([1, "1; {$this->expand('{w}')}; --"])], $flags]],
            ['lo', ['create']], ['lo', ['create', $n]], ['lo', ['import', 'FILE_LOCAL']], ['lo', ['unlink', 4242]],
            ['lo', ['write', 4242, 'w']], ['lo', ['write', 4242, 'r+']],
            ['call', ['set_client_encoding', $this->expand('{encoding}')]],
            ['call', ['set_client_encoding', "UTF8';{$this->expand('{lift}')};COMMIT;{$this->expand('{w}')};--"]],
            ['call', ['connection_reset']], ['call', ['cancel_query']],
            ['call', ['transaction_status']], ['call', ['end_copy']], ['call', ['put_line', "\\.\n"]],
            ['call', ['get_notify']], ['call', ['consume_input']], ['call', ['flush']],
            ['call', ['meta_data', 'users']], ['call', ['set_error_verbosity', 2]],
            ['execute', [$this->dice->one(['s', 'k', '']), []]],
            ['sendExecute', [$this->dice->one(['s', 'k']), [], $this->dice->one([9, 0])]], ['call', ['get_result']],
            ['call', ['connection_busy']],
        ]);
    }
}
