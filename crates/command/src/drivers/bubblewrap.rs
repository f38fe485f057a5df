//! bubblewrap.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use altair_sandbox::{Launch, Limits, Policy, Role, Stdio, run};

use super::{Invocation, MEMORY_FILES_BYTES, Order, RESOLVER, memory_limit};

/// What its root is made of, and what its program can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bubblewrap {
    /// The entries of the host's root.
    pub root: Vec<Entry>,
    /// Whether the program can bound file systems in memory (`--size`, since 0.7).
    pub sizes: bool,
}

/// An entry of the host's root directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its path.
    pub path: PathBuf,
    /// Where it leads to, if it is a symlink.
    pub target: Option<PathBuf>,
}

/// Time for the program to print its help.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes kept of this help: all of it.
const HELP_BYTES: usize = 64 << 10;

/// Where the command has something of its own instead of the host's.
///
/// Sockets in `/run` can be connected to although it is read-only; a container engine's gives its
/// users the machine.
const HIDDEN: [&str; 2] = ["/tmp", "/run"];

/// What is at a place in the command's root.
#[derive(Debug, PartialEq, Eq)]
enum Mount {
    Symlink(PathBuf),
    ReadOnly,
    ReadOnlyIfThere,
    Writable(PathBuf),
    Processes,
    Devices,
    Memory,
}

impl Bubblewrap {
    /// Looks at this machine.
    ///
    /// # Errors
    /// The system's error, where `/` cannot be listed.
    pub fn inspect(program: &Path) -> io::Result<Self> {
        let mut root = Vec::new();
        for entry in std::fs::read_dir("/")? {
            let path = entry?.path();
            let target = path.read_link().ok();
            root.push(Entry { path, target });
        }
        Ok(Self {
            root,
            sizes: takes_sizes(program),
        })
    }

    /// The command line that runs an order.
    ///
    /// The command sees the host's files, read-only but for the writable paths, and has its own
    /// `/proc`, `/dev`, `/tmp` and `/run`. Its variables are the program's own, so none shows in a
    /// list of processes.
    #[must_use]
    pub fn invocation(&self, order: &Order<'_>) -> Invocation {
        let mut args: Vec<OsString> = [
            "--unshare-all",
            "--die-with-parent",
            "--new-session",
            "--cap-drop",
            "ALL",
        ]
        .map(Into::into)
        .to_vec();
        if order.policy.network {
            args.push("--share-net".into());
        }
        let mounts = self.mounts(order);
        for (place, mount) in &mounts {
            args.extend(self.arguments(place, mount));
        }
        // Last, as places to mount on have to be made in them. What only root may write in /proc
        // changes the whole machine (`kernel.core_pattern`), and root's command is root there.
        for place in ["/", "/dev", "/proc", "/run"] {
            if !matches!(
                mounts.get(Path::new(place)),
                Some(Mount::Writable(_) | Mount::ReadOnly)
            ) {
                args.extend(["--remount-ro".into(), place.into()]);
            }
        }
        args.extend(["--chdir".into(), order.seen_at.into(), "--".into()]);
        args.extend_from_slice(order.argv);
        Invocation {
            program: order.program.to_owned(),
            args,
            env: order.env.to_vec(),
            cwd: order.work_dir.to_owned(),
            limits: memory_limit(order.policy),
            cleanup: None,
        }
    }

    /// What is where, parents first. A path of the policy has its place, whatever would be there.
    fn mounts(&self, order: &Order<'_>) -> BTreeMap<PathBuf, Mount> {
        let paths = order.paths;
        let mut mounts = BTreeMap::new();
        if paths.writable.iter().all(|path| path != Path::new("/")) {
            for entry in &self.root {
                let mount = match &entry.target {
                    Some(target) => Mount::Symlink(target.clone()),
                    None => Mount::ReadOnly,
                };
                mounts.insert(entry.path.clone(), mount);
            }
        }
        for hidden in HIDDEN {
            mounts.insert(hidden.into(), Mount::Memory);
        }
        mounts.insert("/dev/shm".into(), Mount::Memory);
        if order.policy.network {
            mounts.insert(RESOLVER.into(), Mount::ReadOnlyIfThere);
        }
        // The root can be read anyway.
        for path in paths.readable.iter().filter(|path| *path != Path::new("/")) {
            mounts.insert(path.clone(), Mount::ReadOnly);
        }
        for path in &paths.writable {
            mounts.insert(path.clone(), Mount::Writable(path.clone()));
        }
        mounts.retain(|place, _| !place.starts_with("/proc"));
        mounts.insert("/proc".into(), Mount::Processes);
        mounts.insert("/dev".into(), Mount::Devices);
        mounts.insert(
            order.seen_at.to_owned(),
            Mount::Writable(order.work_dir.to_owned()),
        );
        mounts
    }

    fn arguments(&self, place: &Path, mount: &Mount) -> Vec<OsString> {
        let place = OsString::from(place);
        match mount {
            Mount::Symlink(target) => vec!["--symlink".into(), target.into(), place],
            Mount::ReadOnly => vec!["--ro-bind".into(), place.clone(), place],
            Mount::ReadOnlyIfThere => vec!["--ro-bind-try".into(), place.clone(), place],
            Mount::Writable(source) => vec!["--bind".into(), source.into(), place],
            Mount::Processes => vec!["--proc".into(), place],
            Mount::Devices => vec!["--dev".into(), place],
            Mount::Memory if self.sizes => vec![
                "--size".into(),
                MEMORY_FILES_BYTES.to_string().into(),
                "--tmpfs".into(),
                place,
            ],
            Mount::Memory => vec!["--tmpfs".into(), place],
        }
    }
}

