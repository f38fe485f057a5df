//! Docker and Podman.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use altair_sandbox::{Limits, RunAs};

use super::{Invocation, MEMORY_FILES_BYTES, Order, is_below, joined};
use crate::work_dir::NOBODY;

/// The image, unless another is chosen.
pub const DEFAULT_IMAGE: &str = "alpine:3";
/// Processes and threads at a time: few enough that a fork bomb is harmless, enough for a runtime
/// that starts a thread for every job (java starts about 30, node 11).
pub const PROCESSES: u64 = 128;
/// Processors. An engine refuses more than its machine has, and every machine has one.
pub const PROCESSORS: u64 = 1;
/// The least memory that engines give a container, in megabytes ("Minimum memory limit allowed is
/// 6MB").
pub const MIN_MEGABYTES: u64 = 6;

/// Beginnings of the names of variables that a client itself reads.
const CLIENTS: &[&str] = &["DOCKER_", "CONTAINER", "STORAGE_", "XDG_"];
/// More variables that a client itself reads.
const CLIENT: &[&str] = &["HOME", "PATH", "TMPDIR"];

/// Which program it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Docker: a client of a daemon.
    Docker,
    /// Podman.
    Podman,
}

/// What a container needs besides its order.
#[derive(Debug, Clone, Copy)]
pub struct Container<'a> {
    /// Which program it is.
    pub engine: Engine,
    /// The image.
    pub image: &'a OsStr,
    /// The whole environment of the caller: the client's own, in which `DOCKER_HOST` or `HOME` say
    /// where the daemon and the settings are.
    pub client_env: &'a [(OsString, OsString)],
    /// The caller, as whom the command runs. For root it is [`NOBODY`], to whom the work directory
    /// belongs then.
    pub caller: RunAs,
}

impl Container<'_> {
    /// The command line that runs an order in a container.
    ///
    /// The program is the command's: what the image would start instead (its entry point) does not
    /// count. A missing image is pulled by the engine, which takes of the command's time and says
    /// so in its standard error.
    #[must_use]
    pub fn invocation(&self, order: &Order<'_>) -> Invocation {
        let name = name(order.work_dir);
        let mut args: Vec<OsString> = vec!["run".into(), "--rm".into(), joined("--name=", &name)];
        args.extend(self.confinement(order).map(OsString::from));
        args.extend(mounts(order));
        args.push(joined("--workdir=", order.seen_at));
        let env = self.environment(order.env, &mut args);
        if order.has_input {
            args.push("--interactive".into());
        }
        // An empty entry point is none. What follows `--` is no option, whatever it looks like.
        args.extend(["--entrypoint=".into(), "--".into(), self.image.to_owned()]);
        args.extend_from_slice(order.argv);
        Invocation {
            program: order.program.to_owned(),
            args,
            env,
            cwd: "/".into(),
            limits: Limits::default(),
            cleanup: Some(self.removal(&name)),
        }
    }

    fn confinement(&self, order: &Order<'_>) -> impl Iterator<Item = String> {
        let by_root = self.caller.uid == 0;
        let RunAs { uid, gid } = if by_root { NOBODY } else { self.caller };
        let always = [
            "--read-only".to_owned(),
            "--cap-drop=ALL".to_owned(),
            "--security-opt=no-new-privileges".to_owned(),
            format!("--user={uid}:{gid}"),
            format!("--pids-limit={PROCESSES}"),
            format!("--cpus={PROCESSORS}"),
            format!("--tmpfs=/tmp:rw,noexec,nosuid,nodev,size={MEMORY_FILES_BYTES},mode=1777"),
            // Otherwise the engine writes all output to the host's disk.
            "--log-driver=none".to_owned(),
        ];
        let memory = order.policy.memory.bytes().map(|bytes| {
            let bytes = bytes.max(MIN_MEGABYTES << 20);
            // The second is the sum of memory and swap.
            [
                format!("--memory={bytes}"),
                format!("--memory-swap={bytes}"),
            ]
        });
        let network = (!order.policy.network).then(|| "--network=none".to_owned());
        let own: &[&str] = match self.engine {
            // As process 1 a command would ignore signals that end it elsewhere.
            Engine::Docker => &["--init"],
            // Its init is a package of its own, so not everywhere. Without the others it mounts
            // more to write to, passes proxies with their passwords on, and waits 10 s before it
            // removes a container.
            Engine::Podman => &[
                "--read-only-tmpfs=false",
                "--http-proxy=false",
                "--stop-timeout=0",
            ],
        };
        let mapped = self.engine == Engine::Podman && !by_root;
        // Otherwise an ordinary user's containers run as users that cannot read its files.
        let mapped = mapped.then(|| "--userns=keep-id".to_owned());
        always
            .into_iter()
            .chain(memory.into_iter().flatten())
            .chain(network)
            .chain(own.iter().map(ToString::to_string))
            .chain(mapped)
    }

    /// The environment of the client. What the command gets of it is named on the command line,
    /// which everybody on the machine can read: the values are not, unless they would say something
    /// to the client itself.
    fn environment(
        &self,
        command: &[(OsString, OsString)],
        args: &mut Vec<OsString>,
    ) -> Vec<(OsString, OsString)> {
        let mut client = self.client_env.to_vec();
        for (name, value) in command {
            // Podman takes an asterisk for everything that begins like this.
            if name.as_bytes().ends_with(b"*") {
                continue;
            }
            let mut argument = joined("--env=", name);
            let own = client.iter().position(|(known, _)| known == name);
            let is_same = own.is_some_and(|at| &client[at].1 == value);
            if is_clients(name) && !is_same {
                argument.push("=");
                argument.push(value);
            } else {
                match own {
                    Some(at) => client[at].1.clone_from(value),
                    None => client.push((name.clone(), value.clone())),
                }
            }
            args.push(argument);
        }
        client
    }

    /// What removes a container, and kills it if it still runs.
    fn removal(&self, name: &OsStr) -> Vec<OsString> {
        let mut args: Vec<OsString> = ["rm", "--force", "--volumes"].map(Into::into).to_vec();
        if self.engine == Engine::Podman {
            args.push("--ignore".into());
        }
        args.push(name.to_owned());
        args
    }
}

