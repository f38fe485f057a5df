//! Several statements in one text.

use crate::sql::{Dialect, refused};

#[test]
fn a_function_that_lifts_the_mode_has_nothing_after_it() {
    let refused = |dialect, text: &str| refused(dialect, text.as_bytes()).is_some();
    for text in [
        "SELECT lifts(); SELECT writes()",
        "SELECT lifts(); COMMIT; SELECT writes()",
        "SELECT lifts(); BEGIN",
        "SET @a = lifts(); SELECT writes()",
        "SELECT 1; (SELECT writes())",
        "SELECT a FROM v; TABLE w",
        "COMMIT; BEGIN",
        "SHOW WARNINGS; BEGIN",
    ] {
        assert!(refused(Dialect::MySql, text), "{text}");
    }
    for text in [
        "SELECT lifts(); COMMIT; SELECT writes()",
        "SELECT lifts(); ROLLBACK; BEGIN",
        "SELECT lifts(); END; FETCH c",
        "BEGIN; SELECT lifts(); ABORT; START TRANSACTION",
        "COMMIT; BEGIN",
        "COMMIT; SELECT writes()",
    ] {
        assert!(refused(Dialect::PostgreSql, text), "{text}");
    }
    for text in [
        "SET NAMES utf8mb4; SELECT 1",
        "SELECT 1; COMMIT",
        "BEGIN; SELECT f(1); COMMIT",
        "SELECT f(1);",
        "USE shop; SELECT 1; ROLLBACK",
    ] {
        assert!(!refused(Dialect::MySql, text), "{text}");
    }
    for text in [
        "SELECT 1; SELECT 2",
        "BEGIN; SELECT f(1); SELECT f(2); COMMIT",
        "SET search_path TO x; SELECT 1; SELECT 2; COMMIT",
    ] {
        assert!(!refused(Dialect::PostgreSql, text), "{text}");
    }
    for text in [
        "SELECT (424242::oid).lo_create",
        "SELECT ($1::oid).lo_unlink",
        "SELECT $1.lo_create",
        "SELECT (1).\"lo_creat\"",
        "SELECT (1::int) . /* x */ pg_terminate_backend",
    ] {
        assert!(refused(Dialect::PostgreSql, text), "{text}");
    }
    assert!(!refused(
        Dialect::Sqlite,
        "SELECT 1; SELECT 2; COMMIT; SELECT 3"
    ));
}
