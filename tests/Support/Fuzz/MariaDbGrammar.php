<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Fuzz;

use PDO;

/**
 * What is said to MariaDB.
 *
 * Left out is what is known to stay, and documented: what triggers, functions and procedures write to tables whose
 * engine has no transactions.
 */
final class MariaDbGrammar extends Grammar
{
    protected const KIND = 'mysql';

    protected const CLIENTS = ['pdo' => 50, 'mysqli' => 50];

    protected const PARTS = [
        // A statement that writes, alone.
        'w' => [
            "INSERT INTO users VALUES ({n}, 'x{n}@x', 'X')", "UPDATE users SET name = 'X{n}'", 'DELETE FROM users',
            "INSERT INTO log (t, n) VALUES ('x', {n})", "REPLACE INTO users VALUES (1, 'r{n}@x', 'R')", 'TRUNCATE log',
            'INSERT INTO isam VALUES ({n})', 'CREATE TABLE t{n} (a INT)', "SELECT 1 INTO OUTFILE 'FILE_OUT'",
            'DROP TABLE things.things', 'SET GLOBAL max_connections = {n}',
        ],
        // One that writes rows and tables only.
        's' => [
            "INSERT INTO users VALUES ({n}, 'x{n}@x', 'X')", 'TRUNCATE log', 'CREATE TABLE t{n} (a INT)',
            'DELETE FROM users',
            'DROP TABLE things.things', 'COMMIT', "SET PASSWORD FOR other = PASSWORD('x{n}')", 'CREATE USER m{n}',
        ],
        'lift' => [
            'SET SESSION TRANSACTION READ WRITE', 'SET tx_read_only = 0', 'SET @@session.tx_read_only = OFF',
            'SET TRANSACTION READ WRITE', 'SET @a = 1, tx_read_only = 0', 'COMMIT', 'SET autocommit = 1',
        ],
        // Tables whose engine has no transactions, and ways to them.
        'stays' => [
            'isam', 'aria', 'mem', 'merged', '`odd name`', 'shop.isam', '`shop`.`isam`', 'csv', '`isam`',
            'isam PARTITION (p0)', 'parted', '`été`', 'things.isam', '`1`', 'shop . isam', 'isam AS i',
            'mysql_view', 'child', 'kept',
        ],
        // Tables of the server's own.
        'system' => [
            "INSERT INTO mysql.db (Host, Db, User) VALUES ('%', 'd{n}', 'x')", 'DELETE FROM mysql.proc',
            "INSERT INTO mysql.servers (Server_name) VALUES ('s{n}')",
            "INSERT INTO mysql.func VALUES ('f{n}', 0, 'x', 'function')",
            "UPDATE mysql.global_priv SET Priv = JSON_SET(Priv, '$.x', {n})", 'DELETE FROM mysql.help_topic LIMIT 1',
            "INSERT INTO mysql.global_priv VALUES ('%', 'm{n}', '{}')",
            "INSERT INTO mysql.plugin VALUES ('p{n}', 'x.so')",
            "REPLACE INTO mysql.roles_mapping VALUES ('%', 'shop', 'r{n}', 'N')",
            'UPDATE mysql.time_zone_leap_second SET Correction = 1',
            "INSERT INTO mysql.table_stats VALUES ('shop', 't{n}', 1)",
            "INSERT INTO mysql.time_zone_name VALUES ('z{n}', 1)",
        ],
        // Views of tables whose engine has no transactions.
        'view' => ['isam_view', 'isam_view_view', 'shop.isam_view', '`isam_view`'],
        'charset' => [
            'gbk', 'sjis', 'big5', 'cp932', 'gb2312', 'utf8', 'latin1', 'binary', 'eucjpms', 'swe7', 'utf8mb4',
        ],
        'select' => ['SELECT 1', 'SELECT * FROM users', '(SELECT 1)', 'TABLE users', 'VALUES (1)', 'SELECT lifts()'],
        'mode' => [
            'NO_BACKSLASH_ESCAPES', 'ANSI_QUOTES', 'MSSQL', 'ORACLE', 'ANSI', 'PIPES_AS_CONCAT', 'POSTGRESQL', 'DB2',
            'IGNORE_SPACE', 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES', 'MSSQL,NO_BACKSLASH_ESCAPES', '', 'TRADITIONAL',
            'MAXDB', 'NO_TABLE_OPTIONS', 'MYSQL40', 'HIGH_NOT_PRECEDENCE', 'EMPTY_STRING_IS_NULL',
            'SIMULTANEOUS_ASSIGNMENT',
        ],
        'point' => ['a', 'b', 'altair', '`altair`', 'A', '`a b`'],
    ];

