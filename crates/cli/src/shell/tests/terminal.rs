//! A terminal to type into, with the shell in it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use altair_sandbox::Pseudoterminal;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long a text may take to be shown.
const PATIENCE: Duration = Duration::from_secs(20);
/// The prompt.
const PROMPT: &str = "php> ";

/// The program that plays the shell, with its files of state in `state`.
pub fn program(launcher: &[&str], state: &Path) -> Command {
    let shell = std::env::current_exe().unwrap();
    let mut words = launcher.iter().map(OsStr::new).chain([shell.as_os_str()]);
    let mut command = Command::new(words.next().unwrap());
    command
        .args(words)
        .args(["shell::tests::play::plays_the_shell", "--exact"])
        .args(["--ignored", "--nocapture", "--test-threads=1"])
        .env("PLAYED_SHELL", "1")
        .env("XDG_STATE_HOME", state)
        .env("TERM", "xterm")
        .env("NO_COLOR", "1");
    command
}

/// A terminal with the shell in it.
pub struct Terminal {
    host: File,
    shell: Child,
    shown: Vec<u8>,
    /// How much of what is shown was expected already, without escape sequences.
    seen: usize,
}

impl Terminal {
    /// Opens one and waits for the prompt.
    pub fn open(state: &Path) -> Self {
        let mut terminal = Self::start(state, &[]);
        terminal.expect(PROMPT);
        terminal
    }

    /// Opens one with these variables, too.
    pub fn start(state: &Path, variables: &[(&str, &str)]) -> Self {
        let pair = Pseudoterminal::like(File::open("/dev/null").unwrap().as_fd()).unwrap();
        let end = || Stdio::from(pair.process.try_clone().unwrap());
        let shell = program(&["setsid", "--ctty"], state)
            .envs(variables.iter().copied())
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        Self {
            host: pair.host.into(),
            shell,
            shown: Vec::new(),
            seen: 0,
        }
    }

    /// Types.
    pub fn enter(&mut self, keys: &str) {
        self.host.write_all(keys.as_bytes()).unwrap();
    }

    /// Sends what Ctrl-C sends. The kernel would also take back what was typed before it.
    pub fn interrupt(&self) {
        let pid = Pid::from_raw(self.shell.id().try_into().unwrap());
        kill(pid, Signal::SIGINT).unwrap();
    }

    /// Types a line and waits for what it shows, and for the next prompt.
    pub fn line(&mut self, line: &str, expected: &[&str]) {
        self.enter(&format!("{line}\r"));
        for text in expected {
            self.expect(text);
        }
        self.expect(PROMPT);
    }

    /// Waits until `text` is shown, after what was expected last.
    pub fn expect(&mut self, text: &str) {
        let until = Instant::now() + PATIENCE;
        loop {
            let plain = plain(&self.shown);
            if let Some(at) = plain[self.seen..].find(text) {
                self.seen += at + text.len();
                return;
            }
            assert!(
                self.read(until),
                "{text:?} is not shown after: {:?}",
                &plain[self.seen..]
            );
        }
    }

    /// Waits until the shell has ended, and returns its exit code and everything that was shown.
    pub fn end(mut self) -> (Option<i32>, String) {
        let until = Instant::now() + PATIENCE;
        while self.read(until) {}
        assert!(Instant::now() < until, "it goes on");
        let status = self.shell.wait().unwrap();
        (status.code(), plain(&self.shown))
    }

    /// Reads what is shown next; `false` if there is nothing more.
    fn read(&mut self, until: Instant) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        let mut fds = [PollFd::new(self.host.as_fd(), PollFlags::POLLIN)];
        if poll(&mut fds, PollTimeout::try_from(left).unwrap()).unwrap() == 0 {
            return false;
        }
        let mut chunk = [0; 4096];
        // A terminal without a process has EIO.
        let count = self.host.read(&mut chunk).unwrap_or_default();
        self.shown.extend_from_slice(&chunk[..count]);
        count > 0
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

/// What is shown, without escape sequences (ECMA-48 `CSI`) and carriage returns.
fn plain(shown: &[u8]) -> String {
    let text = String::from_utf8_lossy(shown);
    let mut out = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\x1b' => {
                rest.next();
                rest.by_ref().find(|c| ('@'..='~').contains(c));
            }
            '\r' | '\x07' | '\u{fffd}' => {}
            c => out.push(c),
        }
    }
    out
}
