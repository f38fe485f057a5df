//! PostgreSQL.
//!
//! A session that only reads has `default_transaction_read_only`, of which the server tells each change,
//! and takes one statement at a time, by the extended protocol. The server refuses DML and DDL then, of
//! temporary tables, too, and a query cannot lift the mode of the transaction that it is in. What may
//! lift it before the first query is sent, and the transaction is asked then. The server does not refuse `NOTIFY`, `VACUUM`, `LOAD`, `PREPARE TRANSACTION`, `CALL` and `DO`, which may commit and begin
//! anew, nor functions that write past tables.
//!
//! One that is rolled back is in a transaction, in which the server refuses what cannot be rolled back,
//! but for `PREPARE TRANSACTION`.

use std::sync::LazyLock;

use super::lexer::{Kind, Token, pieces};
use super::words::{Beginning, Versioned, anywhere, ends_with, is_one_of};
use super::{Dialect, Mode, Reading, Statement};

/// What reads, or is about transactions.
const READ: &str = "\
    ABORT BEGIN CLOSE COMMIT COPY DEALLOCATE DECLARE DISCARD END EXECUTE EXPLAIN FETCH LISTEN MOVE PREPARE \
    RELEASE RESET ROLLBACK SAVEPOINT SELECT SET SHOW START TABLE UNLISTEN VALUES WITH";

/// What the server refuses in a session that only reads.
const WRITE: &str = "DELETE INSERT MERGE UPDATE";

/// What is rolled back beside these, or refused in a transaction.
const UNDONE: &str = "\
    ALTER ANALYZE CALL CLUSTER COMMENT CREATE DO DROP GRANT IMPORT LOCK NOTIFY REASSIGN REFRESH REINDEX \
    REVOKE SECURITY TRUNCATE VACUUM";

/// Functions that neither a read-only transaction stops nor a rollback undoes.
static LASTING: LazyLock<Vec<&str>> = LazyLock::new(|| {
    // Other servers; files of the server's; the server, its other sessions, its log and its replication;
    // statistics; the catalogue, indexes and tables, from below.
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

/// Functions that a read-only transaction does not stop, and a rollback undoes: large objects up to
/// version 15, and those that tell other sessions.
static UNDOABLE: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let names = "\
        brin_summarize_new_values brin_summarize_range lo_creat lo_create lo_from_bytea lo_import \
        lo_open lo_put lo_truncate lo_truncate64 lo_unlink lowrite pg_notify";
    names.split(' ').collect()
});

/// Functions that execute a text, in which the others may be called.
static EXECUTING: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let names = "\
        connectby crosstab crosstab2 crosstab3 crosstab4 query_to_xml query_to_xml_and_xmlschema \
        query_to_xmlschema ts_rewrite ts_stat xpath_table";
    names.split(' ').collect()
});

/// Looks at one statement.
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
    // What is in the code of a function or a block is not cut.
    // COPY there is to and from files of the server's.
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
        // SHOW asks nothing of tables, and the transaction may be set up after it.
        "SET" | "SHOW" => Statement::Sets,
        "COMMIT" | "END" => Statement::Commit { chain },
        "ABORT" | "ROLLBACK" if !first.has("TO") => Statement::Rollback { chain },
        _ if first.is(WRITE) => Statement::Writes,
        _ => Statement::Plain,
    })
}

/// How a statement gives functions of the server's, or native code, another name, under which nothing
/// here knows them. Superusers alone may do that.
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

/// Refuses `COPY` to or from a file or a program of the server's.
fn copies_to_client(reading: Reading, text: &[u8]) -> Result<(), String> {
    // What comes after it does not make it another.
    let ends = ["STDIN", "STDOUT"].map(|end| {
        text.windows(end.len())
            .position(|window| window.eq_ignore_ascii_case(end.as_bytes()))
            .map(|at| at + end.len())
    });
    let is_stream = ends.into_iter().flatten().any(|end| {
        let cut = pieces(Dialect::PostgreSql, reading, &text[..end]);
        cut.is_some_and(|pieces| ends_in_stream(&pieces))
    });
    match is_stream {
        true => Ok(()),
        false => Err("COPY to or from a file or program".to_owned()),
    }
}

