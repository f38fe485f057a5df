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
                | '\u{13430}'..='\u{1345f}'
                | '\u{16fe4}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d159}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Whether a letter is of a script that is written from right to left: it moves what is beside it
/// (UAX #9, classes R and AL).
fn is_from_right(c: char) -> bool {
    matches!(
        c,
        '\u{590}'..='\u{8ff}'
            | '\u{fb1d}'..='\u{fdff}'
            | '\u{fe70}'..='\u{feff}'
            | '\u{10800}'..='\u{10fff}'
            | '\u{1e800}'..='\u{1efff}'
    )
}

/// Blanks in a row that are shown as they are: more could move what follows out of sight.
const BLANKS_MAX: usize = 40;
/// Empty lines in a row that are shown as they are.
const EMPTY_LINES_MAX: usize = 3;

/// `text` with long runs of blanks as their number: `\u{20}×400`.
fn without_long_blanks(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(' ') {
        let (before, from) = rest.split_at(at);
        let blanks = from.len() - from.trim_start_matches(' ').len();
        out.push_str(before);
        match blanks > BLANKS_MAX {
            // Writing to a String cannot fail.
            true => drop(write!(out, "\\u{{20}}×{blanks}")),
            false => out.push_str(&from[..blanks]),
        }
        rest = &from[blanks..];
    }
    out + rest
}

/// `text` in one line, with what is not seen in PHP's notation: `\u{202e}`.
pub fn line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in without_long_blanks(text).chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            _ if is_hidden(c) || is_from_right(c) => {
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
    let mut empty = 0;
    let mut lines = text.split('\n').peekable();
    while let Some(each) = lines.next() {
        empty = match each.trim().is_empty() {
            true => empty + 1,
            false => 0,
        };
        if empty > EMPTY_LINES_MAX {
            if lines.peek().is_none_or(|next| !next.trim().is_empty()) {
                let _ = writeln!(out, "| \\n×{}", empty - EMPTY_LINES_MAX);
            }
            continue;
        }
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

    #[test]
    fn nothing_moves_out_of_sight() {
        assert_eq!(line(&format!("a{}b", " ".repeat(41))), "a\\u{20}×41b");
        assert_eq!(line("a   b"), "a   b");
        assert_eq!(line("a\u{5d0}b"), "a\\u{5d0}b");
        assert_eq!(
            block(&format!("a{}b", "\n".repeat(31))),
            "| a\n| \n| \n| \n| \\n×27\n| b\n"
        );
    }
}
