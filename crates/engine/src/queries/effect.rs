//! What a statement does, as far as its text tells: to which table, or to the transaction it is in. And
//! what is left of it without its values.

use crate::sql::{Dialect, Kind, Lexer, Reading, Token, is_one_of};

/// What a statement does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing that is kept track of.
    None,
    /// Adds rows to a table.
    Insert(String),
    /// Changes rows of one.
    Update(String),
    /// Removes some.
    Delete(String),
    /// Begins a transaction.
    Begin,
    /// Commits it.
    Commit,
    /// Rolls it back.
    Rollback,
    /// Sets a savepoint.
    Savepoint(String),
    /// Rolls back to one.
    RollbackTo(String),
    /// Has MySQL commit each statement, or not.
    Autocommit(bool),
    /// Frees what was prepared: the client's affair, and not the application's.
    Deallocate,
}

/// Words that may stand between a verb and the table.
const BEFORE_TABLE: &str = "ABORT CONCURRENT DELAYED FAIL FROM HIGH_PRIORITY IGNORE INTO LOW_PRIORITY ONLY OR \
                            QUICK REPLACE ROLLBACK TABLE";

/// Words that may stand between a verb and a savepoint.
const BEFORE_POINT: &str = "SAVEPOINT TO TRANSACTION WORK";

/// What a text is: what it does, and its shape, which is the same for all values. `None` where it has no
/// values, or where they cannot be told from the rest.
pub(super) fn of(dialect: Dialect, reading: Reading, text: &[u8]) -> (Effect, Option<Vec<u8>>) {
    let mut pieces = Vec::new();
    let mut is_whole = true;
    for piece in Lexer::of(dialect, reading, text) {
        match piece {
            Some(piece) => pieces.push(piece),
            None => is_whole = false,
        }
    }
    let shape = is_whole.then(|| shape(text, &pieces)).flatten();
    (effect(&pieces), shape)
}

fn shape(text: &[u8], pieces: &[Token<'_>]) -> Option<Vec<u8>> {
    let mut shape = Vec::with_capacity(text.len());
    let mut done = 0;
    for piece in pieces {
        // A piece is a part of the text.
        let start = piece.text.as_ptr() as usize - text.as_ptr() as usize;
        let end = start + piece.text.len();
        let is_number = piece.kind == Kind::Word && piece.text[0].is_ascii_digit();
        let is_quoted = text.get(end) == Some(&b'\'');
        let (from, to) = match piece.kind {
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

fn effect(pieces: &[Token<'_>]) -> Effect {
    let Some(first) = pieces.iter().position(|piece| piece.kind == Kind::Word) else {
        return Effect::None;
    };
    let (verb, rest) = (word(&pieces[first]), &pieces[first + 1..]);
    let has = |wanted: &str| rest.iter().any(|piece| word(piece) == wanted);
    match verb.as_str() {
        "INSERT" | "REPLACE" => named(rest, BEFORE_TABLE, Effect::Insert),
        "UPDATE" | "MERGE" => named(rest, BEFORE_TABLE, Effect::Update),
        "DELETE" => named(rest, BEFORE_TABLE, Effect::Delete),
        "COPY" if has("FROM") => named(rest, BEFORE_TABLE, Effect::Insert),
        "LOAD" => match rest.iter().position(|piece| word(piece) == "INTO") {
            Some(into) => named(&rest[into..], BEFORE_TABLE, Effect::Insert),
            None => Effect::None,
        },
        "WITH" => match main_verb(rest) {
            Some(at) => effect(&rest[at..]),
            None => Effect::None,
        },
        "BEGIN" => Effect::Begin,
        "START" if has("TRANSACTION") => Effect::Begin,
        // The next transaction begins at once: it goes on as this one.
        "COMMIT" | "END" if has("CHAIN") && !has("NO") => Effect::Begin,
        "COMMIT" | "END" => Effect::Commit,
        "ROLLBACK" | "ABORT" if has("TO") => named(rest, BEFORE_POINT, Effect::RollbackTo),
        "ROLLBACK" | "ABORT" => Effect::Rollback,
        "SAVEPOINT" => named(rest, BEFORE_POINT, Effect::Savepoint),
        "SET"
            if rest
                .first()
                .is_some_and(|piece| word(piece) == "AUTOCOMMIT") =>
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

/// What stands behind the common table expressions.
fn main_verb(pieces: &[Token<'_>]) -> Option<usize> {
    let mut depth = 0_usize;
    pieces.iter().position(|piece| {
        if piece.is_mark(b'(') {
            depth += 1;
        } else if piece.is_mark(b')') {
            depth = depth.saturating_sub(1);
        }
        let is_verb = || {
            matches!(
                word(piece).as_str(),
                "INSERT" | "UPDATE" | "DELETE" | "SELECT"
            )
        };
        depth == 0 && is_verb()
    })
}

/// The name that comes after some words, with the names that it is in.
fn named(pieces: &[Token<'_>], words: &str, effect: fn(String) -> Effect) -> Effect {
    let is_between = |piece: &&Token<'_>| is_one_of(&word(piece), words);
    let mut rest = &pieces[pieces.iter().take_while(is_between).count()..];
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

/// A word in capitals; nothing for what is none.
fn word(piece: &Token<'_>) -> String {
    match piece.kind {
        Kind::Word => String::from_utf8_lossy(piece.text).to_ascii_uppercase(),
        _ => String::new(),
    }
}
