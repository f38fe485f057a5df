//! PostgreSQL, in sessions with `default_transaction_read_only`.
//!
//! The server refuses DML and DDL then, of temporary tables, too, and `nextval()`. It does not
//! refuse `LOCK`, `NOTIFY`, `VACUUM`, `LOAD`, `PREPARE TRANSACTION` or `DO`, nor functions that write
//! past tables, and lets every session lift the mode. `SET ROLE` and `SET SESSION AUTHORIZATION`
//! change who asks, not the mode, and may pass.

use super::statement::{
    Effect, after, begins, called, has_any, is_on, opened, outside, shown, title, vet_access,
};
use super::tokens::{Kind, Token};

/// What reads, or is about transactions.
const READ: &str = "\
    BEGIN CLOSE DEALLOCATE DECLARE FETCH LISTEN MOVE RELEASE SAVEPOINT SELECT SHOW START TABLE \
    UNLISTEN VALUES WITH";

/// What the server refuses, and what has been looked at when it was prepared.
const WRITE: &str = "DELETE EXECUTE INSERT MERGE UPDATE";

/// Functions that a read-only transaction does not stop.
const FUNCTIONS: [&str; 27] = [
    // Large objects, up to version 15.
    "lo_creat",
    "lo_create",
    "lo_export",
    "lo_from_bytea",
    "lo_import",
    "lo_open",
    "lo_put",
    "lo_truncate",
    "lo_truncate64",
    "lo_unlink",
    "lo_write",
    "lowrite",
    // Those that execute a text, in which `set_config()` may be.
    "connectby",
    "ts_rewrite",
    "ts_stat",
    "xpath_table",
    // The server and its other sessions.
    "pg_cancel_backend",
    "pg_drop_replication_slot",
    "pg_notify",
    "pg_promote",
    "pg_reload_conf",
    "pg_start_backup",
    "pg_stop_backup",
    "pg_terminate_backend",
    // The catalogue and indexes.
    "gin_clean_pending_list",
    "pg_import_system_collations",
    "pg_nextoid",
];

/// Beginnings of more of them.
const FAMILIES: [&str; 25] = [
    // Those that execute a text.
    "crosstab",
    "dblink",
    "query_to_xml",
    // The server, its files, its log and its replication.
    "pg_background_",
    "pg_backup_",
    "pg_copy_",
    "pg_create_",
    "pg_file_",
    "pg_log_",
    "pg_logical_",
    "pg_replication_",
    "pg_rotate_logfile",
    "pg_switch_",
    "pg_sync_",
    "pg_wal_replay_",
    "pg_xlog_replay_",
    // Statistics.
    "pg_clear_",
    "pg_restore_",
    "pg_stat_reset",
    "pg_stat_statements_reset",
    // Indexes and tables, from below.
    "brin_desummarize_",
    "brin_summarize_",
    "heap_force_",
    "pg_buffercache_evict",
    "pg_truncate_",
];

/// Looks at one statement.
pub(super) fn vet(tokens: &[Token]) -> Result<Effect, String> {
    calls(tokens)?;
    // A rule makes it a call of `set_config()`.
    let is_settings = |token: &Token| token.is_called("pg_settings");
    if tokens.iter().any(is_settings) && has_any(tokens, WRITE) {
        return Err("UPDATE of pg_settings".to_owned());
    }
    let mut tokens = opened(tokens);
    while let Some(inner) = inner(tokens) {
        tokens = opened(inner);
    }
    match tokens.first() {
        Some(first) => vet_plain(first, tokens),
        None => Ok(Effect::Reads),
    }
}

/// The statement that this one explains or prepares.
fn inner<'s, 'a>(tokens: &'s [Token<'a>]) -> Option<&'s [Token<'a>]> {
    let next = after(tokens, 1);
    if begins(tokens, "PREPARE") {
        let end = outside(next, |token| token.is_word("AS"))?;
        return Some(&next[end + 1..]);
    }
    if !begins(tokens, "EXPLAIN") {
        return None;
    }
    let is_option = |token: &Token| token.is_any("ANALYSE ANALYZE VERBOSE");
    let next = &next[next.iter().position(|token| !is_option(token))?..];
    let is_query = opened(next)
        .first()
        .is_some_and(|it| it.is_any("SELECT TABLE VALUES WITH"));
    if is_query || !next.first()?.is_mark(b'(') {
        return Some(next);
    }
    let end = next.iter().position(|token| token.is_mark(b')'))?;
    Some(&next[end + 1..])
}

