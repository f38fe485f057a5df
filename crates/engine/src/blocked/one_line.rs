//! Makes text from a run safe to show.

/// Characters of one entry: a path of usual length fits.
const LENGTH: usize = 300;

/// Escapes whatever could end a line, move a cursor or change the writing direction. Cuts a long
/// text.
pub(super) fn in_one_line(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for (index, c) in text.chars().enumerate() {
        if index == LENGTH {
            shown.push('…');
            break;
        }
        if c.is_control() || steers_text(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Line and paragraph separators, and the marks that change the writing direction (Unicode Standard
/// Annex 9).
fn steers_text(c: char) -> bool {
    matches!(
        c,
        '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{061c}'
    )
}