    protected const WRITE = [
        '{w}', '{w}', '{w}',
        "INSERT users SET id = {n}, email = 'y{n}@x', name = 'Y'",
        "INSERT IGNORE INTO users VALUES ({n}, 'i{n}@x', 'I')",
        "INSERT INTO users VALUES (1, 'k{n}@x', 'K') ON DUPLICATE KEY UPDATE name = 'K{n}'",
        "INSERT INTO users SELECT {n}, 's{n}@x', 'S'", "INSERT INTO users VALUES ({n}, 'q{n}@x', 'Q') RETURNING id",
        'UPDATE users u JOIN log l ON 1 SET u.name = l.t', 'UPDATE users, log SET log.n = {n}',
        'DELETE u FROM users u JOIN log', 'DELETE FROM users WHERE id = 1 RETURNING name', 'DELETE FROM users_view',
        'INSERT INTO {stays} VALUES ({n})', 'INSERT INTO {stays} VALUES ({n})', 'DELETE FROM {stays}',
        'INSERT INTO {view} VALUES ({n})', 'REPLACE INTO {view} SELECT {n}', 'UPDATE {view} SET a = {n}',
        'DELETE FROM {view}',
        'UPDATE {stays} SET a = a + 1', 'REPLACE INTO {stays} SELECT {n}', 'INSERT INTO {stays} SET a = {n}',
        'UPDATE users, isam_view SET isam_view.a = {n}', 'DELETE i FROM isam_view i JOIN users', 'TRUNCATE users',
        'UPDATE users JOIN isam i SET i.a = {n}', 'WITH x AS (SELECT 1) UPDATE users SET name = \'W\'',
        'INSERT DELAYED INTO isam VALUES ({n})', 'INSERT LOW_PRIORITY INTO isam_view VALUES ({n})',
        'ANALYZE INSERT INTO {stays} VALUES ({n})', 'ANALYZE FORMAT=JSON UPDATE users SET name = \'A{n}\'',
        'ANALYZE DELETE FROM {stays}', 'ANALYZE FORMAT = JSON DELETE FROM isam_view', 'ANALYZE UPDATE isam SET a = {n}',
        '{system}', '{system}', '{system}', "INSERT INTO plugin VALUES ('p{n}', 'x.so')", 'DELETE FROM help_topic',
        "INSERT INTO mysql_view VALUES ('p{n}', 'x.so')", 'INSERT INTO child VALUES ({n}, 1)', 'DELETE FROM parent',
        'SELECT stays()', 'DO calls_stays()', 'SELECT * FROM staying', 'CALL keeps()', 'CALL calls_keeps()',
        'SET @a = stays()',
        'UPDATE users SET name = stays()', 'SELECT * FROM users WHERE stays()', 'EXPLAIN SELECT stays()',
        'VALUES (stays())',
        'CREATE TEMPORARY TABLE v{n} SELECT stays()', 'SELECT things.things.a, shop.stays() FROM things.things',
        "LOAD DATA INFILE 'FILE_IN' INTO TABLE users FIELDS TERMINATED BY ','",
        "LOAD DATA INFILE 'FILE_IN' INTO TABLE {stays}",
        "LOAD DATA LOCAL INFILE 'FILE_LOCAL' INTO TABLE users FIELDS TERMINATED BY ','",
        "LOAD DATA LOCAL INFILE 'FILE_LOCAL' REPLACE INTO TABLE isam_view", "LOAD XML INFILE 'FILE_IN' INTO TABLE log",
        'SELECT writes()', 'SELECT lifts_and_writes()', 'DO writes()', 'SET @a = writes()', 'SELECT * FROM writing',
        'SET @a = (SELECT writes())', 'CALL tries()', "CALL runs('{s'}')", "CALL runs('{lift'}')",
        'SELECT writes() INTO @a',
        'SELECT NEXTVAL(numbers)', 'SELECT SETVAL(numbers, {n})', 'SELECT NEXT VALUE FOR numbers',
        'DO SETVAL(numbers, {n})',
        "SELECT * FROM users INTO OUTFILE 'FILE_OUT'", "SELECT 1 INTO DUMPFILE 'FILE_OUT'",
        "TABLE users INTO OUTFILE 'FILE_OUT'",
        "VALUES (1) INTO OUTFILE 'FILE_OUT'", "(SELECT 1) UNION (SELECT 2) INTO OUTFILE 'FILE_OUT'",
        "SELECT 1 INTO OUTFILE 'FILE_OUT' CHARACTER SET utf8 FIELDS TERMINATED BY ','",
        "SELECT.1INTO OUTFILE 'FILE_OUT'",
        "WITH x AS (SELECT 1) SELECT * FROM x INTO OUTFILE 'FILE_OUT'", "SELECT 1e5INTO OUTFILE'FILE_OUT'",
        "SELECT * INTO OUTFILE 'FILE_OUT' FROM users", "EXPLAIN SELECT 1 INTO OUTFILE 'FILE_OUT'",
        "SELECT @a:=1INTO DUMPFILE 'FILE_OUT'", "SELECT (SELECT 1 INTO OUTFILE 'FILE_OUT')",
        "SELECT \\NINTO OUTFILE 'FILE_OUT'",
        "ANALYZE SELECT 1 INTO OUTFILE 'FILE_OUT'",
        "SET STATEMENT max_statement_time = 1 FOR SELECT 1 INTO OUTFILE 'FILE_OUT'",
        'SET STATEMENT tx_read_only = 0 FOR {w}', 'SET STATEMENT max_statement_time = 1 FOR {w}',
        "SET STATEMENT sql_mode = 'ORACLE' FOR {w}", "SET STATEMENT sql_mode = 'MSSQL', tx_read_only = 0 FOR {w}",
        'SET STATEMENT max_statement_time = 1 FOR COMMIT', 'SET STATEMENT autocommit = 1 FOR {w}',
        'SET STATEMENT max_statement_time = 1 FOR CALL tries()', 'SET STATEMENT sql_log_bin = 0 FOR SELECT writes()',
    ];

