use super::super::Dialect;
use super::super::{Mode, Reading, Statement, statement};
use super::{all_pass, all_refused, reading, refused, refused_as};

#[test]
fn what_applications_send_passes() {
    all_pass(Dialect::MySql, PASS);
}

#[test]
fn what_lifts_the_mode_or_writes_past_it_is_refused() {
    all_refused(Dialect::MySql, REFUSED);
}

#[test]
fn bytes_that_are_no_utf8_hide_nothing() {
    for text in BYTES {
        // If no byte of a character can be mistaken for another, a string's content is not code.
        let reading = Reading {
            plain_backslash: false,
            whole_ascii: false,
        };
        let statement = statement(Dialect::MySql, Mode::ReadOnly, reading, text);
        assert!(statement.is_err(), "{}", String::from_utf8_lossy(text));
    }
}

#[test]
fn a_refusal_says_what_the_text_would_do() {
    refused_as(
        Dialect::MySql,
        &[
            (
                "set session transaction read write",
                "SET TRANSACTION READ WRITE",
            ),
            (
                "start transaction read write",
                "START TRANSACTION READ WRITE",
            ),
            ("set @@session.tx_read_only = 0", "SET tx_read_only"),
            (
                "set `transaction_read_only` = off",
                "SET transaction_read_only",
            ),
            ("set global max_connections = 1", "SET global"),
            ("select 1 into outfile '/tmp/x'", "INTO OUTFILE"),
            ("call lift()", "CALL LIFT"),
            ("drop table users", "DROP TABLE"),
            ("{call lift()}", "a statement that begins with no keyword"),
        ],
    );
}

/// With `NO_BACKSLASH_ESCAPES`, and only then.
#[test]
fn a_backslash_is_what_the_server_says_that_it_is() {
    let text = b"select '\\' into outfile '/tmp/x' -- '";
    assert_eq!(refused(Dialect::MySql, text), None);
    let reading = Reading {
        plain_backslash: true,
        whole_ascii: true,
    };
    assert!(statement(Dialect::MySql, Mode::ReadOnly, reading, text).is_err());
}

#[test]
fn a_character_set_that_may_shift_is_known() {
    for (text, is) in [
        ("set names utf8mb4", Statement::Sets),
        ("SET NAMES 'utf8' COLLATE 'utf8_bin'", Statement::Sets),
        ("set @a = 'gbk', lc_time_names = 'de_DE'", Statement::Sets),
        ("set character_set_results = gbk", Statement::Sets),
        ("set character_set_client = latin1", Statement::Sets),
        ("set names gbk", Statement::SetsCharset),
        ("set names default", Statement::SetsCharset),
        ("set @a = 1, names 'sjis'", Statement::SetsCharset),
        ("set charset big5", Statement::SetsCharset),
        ("set character set 'gbk'", Statement::SetsCharset),
        ("set char set gbk", Statement::SetsCharset),
        ("set char/**/set /*!50000 sjis */", Statement::SetsCharset),
        ("set char set utf8", Statement::Sets),
        (
            "set @@session.character_set_client = @a",
            Statement::SetsCharset,
        ),
        (
            "set character_set_client = concat('utf8')",
            Statement::SetsCharset,
        ),
        ("/*!50503 set names gbk */", Statement::SetsCharset),
    ] {
        let given = statement(
            Dialect::MySql,
            Mode::ReadOnly,
            reading(Dialect::MySql),
            text.as_bytes(),
        );
        assert_eq!(given, Ok(is), "{text}");
    }
}

#[test]
fn what_is_about_transactions_is_known() {
    for (text, is) in [
        ("begin", Statement::Begin),
        ("/* x */ START TRANSACTION READ ONLY", Statement::Begin),
        ("commit", Statement::Commit { chain: false }),
        ("commit work and chain", Statement::Commit { chain: true }),
        ("commit and no chain", Statement::Commit { chain: false }),
        ("rollback", Statement::Rollback { chain: false }),
        ("rollback to savepoint x", Statement::Plain),
        ("savepoint x", Statement::Savepoint),
        ("set autocommit=0", Statement::Autocommit(false)),
        ("SET @@session.autocommit = ON", Statement::Autocommit(true)),
        ("set autocommit=0, sql_mode='x'", Statement::Sets),
        ("create temporary table t (a int)", Statement::Writes),
        ("drop temporary table t", Statement::Writes),
        ("call tries()", Statement::Writes),
        ("select * from t for update", Statement::Plain),
    ] {
        let given = statement(
            Dialect::MySql,
            Mode::Rollback,
            reading(Dialect::MySql),
            text.as_bytes(),
        );
        assert_eq!(given, Ok(is), "{text}");
    }
    for text in [
        "create table t (a int)",
        "lock tables t read",
        "xa start 'x'",
        "flush tables",
        "kill 1",
        "begin not atomic commit; end",
        "set global a = 1",
        "execute s",
    ] {
        let given = statement(
            Dialect::MySql,
            Mode::Rollback,
            reading(Dialect::MySql),
            text.as_bytes(),
        );
        assert!(given.is_err(), "{text}");
    }
}

