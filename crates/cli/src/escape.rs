//! Escapes control characters, so that none reaches a terminal raw.
//!
//! What a snippet prints or returns may hold sequences that move the cursor, set the title, or
//! reorder text (bidi overrides). They are shown in PHP's notation: `\x1b`, `\u{202e}`.

use std::fmt::Write;

/// Whether a terminal may act on this character or display it out of place.
///
/// C0 and DEL, C1 (which some terminals read as `ESC` plus a letter even in UTF-8), the separators of
/// lines and paragraphs, the bidi marks, embeddings, overrides and isolates of Unicode's UAX #9, and
/// what is not shown at all (`Default_Ignorable_Code_Point`), but for what shapes the characters beside
/// it in ordinary text: see [`shapes`].
fn is_unsafe(c: char) -> bool {
    matches!(
        c,
        '\0'..='\x1f'
            | '\x7f'..='\u{9f}'
            | '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'
            | '\u{200e}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Whether a character is not shown, but decides how those beside it are: joiners and variation
/// selectors, of emoji and of some scripts.
fn shapes(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200d}' | '\u{fe00}'..='\u{fe0f}')
}

/// `text` in one line: every control character is escaped, including `\n` and `\t`.
pub fn line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        push(&mut out, c);
    }
    out
}

/// The same for a name: two of them that differ look different.
pub fn name(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match shapes(c) {
            true => out.push_str(&in_full(c)),
            false => push(&mut out, c),
        }
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
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// A character by its number.
fn in_full(c: char) -> String {
    format!("\\u{{{:x}}}", u32::from(c))
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
        _ if is_unsafe(c) => out.push_str(&in_full(c)),
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
    fn what_is_not_shown_is_written_out_and_in_names_all_of_it() {
        for c in ['\u{ad}', '\u{200b}', '\u{2060}', '\u{feff}', '\u{e0041}'] {
            let expected = format!("a\\u{{{:x}}}b", u32::from(c));
            assert_eq!(line(&format!("a{c}b")), expected);
            assert_eq!(name(&format!("a{c}b")), expected);
        }
        assert_eq!(line("\u{2764}\u{fe0f}\u{200d}"), "\u{2764}\u{fe0f}\u{200d}");
        assert_eq!(name("a\u{200d}\u{fe0f}\n"), "a\\u{200d}\\u{fe0f}\\n");
        assert_eq!(json("\"\u{e0041}\""), "\"\\udb40\\udc41\"");
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