    protected const CODE = [
        'CREATE TABLE t{n} AS SELECT * FROM users', 'CREATE OR REPLACE TABLE log (a INT)', 'DROP TABLE users',
        'CREATE TEMPORARY TABLE t{n} (a INT)', 'CREATE OR REPLACE TEMPORARY TABLE users SELECT 1 AS a',
        'DROP TEMPORARY TABLE IF EXISTS users', 'DROP TABLE IF EXISTS log, isam', 'ALTER TABLE users ADD x{n} INT',
        'CREATE TEMPORARY TABLE u{n} ENGINE = MyISAM AS SELECT writes()', 'CREATE TEMPORARY SEQUENCE s{n}',
        'DROP TEMPORARY SEQUENCE IF EXISTS numbers', 'ALTER TABLE log ENGINE = MyISAM', 'RENAME TABLE users TO x{n}',
        'CREATE INDEX i{n} ON users (name)', 'DROP INDEX email ON users',
        'CREATE OR REPLACE VIEW users_view AS SELECT {n}',
        'DROP VIEW users_view', 'CREATE FUNCTION f{n}() RETURNS INT RETURN 1', 'DROP FUNCTION lifts',
        'CREATE PROCEDURE p{n}() DELETE FROM users',
        'CREATE TRIGGER g{n} AFTER DELETE ON users FOR EACH ROW DELETE FROM log',
        'CREATE EVENT e{n} ON SCHEDULE EVERY 1 YEAR DO DELETE FROM users', 'CREATE SEQUENCE s{n}',
        'DROP SEQUENCE numbers',
        'ALTER SEQUENCE numbers RESTART {n}', 'CREATE DATABASE d{n}', 'DROP DATABASE things',
        'ALTER DATABASE shop COMMENT \'x{n}\'',
        'CREATE USER m{n}', 'CREATE ROLE r{n}', 'GRANT ALL ON shop.* TO PUBLIC',
        'GRANT SELECT ON *.* TO m{n} IDENTIFIED BY \'x\'',
        'REVOKE ALL ON *.* FROM other', 'SET PASSWORD FOR other = PASSWORD(\'x{n}\')',
        'ALTER USER other IDENTIFIED BY \'x{n}\'',
        'DROP USER other', 'SET DEFAULT ROLE NONE FOR other', 'RENAME USER other TO o{n}',
        'SET DEFAULT ROLE clerk FOR shop',
        "CREATE SERVER s{n} FOREIGN DATA WRAPPER mysql OPTIONS (DATABASE 'x')", "INSTALL SONAME 'ha_archive'",
        "INSTALL PLUGIN BLACKHOLE SONAME 'ha_blackhole'", "CREATE FUNCTION g{n} RETURNS STRING SONAME 'x.so'",
        'LOCK TABLES users WRITE', 'LOCK TABLE isam WRITE', 'UNLOCK TABLES', 'FLUSH TABLES', 'FLUSH LOCAL TABLES users',
        'FLUSH TABLES WITH READ LOCK', 'RESET QUERY CACHE', 'KILL VICTIM_ID', 'KILL QUERY VICTIM_ID',
        'KILL HARD CONNECTION VICTIM_ID',
        'HANDLER users OPEN', 'HANDLER users READ FIRST', 'ANALYZE TABLE users PERSISTENT FOR ALL', 'CHECK TABLE isam',
        'ANALYZE LOCAL TABLE users PERSISTENT FOR ALL', 'OPTIMIZE TABLE isam', 'REPAIR TABLE isam',
        'CACHE INDEX isam IN x',
        'XA START \'x{n}\'', 'XA END \'x\'', 'XA PREPARE \'x\'', 'XA COMMIT \'x\'', 'XA COMMIT \'x\' ONE PHASE',
        'XA RECOVER',
        "XA END 'altair','1'", "XA ROLLBACK 'altair','1'",
        'BEGIN NOT ATOMIC {lift}; {w}; END', 'BEGIN {lift}; {w}; END', 'IF 1 THEN {w}; END IF',
        'DECLARE x INT; BEGIN {w}; END',
        'x: BEGIN NOT ATOMIC {w}; END', '<<x>> BEGIN {w}; END', 'CASE 1 WHEN 1 THEN {w}; END CASE',
        'LOOP {w}; END LOOP',
        'WHILE 1 DO {w}; END WHILE', 'FOR i IN 1..2 DO {w}; END FOR', 'REPEAT {w}; UNTIL 1 END REPEAT', 'BEGIN',
        'FOR x IN (SELECT 1) DO {w}; END FOR', 'BEGIN NOT ATOMIC CALL tries(); END', 'EXECUTE IMMEDIATE \'{w\'}\'',
        'EXECUTE IMMEDIATE CONCAT(\'{w\'}\', \'\')', 'PREPARE s FROM \'{w\'}\'', 'EXECUTE s', 'EXECUTE s USING 1',
        'PREPARE s FROM \'{lift\'}\'', 'DEALLOCATE PREPARE s', 'EXECUTE IMMEDIATE \'{lift\'}\'', 'PREPARE s FROM @a',
        'SET @a = \'{w\'}\'', 'SET GLOBAL max_connections = {n}', 'SET @@global.max_connections = {n}',
        'SET GLOBAL general_log = 1',
        'SET @@GLOBAL . max_connections := {n}', 'SET @a = 1, GLOBAL max_connections = {n}',
        'SET GLOBAL sql_mode = \'\'',
        'SET @@`global`.max_connections = {n}', 'SET GLOBAL event_scheduler = 1', 'SET GLOBAL secure_auth = 0',
        'SET STATEMENT max_statement_time = 1 FOR SET GLOBAL max_connections = {n}',
        'CHANGE MASTER TO MASTER_USER = \'x\'',
        'CHANGE MASTER \'c{n}\' TO MASTER_USER = \'x\'', 'RESET MASTER', 'PURGE BINARY LOGS TO \'x\'',
        'BACKUP STAGE START',
        'BACKUP LOCK users', 'BACKUP UNLOCK', 'FLUSH TABLES users FOR EXPORT', 'ALTER TABLE isam DISABLE KEYS',
        'FLUSH STATUS', 'FLUSH PRIVILEGES', 'FLUSH LOGS', 'FLUSH USER_RESOURCES', 'ALTER EVENT e RENAME TO e{n}',
        'DROP TRIGGER audit',
        'ALTER PROCEDURE tries COMMENT \'x{n}\'', 'CREATE OR REPLACE FUNCTION lifts() RETURNS INT RETURN {n}',
        'USE things',
        'CREATE PACKAGE k{n} AS PROCEDURE p; END', 'SIGNAL SQLSTATE \'45000\'', 'HELP \'x\'', 'DO RELEASE_ALL_LOCKS()',
        "SELECT GET_LOCK('x', 0)", 'SELECT * FROM users FOR UPDATE', 'SELECT * FROM isam LOCK IN SHARE MODE',
        'SET ROLE NONE',
        'SELECT 1 INTO @a', 'SHOW CREATE TABLE users', 'UNINSTALL SONAME \'ha_archive\'',
        "ALTER SERVER s OPTIONS (DATABASE 'x{n}')",
        'REVOKE ALL PRIVILEGES, GRANT OPTION FROM other', 'CREATE UNIQUE INDEX i{n} ON isam (a)', 'SHUTDOWN',
        'CREATE OR REPLACE TRIGGER audit AFTER INSERT ON users FOR EACH ROW SET @a = 1',
        'ALTER VIEW users_view AS SELECT {n}',
    ];

