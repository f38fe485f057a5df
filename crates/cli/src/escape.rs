//! Escapes control characters, so that none reaches a terminal raw.
//!
//! What a snippet prints or returns may hold sequences that move the cursor, set the title, or
//! reorder text (bidi overrides). They are shown in PHP's notation: `\x1b`, `\u{202e}`.

use std::fmt::Write;

/// Whether a terminal may act on this character or display it out of place.
///
/// C0 and DEL, C1 (which some terminals read as `ESC` plus a letter even in UTF-8), the separators of
/// lines and paragraphs, and the bidi marks, embeddings, overrides and isolates of Unicode's UAX #9.
fn is_unsafe(c: char) -> bool {
    matches!(
        c,
        '\0'..='\x1f'
            | '\x7f'..='\u{9f}'
            | '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
    )
}

/// `text` in one line: every control character is escaped, including `\n` and `\t`.
pub fn line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        push(&mut out, c);
    }
    out
}

/// `text` with its lines and tabs kept; every other control character is escaped.
pub fn block(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            _ => push(&mut out, c),
        }
    }
    out
}

/// `text` as a PHP-like string literal in single quotes, in one line.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('\'');
    for c in text.chars() {
        match c {
            '\'' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            _ => push(&mut out, c),
        }
    }
    out.push('\'');
    out
}

/// JSON `text` with the characters that JSON itself allows (DEL, C1, bidi) as `\u` escapes: the
/// same value.
pub fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        // Raw line feeds and tabs belong to the layout; JSON allows C0 nowhere else.
        if is_unsafe(c) && !matches!(c, '\n' | '\t') {
            // All are in the basic plane: four digits suffice. Writing to a String cannot fail.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

fn push(out: &mut String, c: char) {
    match c {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\0'..='\x7f' if is_unsafe(c) => {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\x{:02x}", u32::from(c));
        }
        _ if is_unsafe(c) => {
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        }
        _ => out.push(c),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn controls_are_written_out_and_ordinary_text_is_left_alone() {
        assert_eq!(
            line("a\x1b[31m\x7f\u{85}\u{202e}é✓"),
            "a\\x1b[31m\\x7f\\u{85}\\u{202e}é✓"
        );
        assert_eq!(line("a\r\n\tb"), "a\\r\\n\\tb");
    }

    #[test]
    fn a_block_keeps_lines_and_tabs_only() {
        assert_eq!(block("a\r\n\tb\x08"), "a\\r\n\tb\\x08");
    }

    #[test]
    fn a_quoted_string_can_be_told_from_its_escapes() {
        assert_eq!(quoted("it's \\n\n"), "'it\\'s \\\\n\\n'");
    }

    #[test]
    fn json_keeps_its_value() -> Result<(), serde_json::Error> {
        let text = serde_json::to_string("\u{9b}31m\u{7f}\u{202e}é/")?;
        let safe = json(&text);
        assert_eq!(safe, "\"\\u009b31m\\u007f\\u202eé/\"");
        assert_eq!(
            serde_json::from_str::<String>(&safe)?,
            serde_json::from_str::<String>(&text)?
        );
        Ok(())
    }

    proptest! {
        #[test]
        fn nothing_unsafe_survives(text in any::<String>()) {
            prop_assert!(!line(&text).chars().any(is_unsafe));
            prop_assert!(!quoted(&text).chars().any(is_unsafe));
            prop_assert!(!block(&text).chars().any(|c| is_unsafe(c) && c != '\n' && c != '\t'));
            prop_assert!(!json(&text).chars().any(|c| is_unsafe(c) && c != '\n' && c != '\t'));
        }
    }
}
