//! The sandboxes that callers enter, and in what they differ from the pool then.

use std::fs;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::libc;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, fork};

use crate::is_root;

/// The control group of a service.
pub const SERVICE: &str = "altair-test.service";
const NEW_TIME: CloneFlags = CloneFlags::from_bits_retain(libc::CLONE_NEWTIME);
/// The user and group without rights, by Debian's numbers.
pub const NOBODY: u32 = 65534;
/// `CAP_CHOWN`, the capability 0.
const CHOWN: u64 = 1;

/// What a caller enters, and in what it differs then.
pub fn confinements() -> Vec<(&'static str, &'static str)> {
    let mut all = vec![("traced", "tracer")];
    // A container may have it already.
    if !nix::sys::prctl::get_no_new_privs().unwrap() {
        all.push(("no_new_privs", "no_new_privs"));
    }
    if may_make_users() {
        all.push(("user", "namespaces"));
    }
    if is_root() {
        all.extend(
            [
                "uts",
                "ipc",
                "net",
                "mnt",
                "cgroup",
                "pid_for_children",
                "pid",
                "time",
            ]
            .map(|n| (n, "namespaces")),
        );
        all.extend([("time_for_children", "namespaces")]);
        all.extend(["uid", "gid", "groups"].map(|name| (name, "user or groups")));
        all.extend(["effective", "bounding", "inheritable"].map(|name| (name, "capabilities")));
        all.extend([
            ("filter", "system call filters"),
            ("chroot", "root directory"),
        ]);
        if group("altair-test").is_some_and(|group| fs::create_dir(&group).is_ok()) {
            all.push(("cgroup_path", "cgroup"));
        }
    }
    all
}

/// Whether a system lets this user make namespaces of users.
fn may_make_users() -> bool {
    // SAFETY: there is one thread.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            let made = unshare(CloneFlags::CLONE_NEWUSER);
            std::process::exit(i32::from(made.is_err()))
        }
        ForkResult::Parent { child } => {
            waitpid(child, None) == Ok(nix::sys::wait::WaitStatus::Exited(child, 0))
        }
    }
}

/// Confines this process.
pub fn enter(confinement: &str) {
    let namespace = |flag| unshare(flag).unwrap();
    match confinement {
        "none" => {}
        "no_new_privs" => nix::sys::prctl::set_no_new_privs().unwrap(),
        "dumpless" => nix::sys::prctl::set_dumpable(false).unwrap(),
        "traced" => trace(),
        "user" => {
            let had = capabilities();
            namespace(CloneFlags::CLONE_NEWUSER);
            reduce(had);
        }
        "uts" => namespace(CloneFlags::CLONE_NEWUTS),
        "ipc" => namespace(CloneFlags::CLONE_NEWIPC),
        "net" => namespace(CloneFlags::CLONE_NEWNET),
        "mnt" => namespace(CloneFlags::CLONE_NEWNS),
        "cgroup" => namespace(CloneFlags::CLONE_NEWCGROUP),
        "pid_for_children" => namespace(CloneFlags::CLONE_NEWPID),
        "pid" => {
            namespace(CloneFlags::CLONE_NEWPID);
            go_on_as_a_child();
        }
        "container" => {
            namespace(CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS);
            go_on_as_a_child();
            let none = None::<&str>;
            mount(Some("proc"), "/proc", Some("proc"), MsFlags::empty(), none).unwrap();
        }
        "time_for_children" => namespace(NEW_TIME),
        "time" => {
            namespace(NEW_TIME);
            go_on_as_a_child();
        }
        // SAFETY: no pointer is passed. The effective and saved ids, and so the capabilities, stay.
        "uid" => done(unsafe { libc::setresuid(65534, u32::MAX, u32::MAX) }),
        // SAFETY: as above.
        "gid" => done(unsafe { libc::setresgid(65534, u32::MAX, u32::MAX) }),
        "groups" => nix::unistd::setgroups(&[nix::unistd::Gid::from_raw(65534)]).unwrap(),
        "effective" => {
            let had = capabilities();
            set(Capabilities {
                effective: had.effective & !CHOWN,
                ..had
            });
        }
        "inheritable" => {
            let had = capabilities();
            set(Capabilities {
                inheritable: had.inheritable | CHOWN,
                ..had
            });
        }
        // SAFETY: no pointer is passed.
        "bounding" => done(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, 0, 0, 0, 0) }),
        "filter" => filter(),
        "landlock" => landlock(),
        "nobody" => become_nobody(),
        // Its capabilities, when it changes its user.
        "keeping" => nix::sys::prctl::set_keepcaps(true).unwrap(),
        "powerless" => set(Capabilities {
            inheritable: 0,
            permitted: 0,
            effective: 0,
            bounding: 0,
        }),
        "landlock nobody" => {
            landlock();
            become_nobody();
        }
        "chroot" => {
            let trial = std::env::var("TRIAL").unwrap();
            let with_all = MsFlags::MS_BIND | MsFlags::MS_REC;
            mount(
                Some("/"),
                trial.as_str(),
                None::<&str>,
                with_all,
                None::<&str>,
            )
            .unwrap();
            nix::unistd::chroot(trial.as_str()).unwrap();
            nix::unistd::chdir("/").unwrap();
        }
        "cgroup_path" => join("altair-test"),
        "service" => join(SERVICE),
        "service filter" => {
            join(SERVICE);
            filter();
        }
        other => panic!("{other}"),
    }
}