    protected const LIFT = [
        '{lift}', '{lift}', '{lift}',
        'SELECT lifts()', 'DO lifts()', 'SELECT lifts_in_words()', 'SELECT * FROM lifting', 'SET @a = lifts()',
        'SET @@tx_read_only := 0', 'SET LOCAL tx_read_only = DEFAULT', 'SET tx_read_only = (SELECT 0)',
        'SET autocommit = 0',
        'SET @@local.tx_read_only = 0, @a = 2', 'SET NAMES utf8mb4, tx_read_only = 0', 'SET @x = lifts(), @y = 1',
        'SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE', 'SET completion_type = 1',
        'SET completion_type = 2',
        'SET completion_type = \'CHAIN\'', 'SET completion_type = \'RELEASE\'', 'SET @@autocommit = ON',
        'SET autocommit = DEFAULT',
        'SET SESSION session_track_system_variables = \'*\'',
        'SET SESSION session_track_transaction_info = \'CHARACTERISTICS\'',
        'SET SESSION session_track_state_change = 1', 'SET SESSION TRANSACTION READ ONLY',
        'SET TRANSACTION ISOLATION LEVEL SERIALIZABLE',
        'SET `tx_read_only` = 0', 'SET @@session.`tx_read_only` = 0', 'SET session_track_schema = 1',
        'SET profiling = 1',
        'SET @a = \'x\', @@session.tx_read_only = 0, @b = \'1\'', 'SET tx_read_only = 1 - 1',
        'SET tx_read_only = NOT 1',
        'SET SESSION sql_log_off = 1', 'SET check_constraint_checks = 0', 'SET SESSION wait_timeout = 1',
        'SET max_statement_time = 0.001',
        'SELECT lifts(), lifts_in_words() INTO @a, @b', 'SET STATEMENT max_statement_time = 1 FOR SELECT lifts()',
        'SET autocommit = 1, @a = 1',
        'SET autocommit = 0, autocommit = 1', 'SET SESSION autocommit := 1', 'SET @@session.autocommit = TRUE',
        'SET autocommit = \'on\'',
    ];

    protected const BEGIN = [
        'BEGIN', 'BEGIN WORK', 'START TRANSACTION', 'START TRANSACTION READ WRITE', 'START TRANSACTION READ ONLY',
        'START TRANSACTION WITH CONSISTENT SNAPSHOT', 'START TRANSACTION WITH CONSISTENT SNAPSHOT, READ WRITE',
        'SET autocommit = 0',
        'BEGIN NOT ATOMIC START TRANSACTION; END', 'SET SESSION autocommit = OFF',
    ];

    protected const END = [
        'COMMIT', 'COMMIT', 'COMMIT WORK', 'COMMIT AND CHAIN', 'COMMIT AND NO CHAIN', 'COMMIT RELEASE',
        'COMMIT AND CHAIN NO RELEASE',
        'ROLLBACK', 'ROLLBACK AND CHAIN', 'ROLLBACK WORK AND NO CHAIN', 'ROLLBACK RELEASE', 'SET autocommit = 1',
        'BEGIN', 'START TRANSACTION',
        'COMMIT AND NO CHAIN RELEASE', 'SET @@autocommit = 1',
    ];

    protected const POINT = [
        'SAVEPOINT {point}', 'ROLLBACK TO {point}', 'ROLLBACK TO SAVEPOINT {point}', 'RELEASE SAVEPOINT {point}',
        'ROLLBACK WORK TO {point}', 'RELEASE SAVEPOINT altair', 'ROLLBACK TO altair', 'SAVEPOINT altair',
    ];

    protected const SETUP = [
        "SET sql_mode = '{mode}'", "SET sql_mode = '{mode}'", "SET SESSION sql_mode = '{mode}'", 'SET NAMES {charset}',
        'SET NAMES {charset}',
        'SET CHARACTER SET {charset}', 'SET CHAR SET {charset}', 'SET character_set_client = {charset}',
        'SET character_set_client = filename',
        'SET NAMES DEFAULT', 'SET @@character_set_client = {charset}', "SET NAMES '{charset}'", 'USE things',
        'SET lc_messages = \'ja_JP\'',
        'SET collation_connection = utf8mb4_bin', "SET @a = CONCAT('SET sql_mode = ', '1')",
        'SET foreign_key_checks = 0',
        'SET sql_mode = CONCAT(@@sql_mode, \',NO_BACKSLASH_ESCAPES\')', 'SET sql_mode = \'MS\'\'SQL\'',
        'SET sql_quote_show_create = 0',
        'SET old_mode = \'NO_DUP_KEY_WARNINGS_WITH_IGNORE\'', 'SET character_set_connection = {charset}',
        'SET character_set_results = NULL',
        'SET default_storage_engine = MyISAM', 'SET tx_isolation = \'READ-UNCOMMITTED\'',
        'SET low_priority_updates = 1', 'SET sql_safe_updates = 0',
    ];

