use super::super::Dialect;
use super::super::{Mode, Reading, Statement, statement};
use super::{all_pass, all_refused, reading, refused, refused_as};

#[test]
fn what_applications_send_passes() {
    all_pass(Dialect::PostgreSql, PASS);
}

#[test]
fn what_lifts_the_mode_or_writes_past_it_is_refused() {
    all_refused(Dialect::PostgreSql, REFUSED);
}

#[test]
fn bytes_that_are_no_utf8_hide_nothing() {
    for text in BYTES {
        let reading = Reading {
            plain_backslash: true,
            whole_ascii: false,
        };
        let statement = statement(Dialect::PostgreSql, Mode::ReadOnly, reading, text);
        assert!(statement.is_err(), "{}", String::from_utf8_lossy(text));
    }
}

#[test]
fn a_refusal_says_what_the_text_would_do() {
    refused_as(
        Dialect::PostgreSql,
        &[
            ("select lo_unlink(1)", "lo_unlink()"),
            (
                "copy users to program 'sh'",
                "COPY to or from a file or program",
            ),
            ("do $$ begin end $$", "DO"),
        ],
    );
}

#[test]
fn what_the_server_tells_of_may_be_set() {
    all_pass(
        Dialect::PostgreSql,
        &[
            "reset all",
            "discard all",
            "begin read write",
            "set transaction isolation level repeatable read, read write",
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
            "set \"default_transaction_read_only\" to off",
            "reset transaction_read_only",
            "select set_config('default_transaction_read_only', 'off', false)",
            "select set_config($1, $2, false)",
            "update pg_settings set setting = 'off' where name = 'default_transaction_read_only'",
            "select * from crosstab('select a, b, c from t order by 1', 'select 1') as (a int, b int)",
            "select query_to_xml_and_xmlschema('select 1', true, true, '')",
            "select ts_rewrite(q, 'a'::tsquery, 'lo_creat(1)') from t",
            "select * from crosstab('select a, b, c from t where a not like ''v\\_%''') as (a int)",
            "select 2.5E-3, 1e-2, 1e+5, 'pg_notify()'",
            "select o.lo_import, \"odd\".\"crosstab\" from odd o",
            "select ts_stat('select to_tsvector(a) from t')",
            "select t.dblink_id, t.lo_created from t",
            "select 'dblink(x)', $$lo_creat(1)$$, \"dblink\" from t -- lo_creat(1)",
            "select 'x' like'a\\', 'lo_creat(1)'",
        ],
    );
}

/// Without `standard_conforming_strings`, and only then.
#[test]
fn a_backslash_is_what_the_server_says_that_it_is() {
    let text = b"select '\\'' , lo_creat(1) --'";
    assert_eq!(refused(Dialect::PostgreSql, text), None);
    let reading = Reading {
        plain_backslash: false,
        whole_ascii: true,
    };
    assert!(statement(Dialect::PostgreSql, Mode::ReadOnly, reading, text).is_err());
}

#[test]
fn what_is_about_transactions_is_known() {
    for (text, is) in [
        ("begin isolation level serializable", Statement::Begin),
        ("START TRANSACTION READ WRITE", Statement::Begin),
        ("end", Statement::Commit { chain: false }),
        ("commit and chain", Statement::Commit { chain: true }),
        ("abort", Statement::Rollback { chain: false }),
        ("rollback and chain", Statement::Rollback { chain: true }),
        ("rollback to x", Statement::Plain),
        ("create table t (a int)", Statement::Plain),
        ("do $$ begin end $$", Statement::Plain),
        ("select lo_creat(1)", Statement::Plain),
    ] {
        let given = statement(
            Dialect::PostgreSql,
            Mode::Rollback,
            reading(Dialect::PostgreSql),
            text.as_bytes(),
        );
        assert_eq!(given, Ok(is), "{text}");
    }
    for text in [
        "prepare transaction 'x'",
        "commit prepared 'x'",
        "select dblink_exec('x')",
        "copy t to program 'x'",
        "load 'x'",
    ] {
        let given = statement(
            Dialect::PostgreSql,
            Mode::Rollback,
            reading(Dialect::PostgreSql),
            text.as_bytes(),
        );
        assert!(given.is_err(), "{text}");
    }
}

