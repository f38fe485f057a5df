<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Database;

/**
 * Statements that a read-only session must come through: for each what it is to come to.
 */
final class Statements
{
    /** It reads, and works. */
    public const WORKS = 'works';
    /** The database refuses it. */
    public const DATABASE = 'refused by the database';
    /** It is not sent. */
    public const NOT_SENT = 'refused, and names --writes';

    /** Functions, procedures and views that try, made by the administrator. */
    public const IN_MARIADB = [
        'CREATE FUNCTION shop.lifts() RETURNS INT BEGIN SET SESSION tx_read_only = 0; RETURN 1; END',
        'CREATE FUNCTION shop.lifts_in_words() RETURNS INT'
            . ' BEGIN SET SESSION TRANSACTION READ WRITE; RETURN 1; END',
        'CREATE FUNCTION shop.writes() RETURNS INT MODIFIES SQL DATA'
            . ' BEGIN INSERT INTO users VALUES (77, "f@x", "F"); RETURN 1; END',
        'CREATE FUNCTION shop.lifts_and_writes() RETURNS INT MODIFIES SQL DATA BEGIN SET SESSION tx_read_only = 0;'
            . ' INSERT INTO users VALUES (78, "g@x", "G"); RETURN 1; END',
        'CREATE VIEW shop.lifting AS SELECT shop.lifts() AS n',
        'CREATE PROCEDURE shop.tries() BEGIN SET SESSION TRANSACTION READ WRITE;'
            . ' INSERT INTO users VALUES (79, "p@x", "P"); COMMIT; END',
    ];

    public const IN_POSTGRESQL = [
        'CREATE FUNCTION lifts() RETURNS text LANGUAGE sql AS'
            . ' $$ SELECT set_config(\'default_transaction_read_only\', \'off\', false) $$',
        'CREATE FUNCTION writes() RETURNS int LANGUAGE sql AS'
            . ' $$ INSERT INTO users VALUES (77, \'f@x\', \'F\') RETURNING 1 $$',
        'CREATE VIEW lifting AS SELECT lifts() AS n',
        'CREATE PROCEDURE tries() LANGUAGE plpgsql AS $$ BEGIN COMMIT; SET TRANSACTION READ WRITE;'
            . ' INSERT INTO users VALUES (79, \'p@x\', \'P\'); END $$',
    ];

    /** What may lift the mode, and then has no effect: the server tells what the session and its transaction are. */
    public const LIFTS_OF_POSTGRESQL = [
        'SET default_transaction_read_only = off', 'set SESSION "default_transaction_read_only" to off',
        'SET default_transaction_read_only TO DEFAULT', 'SET LOCAL transaction_read_only = off',
        'SET/**/default_transaction_read_only/* /* x */ */=off', 'SET TRANSACTION READ WRITE',
        'SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE',
        'SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ WRITE',
        'BEGIN READ WRITE', 'BEGIN TRANSACTION ISOLATION LEVEL SERIALIZABLE READ WRITE',
        'START TRANSACTION READ WRITE', 'RESET default_transaction_read_only',
    ];

