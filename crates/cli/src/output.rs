//! Standard output, which the reader may close early.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use anstream::ColorChoice;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::failure::{Failure, reason};

/// Whether standard output still has a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// It has one, as far as is known.
    There,
    /// The other end is closed, as after `| head -1`.
    Gone,
}

/// Writes `text` to standard output, at once.
///
/// # Errors
///
/// If it cannot be written, except because the reader closed it: a full disk.
pub fn print(text: &[u8]) -> Result<Reader, Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(Reader::There),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(Failure::new(format!(
            "cannot write to standard output: {}",
            reason(&error)
        ))),
    }
}

/// Waits for `pause`, or until the reader closes standard output.
pub fn wait(pause: Duration) -> Reader {
    let stdout = io::stdout();
    // No event is requested: POLLERR (a pipe without a reader) is always reported, and nothing
    // else ends the wait. See poll(2).
    let mut fds = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
    let timeout = PollTimeout::try_from(pause).unwrap_or(PollTimeout::MAX);
    match poll(&mut fds, timeout) {
        Ok(ready) if ready > 0 => Reader::Gone,
        _ => Reader::There,
    }
}

/// Whether standard output is a terminal.
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether standard output takes colour: a capable terminal, and no `NO_COLOR`.
pub fn takes_color() -> bool {
    colors(&io::stdout())
}

/// The same for standard error.
pub fn takes_color_on_stderr() -> bool {
    colors(&io::stderr())
}

fn colors(stream: &impl anstream::stream::RawStream) -> bool {
    // `choice` also honours CLICOLOR_FORCE, which would colour a file, and considers any terminal
    // of a CI service capable. So the terminal is checked first.
    let can = std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    stream.is_terminal() && can && anstream::AutoStream::choice(stream) != ColorChoice::Never
}
