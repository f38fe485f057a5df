//! MySQL and MariaDB.
//!
//! In a session that only reads, each statement comes after `SET SESSION TRANSACTION READ ONLY` or is in
//! a transaction that the server calls read-only. The server refuses DML and DDL then, of temporary
//! tables, too, functions that write, `FOR UPDATE`, and what is prepared or executed from a text. It does
//! not refuse `CALL`, `FLUSH`, `KILL`, `LOCK TABLES … READ`, `ANALYZE TABLE`, `XA`, or what reaches beyond
//! the session.
//!
//! One that is rolled back is in an XA transaction, in which the server refuses whatever would commit:
//! `COMMIT`, DDL, `LOCK TABLES`, also within procedures.

use super::cut::{Kind, pieces};
use super::words::{Beginning, Versioned, anywhere, ends_with, has_word, is_one_of};
use super::{Dialect, Mode, Reading, Statement};

/// What reads, or is about transactions. `LOCK` is not here: it stops the application's writers.
const READ: &str = "\
    BEGIN CHECKSUM COMMIT DESC DESCRIBE DO EXPLAIN GET HELP RELEASE ROLLBACK SAVEPOINT SELECT SET SHOW \
    START TABLE UNLOCK USE VALUES WITH";

/// What the server refuses in a session that only reads.
const WRITE: &str = "DELETE INSERT REPLACE UPDATE";

/// What can be rolled back beside these.
const UNDONE: &str = "CALL LOAD";

/// What commits by itself.
const COMMITS: &str = "\
    ALTER ANALYZE CACHE CHECK CREATE DROP FLUSH GRANT INSTALL LOCK OPTIMIZE RENAME REPAIR RESET REVOKE \
    START TRUNCATE UNINSTALL XA";

/// What MariaDB's `ANALYZE` is followed by where it is about a table. Otherwise it is about a statement.
const OF_TABLES: &str = "LOCAL NO_WRITE_TO_BINLOG TABLE TABLES";

/// Words of `SET` that reach beyond the session, and what writes the files that a debug build traces to.
const REACHING: [&str; 5] = ["GLOBAL", "PERSIST", "PERSIST_ONLY", "DEBUG", "DEBUG_DBUG"];

/// Looks at one statement.
pub(super) fn statement(mode: Mode, reading: Reading, text: &[u8]) -> Result<Statement, String> {
    writes_no_file(reading, text)?;
    if hides_its_beginning(text) {
        return Err("a statement behind comments for versions".to_owned());
    }
    let executed = Beginning::of(Dialect::MySql, Versioned::Executed, text);
    let statement = begun(mode, &executed, text)?;
    // The server executes a comment for its version, or it does not.
    let skipped = Beginning::of(Dialect::MySql, Versioned::Skipped, text);
    if begun(mode, &skipped, text)? != statement && !skipped.is_empty() {
        return Err(executed.title());
    }
    Ok(statement)
}

/// Whether there is more before the first word than one comment that the server executes or not: of several
/// it may execute some, and they may be in each other.
fn hides_its_beginning(text: &[u8]) -> bool {
    let first = text
        .iter()
        .find(|byte| **byte > b' ' && !matches!(byte, b'(' | b';'));
    let has = |mark: &[u8]| text.windows(mark.len()).filter(|at| *at == mark).count();
    matches!(first, Some(b'/' | b'-' | b'#')) && has(b"/*!") + has(b"/*M!") > 0 && has(b"/*") > 1
}

fn begun(mode: Mode, first: &Beginning, text: &[u8]) -> Result<Statement, String> {
    if first.is_empty() {
        return Ok(Statement::Plain);
    }
    let chain = first.has("CHAIN") && !first.has("NO");
    match first.word(0) {
        "SET" => return set(mode, first, text),
        // Anything else begins a block: `BEGIN NOT ATOMIC`, or any statement in Oracle's mode.
        "BEGIN" if first.is_all && is_one_of_or_none(first.word(1), "WORK") => {
            return Ok(Statement::Begin);
        }
        "BEGIN" => {}
        "START" if first.word(1) == "TRANSACTION" => {
            return match has_word(text, "WRITE") && mode == Mode::ReadOnly {
                true => Err("START TRANSACTION READ WRITE".to_owned()),
                false => Ok(Statement::Begin),
            };
        }
        "START" => {}
        "COMMIT" => return Ok(Statement::Commit { chain }),
        "ROLLBACK" if !first.has("TO") => return Ok(Statement::Rollback { chain }),
        "ANALYZE" if !is_one_of(first.word(1), OF_TABLES) => return Ok(with_write(text)),
        "WITH" => return Ok(with_write(text)),
        "CREATE" | "DROP" if mode == Mode::Rollback && is_temporary(first) => {
            return Ok(Statement::Plain);
        }
        _ if first.is(READ) => return Ok(Statement::Plain),
        _ if first.is(WRITE) || mode == Mode::Rollback && first.is(UNDONE) => {
            return Ok(Statement::Writes);
        }
        _ => {}
    }
    Err(match mode {
        Mode::Rollback if first.is(COMMITS) => {
            format!("{}, which commits by itself,", first.title())
        }
        _ => first.title(),
    })
}