#[test]
fn a_write_alone_is_the_servers_to_refuse() {
    let insert = b"insert into users (name) values ('a')";
    assert_eq!(refused(Dialect::MySql, insert), None);
}

/// MySQL's scanner of hints does not end them where comments end.
#[test]
fn a_hint_hides_nothing() {
    let hidden = "select /*+ qb_name(`*/ ' `) */ 1 into outfile '/tmp/x' -- '";
    all_refused(Dialect::MySql, &[hidden]);
}

#[test]
fn what_an_executable_comment_holds_is_looked_at_executed_and_not() {
    all_pass(
        Dialect::MySql,
        &[
            "/*!40101 SET NAMES utf8 */",
            "/*!40101 SET @old = @@character_set_client */;",
            "select /*!40001 sql_no_cache */ * from users",
            "select /*! straight_join */ * from a join b",
            "/*M!100100 select 1 */",
        ],
    );
    all_refused(
        Dialect::MySql,
        &[
            "/*! set tx_read_only = 0 */",
            "/*!50000 set tx_read_only = 0 */",
            "/*!50000set tx_read_only=0*/",
            "/*!080000 set tx_read_only = 0 */",
            "/*M! set tx_read_only = 0 */",
            "/*M!100100 set tx_read_only = 0 */",
            "select 1 /*! into */ outfile '/tmp/x'",
            "select */* ' */from (select 1) x into outfile '/tmp/x'",
            "select /*!99999 1, */ */* ' */from (select 1) x into outfile '/tmp/x'",
            "select 1 into /*!50000 outfile */ '/tmp/x'",
            "select 1 /*!99999 ' */ into outfile '/tmp/x' /*!99999 ' */",
            "select 1 /*!50000 ' */ into outfile '/tmp/x' -- '",
            // Of two versions the server may execute one.
            "select 1 /*!99999 ' */ /*!00000 into outfile '/tmp/x' */ /*!99999 ' */",
            // Skipped, it ends at the second end; executed, at the first.
            "select 1 /*!99999 /* ' */ , ' */ into outfile '/tmp/x' -- '",
            // Servers that know five digits take the sixth for code.
            "select /*!500001e0into outfile '/tmp/x' */",
            "/*!50000 drop table users */",
            "/*! */ drop table users",
            "/*!50000 select 1; */ drop table users",
        ],
    );
}