fn vet_plain(first: &Token, tokens: &[Token]) -> Result<Effect, String> {
    vet_access(first, tokens)?;
    let next = after(tokens, 1);
    if first.is_word("SET") {
        return set(next).map(|()| Effect::Reads);
    }
    if first.is_word("COPY") {
        return copy(next);
    }
    if !may_be_sent(first, next) {
        return Err(title(tokens));
    }
    let is_part = first.is_word("WITH") && has_any(next, WRITE);
    Ok(if is_part || first.is_any(WRITE) {
        Effect::Writes
    } else {
        Effect::Reads
    })
}

fn may_be_sent(first: &Token, next: &[Token]) -> bool {
    if first.is_any("ABORT COMMIT END ROLLBACK") {
        // A prepared transaction is somebody else's.
        !begins(next, "PREPARED")
    } else if first.is_word("RESET") {
        !begins(next, "ALL") && !next.iter().any(is_mode)
    } else if first.is_word("DISCARD") {
        // `ALL` resets the mode.
        has_any(next, "PLANS SEQUENCES TEMP TEMPORARY")
    } else {
        first.is_any(READ) || first.is_any(WRITE)
    }
}

/// Whether a token names the mode: `default_transaction_read_only`, `transaction_read_only`.
fn is_mode(token: &Token) -> bool {
    token.is_name() && token.lower().contains("read_only")
}

/// Looks at what follows `SET`.
fn set(tokens: &[Token]) -> Result<(), String> {
    // Without one it is `SET ROLE x` and the like.
    let is_between = |token: &Token| token.is_mark(b'=') || token.is_word("TO");
    let Some(end) = tokens.iter().position(is_between) else {
        return Ok(());
    };
    match tokens[..end].iter().find(|token| is_mode(token)) {
        Some(mode) if !is_on(&tokens[end + 1..]) => Err(format!("SET {}", shown(&mode.lower()))),
        _ => Ok(()),
    }
}

/// Looks at what follows `COPY`.
fn copy(tokens: &[Token]) -> Result<Effect, String> {
    let end = outside(tokens, |token| token.is_any("FROM TO"));
    let is_stream = end.is_some_and(|end| {
        let target = tokens.get(end + 1);
        target.is_some_and(|it| it.is_any("STDIN STDOUT"))
    });
    let Some(end) = end.filter(|_| is_stream) else {
        return Err("COPY to or from a file or program".to_owned());
    };
    let is_read = tokens[end].is_word("TO") && !has_any(tokens, WRITE);
    Ok(if is_read {
        Effect::Reads
    } else {
        Effect::Writes
    })
}

/// Looks at the functions that are called.
fn calls(tokens: &[Token]) -> Result<(), String> {
    for (name, arguments) in called(tokens) {
        let is_refused = if name.is_called("set_config") {
            !is_harmless_setting(arguments)
        } else {
            is_refused_function(name)
        };
        if is_refused {
            return Err(format!("{}()", shown(&name.lower())));
        }
    }
    // A function of one argument is called like a column of it, too: `(0).lo_creat`.
    // The dot after `$1` is read as its own.
    let dotted = tokens
        .windows(2)
        .filter(|pair| pair[0].is_mark(b'.') || pair[0].text.ends_with(b"."));
    match dotted
        .map(|pair| &pair[1])
        .find(|name| name.is_name() && is_refused_function(name))
    {
        Some(name) => Err(format!("{}()", shown(&name.lower()))),
        None => Ok(()),
    }
}

fn is_refused_function(name: &Token) -> bool {
    let is_of = |family: &str| {
        let begin = name.text.get(..family.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(family.as_bytes()))
    };
    FUNCTIONS.iter().any(|it| name.is_called(it)) || FAMILIES.iter().any(|it| is_of(it))
}

/// Whether the arguments of `set_config()` begin with the plain name of a setting other than the
/// mode. Applications with row-level security have one for the tenant.
fn is_harmless_setting(arguments: &[Token]) -> bool {
    match arguments {
        [name, comma, ..] if name.kind == Kind::Text && comma.is_mark(b',') => {
            let is_escaped = name.text.iter().any(|byte| matches!(byte, b'\\' | b'\''));
            !is_escaped && name.text.is_ascii() && !name.lower().contains("read_only")
        }
        _ => false,
    }
}
