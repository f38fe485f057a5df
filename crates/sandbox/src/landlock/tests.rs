//! Landlock alone, at each version, in separate processes.
#![allow(clippy::unwrap_used)]

use std::fs::{self, File, OpenOptions};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::Path;

use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};

use super::*;

const VERSIONS: [ABI; 7] = [
    ABI::V1,
    ABI::V2,
    ABI::V3,
    ABI::V4,
    ABI::V5,
    ABI::V6,
    ABI::V7,
];

/// An attempt on a path; returns whether it succeeded.
type Attempt = fn(&Path) -> bool;

/// Whether `attempt` succeeds in a fork of this process, which then ends.
fn succeeds(attempt: impl FnOnce() -> bool) -> bool {
    // SAFETY: the C library's allocator is usable in a fork; the child takes no other lock that
    // another thread of the test could hold.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            let status = i32::from(!attempt());
            // SAFETY: ends the process without running the test's cleanup.
            unsafe { libc::_exit(status) }
        }
        ForkResult::Parent { child } => {
            waitpid(child, None).unwrap() == WaitStatus::Exited(child, 0)
        }
    }
}

/// The same, behind rules at a version.
fn succeeds_behind(rules: &Landlock, version: ABI, attempt: impl FnOnce() -> bool) -> bool {
    succeeds(|| {
        matches!(
            take_at(rules, version),
            GuardState::InForce | GuardState::Degraded { .. }
        ) && attempt()
    })
}

/// A directory that may be read, one that may be written, and one that is neither.
struct Place {
    _dir: tempfile::TempDir,
    readable: PathBuf,
    writable: PathBuf,
    outside: PathBuf,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let path = dir.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("file"), "content").unwrap();
            fs::create_dir(path.join("directory")).unwrap();
            path
        };
        Self {
            readable: make("readable"),
            writable: make("writable"),
            outside: make("outside"),
            _dir: dir,
        }
    }

    fn rules(&self) -> Landlock {
        Landlock {
            readable_but: None,
            listed: Vec::new(),
            readable: vec![self.readable.clone().into(), "/not/there".into()],
            writable: vec![self.writable.clone().into()],
            devices: vec!["/dev/null".into()],
            network: false,
            ports: Vec::new(),
            command: false,
        }
    }
}

fn reads(path: &Path) -> bool {
    fs::read(path).is_ok()
}

fn writes(path: &Path) -> bool {
    OpenOptions::new().append(true).open(path).is_ok()
}

#[test]
fn the_version_is_the_kernels_own() {
    assert!(landlock_version().unwrap() >= 1);
}

#[test]
fn a_directory_that_has_been_replaced_is_granted_nothing() {
    let place = Place::new();
    let found = crate::Place::find(&place.writable).unwrap();
    let rules = Landlock {
        writable: vec![Granted::place(&found)],
        ..place.rules()
    };
    let file = place.writable.join("file");
    assert!(succeeds_behind(&rules, NEWEST, || writes(&file)));
    let moved = place.writable.with_extension("moved");
    fs::rename(&place.writable, moved).unwrap();
    std::os::unix::fs::symlink(&place.outside, &place.writable).unwrap();
    assert!(!succeeds_behind(&rules, NEWEST, || writes(&file)));
    assert!(writes(&file));
}

#[test]
fn prepared_rules_grant_nothing_to_what_has_replaced_a_directory() {
    let place = Place::new();
    let found = crate::Place::find(&place.writable).unwrap();
    let rules = Landlock {
        readable: vec![Granted::place(&found)],
        ..Landlock::default()
    };
    let file = place.writable.join("file");
    let reads_it = || {
        let prepared = PreparedRules::new(&rules).unwrap().unwrap();
        succeeds(|| {
            nix::sys::prctl::set_no_new_privs().is_ok() && prepared.take().is_ok() && reads(&file)
        })
    };
    assert!(reads_it());
    fs::rename(&place.writable, place.outside.join("moved")).unwrap();
    std::os::unix::fs::symlink(&place.outside, &place.writable).unwrap();
    assert!(!reads_it() && reads(&file));
}

