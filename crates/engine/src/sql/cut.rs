//! A text as the server's own scanner cuts it, for texts in which a name may be in a string or in a
//! comment. What cannot be cut for certain is not cut.

use super::words::{Comment, comment, is_of_word};
use super::{Dialect, Reading};

/// What a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A keyword, a name without quotes, or a number.
    Word,
    /// What is inside of the quotes of a name.
    Name,
    /// What is inside of a string.
    Text,
    /// A single character.
    Mark,
}

/// A piece of a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a [u8],
}

impl Piece<'_> {
    pub(crate) fn is_mark(&self, mark: u8) -> bool {
        self.kind == Kind::Mark && self.text == [mark]
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Word && super::words::ends_with(self.text, word)
    }
}

/// The pieces of a text, without comments. `None` where it could be cut in more than one way.
pub(super) fn pieces(dialect: Dialect, reading: Reading, text: &[u8]) -> Option<Vec<Piece<'_>>> {
    Cut::of(dialect, reading, text).collect()
}

/// A text that is cut piece by piece, up to where it could be cut in more than one way: `None` is there.
pub(crate) struct Cut<'a> {
    dialect: Dialect,
    reading: Reading,
    text: &'a [u8],
    rest: &'a [u8],
    last: Option<Kind>,
    is_stuck: bool,
}

impl<'a> Cut<'a> {
    pub(crate) fn of(dialect: Dialect, reading: Reading, text: &'a [u8]) -> Self {
        let is_ambiguous = !text.is_ascii() && !reading.whole_ascii;
        Self {
            dialect,
            reading,
            text,
            rest: text,
            last: None,
            is_stuck: is_ambiguous || dialect == Dialect::MySql && text.contains(&0),
        }
    }

    /// The next piece, which there is; `None` where it is not certain.
    fn cut(&mut self) -> Option<Piece<'a>> {
        let Self { dialect, rest, .. } = *self;
        let (first, after) = rest.split_first()?;
        let (kind, inside, after) = match (dialect, first) {
            (_, b'\'') => {
                let escapes =
                    !self.reading.plain_backslash || is_escape_string(dialect, self.text, rest);
                quoted(Kind::Text, b'\'', escapes, after)?
            }
            // A string to MySQL, unless `ANSI_QUOTES` is set, and then it ends at another place.
            (Dialect::MySql, b'"') => {
                let cut = quoted(Kind::Name, b'"', !self.reading.plain_backslash, after)?;
                if cut.1.contains(&b'\\') {
                    return None;
                }
                cut
            }
            (Dialect::MySql, b'`') => quoted(Kind::Name, b'`', false, after)?,
            // The quotes of names in a mode of MariaDB's; else it does not stand outside of strings.
            (Dialect::MySql, b'[') => return None,
            (Dialect::PostgreSql, b'"') => quoted(Kind::Name, b'"', false, after)?,
            (Dialect::PostgreSql, b'$') => dollar(rest)?,
            (Dialect::PostgreSql, b'0'..=b'9') => number(rest)?,
            // White space in some character sets; and `\N` is a word of its own.
            (Dialect::MySql, 0x80.. | b'\\') => return None,
            _ if is_of_word(*first) => {
                let end = rest.iter().position(|byte| !is_of_word(*byte));
                let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
                if dialect == Dialect::MySql && !word.is_ascii() {
                    return None;
                }
                (Kind::Word, word, after)
            }
            _ => (Kind::Mark, &rest[..1], after),
        };
        // A string that goes on in the next line has the escapes of its beginning.
        let may_go_on = dialect == Dialect::PostgreSql && self.last == Some(Kind::Text);
        if kind == Kind::Text && may_go_on {
            return None;
        }
        self.last = Some(kind);
        self.rest = after;
        Some(Piece { kind, text: inside })
    }

    /// Goes to the next piece. `None` where it is not certain where that is.
    fn skip(&mut self) -> Option<()> {
        loop {
            if self.rest.first()?.is_ascii_whitespace() {
                self.rest = &self.rest[1..];
                continue;
            }
            // What is in one for some versions is executed or not, and MySQL's hints end where others
            // may not.
            match comment(self.dialect, self.rest) {
                Some(Comment::Plain(after)) if !self.rest.starts_with(b"/*+") => self.rest = after,
                Some(_) => return None,
                None => return Some(()),
            }
        }
    }
}

impl<'a> Iterator for Cut<'a> {
    type Item = Option<Piece<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        let piece = match self.is_stuck {
            true => None,
            false => self.skip().and_then(|()| self.cut()),
        };
        if piece.is_none() && self.rest.is_empty() {
            return None;
        }
        if piece.is_none() {
            // It is told once.
            self.rest = &[];
        }
        Some(piece)
    }
}

/// Whether an `E` before a string says that it has escapes.
fn is_escape_string(dialect: Dialect, text: &[u8], rest: &[u8]) -> bool {
    let before = &text[..text.len() - rest.len()];
    dialect == Dialect::PostgreSql
        && match before {
            [b'e' | b'E'] => true,
            [.., byte, b'e' | b'E'] => !is_of_word(*byte),
            _ => false,
        }
}

type Quoted<'a> = (Kind, &'a [u8], &'a [u8]);

/// What is inside of quotes, and what is after them. A quote is doubled to stand for itself.
fn quoted(kind: Kind, quote: u8, escapes: bool, text: &[u8]) -> Option<Quoted<'_>> {
    let mut at = 0;
    loop {
        match text[at..] {
            [b'\\', _, ..] if escapes => at += 2,
            [first, second, ..] if first == quote && second == quote => at += 2,
            [first, ..] if first == quote => return Some((kind, &text[..at], &text[at + 1..])),
            [_, ..] => at += 1,
            [] => return None,
        }
    }
}

/// PostgreSQL's `$1` and `$tag$…$tag$`.
fn dollar(text: &[u8]) -> Option<Quoted<'_>> {
    let end = text[1..]
        .iter()
        .position(|byte| !is_of_word(*byte) || *byte == b'$')?
        + 1;
    let (tag, after) = text.split_at(end);
    if tag.get(1).is_some_and(u8::is_ascii_digit) {
        // Up to version 14 what stands right behind it is a name.
        let is_plain = tag[1..].iter().all(u8::is_ascii_digit) && after.first() != Some(&b'$');
        return is_plain.then_some((Kind::Word, tag, after));
    }
    if after.first() != Some(&b'$') {
        return None;
    }
    let tag = &text[..=end];
    let body = &text[tag.len()..];
    let close = body.windows(tag.len()).position(|window| window == tag)?;
    Some((Kind::Text, &body[..close], &body[close + tag.len()..]))
}

/// A number. What stands right behind it, a name or the next number, depends on the version.
fn number(text: &[u8]) -> Option<Quoted<'_>> {
    let end = text
        .iter()
        .position(|byte| !is_of_word(*byte))
        .unwrap_or(text.len());
    let (number, after) = text.split_at(end);
    let is_exponent = |part: &[u8]| match part {
        [b'e' | b'E', digits @ ..] => !digits.is_empty() && digits.iter().all(u8::is_ascii_digit),
        _ => part.is_empty(),
    };
    let digits = number.iter().take_while(|byte| byte.is_ascii_digit());
    let is_plain = is_exponent(&number[digits.count()..]);
    is_plain.then_some((Kind::Word, number, after))
}