    /**
     * @return iterable<string, string> statement => what it comes to
     */
    public static function ofMariaDb(string $file): iterable
    {
        yield from self::each(self::WORKS, [
            'SELECT * FROM users WHERE email = \'ada@shop.example\'',
            'SELECT COUNT(*) FROM users',
            'select 1 -- SET SESSION TRANSACTION READ WRITE',
            'SELECT "SET SESSION TRANSACTION READ WRITE; INTO OUTFILE" AS t',
            '(SELECT 1) UNION (SELECT 2)',
            'WITH u AS (SELECT * FROM users) SELECT * FROM u',
            'SHOW TABLES', 'DESCRIBE users', 'EXPLAIN SELECT * FROM users',
            'SET NAMES utf8mb4', 'SET @a = 1', "SET SESSION sql_mode = 'ANSI_QUOTES'",
            'SET SESSION TRANSACTION READ ONLY', 'SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED',
            'SELECT 1 INTO @a', 'SELECT lifts()', 'SELECT lifts_in_words()', 'SELECT * FROM lifting', 'DO lifts()',
            'SELECT lifts() INTO @a',
            // It has no effect on what comes next.
            "SELECT '\\'; SET SESSION TRANSACTION READ WRITE; -- '", "SET sql_mode = 'MSSQL'",
        ]);
        yield from self::each(self::DATABASE, [
            'INSERT INTO users VALUES (9, \'x@x\', \'X\')',
            'UPDATE users SET name = \'X\'', 'DELETE FROM users', 'REPLACE INTO users VALUES (1, \'x@x\', \'X\')',
            'SELECT writes()', 'SELECT lifts_and_writes()',
            'SELECT * FROM users FOR UPDATE',
            'SELECT 1; SET SESSION TRANSACTION READ WRITE', 'SELECT 1; INSERT INTO users VALUES (9, \'x@x\', \'X\')',
            'SELECT lifts(); SELECT writes()',
            "SELECT 1 -- x\n; SET SESSION TRANSACTION READ WRITE", "SELECT 1 # x\n; SET tx_read_only = 0",
        ]);
        yield from self::each(self::NOT_SENT, [
            'SET @a = 1, tx_read_only = (SELECT 0)', 'SET NAMES utf8mb4, tx_read_only = 0',
            'SET SESSION TRANSACTION READ WRITE', 'set session transaction read write',
            'SET/**/SESSION/* x */TRANSACTION' . "\t\n" . 'READ WRITE',
            'SET TRANSACTION READ WRITE', 'SET LOCAL TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ WRITE',
            'SET SESSION tx_read_only = 0', 'SET @@session.tx_read_only = OFF', 'SET @@tx_read_only := 0',
            'SET tx_read_only = DEFAULT', 'SET `tx_read_only` = 0',
            'SET transaction_read_only = 0', 'SET GLOBAL tx_read_only = 0',
            'SET STATEMENT tx_read_only = 0 FOR INSERT INTO users VALUES (9, \'x@x\', \'X\')',
            'SET STATEMENT max_statement_time = 1 FOR SET SESSION tx_read_only = 0',
            '/*!50000 SET SESSION TRANSACTION READ WRITE */', '/*M!100000 SET tx_read_only = 0 */',
            'SELECT 1 /*!50000 INTO OUTFILE "' . $file . '" */',
            'START TRANSACTION READ WRITE', 'START TRANSACTION WITH CONSISTENT SNAPSHOT, READ WRITE',
            'BEGIN NOT ATOMIC SET SESSION tx_read_only = 0; INSERT INTO users VALUES (9, \'x@x\', \'X\'); END',
            'IF 1 THEN SET SESSION tx_read_only = 0; END IF',
            'CALL tries()', 'CALL `shop`.tries',
            'PREPARE s FROM \'SET SESSION TRANSACTION READ WRITE\'', 'EXECUTE s',
            'EXECUTE IMMEDIATE \'SET SESSION TRANSACTION READ WRITE\'',
            'EXECUTE IMMEDIATE CONCAT(\'SET SESSION TRANS\', \'ACTION READ WRITE\')',
            'SELECT * FROM users INTO OUTFILE "' . $file . '"', 'SELECT * INTO OUTFILE "' . $file . '" FROM users',
            'SELECT 1 INTO DUMPFILE "' . $file . '"', '(SELECT 1) UNION (SELECT 2) INTO OUTFILE "' . $file . '"',
            'LOAD DATA LOCAL INFILE "/etc/passwd" INTO TABLE users',
            'LOAD DATA INFILE "' . $file . '" INTO TABLE users',
            'SET GLOBAL general_log = 1', 'FLUSH TABLES', 'FLUSH TABLES WITH READ LOCK', 'KILL 1', 'SHUTDOWN',
            'LOCK TABLES users READ', 'CREATE TABLE t (a INT)', 'DROP TABLE users', 'TRUNCATE users',
            'ALTER TABLE users ADD x INT', 'CREATE USER mallory', 'GRANT ALL ON *.* TO shop', 'SET PASSWORD = \'x\'',
            'CREATE PROCEDURE q() SELECT 1', 'CREATE OR REPLACE VIEW v AS SELECT 1', 'RENAME TABLE users TO x',
            'ANALYZE TABLE users', 'OPTIMIZE TABLE users', 'XA START \'x\'', 'INSTALL SONAME \'x\'',
            'CHANGE MASTER TO MASTER_HOST = \'x\'', 'RESET MASTER', 'PURGE BINARY LOGS TO \'x\'',
            'HANDLER users OPEN',
        ]);
    }