const PASS: &[&str] = &[
    "SET SESSION sql_mode = @@GLOBAL.sql_mode",
    "SET @scope = 'global'",
    "SET @debug = 1, @persist := 0",
    "SET STATEMENT max_statement_time = 10 FOR SELECT /* x */ 'for books', '#1 -- \u{e4}'",
    "SET /* x */ STATEMENT max_statement_time = 10 FOR SELECT 1",
    "SET tx_read_only = 1 /* a replica */",
    "SET SESSION TRANSACTION READ ONLY /* no write */",
    "START TRANSACTION READ ONLY /* PostController@write */",
    "/* shop */ SELECT /*!40001 SQL_NO_CACHE */ 1",
    "-- shop\nSELECT /*! STRAIGHT_JOIN */ 1 /* all */",
    "SELECT \"a\\\"b\", 'into outfile'",
    "SELECT /*!40001 SQL_NO_CACHE */ 'into outfile'",
    "SELECT /*+ NO_ICP(t) */ 'into outfile'",
    "SELECT na\u{ef}ve, 'into outfile' FROM t",
    "",
    " \n\t ; ; ",
    "-- a comment",
    "# a comment",
    "/* a comment */",
    "/* a comment that does not end",
    "select 1",
    "SELECT * FROM users WHERE id = ?",
    "SELECT * FROM users WHERE id = :id AND name LIKE :name;",
    "(select 1) union (select 2)",
    "((select 1))",
    "select `read_only`, `set`, `outfile` from `transaction`",
    "select read_only, tx_read_only from settings where read_only = 0",
    "select 'SET SESSION TRANSACTION READ WRITE; INTO OUTFILE'",
    "select \"SET SESSION TRANSACTION READ WRITE; INTO OUTFILE\"",
    "select 1 /* SET SESSION TRANSACTION READ WRITE; INTO OUTFILE '/tmp/x' */",
    "select 1 -- ; drop table users",
    "select 1 # ; into outfile '/tmp/x'",
    "select 'it''s', 'it\\'s', \"say \"\"x\"\"\", 'a\\\\'",
    "select `a``b` from t",
    "select u.*, count(*) c from users u left join posts p on p.user_id = u.id group by u.id",
    "with recursive n (i) as (select 1 union all select i + 1 from n where i < 9) select * from n",
    "select row_number() over (partition by a order by b desc) from t",
    "select data->>'$.name', data->'$.a[0]', json_extract(data, '$.b') from t",
    "select * from t where a in (?, ?, ?) order by b limit 10 offset 20",
    "select * from t where b between '2024-01-01' and '2024-12-31 23:59:59'",
    "select * from t for update",
    "select * from t where id = 1 for update skip locked",
    "select * from t lock in share mode",
    "select sql_calc_found_rows * from t limit 10",
    "select found_rows()",
    "select last_insert_id()",
    "select @@version, @@session.sql_mode, @@global.read_only, @@transaction_read_only",
    "select count(*) into @n from t",
    "select a, b into @a, @b from t limit 1",
    "select case when a then b else c end from t",
    "select replace(name, 'a', 'b'), insert('abc', 1, 1, 'x') from t",
    "select 1.5e3, .5, 0x41, b'01', x'41', N'a', _utf8mb4'a' collate utf8mb4_bin",
    "select a--1 from t",
    "select 5*/* x */2",
    "select {d '2020-01-01'}",
    "select get_lock('a', 10), release_lock('a'), sleep(0), load_file('/tmp/x')",
    "select /*+ max_execution_time(1000) */ * from t",
    "select /*+ index(`t` `i`) set_var(sort_buffer_size = 16M) */ * from t",
    "select * from 2fa_tokens where 1e_x = 1",
    "select * from t use index (i) where match(a) against ('+x -y' in boolean mode)",
    "select prénom, `année` from élèves where ville = 'Besançon'",
    "select * from t where name = 'Müller\\'s' and city = '東京'",
    "select * from t where json = '{\"a\":\"\\\\u00e9\"}'",
    "select * from t where path = 'C:\\\\temp\\\\'",
    "values row(1, 2), row(3, 4)",
    "table users",
    "do sleep(0)",
    "use shop",
    "help 'select'",
    "show tables",
    "show full tables where Table_type = 'BASE TABLE'",
    "show create table `users`",
    "show full columns from `users` from `shop`",
    "show variables like 'read_only'",
    "show index from users",
    "show warnings",
    "describe users",
    "desc users",
    "explain select * from users",
    "explain format=json select * from users",
    "explain analyze select * from users",
    "explain users",
    "explain delete from users",
    "analyze select * from users",
    "analyze format=json select * from users",
    "checksum table users",
    "begin",
    "begin work",
    "start transaction",
    "start transaction read only",
    "start transaction with consistent snapshot, read only",
    "commit",
    "commit and chain",
    "rollback",
    "savepoint trans2",
    "SAVEPOINT `trans2`",
    "rollback to savepoint trans2",
    "release savepoint trans2",
    "unlock tables",
    "set names utf8mb4",
    "set names 'utf8mb4' collate 'utf8mb4_unicode_ci'",
    "set character set utf8",
    "set session sql_mode='ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE'",
    "set names utf8mb4, time_zone = '+00:00', session sql_mode = 'ANSI_QUOTES'",
    "SET time_zone = '+00:00'",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "set transaction isolation level repeatable read, read only",
    "set session transaction read only",
    "set @@session.transaction_read_only = 1",
    "set tx_read_only = on",
    "set autocommit = 0",
    "set foreign_key_checks=0",
    "SET @@SESSION.sql_mode = CONCAT(@@sql_mode, ',ANSI')",
    "set @a = 1, @b := (select max(id) from t where c in (1, 2)), @tx_read_only = 0",
    "set @`a b` = 'tx_read_only = 0, read write'",
    "set statement max_statement_time = 1 for select * from t",
    "set statement max_statement_time = 1 for (select 1) union (select 2)",
    "set names utf8mb4; set time_zone = '+00:00'; select 1",
    "update users set read_only = 0 where id = 1",
];

