//! What a text is to a database session of a confined run, by what can be told without reading it as
//! the server does.
//!
//! The server decides: a session that only reads is in the database's own read-only mode, one that is
//! rolled back is in a transaction that is never committed, and each takes one statement at a time.
//! What neither of these stops is known here by its first words, and by names: `FLUSH`, `CALL`,
//! `INTO OUTFILE`, `dblink()`. Where one of the names is in a text, and only there, the text is cut as
//! the server cuts it, as the name may be in a string.
//!
//! What a text does not show stays unseen: what functions do that the application, an extension or a
//! plugin has added to the database.

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

/// Whose SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// MySQL's and MariaDB's.
    MySql,
    /// PostgreSQL's.
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

/// How the server reads a text, as far as it tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// A backslash in a string is nothing but that (`NO_BACKSLASH_ESCAPES`,
    /// `standard_conforming_strings`).
    pub plain_backslash: bool,
    /// Each byte below 128 is a character of its own. Not so in Shift JIS, Big5 and GBK.
    pub whole_ascii: bool,
}

/// What a statement is, as far as that makes a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statement {
    /// One that is sent as it is.
    Plain,
    /// One that is sent as it is, and writes, as far as its first words tell.
    Writes,
    /// It sets something.
    Sets,
    /// It sets a character set in which ASCII may be a part of other characters ([`Reading::whole_ascii`]).
    SetsCharset,
    /// It begins a transaction.
    Begin,
    /// It commits one; with `AND CHAIN` the next begins at once.
    Commit {
        /// Whether it is with that.
        chain: bool,
    },
    /// It rolls all of one back.
    Rollback {
        /// Whether it is with `AND CHAIN`.
        chain: bool,
    },
    /// It turns MySQL's autocommit on or off.
    Autocommit(bool),
    /// It sets a savepoint in MySQL, which is nothing outside of a transaction.
    Savepoint,
}

/// Says what a text is.
///
/// Takes time and memory in proportion to the text, and does not panic on any.
///
/// # Errors
/// In a few words for a person, what it would do that the session must not.
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