/// The name of the container that works in a directory: as unique as the directory's own.
#[must_use]
pub fn name(work_dir: &Path) -> OsString {
    joined("altair-", work_dir.file_name().unwrap_or_default())
}

fn is_clients(name: &OsStr) -> bool {
    let name = name.as_bytes();
    CLIENT.iter().any(|own| name == own.as_bytes())
        || CLIENTS.iter().any(|own| name.starts_with(own.as_bytes()))
}

fn mounts(order: &Order<'_>) -> Vec<OsString> {
    let mut mounts = vec![mount(order.work_dir, order.seen_at, false)];
    for (i, path) in order.paths.readable.iter().enumerate() {
        let target = PathBuf::from(format!("/mnt/ro{i}"));
        mounts.push(mount(path, &target, true));
        // Before Docker 25, what is mounted below a directory stays writable in it.
        for below in order.mounts.iter().filter(|below| is_below(below, path)) {
            if let Ok(rest) = below.strip_prefix(path) {
                mounts.push(mount(below, &target.join(rest), true));
            }
        }
    }
    for (i, path) in order.paths.writable.iter().enumerate() {
        mounts.push(mount(path, Path::new(&format!("/mnt/rw{i}")), false));
    }
    mounts
}

/// One `--mount`: a record of CSV, in which a path may have any characters but carriage returns.
/// (`--volume` has no place for a path with a colon.)
fn mount(source: &Path, target: &Path, read_only: bool) -> OsString {
    let mut record = b"--mount=type=bind,".to_vec();
    record.extend(field("source=", source));
    record.push(b',');
    record.extend(field("target=", target));
    if read_only {
        record.extend(b",readonly");
    }
    OsString::from_vec(record)
}