    protected const HIDDEN = [
        ["SET sql_mode = 'NO_BACKSLASH_ESCAPES'", "SELECT '\\'; {lift}; {w}; -- '"],
        ["SET sql_mode = 'NO_BACKSLASH_ESCAPES'", "SELECT '\\' INTO OUTFILE 'FILE_OUT' -- '"],
        ["SET sql_mode = 'MSSQL'", "SELECT [']; {lift}; {w}; -- ']"],
        ["SET sql_mode = 'MSSQL'", "SELECT 1 AS ['] INTO OUTFILE 'FILE_OUT' -- ']"],
        ["SET sql_mode = 'MSSQL'", 'SELECT 1 AS [/*]; {w}; -- */'],
        ["SET sql_mode = 'ANSI_QUOTES'", "SELECT 1 AS \"'\"; {w}; -- '"],
        ["SET sql_mode = 'ANSI_QUOTES'", "SELECT 1 AS \"\\\" INTO OUTFILE 'FILE_OUT' -- \""],
        ["SET sql_mode = 'ORACLE'", 'DECLARE x INT; BEGIN {lift}; {w}; END'],
        ["SET sql_mode = 'ORACLE'", 'BEGIN {w}; END'], ["SET sql_mode = 'ORACLE'", '<<x>> BEGIN {w}; END'],
        ["SET sql_mode = 'ORACLE'", "BEGIN EXECUTE IMMEDIATE '{w'}'; END"], ["SET sql_mode = 'ORACLE'", 'tries'],
        ["SET sql_mode = 'ORACLE'", "SELECT 1;\n/\n{w}"], ["SET sql_mode = 'ORACLE'", 'DECLARE BEGIN {w}; END;'],
        ['SET NAMES gbk', "SELECT '\xbf\\'; {w}; -- '"], ['SET NAMES sjis', "SELECT '\x95\\'; {w}; -- '"],
        ['SET NAMES big5', "SELECT '\xa4\\' INTO OUTFILE 'FILE_OUT' -- '"],
        ['SET NAMES gbk', "SELECT '\xbf\\' INTO OUTFILE 'FILE_OUT' -- '"],
        ['SET CHAR SET gbk', "SELECT '\xbf\\'; {w}; -- '"],
        ['SET NAMES cp932', "SELECT `\x95`; {w}; -- `"],
        ['SET character_set_client = gbk', "SELECT \"\xbf\\\"; {w}; -- \""],
        ['SET character_set_client = filename', 'INSERT INTO @0069sam VALUES ({n})'],
        ['SET NAMES swe7', 'SELECT 1; {w}'],
        ['SELECT 1; {lift}', '{w}'], ["SELECT '; {w}; '", '{w}'], ["SELECT 1 -- ;\n; {w}"], ['SELECT 1 /*! ; {w} */'],
        ['/*! SELECT 1; */ {w}'], ['/*!50000 {w} */'], ['/*!99999 SELECT 1; */ {w}'],
        ['/*!50000 SET */ tx_read_only = 0', '{w}'],
        ['/*!999999 SELECT */ {w}'], ['/*!50000 SELECT 1 */; {w}'], ["SELECT '\0'; {w}; -- '"],
        ["SELECT 1 -- \0\n; {w}"],
        ['BEGIN', 'SELECT lifts()', 'COMMIT AND CHAIN', '{w}', 'COMMIT'],
        ['SET completion_type = 1', 'BEGIN', 'SELECT lifts()', 'COMMIT', '{w}', 'COMMIT'],
        ['SET autocommit = 0', 'SELECT lifts()', 'COMMIT', '{w}', 'COMMIT'],
        ['SET @@tx_read_only = 0, @a = 1', 'BEGIN', '{w}', 'COMMIT'],
        ['BEGIN', 'SELECT lifts()', 'ROLLBACK AND CHAIN', '{w}', 'COMMIT'],
        ['SET TRANSACTION READ WRITE', 'BEGIN', '{w}', 'COMMIT'],
        ["SET STATEMENT tx_read_ônly = 0 FOR {w}"], ['SET STATEMENT sql_mode = \'\' FOR {w}', '{w}'],
        ["SET STATEMENT tx_rea\u{2044}d_only = 0 FOR {w}"], ["SET tx_read_ónly = 0", '{w}'],
        ['SET @a = (SELECT lifts()), @b = 1', 'BEGIN', '{w}', 'COMMIT'],
        ['CREATE TEMPORARY TABLE isam (a INT)', 'DROP TEMPORARY TABLE isam', 'INSERT INTO isam VALUES ({n})'],
        ['SET @a = \'isam\'', 'INSERT INTO isam_view_view VALUES ({n})'],
        ['USE things', 'INSERT INTO isam VALUES ({n})'],
        ['USE mysql', "INSERT INTO plugin VALUES ('p{n}', 'x.so')"],
        ['/*!50000 USE */ mysql', 'DELETE FROM help_topic'],
        ['SET character_set_client = filename', "INSERT INTO m@0079sql.plugin VALUES ('p{n}', 'x.so')"],
        ['SET character_set_client = filename', 'CALL k@0065eps()'],
        ['SET character_set_client = filename', 'DO @0073tays()'],
        ['SET NAMES sjis', "INSERT INTO isam VALUES (1) -- "],
        [
            'CREATE TEMPORARY TABLE m (a INT) ENGINE = MERGE UNION = (isam) INSERT_METHOD = LAST',
            'INSERT INTO m VALUES ({n})',
        ],
        [
            'CREATE TEMPORARY TABLE m (a INT) ENGINE = MERGE UNION = (shop.isam) INSERT_METHOD = FIRST',
            'DELETE FROM m', 'REPLACE INTO m VALUES (1)',
        ],
        ['SELECT SLEEP(0)', '{w}', 'SHOW WARNINGS', 'COMMIT'],
        ['SAVEPOINT altair', 'RELEASE SAVEPOINT altair', 'COMMIT', '{w}', 'COMMIT'],
        ['SET autocommit = 0', '{w}', 'SET autocommit = 1', '{w}'], ['LOCK TABLES users WRITE', '{w}', 'UNLOCK TABLES'],
        ['SET profiling = 1', 'SELECT 1', 'SHOW PROFILES', '{w}', 'COMMIT'],
        ['SET @a = CONCAT("{w}")', 'PREPARE s FROM @a', 'EXECUTE s'],
        ["SET sql_mode = 'MSSQL'", "SET STATEMENT sql_mode = 'ANSI' FOR SELECT 1 AS ['] INTO OUTFILE 'FILE_OUT' -- ']"],
        ["SET sql_mode = REPLACE('MxxSQL', 'xx', 'S')", "SELECT 1 AS ['] INTO OUTFILE 'FILE_OUT' -- ']"],
        ["SET sql_mode = CONCAT('NO_BACKSL', 'ASH_ESCAPES')", "SELECT '\\' INTO OUTFILE 'FILE_OUT' -- '"],
    ];

