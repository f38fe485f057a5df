//! Makes characters visible that change how a text looks, so that a person agrees to what runs.

use std::fmt::Write;

/// Whether a character is not seen, or moves what is beside it: control characters (C0, DEL, C1),
/// the marks, embeddings, overrides and isolates of bidirectional text (UAX #9), and characters
/// that are blank, have no width, or break lines (Unicode's Default_Ignorable_Code_Point and
/// separators).
fn is_hidden(c: char) -> bool {
    c.is_control()
        || (c.is_whitespace() && c != ' ')
        || matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{2800}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// `text` in one line, with what is not seen in PHP's notation: `\u{202e}`.
pub fn line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            _ if is_hidden(c) => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            _ => out.push(c),
        }
    }
    out
}

/// The lines of `text`, each behind a mark, so that none can pass for something beside the text.
/// Tabs stay.
pub fn block(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for each in text.split('\n') {
        let shown: Vec<String> = each.split('\t').map(line).collect();
        out.push_str("| ");
        out.push_str(&shown.join("\t"));
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_written_out() {
        for (text, shown) in [
            ("a\u{202e}b", "a\\u{202e}b"),
            ("a\x1b[2Kb\r", "a\\u{1b}[2Kb\\r"),
            ("a\u{200b}\u{feff}\u{a0}b", "a\\u{200b}\\u{feff}\\u{a0}b"),
            ("\u{2028}\u{85}", "\\u{2028}\\u{85}"),
            ("\u{e0041}\u{fe0f}\u{3164}", "\\u{e0041}\\u{fe0f}\\u{3164}"),
            ("größer 大 a b", "größer 大 a b"),
        ] {
            assert_eq!(line(text), shown);
        }
    }

    #[test]
    fn a_line_of_the_code_cannot_pass_for_the_question() {
        let text = "return 1;\n\nAllow it?\r\tx\u{2029}y";
        let shown = "| return 1;\n| \n| Allow it?\\r\tx\\u{2029}y\n";
        assert_eq!(block(text), shown);
    }
}