#[test]
fn a_file_outside_can_be_neither_read_nor_written_nor_removed() {
    for version in VERSIONS {
        let place = Place::new();
        let file = place.outside.join("file");
        let rules = place.rules();
        let attempts: [(&str, Attempt); 5] = [
            ("read", reads),
            ("write", writes),
            ("list", |path| fs::read_dir(path.parent().unwrap()).is_ok()),
            ("make", |path| {
                File::create(path.with_extension("new")).is_ok()
            }),
            ("remove", |path| fs::remove_file(path).is_ok()),
        ];
        for (name, attempt) in attempts {
            assert!(
                !succeeds_behind(&rules, version, || attempt(&file)),
                "{name} at {version}"
            );
            // The same without the guard: it is the guard that stops it.
            assert!(succeeds(|| attempt(&file)), "{name} without");
        }
    }
}

#[test]
fn a_readable_directory_can_be_read_and_not_written() {
    for version in VERSIONS {
        let place = Place::new();
        let rules = place.rules();
        let file = place.readable.join("file");
        assert!(succeeds_behind(&rules, version, || reads(&file)
            && fs::read_dir(&place.readable).is_ok()));
        assert!(!succeeds_behind(&rules, version, || writes(&file)));
        assert!(!succeeds_behind(&rules, version, || fs::create_dir(
            place.readable.join("new")
        )
        .is_ok()));
        assert!(!succeeds_behind(&rules, version, || fs::rename(
            &file,
            place.readable.join("other")
        )
        .is_ok()));
    }
}

#[test]
fn below_a_writable_directory_everything_may_be_done() {
    for version in VERSIONS {
        let place = Place::new();
        let rules = place.rules();
        let at = |name: &str| place.writable.join(name);
        assert!(succeeds_behind(&rules, version, || {
            reads(&at("file"))
                && fs::write(at("file"), "other").is_ok()
                && fs::create_dir(at("new")).is_ok()
                && fs::rename(at("file"), at("renamed")).is_ok()
                && nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).is_ok()
                && fs::remove_file(at("renamed")).is_ok()
                && fs::remove_dir(at("new")).is_ok()
        }));
        // From one directory to another, if the version supports it.
        fs::write(at("file"), "").unwrap();
        let moved = succeeds_behind(&rules, version, || {
            fs::rename(at("file"), at("directory/file")).is_ok()
        });
        assert_eq!(moved, version >= ABI::V2, "{version}");
    }
}

#[test]
fn a_file_that_is_moved_out_of_reach_or_into_it_stays_where_it_is() {
    for version in VERSIONS {
        let place = Place::new();
        let rules = place.rules();
        assert!(!succeeds_behind(&rules, version, || fs::rename(
            place.outside.join("file"),
            place.writable.join("stolen")
        )
        .is_ok()));
        assert!(!succeeds_behind(&rules, version, || fs::hard_link(
            place.readable.join("file"),
            place.writable.join("linked")
        )
        .is_ok()));
        assert!(!place.writable.join("stolen").exists());
        assert!(!place.writable.join("linked").exists());
    }
}

#[test]
fn truncating_outside_is_stopped_from_version_3_on() {
    for version in VERSIONS {
        let place = Place::new();
        let file = place.outside.join("file");
        let cut = succeeds_behind(&place.rules(), version, || {
            nix::unistd::truncate(&file, 0).is_ok()
        });
        assert_eq!(cut, version < ABI::V3, "{version}");
        assert_eq!(fs::metadata(&file).unwrap().len() == 0, cut);
    }
}

#[test]
fn no_program_is_executed_wherever_it_lies() {
    let program = "/bin/true";
    let run = || {
        std::process::Command::new(program)
            .status()
            .is_ok_and(|status| status.success())
    };
    for version in VERSIONS {
        let rules = Landlock {
            readable: vec!["/".into()],
            writable: vec!["/".into()],
            ..Landlock::default()
        };
        assert!(!succeeds_behind(&rules, version, run), "{version}");
    }
    assert!(succeeds(run));
}