    protected const BOUND = [
        ['INSERT INTO users VALUES (?, ?, ?)', ['{n}', 'b{n}@x', '*']],
        ['UPDATE users SET name = ? WHERE id = ?', ['*', 1]],
        ['INSERT INTO log (t, n) VALUES (?, ?)', ['*', '{n}']], ['DELETE FROM users WHERE id = ? OR 1', ['*']],
        ['INSERT INTO isam_view VALUES (?)', [7]], ['INSERT INTO {stays} VALUES (?)', [7]],
        ['SELECT ? INTO OUTFILE \'FILE_OUT\'', ['*']],
        ['SELECT ? /* ? */, ?', ['*', '*']], ['SELECT \'?\', ?, ?', ['*', '*']], ["SELECT '\\'?', ?, ?", ['*', '*']],
        ['SELECT "?", ?', ['*', '*']],
        ['SELECT `?`, ?', ['*', '*']], ["SELECT ? -- ?\n, ?", ['*', '*']], ['SELECT ?, ? # ?', ['*', '*']],
        ['SELECT ?; {w}', ['*']],
        ["SELECT [?'], ?", ['*']], ["SELECT 'a' ? ", ['*']], ['SET @a = ?', ['*']],
        ['SELECT * FROM users WHERE email = ? AND name = ?', ['*', '*']],
        ['EXECUTE IMMEDIATE ?', ['{w}']], ['CALL runs(?)', ['{s}']],
        ['SELECT ? FROM users INTO OUTFILE ?', ['*', 'FILE_OUT']],
        ['SET STATEMENT tx_read_only = ? FOR {w}', [0]], ['SET tx_read_only = ?', [0]], ['SET autocommit = ?', [1]],
        ['SELECT SETVAL(numbers, ?)', [99]],
        ['INSERT INTO users SELECT ?, ?, ?', ['{n}', '*', 'x']],
        ["SELECT /*!50000 ? INTO OUTFILE 'FILE_OUT' */", ['*']],
        ['LOAD DATA INFILE ? INTO TABLE users', ['FILE_IN']], ['KILL ?', ['VICTIM_ID']],
        ['INSERT INTO users (id, email, name) VALUES (?, ?, \'?\')', ['{n}', '*']],
    ];

    protected const HOSTILE = [
        "'; {w}; -- ", "\\'; {w}; -- ", "\\", "'", "''", '"', "\xbf'; {w}; -- ", "\xbf\\", "\x95'; {w}; -- ", "\x95\\",
        "\xe0'", '`', '$$', '?', ':a', '/*', '*/',
        "x' INTO OUTFILE 'FILE_OUT' -- ", "\0", "\x1a", "\n", ' ', '', "O'Brien; Ltd", 'INTO OUTFILE', '--', '#',
        '; COMMIT; {w}', '東', "\xe3\x81", '[', ']',
        "\\'; {lift}; {w}; # ", '{w}', '"; {w}; -- ', "]'; {w}; -- ", "' UNION SELECT writes(), 1 -- ", "\xa0", "%",
        '{lift}', '/*!50000 {w} */',
    ];