const REFUSED: &[&str] = &[
    // Whatever else is set, and however it is hidden.
    "SET @a = 1, GLOBAL x = 2",
    "SET @a = (SELECT 1), @@GLOBAL.x = 1",
    "SET @@global . x = @@session.x",
    "SET @a = CONCAT('x', 'y'), PERSIST y = 1",
    "SET debug = @a",
    "SET @@session.debug = ''",
    "SET @a = 1 /* x */, /*!50000 GLOBAL */ y = 1",
    "SET STATEMENT tx_read_only = 0 FOR SELECT 1",
    "SET STATEMENT /* x */ `tx_read_only` = 0 /* FOR SELECT */ FOR SELECT 1",
    "SET STATEMENT max_statement_time = 1 FOR KILL 1",
    "SET STATEMENT max_statement_time = (1) FOR SELECT 1",
    "SET STATEMENT max_statement_time = 1 FOR SET tx_read_only = 0",
    "SET STATEMENT tx_re\u{e4}d_only = 0 FOR SELECT 1",
    "SET tx_re\u{e4}d_only = 0",
    "SET tx_read_only = 0 /* 1 */",
    "SET tx_read_only = 0 -- 1",
    "START TRANSACTION /* READ ONLY */ READ WRITE",
    "START TRANSACTION READ /*!50000 WRITE */",
    "SELECT 'a\\'' INTO OUTFILE '/x'",
    "SELECT \"a\\\" INTO OUTFILE '/x' -- \"",
    "SELECT 1 INTO /*!50000 OUTFILE */ '/x'",
    "SELECT 1 INTO /*!99999 x */ OUTFILE '/x'",
    "SELECT 1 /*!50000 INTO */ OUTFILE '/x'",
    "SELECT /*+ ` */ 1 INTO OUTFILE '/x' -- `",
    "SELECT 1 INTO\u{a0}OUTFILE '/x'",
    "SELECT 1 INTO\r\n \u{b}OUTFILE '/x'",
    "/* x */ /*!50000 /* x */ KILL */ 1",
    // The mode, in any spelling.
    "SET SESSION TRANSACTION READ WRITE",
    "set session transaction read write;",
    "set local transaction read write",
    "set transaction read write",
    "SET TRANSACTION READ WRITE, ISOLATION LEVEL SERIALIZABLE",
    "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ WRITE",
    "set global transaction read write",
    "set/**/session/**/transaction/**/read/**/write",
    "set session transaction read -- x\n write",
    "set session transaction read # x\n write",
    "\u{b}set\u{c}session\ttransaction\r\nread\nwrite",
    "/* x */ set session transaction read write",
    ";set session transaction read write",
    "set tx_read_only=0",
    "set tx_read_only = off",
    "set tx_read_only = false",
    "set tx_read_only = default",
    "set tx_read_only = ?",
    "set tx_read_only = (select 0)",
    "set tx_read_only = ''",
    "set tx_read_only =",
    "set tx_read_only := 0",
    "set session tx_read_only = 0",
    "set local tx_read_only = 0",
    "set @@tx_read_only = 0",
    "set @@session.tx_read_only = 0",
    "set @@local.tx_read_only = 0",
    "set @@SESSION . `TX_READ_ONLY` = 0",
    "set@@tx_read_only=0",
    "set @@`tx_read_only` = 0",
    "set `tx_read_only` = 0",
    "set \"tx_read_only\" = 0",
    "set @@session.transaction_read_only = 0",
    "set session transaction_read_only = 'OFF'",
    "set Transaction_Read_Only = 0",
    "set global read_only = 0",
    "set global super_read_only = off",
    "set tx_read_only = 1, tx_read_only = 0",
    "set statement tx_read_only = 0 for delete from users",
    "set statement max_statement_time = 1, tx_read_only = 0 for delete from users",
    "set statement tx_read_ônly = 0 for delete from users",
    "set statement max_statement_time = 1 for set statement tx_read_only = 0 for select 1",
    "set statement max_statement_time = 1 for set tx_read_only = 0",
    "set statement max_statement_time = 1 for drop table users",
    "(set statement max_statement_time = 1 for drop table users)",
    "set statement max_statement_time = (select 1 for update) for drop table users",
    "start transaction read write",
    "start transaction with consistent snapshot, read write",
    "start/**/transaction/**/read/**/write",
    // Beyond the session.
    "set global max_connections = 1",
    "set @@global.max_connections = 1",
    "set persist max_connections = 1",
    "set persist_only max_connections = 1",
    "set @@persist.max_connections = 1",
    "set global general_log = on",
    "set session debug = 'd:t:o,/tmp/x'",
    "set password = 'x'",
    "set password for 'root'@'localhost' = 'x'",
    "set default role all to root",
    "set resource group x",
    // Files.
    "select * from users into outfile '/tmp/x'",
    "select * into outfile '/tmp/x' from users",
    "select 'x' into dumpfile '/tmp/x'",
    "select 1 union select 2 into outfile '/tmp/x'",
    "(select 1) into outfile '/tmp/x'",
    "(select 1 into outfile '/tmp/x')",
    "select 1 into/**/outfile '/tmp/x'",
    "select 1 INTO\nOUTFILE'/tmp/x'",
    "select 1 into -- x\n outfile '/tmp/x'",
    "select 1.0into outfile '/tmp/x'",
    "select 1.into outfile '/tmp/x'",
    "select .1into outfile '/tmp/x'",
    "select 1e0into outfile '/tmp/x'",
    "select 1.e5into outfile '/tmp/x'",
    "select \\Ninto outfile '/tmp/x'",
    "select x'41'into outfile '/tmp/x'",
    "select @`a`into outfile '/tmp/x'",
    "select {d'2020-01-01'}into outfile '/tmp/x'",
    "table users into outfile '/tmp/x'",
    "values row(1) into outfile '/tmp/x'",
    "with a as (select 1) select * from a into outfile '/tmp/x'",
    "explain analyze select 1 into outfile '/tmp/x'",
    "do (select 1 into outfile '/tmp/x')",
    "load data infile '/tmp/x' into table users",
    "load data local infile '/tmp/x' into table users",
    "load xml infile '/tmp/x' into table users",
    // Ambiguous texts.
    "select '\\', ' into outfile '/tmp/x' -- '",
    "select \"\\\" into outfile '/tmp/x' -- \"",
    "select '\\'', \"\\\" into outfile '/tmp/x' -- \"",
    "select 1 --\u{1} '\n into outfile '/tmp/x' -- '",
    "select 1 -- \r '\n into outfile '/tmp/x' -- '",
    "select 1--1 into outfile '/tmp/x'",
    "select 1 /*/ */ into outfile '/tmp/x' /* */",
    // Behind comments.
    "/*!99999 SELECT */ /*!50000 CALL tries() */",
    "/*!99999 SELECT /* /* */ */ CALL tries()",
    "/*M! SELECT /* */ CALL tries()",
    "-- x\n/*!99999 SELECT */ /*!50000 CALL tries() */",
    "set statement max_statement_time = 1 for /* select */ call tries()",
    "select 1 --\u{7f}'\ninto outfile '/tmp/x' -- '",
    // Everything else.
    "begin not atomic set tx_read_only = 0; end",
    "begin set tx_read_only = 0; end",
    "begin; set tx_read_only = 0",
    "if 1 then set tx_read_only = 0; end if",
    "loop set tx_read_only = 0; end loop",
    "prepare s from 'set tx_read_only = 0'",
    "execute s",
    "execute immediate 'set tx_read_only = 0'",
    "call lift()",
    "xa start 'x'",
    "lock tables users read",
    "handler users open",
    "flush tables",
    "kill 1",
    "analyze table users",
    "analyze local table users",
    "create temporary table t (a int)",
    "start slave",
    "shutdown",
    "'select 1'",
    "\u{a0}drop table users",
];