fn field(key: &str, path: &Path) -> Vec<u8> {
    let mut field = vec![b'"'];
    field.extend(key.as_bytes());
    for byte in path.as_os_str().as_bytes() {
        field.push(*byte);
        if *byte == b'"' {
            field.push(*byte);
        }
    }
    field.push(b'"');
    field
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Given, difference, strings};
    use super::*;
    use crate::Memory;

    fn container(engine: Engine) -> Container<'static> {
        Container {
            engine,
            image: OsStr::new("alpine:3"),
            client_env: &[],
            caller: RunAs {
                uid: 1000,
                gid: 100,
            },
        }
    }

    fn args(given: &Given) -> Vec<OsString> {
        container(Engine::Docker).invocation(&given.order()).args
    }

    #[test]
    fn a_container_may_nothing_unless_allowed() {
        let given = Given::new();
        let docker = container(Engine::Docker).invocation(&given.order());
        assert_eq!(
            strings(&docker.args),
            [
                "run",
                "--rm",
                "--name=altair-sandbox-abc",
                "--read-only",
                "--cap-drop=ALL",
                "--security-opt=no-new-privileges",
                "--user=1000:100",
                "--pids-limit=128",
                "--cpus=1",
                "--tmpfs=/tmp:rw,noexec,nosuid,nodev,size=67108864,mode=1777",
                "--log-driver=none",
                "--memory=134217728",
                "--memory-swap=134217728",
                "--network=none",
                "--init",
                "--mount=type=bind,\"source=/srv/base/sandbox-abc\",\"target=/work\"",
                "--workdir=/work",
                "--entrypoint=",
                "--",
                "alpine:3",
                "echo",
                "hello",
            ]
        );
        assert_eq!(docker.limits, Limits::default());
        assert_eq!(
            strings(&docker.cleanup.unwrap_or_default()),
            ["rm", "--force", "--volumes", "altair-sandbox-abc"]
        );
        let podman = container(Engine::Podman).invocation(&given.order());
        assert_eq!(
            difference(&podman.args, &docker.args),
            (
                vec![
                    "--read-only-tmpfs=false",
                    "--http-proxy=false",
                    "--stop-timeout=0",
                    "--userns=keep-id"
                ],
                vec!["--init"]
            )
        );
        assert_eq!(
            strings(&podman.cleanup.unwrap_or_default()),
            [
                "rm",
                "--force",
                "--volumes",
                "--ignore",
                "altair-sandbox-abc"
            ]
        );
        let mut roots = container(Engine::Podman);
        roots.caller = RunAs { uid: 0, gid: 0 };
        let roots = roots.invocation(&given.order()).args;
        assert_eq!(
            difference(&podman.args, &roots),
            (
                vec!["--user=1000:100", "--userns=keep-id"],
                vec!["--user=65534:65534"]
            )
        );
    }

    #[test]
    fn network_memory_and_input_follow_the_policy() {
        let base = args(&Given::new());
        let mut given = Given::new();
        given.policy.network = true;
        assert_eq!(
            difference(&args(&given), &base),
            (vec![], vec!["--network=none"])
        );

        let memory = |memory: Memory| {
            let mut given = Given::new();
            given.policy.memory = memory;
            let mut args = args(&given);
            args.retain(|arg| arg.as_bytes().starts_with(b"--memory"));
            args
        };
        assert_eq!(
            strings(&memory(Memory::Megabytes(64))),
            ["--memory=67108864", "--memory-swap=67108864"]
        );
        assert_eq!(
            strings(&memory(Memory::Megabytes(1))),
            ["--memory=6291456", "--memory-swap=6291456"]
        );
        assert_eq!(memory(Memory::Unlimited), [] as [&str; 0]);

        let mut given = Given::new();
        given.has_input = true;
        assert_eq!(
            difference(&args(&given), &base),
            (vec!["--interactive"], vec![])
        );
    }

    #[test]
    fn paths_of_any_name_are_mounted_and_what_is_mounted_below_them() {
        let mut given = Given::new();
        given.paths.readable = vec!["/srv/a,b".into(), "/srv/c:d e\"f\ng".into()];
        given.paths.writable = vec!["/srv/rw".into()];
        given.mounts.extend([
            "/srv/a,b".into(),
            "/srv/a,b/disk/1".into(),
            "/srv/a,bc".into(),
            "/srv/rw/disk".into(),
        ]);
        assert_eq!(
            difference(&args(&given), &args(&Given::new())).0,
            [
                "--mount=type=bind,\"source=/srv/a,b\",\"target=/mnt/ro0\",readonly",
                "--mount=type=bind,\"source=/srv/a,b/disk/1\",\"target=/mnt/ro0/disk/1\",readonly",
                "--mount=type=bind,\"source=/srv/c:d e\"\"f\ng\",\"target=/mnt/ro1\",readonly",
                "--mount=type=bind,\"source=/srv/rw\",\"target=/mnt/rw0\"",
            ]
        );
    }

    #[test]
    fn values_do_not_show_and_do_not_steer_the_client() {
        let mut given = Given::new();
        given.env = [
            ("SECRET", "s3cret"),
            ("APP_ENV", "test"),
            ("HOME", "/work"),
            ("LANG", "C"),
            ("DOCKER_HOST", "tcp://elsewhere"),
            ("PATH", "/bin"),
            ("A*", "x"),
        ]
        .map(|(name, value)| (name.into(), value.into()))
        .to_vec();
        let client = [
            ("HOME", "/home/me"),
            ("PATH", "/bin"),
            ("APP_ENV", "prod"),
            ("AWS_PROFILE", "mine"),
        ]
        .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let mut container = container(Engine::Docker);
        container.client_env = &client;
        let invocation = container.invocation(&given.order());
        assert_eq!(
            difference(&invocation.args, &args(&Given::new())).0,
            [
                "--env=SECRET",
                "--env=APP_ENV",
                "--env=HOME=/work",
                "--env=LANG",
                "--env=DOCKER_HOST=tcp://elsewhere",
                "--env=PATH",
            ]
        );
        assert_eq!(
            invocation.env,
            [
                ("HOME", "/home/me"),
                ("PATH", "/bin"),
                ("APP_ENV", "test"),
                ("AWS_PROFILE", "mine"),
                ("SECRET", "s3cret"),
                ("LANG", "C"),
            ]
            .map(|(name, value)| (name.into(), value.into()))
        );
    }

    #[test]
    fn neither_image_nor_command_becomes_an_option() {
        let mut given = Given::new();
        given.argv = vec!["--privileged".into(), "-v".into()];
        let mut container = container(Engine::Docker);
        container.image = OsStr::new("--rm");
        let args = container.invocation(&given.order()).args;
        assert_eq!(
            strings(&args[args.len() - 4..]),
            ["--", "--rm", "--privileged", "-v"]
        );
    }
}