#[test]
fn a_write_alone_is_the_servers_to_refuse() {
    let insert = b"insert into users (name) values ('a') returning id";
    assert_eq!(refused(Dialect::PostgreSql, insert), None);
}

const PASS: &[&str] = &[
    "",
    ";;",
    "-- a comment",
    "/* a /* nested */ comment */",
    "/* a comment /* that does not end */",
    "select 1",
    "SELECT * FROM users WHERE id = $1",
    "SELECT * FROM users WHERE id = ? AND name = :name",
    "(select 1) union all (select 2)",
    "select \"read_only\", \"set\", transaction_read_only from \"transaction\"",
    "select 'SET SESSION TRANSACTION READ WRITE; set_config()'",
    "select $$SET SESSION TRANSACTION READ WRITE; set_config()$$",
    "select $a$ $$ set_config('transaction_read_only', 'off', false) $$ $a$",
    "select 1 /* set_config('transaction_read_only', 'off', false) */",
    "select 1 -- ; drop table users",
    "select 'it''s', E'it\\'s', 'C:\\temp', U&'d\\0061t', B'01', X'1F', N'a'",
    "select data->>'name', data->'a'->0, data#>'{a,b}', data#>>'{a}', data #- '{a}' from t",
    "select * from t where data @> '{\"a\": 1}' and data ? 'a' and data ?| array['a'] and data ?& $1",
    "select * from t where tags && array['a', 'b']::text[] and a <@ $1::jsonb",
    "select '1'::int, now()::date, a::text::varchar(10) from t",
    "select a[1], a[1:2], array[[1, 2], [3, 4]], (select array(select 1)) from t",
    "select * from t where a = any ($1) and b <> all (array[1, 2])",
    "select * from t where a ~* '^x' and b !~ 'y' and c ilike '%z%' and d similar to 'e'",
    "select row_number() over w, sum(a) filter (where b) from t window w as (partition by c)",
    "with recursive n (i) as (values (1) union all select i + 1 from n) select * from n limit 3",
    "with a as materialized (select 1) select * from a",
    "with a as (delete from users returning *) select * from a",
    "select distinct on (a) a, b from t order by a, b desc nulls last",
    "select * from a join lateral (select * from b where b.a = a.id limit 1) x on true",
    "select * from generate_series(1, 10) g(i)",
    "select * from t tablesample system (10)",
    "select * from t for update skip locked",
    "select * from t for no key update of t nowait",
    "select extract(epoch from now()), interval '1 day', timestamp '2020-01-01'",
    "select coalesce(a, 'x') || '-' || b from t",
    "select count(*) from t having count(*) > 1",
    "select currval('users_id_seq'), lastval(), nextval('users_id_seq')",
    "select pg_advisory_lock(1), pg_try_advisory_xact_lock(2), pg_sleep(0)",
    "select pg_size_pretty(pg_total_relation_size('users')), pg_get_viewdef('v'::regclass)",
    "select pg_walfile_name(pg_current_wal_lsn()), pg_last_wal_replay_lsn()",
    "select pg_stat_get_numscans(1), pg_is_in_recovery(), pg_backend_pid()",
    "select lo_get(1), table_to_xml('users', true, true, '')",
    "select current_setting('transaction_read_only'), current_setting('app.tenant', true)",
    "select set_config('search_path', 'x', false)",
    "select pg_catalog.set_config('search_path', '', false);",
    "select set_config('app.tenant', $1, true)",
    "select set_config('app.current_user_id', '42', true), set_config('app.role', 'a', true)",
    "select set_config($$app.tenant$$, 'x', true)",
    "select * from pg_settings where name = 'default_transaction_read_only'",
    "select set_config from t",
    "select u&b, u & \"b\", e from t",
    "select @-5, 2 ^ 3, |/ 25, 5 % 2, ~1, 1 << 2, a <-> b from t",
    "select 1e3, 1.5, .5, 1., $1",
    "select prénom, \"année\" from élèves where ville = 'Besançon' and x = 'é\\'",
    "select * from t where name = E'Müller\\'s' and city = '東京' and j = '[\"é\"]'",
    "values (1, 'a'), (2, 'b')",
    "table users",
    "show transaction_read_only",
    "show all",
    "explain select * from users",
    "explain analyze verbose select * from users",
    "explain (analyze, buffers, format json) select * from users",
    "explain (select 1)",
    "explain (select 1) union (select 2)",
    "explain (costs off) (select 1) union (select 2)",
    "explain delete from users",
    "begin",
    "begin transaction isolation level serializable, read only, deferrable",
    "begin isolation level read committed",
    "start transaction read only",
    "commit",
    "commit and chain",
    "end",
    "rollback",
    "abort",
    "savepoint trans2",
    "rollback to savepoint trans2",
    "release savepoint trans2",
    "set search_path to x",
    "SET search_path = \"$user\", public",
    "set search_path to read_only_schema",
    "set role app_read_only",
    "set local role to x",
    "reset role",
    "SET client_encoding TO 'UTF8'",
    "set names 'utf8'",
    "set standard_conforming_strings = on",
    "set time zone 'UTC'",
    "set session timezone to 'UTC'",
    "SET DATESTYLE TO 'ISO, DMY'",
    "set local statement_timeout = '5s'",
    "set app.tenant = '42'",
    "set transaction isolation level repeatable read, read only",
    "set session characteristics as transaction isolation level serializable",
    "set default_transaction_read_only = on",
    "set constraints all deferred",
    "reset search_path",
    "discard plans",
    "declare c cursor for select * from users",
    "fetch 10 from c; move next from c; close c",
    "prepare p (int, numeric(10, 2)) as select * from users where id = $1",
    "execute p (1, 2)",
    "deallocate all",
    "copy (select * from users) to stdout with (format csv)",
    "copy users (id, name) from stdin",
    "listen jobs; unlisten *",
];

