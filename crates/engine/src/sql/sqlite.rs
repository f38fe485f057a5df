//! SQLite, which asks for permission for each action of a compiled statement
//! (`sqlite3_set_authorizer()`).
//!
//! A database in a file has `PRAGMA query_only`: the engine refuses changes to the file, whatever
//! the statement. It does not refuse to lift the mode, to checkpoint a log, to attach another file
//! or to load code. A database in memory may do anything except access files.

/// An action that SQLite asks about, as far as it is checked (`sqlite3.h`, "Authorizer Action
/// Codes").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<'a> {
    /// A pragma, with its value.
    Pragma(&'a str, Option<&'a str>),
    /// Attaches a file, or a database without a name.
    Attach(&'a str),
    /// Calls a function.
    Function(&'a str),
}

/// Functions that load code.
const FUNCTIONS: [&str; 2] = ["fts3_tokenizer", "load_extension"];

/// Pragmas that act without a value.
const ACTING: &str = "incremental_vacuum optimize wal_checkpoint";

/// Pragmas that may have a value: they inspect what it names, or set something for the connection.
/// `journal_mode` changes two bytes of the file's header when it changes to or from WAL, but
/// applications set it when they connect.
const WITH_VALUE: &str = "\
    analysis_limit auto_vacuum automatic_index busy_timeout cache_size cache_spill \
    case_sensitive_like cell_size_check checkpoint_fullfsync collation_list compile_options \
    database_list defer_foreign_keys encoding foreign_key_check foreign_key_list foreign_keys \
    full_column_names fullfsync function_list index_info index_list index_xinfo integrity_check \
    journal_mode journal_size_limit legacy_alter_table locking_mode mmap_size page_size \
    quick_check read_uncommitted recursive_triggers reverse_unordered_selects secure_delete \
    short_column_names synchronous table_info table_list table_xinfo temp_store threads \
    trusted_schema wal_autocheckpoint";

/// Checks an action in a read-only session.
///
/// # Errors
/// The forbidden action, in a few words for a person.
pub fn authorize(is_in_memory: bool, action: Action) -> Result<(), String> {
    let is_one_of =
        |name: &str, names: &str| names.split(' ').any(|it| name.eq_ignore_ascii_case(it));
    match action {
        Action::Attach("" | ":memory:") => Ok(()),
        Action::Attach(_) => Err("ATTACH".to_owned()),
        Action::Function(name) if FUNCTIONS.iter().any(|it| name.eq_ignore_ascii_case(it)) => {
            Err(format!("{}()", name.to_ascii_lowercase()))
        }
        Action::Pragma(name, value) if !is_in_memory => {
            let is_fine = match value {
                None => !is_one_of(name, ACTING),
                Some(value) if name.eq_ignore_ascii_case("query_only") => {
                    is_one_of(value, "1 on true yes")
                }
                Some(_) => is_one_of(name, WITH_VALUE),
            };
            match is_fine {
                true => Ok(()),
                false => Err(format!("PRAGMA {}", name.to_ascii_lowercase())),
            }
        }
        Action::Function(_) | Action::Pragma(..) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reaches_beyond_the_session_is_refused() {
        for (action, what) in [
            (Action::Pragma("query_only", Some("0")), "PRAGMA query_only"),
            (
                Action::Pragma("QUERY_ONLY", Some("off")),
                "PRAGMA query_only",
            ),
            (
                Action::Pragma("writable_schema", Some("1")),
                "PRAGMA writable_schema",
            ),
            (
                Action::Pragma("wal_checkpoint", None),
                "PRAGMA wal_checkpoint",
            ),
            (Action::Attach("/tmp/x"), "ATTACH"),
            (Action::Function("LOAD_EXTENSION"), "load_extension()"),
        ] {
            assert_eq!(authorize(false, action), Err(what.to_owned()));
        }
        for action in [
            Action::Pragma("query_only", Some("1")),
            Action::Pragma("query_only", None),
            Action::Pragma("table_info", Some("users")),
            Action::Pragma("journal_mode", Some("wal")),
            Action::Attach(":memory:"),
            Action::Attach(""),
            Action::Function("count"),
        ] {
            assert_eq!(authorize(false, action), Ok(()));
        }
    }

    #[test]
    fn in_memory_only_files_are_refused() {
        assert_eq!(
            authorize(true, Action::Pragma("user_version", Some("7"))),
            Ok(())
        );
        assert!(authorize(true, Action::Attach("/tmp/x")).is_err());
        assert!(authorize(true, Action::Function("load_extension")).is_err());
    }
}