/// Whether the first `FROM` or `TO` outside of parentheses is before the last piece.
fn ends_in_stream(pieces: &[Token]) -> bool {
    let mut depth = 0_usize;
    let first = pieces.iter().position(|piece| {
        if piece.is_mark(b'(') {
            depth += 1;
        } else if piece.is_mark(b')') {
            depth = depth.saturating_sub(1);
        }
        depth == 0 && (piece.is_word("FROM") || piece.is_word("TO"))
    });
    first.is_some_and(|at| {
        at + 2 == pieces.len()
            && (pieces[at + 1].is_word("STDIN") || pieces[at + 1].is_word("STDOUT"))
    })
}

/// Whether a function must not be called.
fn is_harmful(mode: Mode, name: &[u8]) -> bool {
    let is = |other: &&str| ends_with(name, other);
    LASTING.iter().any(is) || mode == Mode::ReadOnly && UNDOABLE.iter().any(is)
}

fn executes(name: &[u8]) -> bool {
    EXECUTING.iter().any(|it| ends_with(name, it))
}

/// Whether there may be a name with Unicode escapes in a text.
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
    let Some(pieces) = pieces(Dialect::PostgreSql, reading, text) else {
        let name = anywhere(text).find(|run| is_harmful(mode, run) || executes(run));
        return Err(name.map_or_else(|| "a name with Unicode escapes".to_owned(), call));
    };
    let has_function = pieces.iter().any(is_function);
    for (at, piece) in pieces.iter().enumerate() {
        let (before, after) = (&pieces[..at], &pieces[at + 1..]);
        if !matches!(piece.kind, Kind::Word | Kind::Name) {
            continue;
        }
        if piece.kind == Kind::Name
            && matches!(before, [.., u, and] if and.is_mark(b'&') && u.is_word("U"))
        {
            return Err("a name with Unicode escapes".to_owned());
        }
        // A function of one argument is called like a column of it, too: `(0).lo_creat`, and
        // `a.lo_creat` where that is what a function gives.
        let is_call = after.first().is_some_and(|it| it.is_mark(b'('));
        let is_column = has_function && before.last().is_some_and(|it| it.is_mark(b'.'));
        let is_refused = is_harmful(mode, piece.text) && (is_call || is_column)
            || executes(piece.text)
                && (is_column && !is_call
                    || is_call && !executes_known(mode, reading, piece, after));
        if is_refused {
            return Err(call(piece.text));
        }
    }
    Ok(())
}

/// Whether a value may come from here that is no column: from parentheses, or from what has none
/// (`CURRENT_USER`).
fn is_function(piece: &Token) -> bool {
    let has_none = || {
        let word = String::from_utf8_lossy(piece.text).to_ascii_uppercase();
        is_one_of(&word, "SESSION_USER SYSTEM_USER USER")
            || word.starts_with("CURRENT")
            || word.starts_with("LOCALTIME")
    };
    piece.is_mark(b'(') || piece.kind == Kind::Word && has_none()
}

/// Whether the arguments that begin here are nothing but values, in which no function is called that
/// must not be.
fn executes_known(mode: Mode, reading: Reading, name: &Token, arguments: &[Token]) -> bool {
    // With three it executes none of them.
    if name.is_word("ts_rewrite") && count_of(arguments) == 3 {
        return true;
    }
    let end = arguments
        .iter()
        .position(|piece| piece.is_mark(b')'))
        .unwrap_or(arguments.len());
    arguments[1..end].iter().all(|piece| match piece.kind {
        Kind::Text => {
            (reading.plain_backslash || !piece.text.contains(&b'\\'))
                && !has_escaped_name(piece.text)
                && !anywhere(piece.text).any(|run| is_harmful(mode, run) || executes(run))
        }
        Kind::Mark => piece.is_mark(b',') || piece.is_mark(b':'),
        Kind::Word => {
            let known = ["text", "true", "false", "null"];
            known
                .iter()
                .any(|word| piece.text.eq_ignore_ascii_case(word.as_bytes()))
                || piece.text.iter().all(u8::is_ascii_digit)
        }
        Kind::Name => false,
    })
}

/// How many arguments begin here.
fn count_of(arguments: &[Token]) -> usize {
    let mut depth = 0_usize;
    let mut count = 1;
    for piece in arguments {
        if piece.is_mark(b'(') || piece.is_mark(b'[') {
            depth += 1;
        } else if piece.is_mark(b')') || piece.is_mark(b']') {
            depth = depth.saturating_sub(1);
        }
        count += usize::from(depth == 1 && piece.is_mark(b','));
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