#[test]
fn introspection_passes() {
    all_pass(
        Dialect::PostgreSql,
        &[
            "SELECT quote_ident(table_name) AS table_name, table_schema AS schema_name
             FROM information_schema.tables WHERE table_schema NOT LIKE 'pg\\_%'
             AND table_schema != 'information_schema' AND table_type = 'BASE TABLE'",
            "SELECT a.attnum, quote_ident(a.attname) AS field, t.typname AS type,
             format_type(a.atttypid, a.atttypmod) AS complete_type,
             (SELECT 't' FROM pg_index WHERE c.oid = pg_index.indrelid
              AND pg_index.indkey[0] = a.attnum AND pg_index.indisprimary = 't') AS pri,
             (SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef
              WHERE c.oid = pg_attrdef.adrelid AND pg_attrdef.adnum = a.attnum) AS default
             FROM pg_attribute a, pg_class c, pg_type t, pg_namespace n
             WHERE n.nspname = ANY(current_schemas(false)) AND a.attnum > 0",
            "select c.relname as name, n.nspname as schema, pg_total_relation_size(c.oid) as size,
             obj_description(c.oid, 'pg_class') as comment from pg_class c, pg_namespace n
             where c.relkind in ('r', 'p') and n.oid = c.relnamespace
             and n.nspname not in ('pg_catalog', 'information_schema') order by c.relname",
            "select a.attname as name, t.typname as type_name, not a.attnotnull as nullable
             from pg_attribute a where a.attgenerated = '' -- ' set_config('x')
             and c.relname = 'users' order by a.attnum",
        ],
    );
}