    protected const READ = [
        'SELECT * FROM users ORDER BY id', "SELECT name FROM users WHERE email = 'ada@shop.example'",
        'SELECT COUNT(*) FROM log', '(SELECT 1) UNION (SELECT 2)',
        'WITH u AS (SELECT * FROM users) SELECT COUNT(*) FROM u', 'SHOW TABLES', 'DESCRIBE users', 'DESC users name',
        'SHOW COLUMNS FROM log', 'SHOW DATABASES',
        'EXPLAIN SELECT * FROM users WHERE id = 1', 'SHOW CREATE TABLE child',
        "SELECT 'INTO OUTFILE; SET GLOBAL x; CALL y; -- '", 'SELECT 1 INTO @a',
        "SELECT 'it''s', \"it's\", 'a;b'", 'SELECT @@tx_isolation', 'SET NAMES utf8mb4', 'SET @a = {n}',
        "SET SESSION sql_mode = 'ANSI_QUOTES'", 'VALUES (1), (2)',
        "SELECT 'outfile' AS dumpfile", 'TABLE users', 'SELECT a FROM isam_view', 'SHOW CREATE VIEW users_view',
        'SELECT JSON_EXTRACT(\'{"a":1}\', \'$.a\')',
        'SELECT LAST_INSERT_ID()', 'SELECT * FROM users u LEFT JOIN log l ON l.n = u.id',
        'SELECT * FROM information_schema.tables WHERE table_name = \'x\'', 'SHOW WARNINGS',
        'SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED',
        'SELECT GROUP_CONCAT(name ORDER BY id SEPARATOR \';\') FROM users', 'SELECT `id`, `name` FROM `shop`.`users`',
        'SELECT IF(1, \'UPDATE users\', \'DELETE\')', 'SELECT REPLACE(\'abc\', \'b\', \'x\')',
        'SELECT INSERT(\'abc\', 1, 1, \'x\')', 'SET time_zone = \'+00:00\'', 'SELECT NULL',
        'SELECT * FROM users WHERE name LIKE \'%\\\\_%\'', 'SHOW VARIABLES LIKE \'tx_isolation\'',
        'CHECKSUM TABLE users', 'EXPLAIN FORMAT=JSON SELECT 1', 'SELECT UNIX_TIMESTAMP(0)',
        'ANALYZE SELECT * FROM users WHERE id = 1', 'SELECT `outfile`.id FROM users AS `outfile`',
        'SET character_set_results = utf8mb4', 'DO 1', 'SELECT TRUNCATE(1.5, 0)', 'HELP \'x\'',
        'SELECT \'/*!50000 x */\'', 'SELECT VERSION()', 'SHOW TABLE STATUS LIKE \'nothing\'',
        'SELECT * FROM users WHERE id IN (1, 2)',
    ];

    protected const READ_BOUND = [
        ['SELECT * FROM users WHERE email = ?', ['*']], ['SELECT ? AS a, ? AS b', ['*', '*']],
        ['SELECT * FROM users WHERE id = ? AND name <> ?', [1, '*']],
        ['SELECT name FROM users WHERE id IN (?, ?)', [1, 2]], ['SELECT LENGTH(?)', ['*']],
        ['SELECT CONCAT(?, \'; \', ?)', ['*', '*']],
    ];

    protected const APPLICATION_SAYS = [
        "INSERT INTO users VALUES (50, 'a@x', 'A')", "INSERT INTO users VALUES (51, 'b@x', 'B')",
        "UPDATE users SET name = 'U' WHERE id = 50", 'DELETE FROM users WHERE id = 50',
        'DELETE FROM users WHERE id = 1',
        "INSERT INTO users VALUES (50, 'c@x', 'C') ON DUPLICATE KEY UPDATE name = 'D'",
        "REPLACE INTO users VALUES (2, 'r@x', 'R')",
        'SAVEPOINT a', 'ROLLBACK TO SAVEPOINT a', 'RELEASE SAVEPOINT a', "UPDATE users SET email = 'same@x'",
        'SELECT COUNT(*) FROM users', 'BEGIN', 'COMMIT', 'ROLLBACK',
        'START TRANSACTION', 'SET autocommit = 0', 'SET autocommit = 1', 'COMMIT AND CHAIN', 'ROLLBACK AND CHAIN',
        "INSERT IGNORE INTO users VALUES (1, 'z@x', 'Z'), (52, 'y@x', 'Y')",
        'SELECT * FROM users WHERE id = 1 FOR UPDATE', 'SELECT writes()', 'INSERT INTO child VALUES (1, 999)',
        'INSERT INTO child VALUES (1, 1)', 'CREATE TEMPORARY TABLE tt (a INT)',
        'DROP TEMPORARY TABLE tt', 'INSERT INTO tt VALUES (1)', 'SELECT @@in_transaction > 5', 'SELECT syntax error',
    ];

    protected const LOOK = 'SELECT id, email, name FROM users ORDER BY id';

    protected function open(string $client): array
    {
        if ($this->dice->falls(70)) {
            return [];
        }
        $init = $this->expand($this->dice->one([...self::LIFT, ...self::SETUP, '{w}', '{w}']));
        $charset = $this->dice->one(['gbk', 'sjis', 'big5', 'utf8mb4', 'latin1', 'binary', 'cp932']);
        if ($client === 'pdo') {
            return $this->dice->one([
                ['attributes' => [PDO::MYSQL_ATTR_INIT_COMMAND => $init]],
                ['charset' => $charset], ['charset' => $charset],
                ['attributes' => [PDO::MYSQL_ATTR_MULTI_STATEMENTS => true]],
                ['attributes' => [PDO::MYSQL_ATTR_USE_BUFFERED_QUERY => false]],
                ['attributes' => [PDO::MYSQL_ATTR_LOCAL_INFILE => true]],
                ['attributes' => [PDO::MYSQL_ATTR_COMPRESS => true]],
                ['attributes' => [PDO::ATTR_AUTOCOMMIT => false]],
                ['attributes' => [PDO::ATTR_EMULATE_PREPARES => false]],
                ['attributes' => [PDO::MYSQL_ATTR_FOUND_ROWS => true, PDO::ATTR_ERRMODE => PDO::ERRMODE_SILENT]],
            ]);
        }

        return $this->dice->one([
            ['options' => [MYSQLI_INIT_COMMAND => $init]],
            ['options' => [MYSQLI_SET_CHARSET_NAME => $charset]],
            ['options' => [MYSQLI_OPT_LOCAL_INFILE => true]],
            ['flags' => MYSQLI_CLIENT_COMPRESS],
            ['flags' => 65536], // CLIENT_MULTI_STATEMENTS
            ['flags' => MYSQLI_CLIENT_FOUND_ROWS | MYSQLI_CLIENT_INTERACTIVE | MYSQLI_CLIENT_IGNORE_SPACE],
            ...($this->dice->falls(15) ? [['persistent' => true]] : []),
        ]);
    }

