//! What a statement does, judging by its text: to which table, or to its transaction. Also derives
//! the statement's shape, its text without values.

use crate::sql::{Dialect, Kind, Lexer, Reading, Token, is_one_of};

/// The effect of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    /// No effect that is tracked.
    None,
    /// Adds rows to a table.
    Insert(String),
    /// Changes rows of a table.
    Update(String),
    /// Removes rows of a table.
    Delete(String),
    /// Begins a transaction.
    Begin,
    /// Commits the transaction.
    Commit,
    /// Rolls the transaction back.
    Rollback,
    /// Sets a savepoint.
    Savepoint(String),
    /// Rolls back to a savepoint.
    RollbackTo(String),
    /// Switches MySQL's `autocommit` on or off.
    Autocommit(bool),
    /// Frees a prepared statement. The client sends this, not the application.
    Deallocate,
}

/// Words that may stand between a verb and the table.
const BEFORE_TABLE: &str = "ABORT CONCURRENT DELAYED FAIL FROM HIGH_PRIORITY IGNORE INTO LOW_PRIORITY ONLY OR \
                            QUICK REPLACE ROLLBACK TABLE";

/// Words that may stand between a verb and a savepoint.
const BEFORE_POINT: &str = "SAVEPOINT TO TRANSACTION WORK";

/// Returns the effect of a text and its shape, which is the same for all values. The shape is
/// `None` if the text has no values, or if they cannot be told apart from the rest.
pub(super) fn of(dialect: Dialect, reading: Reading, text: &[u8]) -> (Effect, Option<Vec<u8>>) {
    let mut tokens = Vec::new();
    let mut is_whole = true;
    for token in Lexer::of(dialect, reading, text) {
        match token {
            Some(token) => tokens.push(token),
            None => is_whole = false,
        }
    }
    let shape = is_whole.then(|| shape(text, &tokens)).flatten();
    (effect(&tokens), shape)
}

fn shape(text: &[u8], tokens: &[Token<'_>]) -> Option<Vec<u8>> {
    let mut shape = Vec::with_capacity(text.len());
    let mut done = 0;
    for token in tokens {
        // A token is a slice of the text.
        let start = token.text.as_ptr() as usize - text.as_ptr() as usize;
        let end = start + token.text.len();
        let is_number = token.kind == Kind::Word && token.text[0].is_ascii_digit();
        let is_quoted = text.get(end) == Some(&b'\'');
        let (from, to) = match token.kind {
            Kind::Text if is_quoted => (start - 1, end + 1),
            Kind::Text => (start, end),
            _ if is_number => (start, end),
            _ => continue,
        };
        shape.extend_from_slice(&text[done..from]);
        shape.push(b'?');
        done = to;
    }
    if done == 0 {
        return None;
    }
    shape.extend_from_slice(&text[done..]);
    Some(shape)
}

fn effect(tokens: &[Token<'_>]) -> Effect {
    let Some(first) = tokens.iter().position(|token| token.kind == Kind::Word) else {
        return Effect::None;
    };
    let (verb, rest) = (word(&tokens[first]), &tokens[first + 1..]);
    let has = |wanted: &str| rest.iter().any(|token| word(token) == wanted);
    match verb.as_str() {
        "INSERT" | "REPLACE" => named(rest, BEFORE_TABLE, Effect::Insert),
        "UPDATE" | "MERGE" => named(rest, BEFORE_TABLE, Effect::Update),
        "DELETE" => named(rest, BEFORE_TABLE, Effect::Delete),
        "COPY" if has("FROM") => named(rest, BEFORE_TABLE, Effect::Insert),
        "LOAD" => match rest.iter().position(|token| word(token) == "INTO") {
            Some(into) => named(&rest[into..], BEFORE_TABLE, Effect::Insert),
            None => Effect::None,
        },
        "WITH" => match main_verb(rest) {
            Some(at) => effect(&rest[at..]),
            None => Effect::None,
        },
        "BEGIN" => Effect::Begin,
        "START" if has("TRANSACTION") => Effect::Begin,
        // The next transaction begins at once: track it as this one.
        "COMMIT" | "END" if has("CHAIN") && !has("NO") => Effect::Begin,
        "COMMIT" | "END" => Effect::Commit,
        "ROLLBACK" | "ABORT" if has("TO") => named(rest, BEFORE_POINT, Effect::RollbackTo),
        "ROLLBACK" | "ABORT" => Effect::Rollback,
        "SAVEPOINT" => named(rest, BEFORE_POINT, Effect::Savepoint),
        "SET"
            if rest
                .first()
                .is_some_and(|token| word(token) == "AUTOCOMMIT") =>
        {
            match rest.last().map(word).as_deref() {
                Some("0" | "OFF" | "FALSE") => Effect::Autocommit(false),
                _ => Effect::Autocommit(true),
            }
        }
        "DEALLOCATE" => Effect::Deallocate,
        _ => Effect::None,
    }
}

/// Finds the verb after the common table expressions.
fn main_verb(tokens: &[Token<'_>]) -> Option<usize> {
    let mut depth = 0_usize;
    tokens.iter().position(|token| {
        if token.is_mark(b'(') {
            depth += 1;
        } else if token.is_mark(b')') {
            depth = depth.saturating_sub(1);
        }
        let is_verb = || {
            matches!(
                word(token).as_str(),
                "INSERT" | "UPDATE" | "DELETE" | "SELECT"
            )
        };
        depth == 0 && is_verb()
    })
}

/// Reads the name that follows some words, with its qualifiers.
fn named(tokens: &[Token<'_>], words: &str, effect: fn(String) -> Effect) -> Effect {
    let is_between = |token: &&Token<'_>| is_one_of(&word(token), words);
    let mut rest = &tokens[tokens.iter().take_while(is_between).count()..];
    let mut names = Vec::new();
    while let [name, after @ ..] = rest
        && matches!(name.kind, Kind::Word | Kind::Name)
    {
        names.push(String::from_utf8_lossy(name.text));
        rest = match after {
            [dot, after @ ..] if dot.is_mark(b'.') => after,
            _ => &[],
        };
    }
    match names.is_empty() {
        true => Effect::None,
        false => effect(names.join(".")),
    }
}

/// A word in upper case; empty if the token is not a word.
fn word(token: &Token<'_>) -> String {
    match token.kind {
        Kind::Word => String::from_utf8_lossy(token.text).to_ascii_uppercase(),
        _ => String::new(),
    }
}
