//! Classifies a text for a database session of a confined run, without parsing it as the server
//! does.
//!
//! The server enforces the mode: a read-only session is in the database's own read-only mode, one
//! that is rolled back is in a transaction that is never committed, and each accepts one statement
//! at a time. Statements that neither of these stops are recognised here by their first words and
//! by names: `FLUSH`, `CALL`, `INTO OUTFILE`, `dblink()`. Only if a text contains one of the names
//! is it tokenized as the server would, because the name may be in a string.
//!
//! Effects that a text does not show stay undetected: those of functions that the application, an
//! extension or a plugin has added to the database.

mod lexer;
mod mysql;
mod postgresql;
pub mod sqlite;
#[cfg(test)]
mod tests;
mod words;

use serde::{Deserialize, Serialize};

pub(crate) use lexer::{Kind, Lexer, Token};
pub(crate) use words::is_one_of;

/// An SQL dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The dialect of MySQL and MariaDB.
    MySql,
    /// The dialect of PostgreSQL.
    PostgreSql,
}

/// What a session may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Mode {
    /// It only reads.
    ReadOnly,
    /// It may write, and all of it is rolled back.
    Rollback,
}

/// How the server reads a text, as far as it reports this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// A backslash in a string is a plain character (`NO_BACKSLASH_ESCAPES`,
    /// `standard_conforming_strings`).
    pub plain_backslash: bool,
    /// Each byte below 128 is a character of its own. Not so in Shift JIS, Big5 and GBK.
    pub whole_ascii: bool,
}

/// The kind of a statement, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statement {
    /// A statement to send as it is.
    Plain,
    /// A statement to send as it is that writes, judging by its first words.
    Writes,
    /// It sets something.
    Sets,
    /// It sets a character set in which ASCII bytes may be part of other characters
    /// ([`Reading::whole_ascii`]).
    SetsCharset,
    /// It begins a transaction.
    Begin,
    /// It commits a transaction; with `AND CHAIN` the next one begins at once.
    Commit {
        /// Whether it has `AND CHAIN`.
        chain: bool,
    },
    /// It rolls back a whole transaction.
    Rollback {
        /// Whether it has `AND CHAIN`.
        chain: bool,
    },
    /// It turns MySQL's autocommit on or off.
    Autocommit(bool),
    /// It sets a savepoint in MySQL, which has no effect outside a transaction.
    Savepoint,
}

/// Classifies a text.
///
/// Takes time and memory in proportion to the text, and does not panic on any text.
///
/// # Errors
/// The forbidden action, in a few words for a person.
pub fn statement(
    dialect: Dialect,
    mode: Mode,
    reading: Reading,
    text: &[u8],
) -> Result<Statement, String> {
    match dialect {
        Dialect::MySql => mysql::statement(mode, reading, text),
        Dialect::PostgreSql => postgresql::statement(mode, reading, text),
    }
}