    /**
     * @return iterable<string, string>
     */
    public static function ofPostgreSql(string $file): iterable
    {
        yield from self::each(self::WORKS, [
            'SELECT * FROM users WHERE email = \'ada@shop.example\'',
            'SELECT COUNT(*) FROM users',
            'SELECT 1 -- SET default_transaction_read_only = off',
            'SELECT \'SET default_transaction_read_only = off; COPY users TO PROGRAM\' AS t',
            'SELECT \'{"a": 1}\'::jsonb @> \'{"a": 1}\', \'{"a": {"b": 1}}\'::jsonb #> \'{a,b}\'',
            'WITH u AS (SELECT * FROM users) SELECT * FROM u',
            'SHOW default_transaction_read_only', 'EXPLAIN ANALYZE SELECT * FROM users',
            'SET search_path TO public', 'SET client_encoding TO \'UTF8\'', 'RESET search_path',
            'SELECT set_config(\'search_path\', \'public\', false)',
            'SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY', 'SELECT $$SET $x$ y$$', 'SELECT lifts()',
            'SELECT * FROM lifting', 'EXPLAIN ANALYZE SELECT lifts()',
            ...self::LIFTS_OF_POSTGRESQL,
            // The server tells of it, and it is set again before what comes next.
            'RESET ALL', 'DISCARD ALL', 'SELECT set_config(\'default_transaction_read_only\', \'off\', false)',
            'SELECT pg_catalog.set_config(\'default_\' || \'transaction_read_only\', \'off\', false)',
            'SELECT "set_config"(E\'default\\x5ftransaction_read_only\', \'off\', false)',
            'PREPARE s AS SELECT set_config(\'default_transaction_read_only\', \'off\', false)',
            'EXPLAIN ANALYZE SELECT set_config(\'default_transaction_read_only\', \'off\', false)',
        ]);
        yield from self::each(self::DATABASE, [
            'INSERT INTO users VALUES (9, \'x@x\', \'X\')', 'UPDATE users SET name = \'X\'', 'DELETE FROM users',
            'WITH x AS (DELETE FROM users RETURNING 1) SELECT * FROM x', 'SELECT writes()',
            'SELECT * FROM users FOR UPDATE',
            'SELECT 1; SET default_transaction_read_only = off',
            'SELECT 1; INSERT INTO users VALUES (9, \'x@x\', \'X\')', 'SELECT lifts(); COMMIT; SELECT writes()',
            'SELECT \'\\\'; SET default_transaction_read_only = off; --\'',
        ]);
        yield from self::each(self::NOT_SENT, [
            'SET U&"default\\005ftransaction_read_only" = off',
            'DO $$ BEGIN COMMIT; SET TRANSACTION READ WRITE; INSERT INTO users VALUES (9, \'x@x\', \'X\'); END $$',
            'CALL tries()', 'call public.tries ()',
            'COPY users TO PROGRAM \'cat > ' . $file . '\'', 'COPY (SELECT 1) TO \'' . $file . '\'',
            'COPY users FROM PROGRAM \'id\'', 'COPY/**/users/**/TO/**/PROGRAM \'id\'',
            'ALTER SYSTEM SET default_transaction_read_only = off', 'NOTIFY x', 'SELECT pg_notify(\'x\', \'y\')',
            'SELECT lo_create(0)', 'SELECT lo_from_bytea(0, \'x\')', 'SELECT lo_unlink(1)',
            'SELECT lo_import(\'/etc/passwd\')',
            'SELECT lo_export(1, \'' . $file . '\')', 'SELECT pg_reload_conf()', 'SELECT pg_terminate_backend(1)',
            'VACUUM', 'ANALYZE users', 'REINDEX TABLE users', 'CHECKPOINT', 'LOAD \'x\'', 'LOCK TABLE users',
            'CREATE TABLE t (a int)', 'DROP TABLE users', 'TRUNCATE users', 'ALTER TABLE users ADD x int',
            'CREATE ROLE mallory', 'GRANT ALL ON users TO shop', 'CREATE TEMP TABLE t (a int)',
            'REFRESH MATERIALIZED VIEW x',
        ]);
    }

    /**
     * @return iterable<string, string>
     */
    public static function ofSqlite(string $file): iterable
    {
        yield from self::each(self::WORKS, [
            'SELECT * FROM users WHERE email = \'ada@shop.example\'', 'SELECT COUNT(*) FROM users',
            'SELECT \'PRAGMA query_only = 0; ATTACH\' AS t', 'SELECT 1 -- PRAGMA query_only = 0',
            'PRAGMA table_info(users)', 'PRAGMA foreign_keys = ON', 'PRAGMA busy_timeout = 100', 'PRAGMA query_only',
            'PRAGMA query_only = 1', 'EXPLAIN QUERY PLAN SELECT * FROM users', 'PRAGMA journal_mode',
            'REINDEX',
        ]);
        yield from self::each(self::DATABASE, [
            'INSERT INTO users VALUES (9, \'x@x\', \'X\')', 'UPDATE users SET name = \'X\'', 'DELETE FROM users',
            'REPLACE INTO users VALUES (1, \'x@x\', \'X\')', 'VACUUM', 'CREATE TABLE t (a)', 'DROP TABLE users',
            'ALTER TABLE users ADD x', 'ANALYZE', 'CREATE TEMP TABLE t (a)',
        ]);
        yield from self::each(self::NOT_SENT, [
            'PRAGMA query_only = 0', 'pragma QUERY_ONLY=off', 'PRAGMA query_only(0)', 'PRAGMA main.query_only = false',
            'PRAGMA/**/query_only/* x */=/**/0', 'PRAGMA "query_only" = 0', 'PRAGMA [query_only] = 0',
            'PRAGMA `query_only`=0', 'PRAGMA writable_schema = 1', 'PRAGMA user_version = 7',
            'ATTACH \'' . $file . '\' AS other', 'attach database \'' . $file . '\' as other',
            'VACUUM INTO \'' . $file . '\'',
        ]);
    }

    /**
     * @param list<string> $statements
     * @return iterable<string, string>
     */
    private static function each(string $comesTo, array $statements): iterable
    {
        foreach ($statements as $statement) {
            yield $statement => $comesTo;
        }
    }
}
