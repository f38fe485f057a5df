//! The person's terminal after a command has written to it: its last output must not decide how what
//! follows looks, and nothing that was typed before is an answer to what follows.

use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

use nix::sys::termios::{FlushArg, tcflush};

/// What gives a terminal its usual state back, whatever it was told (ECMA-48; xterm's control
/// sequences, "ctlseqs"; console_codes(4)). The window's title stays.
const USUAL: &[&str] = &[
    // The end of a sequence or a string that was begun, and of VT52 mode.
    "\x18\x1b\\\x1b<",
    // To the screen, not to a printer; UTF-8; shown at once.
    "\x1b[4i\x1b[?4i\x1b%G\x1b[?2026l",
    // Soft reset: attributes, character sets, scrolling region, origin mode, cursor.
    "\x1b[!p",
    // The main screen. Leaving restores the cursor, so it is saved before.
    "\x1b7\x1b[?1049l\x1b[?1047l\x1b[?47l",
    // The same as the soft reset, for terminals that have none.
    "\x1b[m\x1b(B\x1b)B\x1b*B\x1b+B\x0f\x1b[?69l\x1b[r\x1b[?6l\x1b[?7h\x1b[?25h",
    // No insert mode, line feeds as they are, no local echo, the keyboard unlocked, not inverted.
    "\x1b[4l\x1b[20l\x1b[12h\x1b[2l\x1b[?5l",
    // The keyboard as usual: cursor keys, keypad, further modes of xterm and kitty.
    "\x1b[?1l\x1b>\x1b[>4m\x1b[=0u",
    // No reports of mouse and focus, no marks around what is pasted.
    "\x1b[?9l\x1b[?1000l\x1b[?1001l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1016l\x1b[?2004l",
    // No hyperlink. The usual colours: with the text in that of the background, nothing is seen.
    "\x1b]8;;\x1b\\\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\\x1b]112\x1b\\\x1b]R\x1b\\",
    // Below everything that is there.
    "\x1b[m\x1b[999;1H\n",
];

/// The least of it, for what is said to be a terminal without sequences: the end of a string, visible
/// text in the usual characters, the whole screen to scroll in.
const LEAST: &str = "\x18\x1b[m\x1b(B\x0f\x1b[r\x1b[999;1H\n";

/// Gives the terminal on standard error its usual state back. What `TERM` says is what programs may
/// use, not what the terminal understands: without it nothing is left out.
pub fn make_usual() {
    let mut stderr = io::stderr();
    if stderr.is_terminal() {
        let _ = stderr.write_all(usual(std::env::var_os("TERM").as_deref()).as_bytes());
    }
}

fn usual(term: Option<&OsStr>) -> String {
    match term.is_some_and(|term| term == "dumb") {
        true => LEAST.to_owned(),
        false => USUAL.concat(),
    }
}

/// Throws away what was typed on standard input and not yet read.
pub fn forget_typed() {
    let _ = tcflush(io::stdin().as_fd(), FlushArg::TCIFLUSH);
}

/// The rows and columns of the terminal on standard error, 24 and 80 if they are not known.
pub fn size() -> (usize, usize) {
    let size = terminal_size::terminal_size_of(io::stderr());
    size.map_or((24, 80), |(columns, rows)| {
        (usize::from(rows.0), usize::from(columns.0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_visible_and_the_screen_scrolls_whatever_the_terminal_is_said_to_be() {
        for term in [None, Some(""), Some("dumb"), Some("xterm")] {
            let usual = usual(term.map(OsStr::new));
            for sequence in ["\x18", "\x1b[m", "\x1b(B", "\x1b[r", "\x1b[999;1H"] {
                assert!(usual.contains(sequence), "{term:?} {sequence:?}");
            }
        }
    }
}
