//! The rows of a terminal that text takes: one for each that a line is broken into, so that long
//! names push nothing off the screen unnoticed.

/// The text in rows of at most so many columns. The text has no control characters but line feeds
/// and the theme's styles (`ESC [ … m`), which take no room.
pub fn of(text: &str, columns: usize) -> Vec<&str> {
    let mut rows = Vec::new();
    for mut line in text.lines() {
        loop {
            let (row, rest) = line.split_at(end_of_row(line, columns));
            rows.push(row);
            if rest.is_empty() {
                break;
            }
            line = rest;
        }
    }
    rows
}

/// Where the first row of a line ends, which has one character at least.
fn end_of_row(line: &str, columns: usize) -> usize {
    let mut used = 0;
    let mut in_style = false;
    for (at, c) in line.char_indices() {
        if in_style || c == '\x1b' {
            in_style = c != 'm';
            continue;
        }
        // Terminals do not agree about the others: a row too many does no harm.
        let width = if c.is_ascii() { 1 } else { 2 };
        if used > 0 && used + width > columns {
            return at;
        }
        used += width;
    }
    line.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_takes_several_rows_and_styles_take_none() {
        assert_eq!(of("abcd\n\nefghi", 4), ["abcd", "", "efgh", "i"]);
        assert_eq!(
            of("\x1b[2mabcd\x1b[0me\x1b[0m", 4),
            ["\x1b[2mabcd\x1b[0m", "e\x1b[0m"]
        );
        assert_eq!(of("漢字漢", 4), ["漢字", "漢"]);
        // Narrower than a character.
        assert_eq!(of("é字", 1), ["é", "字"]);
        assert_eq!(of("ab", 0), ["a", "b"]);
    }
}