const REFUSED: &[&str] = &[
    "select f.lo_unlink from generate_series(1, 2) as f",
    "select f.lo_import from current_user as f",
    "select f.lo_import from user f",
    "select (1).lo_creat",
    // A name that is not checked.
    "set u&\"default_transaction\\005fread_only\" = off",
    "set U&\"default!005ftransaction_read_only\" uescape '!' = off",
    // Texts that are executed.
    "select query_to_xml('select lo_creat(1)',true,true,'')",
    "select ts_stat('select lo_creat(1)::tsvector')",
    "select ts_rewrite(q, 'select lift()') from t",
    "select dblink_exec('dbname=x', 'drop table users')",
    "select * from dblink('dbname=x', 'select lift()') as (a int)",
    "do $$ begin perform lo_creat(1); end $$",
    "do 'begin end'",
    "call lift()",
    // Functions that write elsewhere than in tables.
    "select lo_creat(1)",
    "select lo_from_bytea(0, 'x')",
    "select lo_export(1, '/tmp/x')",
    "select lo_import('/etc/passwd')",
    "select lo_open(1, 131072)",
    "select lowrite(0, 'x')",
    "select pg_notify('a', 'b')",
    "select pg_catalog . pg_reload_conf ( )",
    "select pg_terminate_backend(1)",
    "select \"pg_cancel_backend\"(1)",
    "select pg_switch_wal()",
    "select pg_create_restore_point('x')",
    "select pg_drop_replication_slot('x')",
    "select pg_logical_emit_message(true, 'a', 'b')",
    "select pg_replication_origin_create('x')",
    "select pg_wal_replay_pause()",
    "select pg_file_write('x', 'y', false)",
    "select pg_stat_reset()",
    "select Pg_Stat_Statements_Reset()",
    "select gin_clean_pending_list('i'::regclass)",
    "select brin_summarize_new_values('i'::regclass)",
    // Files and programs.
    "copy users to '/tmp/x'",
    "copy users from '/tmp/x'",
    "copy users to program 'sh'",
    "copy (select 1) to program 'sh'",
    "copy (select 1 as stdout) to '/tmp/x'",
    "copy users(id) from program 'sh' with (format csv)",
    "copy users to E'/tmp/x'",
    "copy users to $$/tmp/x$$",
    "copy users",
    // Ambiguous texts.
    "select '\\', lo_creat(1) --'",
    "select E'\\'', lo_creat(1) --'",
    "select E'\\'', '\\', lo_creat(1) --'",
    "select E''\n'\\' ', '\\', lo_creat(1) --'",
    "select E'' -- x\n '\\' ', '\\', lo_creat(1) --'",
    "select $1$a$ ' $a$, lo_creat(1) --'",
    "select a$b$, lo_creat(1) -- $b$",
    "select 1 -- '\r, lo_creat(1) -- '",
    "select /* /* ' */ ' */ 1, lo_creat(1) -- '",
    "select 1E'\\'', lo_creat(1) --'",
    "copy (select 1) to program /* stdout */ 'touch /tmp/x'",
    "select query_to_xml('select U&\"!006co_create\" uescape ''!'' (0)', 't', 't', '')",
    // Everything else.
    "prepare transaction 'x'",
    "commit prepared 'x'",
    "rollback prepared 'x'",
    "notify a",
    "lock table users",
    "vacuum",
    "load 'x'",
    "alter system set x = 1",
    "create temp table t (a int)",
];

#[test]
fn ddl_is_refused() {
    all_refused(
        Dialect::PostgreSql,
        &[
            "analyze",
            "checkpoint",
            "cluster",
            "reindex table users",
            "refresh materialized view v",
            "truncate users",
            "grant all on users to public",
            "security label on table users is 'x'",
            "import foreign schema s from server x into y",
            "drop table users",
            "comment on table users is 'x'",
            "create function f() returns int language sql as 'select 1'",
        ],
    );
}

const BYTES: &[&[u8]] = &[
    // With GBK, Big5 or Shift JIS, 0x5C is not a backslash after these.
    b"select E'\x81\\', lo_creat(1) --'",
    b"select E'\xA1\\', lo_creat(1) --'",
    b"select E'\xE4\xBD\xA0\\', lo_creat(1) --'",
    b"select E'\\\x81\\', lo_creat(1) --'",
    // In SHIFT_JIS_2004 these two are one.
    b"select E'\x81\x5F', ', lo_creat(1) --'",
    b"select E'\x81\x5F' , lo_creat(1) --'",
    b"select lo_creat(E'\x81\x5F')",
    // In Shift JIS these two are the same name.
    b"select $\xED\x40$ ' $\xFA\x5C$, lo_creat(1) --'",
    // A name in GBK ends later than its first byte and a bracket.
    b"select \x81[E'\\', lo_creat(1) --'",
    b"drop table users\0",
];
