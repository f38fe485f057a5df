//! Attacks from inside: the test program starts itself again, takes the guards as a confined
//! program would, and then attacks them.
#![allow(unsafe_code, dead_code, clippy::unwrap_used, clippy::expect_used)]

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use altair_sandbox::{
    Connections, Ended, FinalGuards, Landlock, Launch, Observer, Policy, Refusal, Role, Seccomp,
    Stdio, Stream, channel_pair,
};

use super::{LONG, supervision};

const NAME: &str = "ALTAIR_ATTACK";
const GUARDS: &str = "ALTAIR_ATTACK_GUARDS";
const ARGUMENT: &str = "ALTAIR_ATTACK_ARGUMENT";

/// An attack: its name, and what it does with its argument.
pub type Attack = (&'static str, fn(&str));

/// Makes the test program run an attack if it was started for one. This happens before `main`,
/// whose test harness has several threads.
#[macro_export]
macro_rules! attacks {
    ($($name:ident),* $(,)?) => {
        #[allow(unsafe_code)]
        #[used]
        // SAFETY: the C library calls the functions in this section after its own setup.
        #[unsafe(link_section = ".init_array")]
        static ATTACK: extern "C" fn() = {
            extern "C" fn start() {
                $crate::common::attack::start(&[$((stringify!($name), $name)),*]);
            }
            start
        };
    };
}

/// Which guards an attacker takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Guarded {
    /// None: the attack must succeed.
    Not,
    /// seccomp alone.
    Seccomp { network: bool, metadata: bool },
    /// seccomp alone, with sockets for permitted connections; with the network on if `network`.
    Services { network: bool },
    /// The same where the host makes the sockets, and opens the files of names.
    ByHost { network: bool },
    /// Landlock alone: everything may be read, nothing written or executed.
    Landlock,
    /// None by the harness: the attack takes them itself.
    ByItself,
}

pub const SECCOMP: Guarded = Guarded::Seccomp {
    network: false,
    metadata: true,
};
pub const WITH_NETWORK: Guarded = Guarded::Seccomp {
    network: true,
    metadata: true,
};
pub const WITHOUT_METADATA: Guarded = Guarded::Seccomp {
    network: false,
    metadata: false,
};

impl Guarded {
    fn encode(self) -> String {
        match self {
            Self::Not => "not".into(),
            Self::Seccomp { network, metadata } => format!("seccomp {network} {metadata}"),
            Self::Services { network } => format!("services {network}"),
            Self::ByHost { network } => format!("by-host {network}"),
            Self::Landlock => "landlock".into(),
            Self::ByItself => "itself".into(),
        }
    }

    fn decode(text: &str) -> Option<FinalGuards> {
        let words: Vec<&str> = text.split(' ').collect();
        match *words.as_slice() {
            ["seccomp", network, metadata] => Some(FinalGuards {
                landlock: None,
                seccomp: Some(Seccomp {
                    network: network == "true",
                    metadata: metadata == "true",
                    attributes: metadata == "true",
                    command: None,
                    ..Seccomp::default()
                }),
                descriptors: None,
            }),
            [way @ ("services" | "by-host"), network] => Some(FinalGuards {
                landlock: None,
                seccomp: Some(Seccomp {
                    network: network == "true",
                    metadata: true,
                    attributes: true,
                    command: None,
                    tcp: true,
                    local: true,
                    sockets_by_host: way == "by-host",
                    files_by_host: way == "by-host",
                }),
                descriptors: None,
            }),
            ["landlock"] => Some(FinalGuards {
                landlock: Some(Landlock {
                    readable: vec![std::path::PathBuf::from("/").into()],
                    ..Landlock::default()
                }),
                seccomp: None,
                descriptors: None,
            }),
            ["not"] => Some(FinalGuards::default()),
            _ => None,
        }
    }
}

/// The attacker's end of the channel.
pub fn channel() -> BorrowedFd<'static> {
    // SAFETY: the launch puts it there, and nothing closes it.
    unsafe { BorrowedFd::borrow_raw(3) }
}

pub fn start(attacks: &[Attack]) {
    let Ok(name) = std::env::var(NAME) else {
        return;
    };
    if let Some(guards) = Guarded::decode(&std::env::var(GUARDS).unwrap()) {
        let taken = guards.take(Some(channel().as_fd()));
        for state in [taken.landlock, taken.seccomp].into_iter().flatten() {
            assert_eq!(state, altair_sandbox::GuardState::InForce);
        }
    }
    let attack = attacks.iter().find(|attack| attack.0 == name);
    attack.expect("an attack of this name").1(&std::env::var(ARGUMENT).unwrap());
    use std::io::Write;
    std::io::stdout().flush().unwrap();
    // SAFETY: ends the process without the harness's exit handlers.
    unsafe { libc::_exit(0) };
}

