//! PostgreSQL.
//!
//! A read-only session has `default_transaction_read_only`, whose changes the server reports, and
//! accepts one statement at a time, by the extended protocol. The server then refuses DML and DDL,
//! also on temporary tables, and a query cannot lift the mode of its own transaction. A statement
//! that may lift it is sent if it comes before the first query; then the transaction's mode is
//! queried. The server does not refuse `NOTIFY`, `VACUUM`, `LOAD`, `PREPARE TRANSACTION`, `CALL`
//! and `DO`, which may commit and begin anew, or functions that write elsewhere than in tables.
//!
//! A session that is rolled back is in a transaction, in which the server refuses what cannot be
//! rolled back, except `PREPARE TRANSACTION`.

use std::sync::LazyLock;

use super::lexer::{Kind, Token, tokens};
use super::words::{Beginning, Versioned, anywhere, ends_with, is_one_of};
use super::{Dialect, Mode, Reading, Statement};

/// Statements that read or control transactions.
const READ: &str = "\
    ABORT BEGIN CLOSE COMMIT COPY DEALLOCATE DECLARE DISCARD END EXECUTE EXPLAIN FETCH LISTEN MOVE PREPARE \
    RELEASE RESET ROLLBACK SAVEPOINT SELECT SET SHOW START TABLE UNLISTEN VALUES WITH";

/// Statements that the server refuses in a read-only session.
const WRITE: &str = "DELETE INSERT MERGE UPDATE";

/// Further statements that are rolled back, or refused in a transaction.
const UNDONE: &str = "\
    ALTER ANALYZE CALL CLUSTER COMMENT CREATE DO DROP GRANT IMPORT LOCK NOTIFY REASSIGN REFRESH REINDEX \
    REVOKE SECURITY TRUNCATE VACUUM";

/// Functions that a read-only transaction does not stop and a rollback does not undo.
static LASTING: LazyLock<Vec<&str>> = LazyLock::new(|| {
    // They affect: other servers; the server's files; the server, its other sessions, its log and
    // its replication; statistics; the catalogue, indexes and tables at a low level.
    let names = "\
        dblink dblink_build_sql_delete dblink_build_sql_insert dblink_build_sql_update dblink_connect \
        dblink_connect_u dblink_exec dblink_fetch dblink_open dblink_send_query \
        lo_export pg_file_rename pg_file_sync pg_file_unlink pg_file_write \
        pg_background_launch pg_backup_start pg_backup_stop pg_cancel_backend \
        pg_copy_logical_replication_slot pg_copy_physical_replication_slot \
        pg_create_logical_replication_slot pg_create_physical_replication_slot pg_create_restore_point \
        pg_drop_replication_slot pg_log_backend_memory_contexts pg_log_standby_snapshot \
        pg_logical_emit_message pg_logical_slot_get_binary_changes pg_logical_slot_get_changes \
        pg_promote pg_reload_conf pg_replication_origin_advance pg_replication_origin_create \
        pg_replication_origin_drop pg_replication_origin_session_setup pg_replication_slot_advance \
        pg_logfile_rotate pg_rotate_logfile pg_start_backup pg_stop_backup pg_switch_wal pg_switch_xlog \
        pg_sync_replication_slots pg_terminate_backend pg_wal_replay_pause pg_wal_replay_resume \
        pg_clear_attribute_stats pg_clear_relation_stats pg_restore_attribute_stats \
        pg_restore_relation_stats pg_stat_reset pg_stat_reset_backend_stats \
        pg_stat_reset_replication_slot pg_stat_reset_shared pg_stat_reset_single_function_counters \
        pg_stat_reset_single_table_counters pg_stat_reset_slru pg_stat_reset_subscription_stats \
        pg_stat_statements_reset \
        brin_desummarize_range gin_clean_pending_list heap_force_freeze heap_force_kill \
        autoprewarm_dump_now pg_buffercache_evict pg_buffercache_evict_all pg_buffercache_evict_relation \
        pg_import_system_collations pg_nextoid pg_truncate_visibility_map";
    names.split(' ').collect()
});

/// Functions that a read-only transaction does not stop, but a rollback undoes: large objects up to
/// version 15, and those that notify other sessions.
static UNDOABLE: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let names = "\
        brin_summarize_new_values brin_summarize_range lo_creat lo_create lo_from_bytea lo_import \
        lo_open lo_put lo_truncate lo_truncate64 lo_unlink lowrite pg_notify";
    names.split(' ').collect()
});