    protected function openAsEver(string $client): array
    {
        return $client === 'pdo' && $this->dice->falls(60) ? ['charset' => 'utf8mb4'] : [];
    }

    protected function saying(string $client, string $text): array
    {
        $several = str_contains($text, ';') && $this->dice->falls(60);
        if ($client === 'pdo') {
            $emulates = [PDO::ATTR_EMULATE_PREPARES => $this->dice->falls(50)];
            $ways = ['exec' => 30, 'query' => 25, 'prepare' => $several ? 0 : 25, 'ask' => 3];
            $way = $this->dice->weighed($ways);

            return [$way, $way === 'prepare' ? [$text, $emulates, []] : [$text], 0];
        }
        $way = $several ? 'multi' : $this->dice->weighed([
            'query' => 40, 'prepare' => 20, 'multi' => 15, 'async' => 8, 'use' => 4, 'keep' => 4,
        ]);

        // With a cursor PHP itself does not come through ANALYZE, nor MariaDB through RETURNING.
        $cursor = str_starts_with($text, 'SELECT') ? $this->dice->one([0, 0, 1]) : 0;

        return match ($way) {
            'multi' => ['multi', [$text, $this->dice->falls(90)], 0],
            'prepare' => ['prepare', [$text, [], $this->dice->one([1, 1, 2]), $cursor], 0],
            'async' => ['async', [$text, $this->dice->falls(90)], 0],
            'keep' => ['keep', ['s', $text], 1],
            default => [$way, [$text], 0],
        };
    }

    protected function binding(string $client, string $text, array $values): array
    {
        if ($client === 'mysqli') {
            return $this->dice->falls(90) ? ['prepare', [$text, $values], 0]
                : ['long', [$text, (string) $values[0]], 0];
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

            return ['prepare', [$text, [PDO::ATTR_EMULATE_PREPARES => $this->dice->falls(60)], $names], 0];
        }
        if ($this->dice->falls(15)) {
            return ['quoted', [strtr($text, ['?' => '{?}']), (string) $values[0]], 0];
        }

        return ['prepare', [$text, [PDO::ATTR_EMULATE_PREPARES => $this->dice->falls(60)], $values], 0];
    }

    protected function calling(string $client, string $what): ?array
    {
        $name = $this->dice->one([
            null, null, 'a', 'altair', '`a`', '*/ READ WRITE /*', '/', "x\0y", '*/; COMMIT; /*', '!50000 READ WRITE',
            'a b',
        ]);
        $mysqli = [
            'plain begin' => [['begin', [0, null]], ['autocommit', [false]]],
            'plain end' => [['commit', [0, null]], ['rollback', [0, null]]],
            'begin' => [
                ['begin', [$this->dice->one([0, 1, 2, 4, 3, 6]), $name]], ['begin', [0, null]], ['autocommit', [false]],
                ['point', [$name ?? 'p', false]],
            ],
            'end' => [
                ['commit', [$this->dice->one([0, 1, 2, 4, 8, 5]), $name]],
                ['rollback', [$this->dice->one([0, 1, 2, 4, 8]), $name]], ['autocommit', [true]],
                ['commit', [0, null]], ['commit', [0, null]],
            ],
            'other' => [
                ['user', ['shop', true, 'shop']], ['user', ['shop', false, 'shop']], ['user', ['shop', true, null]],
                ['user', ['shop', true, 'things']],
                ['user', ['nobody', false, null]], ['call', ['select_db', 'things']], ['call', ['select_db', 'mysql']],
                ['user', ['shop', true, 'mysql']], ['call', ['set_charset', $this->expand('{charset}')]],
                ['call', ['ping']],
                ['call', ['stat']], ['call', ['refresh', $this->dice->one([1, 2, 4, 8, 16, 32, 64, 128])]],
                ['call', ['kill', 'VICTIM_ID']],
                ['call', ['dump_debug_info']], ['call', ['savepoint', 'altair']],
                ['call', ['release_savepoint', $name ?? 'altair']], ['kept', ['s', []]],
                ['call', ['execute_query', $this->expand('{w}')]], ['call', ['real_query', $this->expand('{w}')]],
                ['call', ['next_result']],
                ['call', ['options', MYSQLI_INIT_COMMAND, $this->expand('{lift}')]],
                ['point', [$name ?? 'altair', $this->dice->falls(50)]],
            ],
        ];
        $pdo = [
            'plain begin' => [['begin', []]],
            'plain end' => [['commit', []], ['rollback', []]],
            'begin' => [['begin', []], ['attribute', [PDO::ATTR_AUTOCOMMIT, 0]]],
            'end' => [['commit', []], ['commit', []], ['rollback', []], ['attribute', [PDO::ATTR_AUTOCOMMIT, 1]]],
            'other' => [
                ['attribute', [PDO::ATTR_AUTOCOMMIT, $this->dice->between(0, 1)]],
                ['attribute', [PDO::MYSQL_ATTR_USE_BUFFERED_QUERY, $this->dice->falls(50)]],
                ['attribute', [PDO::ATTR_EMULATE_PREPARES, $this->dice->falls(50)]], ['in', []],
            ],
        ];

        return $this->dice->one(($client === 'pdo' ? $pdo : $mysqli)[$what]);
    }
}