/// Prints the result of a call: `name 0`, or the error's number.
pub fn say(name: &str, result: i64) {
    let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    println!("{name} {}", if result == -1 { errno } else { 0 });
}

/// Makes a system call by number.
pub fn call(number: i64, args: &[u64]) -> i64 {
    let mut all = [0; 6];
    all[..args.len()].copy_from_slice(args);
    let [a, b, c, d, e, f] = all;
    // SAFETY: the tests pass pointers to their own memory, or ones that the kernel refuses.
    unsafe { libc::syscall(number, a, b, c, d, e, f) }
}

pub fn c(text: &str) -> std::ffi::CString {
    std::ffi::CString::new(text).unwrap()
}

/// The result of an attack.
pub struct Attacked {
    pub ended: Ended,
    pub refused: Vec<Refusal>,
    pub packets: Vec<Vec<u8>>,
    /// The most descriptors that the host had during the attack.
    pub descriptors: usize,
}

impl Attacked {
    pub fn output(&self) -> String {
        String::from_utf8(self.ended.stdout.head.clone()).unwrap()
    }

    /// The error that the attack printed for a call ([`say`]).
    pub fn errno(&self, name: &str) -> i32 {
        let output = self.output();
        let errors = String::from_utf8_lossy(&self.ended.stderr.head).into_owned();
        let line = output
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{name} ")))
            .unwrap_or_else(|| panic!("{name} in {output:?}, {errors}"));
        line.parse().unwrap()
    }
}

struct Witness {
    refused: Vec<Refusal>,
    packets: Vec<Vec<u8>>,
    descriptors: usize,
}

/// More than any test reads.
const KEPT: usize = 1000;

impl Observer for Witness {
    fn output(&mut self, _: Stream, _: &[u8]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn packet(&mut self, packet: &[u8]) {
        if self.packets.len() < KEPT {
            self.packets.push(packet.to_vec());
        }
    }

    fn refused(&mut self, refusal: Refusal) {
        if self.refused.len() < KEPT {
            self.refused.push(refusal);
        }
    }

    fn tick(&mut self) -> ControlFlow<()> {
        self.descriptors = self.descriptors.max(super::open_descriptors());
        ControlFlow::Continue(())
    }
}

pub fn attack(name: &str, guarded: Guarded, argument: &str) -> Attacked {
    attack_for(name, guarded, argument, LONG)
}

pub fn attack_for(name: &str, guarded: Guarded, argument: &str, time: Duration) -> Attacked {
    attack_under(Policy::unconfined(), name, guarded, argument, time)
}

/// The guards of a process that may connect to services, where this thread's tests are.
pub fn services(network: bool) -> Guarded {
    match super::lacking::is_lacking() {
        true => Guarded::ByHost { network },
        false => Guarded::Services { network },
    }
}

/// An attack by a process that may connect to `connections`.
pub fn attack_to(connections: Connections, name: &str, argument: &str) -> Attacked {
    let guarded = services(connections.internet);
    let policy = Policy {
        connections,
        ..Policy::unconfined()
    };
    attack_under(policy, name, guarded, argument, LONG)
}

pub fn attack_under(
    policy: Policy,
    name: &str,
    guarded: Guarded,
    argument: &str,
    time: Duration,
) -> Attacked {
    let (host, process) = channel_pair().unwrap();
    let variable = |name: &str, value: String| (OsString::from(name), OsString::from(value));
    let launch = Launch {
        program: std::env::current_exe().unwrap(),
        name: None,
        args: vec![],
        env: vec![
            variable(NAME, name.into()),
            variable(GUARDS, guarded.encode()),
            variable(ARGUMENT, argument.into()),
        ],
        cwd: "/".into(),
        channel: Some(process),
        role: match policy.before_exec {
            Some(_) => Role::Command,
            None => Role::Program,
        },
        policy,
        stdio: Stdio::Captured { input: None },
    };
    let mut witness = Witness {
        refused: Vec::new(),
        packets: Vec::new(),
        descriptors: 0,
    };
    let mut settings = supervision(time);
    settings.channel = Some(host);
    let ended = launch.spawn().unwrap().supervise(settings, &mut witness);
    Attacked {
        ended,
        refused: witness.refused,
        packets: witness.packets,
        descriptors: witness.descriptors,
    }
}
