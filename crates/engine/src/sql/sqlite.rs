//! SQLite, for files in sessions with `PRAGMA query_only = 1`.
//!
//! The engine refuses what changes the file then, whatever the statement. It does not refuse to lift
//! the mode, to check a log in (`wal_checkpoint`), or to attach another file.

use super::statement::{Effect, after, begins, called, has_any, is_on, shown, title};
use super::tokens::Token;

/// What reads, or is about transactions.
const READ: &str = "BEGIN COMMIT END RELEASE ROLLBACK SAVEPOINT SELECT VALUES WITH";

/// What the engine refuses.
const WRITE: &str = "DELETE INSERT REPLACE UPDATE";

/// Functions that load code.
const FUNCTIONS: [&str; 2] = ["fts3_tokenizer", "load_extension"];

/// Pragmas that act without a value.
const ACTING: &str = "incremental_vacuum optimize wal_checkpoint";

/// Pragmas that may have a value: they look at what it names, or set something of the connection.
/// `journal_mode` changes two bytes of the file's header where it changes to or from WAL, but it is
/// what applications set as they connect.
const WITH_VALUE: &str = "\
    analysis_limit automatic_index busy_timeout cache_size cache_spill case_sensitive_like \
    cell_size_check checkpoint_fullfsync collation_list compile_options database_list \
    defer_foreign_keys encoding foreign_key_check foreign_key_list foreign_keys full_column_names \
    fullfsync function_list index_info index_list index_xinfo integrity_check journal_mode \
    journal_size_limit locking_mode mmap_size quick_check read_uncommitted recursive_triggers \
    reverse_unordered_selects short_column_names synchronous table_info table_list table_xinfo \
    temp_store threads wal_autocheckpoint";

/// Looks at one statement.
pub(super) fn vet(tokens: &[Token]) -> Result<Effect, String> {
    let is_refused = |name: &&Token| FUNCTIONS.iter().any(|it| name.is_called(it));
    if let Some(name) = called(tokens).map(|(name, _)| name).find(is_refused) {
        return Err(format!("{}()", name.lower()));
    }
    let mut tokens = tokens;
    // A pragma acts when it is compiled, explained or not.
    while begins(tokens, "EXPLAIN") {
        let is_plan = begins(tokens, "EXPLAIN QUERY PLAN");
        tokens = after(tokens, if is_plan { 3 } else { 1 });
    }
    let Some(first) = tokens.first() else {
        return Ok(Effect::Reads);
    };
    if first.is_word("PRAGMA") {
        return pragma(after(tokens, 1)).map(|()| Effect::Reads);
    }
    let is_part = first.is_word("WITH") && has_any(tokens, WRITE);
    if is_part || first.is_any(WRITE) {
        return Ok(Effect::Writes);
    }
    if first.is_any(READ) {
        return Ok(Effect::Reads);
    }
    Err(title(tokens))
}

/// Looks at one statement to a database in memory, which may do anything but reach for files.
pub(super) fn vet_in_memory(tokens: &[Token]) -> Result<Effect, String> {
    let is_refused = match tokens.first() {
        Some(first) if first.is_word("VACUUM") => has_any(tokens, "INTO"),
        Some(first) => first.is_any("ATTACH DETACH"),
        None => false,
    };
    if is_refused {
        return Err(title(tokens));
    }
    Ok(Effect::Reads)
}

/// Looks at what follows `PRAGMA`: `[schema.]name`, `… = value` or `… (value)`.
fn pragma(tokens: &[Token]) -> Result<(), String> {
    let (name, value) = match tokens {
        [_, dot, name, value @ ..] if dot.is_mark(b'.') => (name, value),
        [name, value @ ..] => (name, value),
        [] => return Err("PRAGMA".to_owned()),
    };
    let name = name.lower();
    let value = match value {
        [] => None,
        [equals, value @ ..] if equals.is_mark(b'=') => Some(value),
        [open, value @ .., close] if open.is_mark(b'(') && close.is_mark(b')') => Some(value),
        _ => return Err(format!("PRAGMA {}", shown(&name))),
    };
    let may_be_sent = match value {
        None => !ACTING.split(' ').any(|it| it == name),
        Some(value) if name == "query_only" => is_on(value),
        Some(_) => WITH_VALUE.split(' ').any(|it| it == name),
    };
    if may_be_sent {
        return Ok(());
    }
    Err(format!("PRAGMA {}", shown(&name)))
}