/// Functions that execute a text, which may call the functions above.
static EXECUTING: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let names = "\
        connectby crosstab crosstab2 crosstab3 crosstab4 query_to_xml query_to_xml_and_xmlschema \
        query_to_xmlschema ts_rewrite ts_stat xpath_table";
    names.split(' ').collect()
});

/// Checks one statement.
pub(super) fn statement(mode: Mode, reading: Reading, text: &[u8]) -> Result<Statement, String> {
    calls(mode, reading, text)?;
    let first = Beginning::of(Dialect::PostgreSql, Versioned::Skipped, text);
    if first.is_empty() {
        return Ok(Statement::Plain);
    }
    let may_be_sent =
        first.is(READ) || first.is(WRITE) || mode == Mode::Rollback && first.is(UNDONE);
    let is_prepared = first.is("COMMIT ROLLBACK") && first.word(1) == "PREPARED";
    if !may_be_sent || is_prepared || first.word(0) == "PREPARE" && first.word(1) == "TRANSACTION" {
        return Err(first.title());
    }
    // The code of a function or a block is not tokenized. `COPY` in it accesses the server's files.
    let is_lasting = |run: &[u8]| {
        LASTING.iter().any(|it| ends_with(run, it))
            || [&b"PROGRAM"[..], b"COPY"]
                .iter()
                .any(|it| run.eq_ignore_ascii_case(it))
    };
    if let Some(name) = anywhere(text).find(|run| first.is("ALTER CREATE DO") && is_lasting(run)) {
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        return Err(format!("{} with {name}", first.word(0)));
    }
    if let Some(how) = renames_functions(&first, text) {
        return Err(format!("{} {how}", first.word(0)));
    }
    let chain = first.has("CHAIN") && !first.has("NO");
    if first.is("COPY") {
        copies_to_client(reading, text)?;
    }
    Ok(match first.word(0) {
        "BEGIN" | "START" => Statement::Begin,
        // SHOW reads no tables, so the transaction can still be set up after it.
        "SET" | "SHOW" => Statement::Sets,
        "COMMIT" | "END" => Statement::Commit { chain },
        "ABORT" | "ROLLBACK" if !first.has("TO") => Statement::Rollback { chain },
        _ if first.is(WRITE) => Statement::Writes,
        _ => Statement::Plain,
    })
}

/// How a statement gives one of the server's functions, or native code, another name, which is
/// unknown here. Only superusers may do that.
fn renames_functions(first: &Beginning, text: &[u8]) -> Option<&'static str> {
    let is = |run: &[u8], word: &str| run.eq_ignore_ascii_case(word.as_bytes());
    if first.is(WRITE) && anywhere(text).any(|run| is(run, "pg_proc")) {
        return Some("of pg_proc");
    }
    let next = anywhere(text).skip(1);
    let native = anywhere(text)
        .zip(next)
        .any(|(run, next)| is(run, "LANGUAGE") && (is(next, "INTERNAL") || is(next, "C")));
    (first.is("CREATE") && native).then_some("with native code")
}

/// Refuses `COPY` to or from a file or a program on the server.
fn copies_to_client(reading: Reading, text: &[u8]) -> Result<(), String> {
    // Whatever follows does not change this.
    let ends = ["STDIN", "STDOUT"].map(|end| {
        text.windows(end.len())
            .position(|window| window.eq_ignore_ascii_case(end.as_bytes()))
            .map(|at| at + end.len())
    });
    let is_stream = ends.into_iter().flatten().any(|end| {
        let tokens = tokens(Dialect::PostgreSql, reading, &text[..end]);
        tokens.is_some_and(|tokens| ends_in_stream(&tokens))
    });
    match is_stream {
        true => Ok(()),
        false => Err("COPY to or from a file or program".to_owned()),
    }
}

/// Returns whether the first `FROM` or `TO` outside parentheses directly precedes the last token.
fn ends_in_stream(tokens: &[Token]) -> bool {
    let mut depth = 0_usize;
    let first = tokens.iter().position(|token| {
        if token.is_mark(b'(') {
            depth += 1;
        } else if token.is_mark(b')') {
            depth = depth.saturating_sub(1);
        }
        depth == 0 && (token.is_word("FROM") || token.is_word("TO"))
    });
    first.is_some_and(|at| {
        at + 2 == tokens.len()
            && (tokens[at + 1].is_word("STDIN") || tokens[at + 1].is_word("STDOUT"))
    })
}

/// Returns whether a function must not be called.
fn is_harmful(mode: Mode, name: &[u8]) -> bool {
    let is = |other: &&str| ends_with(name, other);
    LASTING.iter().any(is) || mode == Mode::ReadOnly && UNDOABLE.iter().any(is)
}

