//! Which texts may go to a database whose session only reads.
//!
//! A confined run may reach its application's real database, in sessions that are put into the
//! database's own read-only mode as they open. The server then refuses INSERT, UPDATE, DELETE and
//! DDL by itself. What it does not refuse is looked for here, in the text of each statement before
//! it is sent: what would lift the mode (`SET SESSION TRANSACTION READ WRITE`, `set_config()`,
//! `PRAGMA query_only = 0`), and what does harm all the same (`INTO OUTFILE`, `COPY … TO PROGRAM`,
//! `ATTACH`, `CALL`). Statements are known by their first keyword, and what is not on a list of those
//! that only read, or that the server refuses, is refused.
//!
//! What a text means depends on settings that are not known here: whether a backslash escapes,
//! whether `/*! … */` is executed, which bytes make a character. Every reading is looked at, and one
//! that is refused is enough (`readings.rs`).
//!
//! What a text does not show stays unseen: what functions do that the application, an extension or a
//! plugin has added to the database; what calls of the protocol do that have no text
//! (`mysqli::change_user()`, PostgreSQL's large objects); and what is put into the text afterwards,
//! as emulated prepared statements do: the text that is sent has to be looked at, not its template.
//! Nor is there a reading for character sets that an administrator has added to a server.

mod comments;
mod mysql;
mod postgresql;
mod quotes;
mod readings;
mod several;
mod sqlite;
mod statement;
#[cfg(test)]
mod tests;
mod tokens;

use readings::Reading;
use statement::Effect;
use tokens::Token;

/// Whose SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// MySQL's and MariaDB's.
    MySql,
    /// PostgreSQL's.
    PostgreSql,
    /// SQLite's, for a database in a file, whose session has `query_only`.
    Sqlite,
    /// SQLite's, for a database in memory. It may be written to, and not leave the memory.
    SqliteInMemory,
}

/// Says what a text would do that a read-only session must not, in a few words for a person. `None`:
/// it may go to the server, which refuses writes by itself.
///
/// Takes time and memory in proportion to the text, and does not panic on any.
#[must_use]
pub fn refused(dialect: Dialect, text: &[u8]) -> Option<String> {
    // Clients that hand over a C string end the text at a NUL, others send it.
    let until_nul = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let cut = (until_nul.len() < text.len()).then_some(until_nul);
    [Some(text), cut]
        .into_iter()
        .flatten()
        .find_map(|text| vet(dialect, text).err())
}

/// Looks at a text in every reading.
fn vet(dialect: Dialect, text: &[u8]) -> Result<(), String> {
    let mut readings = readings::of(dialect, text)?.into_iter();
    readings.try_for_each(|reading| vet_as(reading, text))
}

/// Looks at each statement of a text in one reading.
fn vet_as(reading: Reading, text: &[u8]) -> Result<(), String> {
    let tokens = tokens::of(reading, text)?;
    let statements = tokens.split(|token| token.is_mark(b';'));
    let mut all = Vec::new();
    for statement in statements.filter(|tokens| !tokens.is_empty()) {
        all.push((statement, vet_statement(reading.dialect, statement)?));
    }
    match all.len() {
        0 | 1 => Ok(()),
        _ => several::vet(reading.dialect, text, &all),
    }
}

fn vet_statement(dialect: Dialect, statement: &[Token]) -> Result<Effect, String> {
    match dialect {
        Dialect::MySql => mysql::vet(statement),
        Dialect::PostgreSql => postgresql::vet(statement),
        Dialect::Sqlite => sqlite::vet(statement),
        Dialect::SqliteInMemory => sqlite::vet_in_memory(statement),
    }
}