/// Whether the program's help mentions `--size`.
fn takes_sizes(program: &Path) -> bool {
    let launch = Launch {
        program: program.to_owned(),
        name: None,
        args: vec!["--help".into()],
        env: Vec::new(),
        cwd: "/".into(),
        channel: None,
        stdio: Stdio::Captured { input: None },
        policy: Policy {
            limits: Limits::default(),
            ..Policy::unconfined()
        },
        role: Role::Program,
    };
    run(launch, PATIENCE, HELP_BYTES).is_ok_and(|ended| {
        let help = [ended.stdout.head, ended.stderr.head].concat();
        help.windows(7).any(|word| word == b"--size ")
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Given, strings};
    use super::*;
    use crate::Memory;

    fn bubblewrap() -> Bubblewrap {
        let entry = |path: &str, target: Option<&str>| Entry {
            path: path.into(),
            target: target.map(Into::into),
        };
        Bubblewrap {
            root: vec![
                entry("/usr", None),
                entry("/bin", Some("usr/bin")),
                entry("/tmp", None),
                entry("/proc", None),
                entry("/dev", None),
                entry("/run", None),
            ],
            sizes: true,
        }
    }

    /// The arguments as one line, from the first mount to the end.
    fn line(bubblewrap: &Bubblewrap, given: &Given) -> String {
        let args = bubblewrap.invocation(&given.order()).args;
        strings(&args).join(" ")
    }

    #[test]
    fn the_command_sees_the_host_read_only() {
        assert_eq!(
            line(&bubblewrap(), &Given::new()),
            "--unshare-all --die-with-parent --new-session --cap-drop ALL \
             --symlink usr/bin /bin --dev /dev --size 67108864 --tmpfs /dev/shm --proc /proc \
             --size 67108864 --tmpfs /run --size 67108864 --tmpfs /tmp --ro-bind /usr /usr \
             --bind /srv/base/sandbox-abc /work --remount-ro / --remount-ro /dev \
             --remount-ro /proc --remount-ro /run --chdir /work -- echo hello"
        );
        let mut older = bubblewrap();
        older.sizes = false;
        assert!(!line(&older, &Given::new()).contains("--size"));
    }

    #[test]
    fn network_and_memory_follow_the_policy() {
        let mut given = Given::new();
        given.policy.network = true;
        let allowed = line(&bubblewrap(), &given);
        assert!(allowed.contains(" --share-net "), "{allowed}");
        let resolver = "--ro-bind-try /run/systemd/resolve /run/systemd/resolve";
        assert!(allowed.contains(resolver), "{allowed}");
        for (memory, bytes) in [
            (Memory::Default, Some(128 << 20)),
            (Memory::Megabytes(64), Some(64 << 20)),
            (Memory::Unlimited, None),
        ] {
            given.policy.memory = memory;
            let limits = bubblewrap().invocation(&given.order()).limits;
            assert_eq!(limits.data_bytes, bytes);
        }
    }

    #[test]
    fn paths_are_at_their_own_places_and_the_nearest_counts() {
        let mut given = Given::new();
        given.work_dir = "/tmp/base/sandbox-abc".into();
        given.seen_at = given.work_dir.clone();
        given.paths.readable = vec!["/".into(), "/proc/1".into(), "/tmp/rw/a b".into()];
        given.paths.writable = vec!["/tmp/rw".into()];
        let line = line(&bubblewrap(), &given);
        assert!(
            line.contains(
                "--tmpfs /tmp --bind /tmp/base/sandbox-abc /tmp/base/sandbox-abc \
                 --bind /tmp/rw /tmp/rw --ro-bind /tmp/rw/a b /tmp/rw/a b --ro-bind /usr /usr"
            ),
            "{line}"
        );
        assert!(!line.contains("/proc/1"), "{line}");
    }

    #[test]
    fn a_policys_place_is_not_hidden() {
        let mut given = Given::new();
        given.seen_at = given.work_dir.clone();
        given.paths.readable = vec!["/run".into()];
        given.paths.writable = vec!["/".into(), "/tmp".into()];
        let line = line(&bubblewrap(), &given);
        assert!(
            line.contains(
                "--bind / / --dev /dev --size 67108864 --tmpfs /dev/shm --proc /proc \
                 --ro-bind /run /run --bind /srv/base/sandbox-abc /srv/base/sandbox-abc \
                 --bind /tmp /tmp --remount-ro /dev --remount-ro /proc --chdir"
            ),
            "{line}"
        );
    }

    #[test]
    fn variables_and_commands_are_no_options() {
        let mut given = Given::new();
        given.env = vec![("SECRET".into(), "s3cret".into())];
        given.argv = vec!["--bind".into()];
        let invocation = bubblewrap().invocation(&given.order());
        assert_eq!(invocation.env, given.env);
        let args = strings(&invocation.args);
        assert_eq!(args[args.len() - 2..], ["--", "--bind"]);
        assert!(!args.join(" ").contains("s3cret"));
    }
}
