//! What statements of all dialects are looked at for.

use super::tokens::{Kind, Token};

/// What a statement does that may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It reads, or is about transactions.
    Reads,
    /// It sets something that may decide how the text after it is read.
    Sets,
    /// It would write, which the server refuses, or does something that is not known.
    Writes,
}

/// Characters of a name that are shown.
const SHOWN: usize = 32;

/// Whether the tokens begin with these words, between which there are spaces.
pub(super) fn begins(tokens: &[Token], words: &str) -> bool {
    let mut tokens = tokens.iter();
    words
        .split(' ')
        .all(|word| tokens.next().is_some_and(|token| token.is_word(word)))
}

/// Whether these words follow each other anywhere.
pub(super) fn has(tokens: &[Token], words: &str) -> bool {
    (0..tokens.len()).any(|at| begins(&tokens[at..], words))
}

/// Whether any of these words is anywhere.
pub(super) fn has_any(tokens: &[Token], words: &str) -> bool {
    tokens.iter().any(|token| token.is_any(words))
}

/// The tokens after the parentheses that a query may begin with.
pub(super) fn opened<'s, 'a>(tokens: &'s [Token<'a>]) -> &'s [Token<'a>] {
    let closed = tokens.iter().position(|token| !token.is_mark(b'('));
    &tokens[closed.unwrap_or(tokens.len())..]
}

/// The tokens after the first `count`.
pub(super) fn after<'s, 'a>(tokens: &'s [Token<'a>], count: usize) -> &'s [Token<'a>] {
    tokens.get(count..).unwrap_or_default()
}

/// The functions that are called, each with its arguments and what follows.
pub(super) fn called<'s, 'a>(
    tokens: &'s [Token<'a>],
) -> impl Iterator<Item = (&'s Token<'a>, &'s [Token<'a>])> {
    let brackets = (1..tokens.len()).filter(|at| tokens[*at].is_mark(b'('));
    brackets
        .map(|at| (&tokens[at - 1], &tokens[at + 1..]))
        .filter(|(name, _)| name.is_name())
}

/// The position of the first token outside of parentheses that is meant.
pub(super) fn outside(tokens: &[Token], is_meant: impl Fn(&Token) -> bool) -> Option<usize> {
    let mut depth = 0_usize;
    tokens.iter().position(|token| {
        if token.is_mark(b'(') {
            depth += 1;
        } else if token.is_mark(b')') {
            depth = depth.saturating_sub(1);
        }
        depth == 0 && is_meant(token)
    })
}

/// Refuses what would let transactions write again: `BEGIN`, `START TRANSACTION` and `SET` have the
/// same words for it in all dialects that do.
pub(super) fn vet_access(first: &Token, tokens: &[Token]) -> Result<(), String> {
    if first.is_any("BEGIN SET START") && has(tokens, "READ WRITE") {
        let first = first.lower().to_ascii_uppercase();
        return Err(format!("{first} … READ WRITE"));
    }
    Ok(())
}

/// The first words of a statement, which say what it is.
pub(super) fn title(tokens: &[Token]) -> String {
    let words: Vec<String> = tokens
        .iter()
        .take(2)
        .take_while(|token| token.kind == Kind::Word)
        .map(|token| shown(&token.lower()).to_ascii_uppercase())
        .collect();
    if words.is_empty() {
        return "a statement that begins with no keyword".to_owned();
    }
    words.join(" ")
}

/// A name for a person to read.
pub(super) fn shown(name: &str) -> String {
    let readable = |c: char| if c.is_control() { '?' } else { c };
    name.chars().take(SHOWN).map(readable).collect()
}

/// Whether the value of a setting is a constant that turns it on.
pub(super) fn is_on(value: &[Token]) -> bool {
    match value {
        [token] if token.kind != Kind::Mark => {
            matches!(token.lower().as_str(), "1" | "on" | "true" | "yes")
        }
        _ => false,
    }
}