const BYTES: &[&[u8]] = &[
    // White space in Latin 1 and code page 866.
    b"select 1 into\xA0outfile '/tmp/x'",
    b"select 1 into\xFFoutfile '/tmp/x'",
    b"set\xA0tx_read_only=0",
    b"select 1 --\xA0 '\n into outfile '/tmp/x' -- '",
    b"select 1 from (select 1 as \xE9) t where 1--\xE9 into\xA0outfile '/tmp/x'",
    // Characters of two bytes, of which the second is a backslash or a backtick.
    b"select '\x81\\' into outfile '/tmp/x' -- '",
    b"select '\\\\\x81\\', \"\\\"\" into outfile '/tmp/x' -- '",
    b"select 1 as \x81` into outfile '/tmp/x'",
    b"select 1 as \xA1` into outfile '/tmp/x'",
    b"select 1 as `\x81``, '` into outfile '/tmp/x' -- '",
    b"select '\\\x81\\'\"\\'\x81\\' into outfile '/tmp/x' -- '",
    // In Big5 0x81 is not a first byte, in Shift JIS 0xB1 is a character by itself.
    b"select 1 as \x81\xA1` into outfile '/tmp/x'",
    b"select 1 as `\xB1\x83`` into outfile '/tmp/x' -- `",
    b"select '\xE4\xBD\xA0\\' into outfile '/tmp/x' -- '",
    // A client may or may not end the text at a NUL.
    b"drop table users\0",
    b"select 1 # x \0 into outfile '/tmp/x'",
];