#[test]
fn a_device_may_be_read_and_written_and_none_be_made() {
    for version in VERSIONS {
        let place = Place::new();
        let rules = place.rules();
        assert!(succeeds_behind(&rules, version, || {
            let null = Path::new("/dev/null");
            fs::write(null, "x").is_ok() && reads(null)
        }));
        assert!(!succeeds_behind(&rules, version, || reads(Path::new(
            "/dev/zero"
        ))));
        let socket = place.writable.join("socket");
        assert!(!succeeds_behind(&rules, version, || UnixListener::bind(
            &socket
        )
        .is_ok()));
        assert!(succeeds(|| UnixListener::bind(&socket).is_ok()));
    }
}

#[test]
fn tcp_is_governed_from_version_4_on_and_listening_never_permitted() {
    let host = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = host.local_addr().unwrap();
    for network in [false, true] {
        for version in VERSIONS {
            let rules = Landlock {
                network,
                ..Landlock::default()
            };
            let connected =
                succeeds_behind(&rules, version, || TcpStream::connect(address).is_ok());
            assert_eq!(connected, network || version < ABI::V4, "{version}");
            let bound =
                succeeds_behind(&rules, version, || TcpListener::bind("127.0.0.1:0").is_ok());
            assert_eq!(bound, version < ABI::V4, "{version}");
        }
    }
}

#[test]
fn a_port_that_is_named_may_be_connected_to_and_no_other() {
    let hosts = [(), ()].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [named, other] = hosts.each_ref().map(|host| host.local_addr().unwrap());
    for version in VERSIONS {
        let rules = Landlock {
            ports: vec![named.port()],
            command: false,
            ..Landlock::default()
        };
        let connects =
            |address| succeeds_behind(&rules, version, move || TcpStream::connect(address).is_ok());
        assert!(connects(named), "{version}");
        assert_eq!(connects(other), version < ABI::V4, "{version}");
    }
}

#[test]
fn abstract_sockets_and_signals_to_others_are_governed_from_version_6_on() {
    use std::os::linux::net::SocketAddrExt;
    let name = format!("altair-landlock-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(name).unwrap();
    let _host = UnixListener::bind_addr(&address).unwrap();
    let host = nix::unistd::Pid::this();
    for version in VERSIONS {
        let rules = Landlock::default();
        let connected = succeeds_behind(&rules, version, || {
            UnixStream::connect_addr(&address).is_ok()
        });
        assert_eq!(connected, version < ABI::V6, "{version}");
        // Signal 0 only checks whether one could be sent.
        let signalled = succeeds_behind(&rules, version, || {
            nix::sys::signal::kill(host, None).is_ok()
        });
        assert_eq!(signalled, version < ABI::V6, "{version}");
        assert!(succeeds_behind(&rules, version, || {
            nix::sys::signal::kill(nix::unistd::Pid::this(), None).is_ok()
        }));
    }
}

#[test]
fn a_version_without_truncate_is_a_degraded_guard_and_says_so() {
    for version in VERSIONS {
        let whole = succeeds(|| take_at(&Landlock::default(), version) == GuardState::InForce);
        assert_eq!(whole, version >= ABI::V3, "{version}");
    }
    assert!(succeeds(|| {
        take_at(&Landlock::default(), ABI::V2)
            == GuardState::Degraded {
                to: "version 2 of Landlock: truncate() and TCP are not governed".into(),
            }
    }));
}

/// Makes `call` fail with `errno`, as some kernels or containers do.
fn without(call: libc::c_long, errno: Errno) {
    let filter = seccompiler::SeccompFilter::new(
        [(call, vec![])].into(),
        seccompiler::SeccompAction::Allow,
        seccompiler::SeccompAction::Errno(errno as u32),
        std::env::consts::ARCH.try_into().unwrap(),
    )
    .unwrap();
    seccompiler::apply_filter(&seccompiler::BpfProgram::try_from(filter).unwrap()).unwrap();
}

#[test]
fn a_kernel_without_it_is_told_from_one_that_has_it_turned_off() {
    for (errno, reason) in [
        (Errno::ENOSYS, NOT_IMPLEMENTED),
        (Errno::EOPNOTSUPP, NOT_ENABLED),
    ] {
        assert!(succeeds(|| {
            without(libc::SYS_landlock_create_ruleset, errno);
            let missing = GuardState::Missing {
                because: reason.into(),
            };
            take(&Landlock::default()) == missing && landlock_version() == Err(reason.into())
        }));
    }
}