/// Has nobody look into this process, as the kernel does when a process changes its user.
pub fn hide() {
    nix::sys::prctl::set_dumpable(false).unwrap();
}

/// Gives up all capabilities that a new user namespace has given, and what that could get.
pub fn reduce_to_nothing() {
    let Capabilities { bounding, .. } = capabilities();
    set(Capabilities {
        inheritable: 0,
        permitted: 0,
        effective: 0,
        bounding,
    });
}

/// Goes on as a user without capabilities, into whose processes others of the user may look.
pub fn become_nobody() {
    nix::unistd::setgroups(&[]).unwrap();
    // SAFETY: no pointer is passed.
    done(unsafe { libc::setresgid(NOBODY, NOBODY, NOBODY) });
    // SAFETY: as above.
    done(unsafe { libc::setresuid(NOBODY, NOBODY, NOBODY) });
    nix::sys::prctl::set_dumpable(true).unwrap();
}

/// A control group for callers, of the version that the pool looks at.
pub fn group(name: &str) -> Option<PathBuf> {
    let places = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
    let is_one = |place: &&str| Path::new(place).join("cgroup.procs").exists();
    let place = places.into_iter().find(is_one)?;
    Some(Path::new(place).join(name))
}

fn join(name: &str) {
    fs::write(group(name).unwrap().join("cgroup.procs"), "0").unwrap();
}

/// Goes on in a child, for which this process waits.
pub fn go_on_as_a_child() {
    // SAFETY: there is one thread.
    if let ForkResult::Parent { child } = unsafe { fork() }.unwrap() {
        let _ = waitpid(child, None);
        std::process::exit(0);
    }
}

/// Goes on in a child that this process traces.
fn trace() {
    // SAFETY: there is one thread.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            let nothing = std::ptr::null_mut::<libc::c_void>();
            // SAFETY: the request takes no pointer.
            let traced = unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, nothing, nothing) };
            Errno::result(traced).unwrap();
        }
        ForkResult::Parent { child } => {
            let mut status = 0;
            // SAFETY: the status outlives the call.
            while unsafe { libc::waitpid(child.as_raw(), &raw mut status, 0) } > 0 {
                if libc::WIFSTOPPED(status) {
                    let nothing = std::ptr::null_mut::<libc::c_void>();
                    let signal = std::ptr::without_provenance_mut::<libc::c_void>(
                        usize::try_from(libc::WSTOPSIG(status)).unwrap(),
                    );
                    // SAFETY: the request takes a number in place of a pointer.
                    unsafe { libc::ptrace(libc::PTRACE_CONT, child.as_raw(), nothing, signal) };
                }
            }
            std::process::exit(0);
        }
    }
}

/// Sets of capabilities, a bit for each.
#[derive(Clone, Copy)]
struct Capabilities {
    inheritable: u64,
    permitted: u64,
    effective: u64,
    bounding: u64,
}

/// This process's.
fn capabilities() -> Capabilities {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        u64::from_str_radix(line.unwrap().trim(), 16).unwrap()
    };
    Capabilities {
        inheritable: of("CapInh:"),
        permitted: of("CapPrm:"),
        effective: of("CapEff:"),
        bounding: of("CapBnd:"),
    }
}

/// Sets all but the bounding set (capset(2)).
fn set(to: Capabilities) {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    let header = Header {
        version: 0x2008_0522,
        pid: 0,
    };
    let half =
        |shift: u32| [to.effective, to.permitted, to.inheritable].map(|set| (set >> shift) as u32);
    let data = [half(0), half(32)];
    // SAFETY: both are laid out as the call of this version reads them, and outlive it.
    let result = unsafe { libc::syscall(libc::SYS_capset, &raw const header, &raw const data) };
    Errno::result(result).unwrap();
}

/// Drops what was not there before.
fn reduce(had: Capabilities) {
    for capability in 0..64_u32 {
        if had.bounding >> capability & 1 == 0 {
            // SAFETY: no pointer is passed. The kernel may not have this one.
            unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        }
    }
    set(had);
}

/// Adds a filter that allows everything.
fn filter() {
    let mut allow = libc::sock_filter {
        code: 0x06,
        jt: 0,
        jf: 0,
        k: libc::SECCOMP_RET_ALLOW,
    };
    let program = libc::sock_fprog {
        len: 1,
        filter: &raw mut allow,
    };
    // SAFETY: the program is of one instruction; the kernel copies it.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            0,
            &raw const program,
        )
    };
    Errno::result(result).unwrap();
}

/// Refuses to make devices, by Landlock.
fn landlock() {
    const MAKE_CHAR: u64 = 1 << 6;
    let handled = MAKE_CHAR;
    // SAFETY: the attributes are of the first field alone, which outlives the call.
    let ruleset = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            &raw const handled,
            size_of_val(&handled),
            0,
        )
    };
    let ruleset = Errno::result(ruleset).unwrap();
    // SAFETY: no pointer is passed.
    let result = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0) };
    Errno::result(result).unwrap();
}

pub fn done(result: libc::c_int) {
    Errno::result(result).unwrap();
}