fn executes(name: &[u8]) -> bool {
    EXECUTING.iter().any(|it| ends_with(name, it))
}

/// Returns whether a text may contain a name with Unicode escapes.
fn has_escaped_name(text: &[u8]) -> bool {
    text.windows(3).any(|it| it.eq_ignore_ascii_case(b"U&\""))
}

/// Refuses calls of functions that must not be called.
fn calls(mode: Mode, reading: Reading, text: &[u8]) -> Result<(), String> {
    if !has_escaped_name(text) && !anywhere(text).any(|run| is_harmful(mode, run) || executes(run))
    {
        return Ok(());
    }
    let call = |name: &[u8]| format!("{}()", String::from_utf8_lossy(name).to_ascii_lowercase());
    let Some(tokens) = tokens(Dialect::PostgreSql, reading, text) else {
        let name = anywhere(text).find(|run| is_harmful(mode, run) || executes(run));
        return Err(name.map_or_else(|| "a name with Unicode escapes".to_owned(), call));
    };
    let has_function = tokens.iter().any(is_function);
    for (at, token) in tokens.iter().enumerate() {
        let (before, after) = (&tokens[..at], &tokens[at + 1..]);
        if !matches!(token.kind, Kind::Word | Kind::Name) {
            continue;
        }
        if token.kind == Kind::Name
            && matches!(before, [.., u, and] if and.is_mark(b'&') && u.is_word("U"))
        {
            return Err("a name with Unicode escapes".to_owned());
        }
        // A function of one argument can also be called like a column: `(0).lo_creat`, and
        // `a.lo_creat` if `a` is the result of a function.
        let is_call = after.first().is_some_and(|it| it.is_mark(b'('));
        let is_column = has_function && before.last().is_some_and(|it| it.is_mark(b'.'));
        let is_refused = is_harmful(mode, token.text) && (is_call || is_column)
            || executes(token.text)
                && (is_column && !is_call
                    || is_call && !executes_known(mode, reading, token, after));
        if is_refused {
            return Err(call(token.text));
        }
    }
    Ok(())
}

/// Returns whether a value that is not a column may start here: with parentheses, or with a
/// function that takes none (`CURRENT_USER`).
fn is_function(token: &Token) -> bool {
    let has_none = || {
        let word = String::from_utf8_lossy(token.text).to_ascii_uppercase();
        is_one_of(&word, "SESSION_USER SYSTEM_USER USER")
            || word.starts_with("CURRENT")
            || word.starts_with("LOCALTIME")
    };
    token.is_mark(b'(') || token.kind == Kind::Word && has_none()
}

/// Returns whether the arguments that begin here are plain values that call no forbidden function.
fn executes_known(mode: Mode, reading: Reading, name: &Token, arguments: &[Token]) -> bool {
    // With three arguments it executes none of them.
    if name.is_word("ts_rewrite") && count_of(arguments) == 3 {
        return true;
    }
    let end = arguments
        .iter()
        .position(|token| token.is_mark(b')'))
        .unwrap_or(arguments.len());
    arguments[1..end].iter().all(|token| match token.kind {
        Kind::Text => {
            (reading.plain_backslash || !token.text.contains(&b'\\'))
                && !has_escaped_name(token.text)
                && !anywhere(token.text).any(|run| is_harmful(mode, run) || executes(run))
        }
        Kind::Mark => token.is_mark(b',') || token.is_mark(b':'),
        Kind::Word => {
            let known = ["text", "true", "false", "null"];
            known
                .iter()
                .any(|word| token.text.eq_ignore_ascii_case(word.as_bytes()))
                || token.text.iter().all(u8::is_ascii_digit)
        }
        Kind::Name => false,
    })
}

/// The number of arguments that begin here.
fn count_of(arguments: &[Token]) -> usize {
    let mut depth = 0_usize;
    let mut count = 1;
    for token in arguments {
        if token.is_mark(b'(') || token.is_mark(b'[') {
            depth += 1;
        } else if token.is_mark(b')') || token.is_mark(b']') {
            depth = depth.saturating_sub(1);
        }
        count += usize::from(depth == 1 && token.is_mark(b','));
        if depth == 0 {
            return count;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order_and_of_one_list() {
        for list in [&LASTING, &UNDOABLE, &EXECUTING] {
            assert!(list.iter().all(|name| {
                name.chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
            }));
        }
        assert!(
            !LASTING
                .iter()
                .any(|name| UNDOABLE.contains(name) || is_one_of(name, READ))
        );
    }
}