/// What a statement is that may have another one in it.
fn with_write(text: &[u8]) -> Statement {
    match anywhere(text).any(|run| is_any(run, &["DELETE", "INSERT", "REPLACE", "UPDATE"])) {
        true => Statement::Writes,
        false => Statement::Plain,
    }
}

fn is_one_of_or_none(word: &str, words: &str) -> bool {
    word.is_empty() || is_one_of(word, words)
}

/// Whether what is made or dropped is a temporary table.
fn is_temporary(first: &Beginning) -> bool {
    let is_replaced = first.word(1) == "OR";
    first.word(if is_replaced { 3 } else { 1 }) == "TEMPORARY"
}

/// Looks at `SET`. What lifts the mode has no effect, as it is set again, but is meant to have one.
fn set(mode: Mode, first: &Beginning, text: &[u8]) -> Result<Statement, String> {
    let name = |found: &str| format!("SET {}", found.to_ascii_lowercase());
    if let Some(reaching) = REACHING.into_iter().find(|word| has_word(text, word)) {
        return Err(name(reaching));
    }
    // They change accounts and the server.
    if is_one_of(first.word(1), "DEFAULT PASSWORD RESOURCE") {
        return Err(first.title());
    }
    if first.word(1) == "STATEMENT" {
        return set_statement(text).map(|()| with_write(text));
    }
    if mode == Mode::Rollback {
        return Ok(autocommit(text).map_or(Statement::Sets, Statement::Autocommit));
    }
    if first.has("TRANSACTION") && has_word(text, "WRITE") {
        return Err("SET TRANSACTION READ WRITE".to_owned());
    }
    let set = anywhere(text)
        .skip_while(|run| !ends_with(run, "SET"))
        .skip(1)
        .find(|run| !is_any(run, &["SESSION", "LOCAL"]))
        .unwrap_or_default();
    let is_own = text.contains(&b'@') && !text.windows(2).any(|at| at == b"@@");
    let is_mode = is_any(set, &MODES) && !is_own;
    let last = anywhere(text).last().unwrap_or_default();
    match is_mode && !is_any(last, &["1", "ON", "TRUE"]) {
        true => Err(name(&String::from_utf8_lossy(set))),
        false => Ok(Statement::Sets),
    }
}

/// The mode's names.
const MODES: [&str; 2] = ["TX_READ_ONLY", "TRANSACTION_READ_ONLY"];

/// Looks at MariaDB's `SET STATEMENT … FOR …`: what it sets holds for the statement after `FOR`.
fn set_statement(text: &[u8]) -> Result<(), String> {
    let runs: Vec<&[u8]> = anywhere(text).collect();
    let mut statements = runs
        .windows(2)
        .filter(|pair| ends_with(pair[0], "FOR"))
        .map(|pair| String::from_utf8_lossy(pair[1]).to_ascii_uppercase());
    let is_sent = |word: &String| is_one_of(word, READ) && word != "SET" || is_one_of(word, WRITE);
    // Names are found by a collation for which accents make no difference.
    // A comment may hide what is after `FOR`.
    let has = |mark: &[u8]| text.windows(mark.len()).any(|at| at == mark);
    let is_hidden = has(b"/*") || has(b"--") || has(b"#");
    let sets_mode = is_hidden || runs.iter().any(|run| is_any(run, &MODES)) || !text.is_ascii();
    match statements.all(|word| is_sent(&word)) && !sets_mode {
        true => Ok(()),
        false => Err("SET STATEMENT".to_owned()),
    }
}

/// Whether a run is one of these words.
fn is_any(run: &[u8], words: &[&str]) -> bool {
    words
        .iter()
        .any(|word| run.eq_ignore_ascii_case(word.as_bytes()))
}

/// What a `SET` of nothing but `autocommit` sets it to.
fn autocommit(text: &[u8]) -> Option<bool> {
    let mut runs = anywhere(text)
        .skip(1)
        .skip_while(|run| is_any(run, &["SESSION", "LOCAL"]));
    let is_it = is_any(runs.next()?, &["AUTOCOMMIT"]);
    let value = runs.next()?;
    (is_it && runs.next().is_none()).then_some(!is_any(value, &["0", "OFF", "FALSE"]))
}

/// Refuses `INTO OUTFILE` and `INTO DUMPFILE`, which write files of the server's.
fn writes_no_file(reading: Reading, text: &[u8]) -> Result<(), String> {
    let names = ["OUTFILE", "DUMPFILE"];
    if !anywhere(text).any(|run| names.iter().any(|name| ends_with(run, name))) {
        return Ok(());
    }
    let is_into = match pieces(Dialect::MySql, reading, text) {
        None => true,
        Some(pieces) => pieces.windows(2).any(|pair| {
            pair[0].is_word("INTO")
                && pair[1].kind == Kind::Word
                && names.iter().any(|name| pair[1].is_word(name))
        }),
    };
    match is_into {
        true => Err("INTO OUTFILE".to_owned()),
        false => Ok(()),
    }
}
