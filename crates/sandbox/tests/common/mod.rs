//! Helpers that the tests share.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

pub mod apply;
pub mod attack;
pub mod connections;
pub mod lacking;
pub mod peers;
pub mod raw_sockets;
pub mod view;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use altair_sandbox::{
    Ended, Launch, Observer, Policy, Privileges, Role, RunAs, Stdio, Stream, Supervision,
};

/// Long enough for anything expected; a test that reaches it has failed.
pub const LONG: Duration = Duration::from_secs(30);

/// `/bin/sh -c script`, unconfined, with a `PATH` and the directory `/`.
pub fn sh(script: &str) -> Launch {
    Launch {
        program: "/bin/sh".into(),
        name: None,
        args: vec!["-c".into(), script.into()],
        env: vec![(OsString::from("PATH"), OsString::from("/usr/bin:/bin"))],
        cwd: "/".into(),
        channel: None,
        policy: Policy::unconfined(),
        stdio: Stdio::Captured { input: None },
        role: Role::Program,
    }
}

pub fn run(launch: Launch) -> Ended {
    altair_sandbox::run(launch, LONG, 1 << 20).unwrap()
}

pub fn stdout(ended: &Ended) -> String {
    String::from_utf8(ended.stdout.head.clone()).unwrap()
}

/// The standard output of a script, which must succeed.
pub fn output_of(launch: Launch) -> String {
    let ended = run(launch);
    assert_eq!(
        ended.status,
        altair_sandbox::Status::Exited(0),
        "{}",
        String::from_utf8_lossy(&ended.stderr.head)
    );
    stdout(&ended)
}

/// `Name:\tvalue` lines, as in `/proc/self/status`.
pub fn fields(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect()
}

pub fn supervision(timeout: Duration) -> Supervision {
    Supervision {
        deadline: Supervision::deadline_after(timeout),
        stop_signal: None,
        grace: Duration::from_millis(100),
        output_limit: 1 << 20,
        outbox: Vec::new(),
        channel: None,
        idle: None,
        input: None,
        leaves_end: false,
        looks: Duration::ZERO,
    }
}

/// Records what it observes.
#[derive(Default)]
pub struct Recorder {
    pub output: Vec<(Stream, Vec<u8>)>,
    pub packets: Vec<Vec<u8>>,
    pub ticks: usize,
    /// Returns `Break` as soon as standard output has shown this.
    pub break_on: Option<&'static str>,
}

impl Recorder {
    pub fn stdout(&self) -> String {
        let bytes: Vec<u8> = self
            .output
            .iter()
            .filter(|(stream, _)| *stream == Stream::Stdout)
            .flat_map(|(_, chunk)| chunk.clone())
            .collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Observer for Recorder {
    fn output(&mut self, stream: Stream, chunk: &[u8]) -> ControlFlow<()> {
        self.output.push((stream, chunk.to_vec()));
        match self.break_on {
            Some(text) if self.stdout().contains(text) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }

    fn packet(&mut self, packet: &[u8]) {
        self.packets.push(packet.to_vec());
    }

    fn tick(&mut self) -> ControlFlow<()> {
        self.ticks += 1;
        ControlFlow::Continue(())
    }
}

/// Ids of all processes started by [`marked`] with this mark, or by one of those.
pub fn processes_with(mark: &str) -> Vec<u32> {
    let mark = format!("ALTAIR_TEST_MARK={mark}");
    let holds = |path: &Path| {
        fs::read(path).is_ok_and(|bytes| {
            bytes
                .windows(mark.len())
                .any(|window| window == mark.as_bytes())
        })
    };
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| *pid != std::process::id())
        .filter(|pid| {
            let directory = Path::new("/proc").join(pid.to_string());
            holds(&directory.join("environ"))
        })
        .collect()
}

/// A launch whose processes can be found by [`processes_with`].
pub fn marked(script: &str, mark: &str) -> Launch {
    let mut launch = sh(script);
    launch.env.push(("ALTAIR_TEST_MARK".into(), mark.into()));
    launch
}

/// A text that no other test, and no other run, uses.
pub fn fresh_mark(name: &str) -> String {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    format!("mark-{name}-{}-{}", std::process::id(), now.as_nanos())
}

/// Polls until `seen` returns true, or fails with `what`.
pub fn wait_until(what: &str, mut seen: impl FnMut() -> bool) {
    let began = Instant::now();
    while !seen() {
        assert!(began.elapsed() < LONG, "still not: {what}");
        std::thread::yield_now();
    }
}

/// Counts what it observes.
#[derive(Default)]
pub struct Count {
    pub bytes: usize,
    pub ticks: usize,
    /// Returns `Break` at this tick.
    pub stop_at_tick: Option<usize>,
}

impl Observer for Count {
    fn output(&mut self, _: Stream, chunk: &[u8]) -> ControlFlow<()> {
        self.bytes += chunk.len();
        ControlFlow::Continue(())
    }

    fn packet(&mut self, packet: &[u8]) {
        self.bytes += packet.len();
    }

    fn tick(&mut self) -> ControlFlow<()> {
        self.ticks += 1;
        if self.stop_at_tick == Some(self.ticks) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

pub fn open_descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// [`sh`] without privileges.
pub fn dropped(script: &str, run_as: Option<RunAs>) -> Launch {
    let mut launch = sh(script);
    launch.policy.privileges = Privileges::Drop { run_as };
    launch
}
