//! firejail, since 0.9.68.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::unistd::{User, geteuid};

use super::{Invocation, Order, RESOLVER, is_below, joined, memory_limit};

/// The exit code if firejail did not confine the command, which is not run then.
pub const UNCONFINED: i32 = 125;

/// Runs the command only in a sandbox.
///
/// Where firejail sees none of the kernel's own processes, as in most containers, it runs a program
/// without any sandbox, and warns of it at most. Only inside of one it sets this variable.
const ONLY_CONFINED: &str = "[ \"$container\" = firejail ] && exec \"$@\"; \
    echo 'firejail makes no sandbox here: it takes this place for one already.' >&2; exit 125";
/// The variable in [`ONLY_CONFINED`].
const MARK: &str = "container";

/// A place that there is nowhere: to show it alone hides the rest.
const NOTHING: &str = "/run/altair-shows-nothing";
const WHITELIST: &str = "--whitelist=";
const READ_ONLY: &str = "--read-only=";
const READ_WRITE: &str = "--read-write=";
/// Places that firejail gives the command anew, or makes read-only with everything below.
const OWN_MOUNTS: [&str; 5] = ["/proc", "/sys", "/dev", "/tmp", "/run"];

/// The command line that runs an order. `home`: the home directory that the system's list of users
/// has for the caller, resolved, if it belongs to the caller.
///
/// The command sees the host's files read-only but for the writable paths, without its home, `/tmp`
/// and `/run`, of which it sees what the policy names. Firejail takes at most 127 arguments, its
/// own among them, of 4 KiB, and 255 variables; it reports more than that and exits with 1.
#[must_use]
pub fn invocation(order: &Order<'_>, home: Option<&Path>) -> Invocation {
    let mut args: Vec<OsString> = [
        "--quiet",
        "--noprofile",
        "--caps.drop=all",
        "--nonewprivs",
        "--seccomp",
        "--noroot",
        "--private-dev",
        "--ipc-namespace",
        // The command's exit code, and not that of what it leaves behind.
        "--deterministic-exit-code",
        "--deterministic-shutdown",
    ]
    .map(Into::into)
    .to_vec();
    if !order.policy.network {
        args.push("--net=none".into());
    }
    args.extend(hiding(order, home));
    args.extend(access(order, home));
    args.push(joined("--env=HOME=", home_of(order)));
    args.extend(["--", "/bin/sh", "-c", ONLY_CONFINED, "sh"].map(Into::into));
    args.extend_from_slice(order.argv);
    let mut env = order.env.to_vec();
    env.retain(|(name, _)| name != MARK);
    Invocation {
        program: order.program.to_owned(),
        args,
        env,
        cwd: order.work_dir.to_owned(),
        limits: memory_limit(order.policy),
        cleanup: None,
    }
}

/// The command's `HOME`: its work directory, unless the policy chooses another. An inherited one is
/// hidden.
fn home_of(order: &Order<'_>) -> OsString {
    let chosen = order.policy.env.iter().find(|(name, _)| name == "HOME");
    chosen.map_or_else(|| order.work_dir.into(), |(_, home)| home.clone())
}

/// Everything of the policy's that the command has to see.
fn shown<'a>(order: &Order<'a>) -> impl Iterator<Item = &'a Path> {
    let paths = order.paths;
    [order.work_dir]
        .into_iter()
        .chain(paths.writable.iter().map(PathBuf::as_path))
        .chain(paths.readable.iter().map(PathBuf::as_path))
}

/// What hides home, `/tmp` and `/run` but for paths in them. A list of what is shown hides the
/// rest, so that the option that hides all would hide these paths, too. `/run` has only the list.
fn hiding(order: &Order<'_>, home: Option<&Path>) -> Vec<OsString> {
    let run = if order.policy.network {
        RESOLVER
    } else {
        NOTHING
    };
    let places = [
        home.map(|home| (home, OsString::from("--private"))),
        Some((Path::new("/tmp"), OsString::from("--private-tmp"))),
        Some((Path::new("/run"), joined(WHITELIST, run))),
    ];
    let mut args = Vec::new();
    for (place, hides) in places.into_iter().flatten() {
        if shown(order).any(|path| path == place) {
            continue;
        }
        let inside: Vec<_> = shown(order).filter(|path| is_below(path, place)).collect();
        if inside.is_empty() || place == Path::new("/run") {
            args.push(hides);
        }
        args.extend(inside.into_iter().map(|path| joined(WHITELIST, path)));
    }
    args
}

/// What makes everything read-only, and then some of it writable; the nearest counts.
fn access(order: &Order<'_>, home: Option<&Path>) -> Vec<OsString> {
    let is_own = |place: &Path| {
        let mut own = OWN_MOUNTS.iter().map(Path::new).chain(home);
        own.any(|own| place.starts_with(own))
    };
    let mut places: Vec<(&Path, &str)> = vec![(Path::new("/"), READ_ONLY)];
    // A directory's being read-only says nothing of what is mounted below it.
    let (readable, writable) = (&order.paths.readable, &order.paths.writable);
    let within = |mount: &Path, paths: &[PathBuf]| paths.iter().any(|path| mount.starts_with(path));
    let mounted = order
        .mounts
        .iter()
        .map(PathBuf::as_path)
        .filter(|mount| within(mount, readable) || !(is_own(mount) || within(mount, writable)));
    places.extend(mounted.map(|mount| (mount, READ_ONLY)));
    places.extend(readable.iter().map(|path| (path.as_path(), READ_ONLY)));
    places.extend(writable.iter().map(|path| (path.as_path(), READ_WRITE)));
    places.push((order.work_dir, READ_WRITE));
    places.sort_by_key(|(path, _)| *path);
    places.dedup();
    places
        .into_iter()
        .map(|(path, option)| joined(option, path))
        .collect()
}

/// The caller's home directory for [`invocation`]. Firejail hides none that belongs to another
/// user, as that of `www-data` may.
#[must_use]
pub fn home() -> Option<PathBuf> {
    let user = geteuid();
    let home = User::from_uid(user).ok().flatten()?.dir;
    let home = home.canonicalize().ok()?;
    let is_own = home.metadata().ok()?.uid() == user.as_raw();
    (is_own && home != Path::new("/")).then_some(home)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Given, difference, strings};
    use super::*;
    use crate::Memory;

    const HOME: Option<&str> = Some("/home/me");

    fn given() -> Given {
        let mut given = Given::new();
        given.seen_at = given.work_dir.clone();
        given
    }

    fn args(given: &Given, home: Option<&str>) -> Vec<OsString> {
        invocation(&given.order(), home.map(Path::new)).args
    }

    #[test]
    fn the_command_sees_the_host_read_only_and_nothing_of_its_user() {
        assert_eq!(
            strings(&args(&given(), HOME)),
            [
                "--quiet",
                "--noprofile",
                "--caps.drop=all",
                "--nonewprivs",
                "--seccomp",
                "--noroot",
                "--private-dev",
                "--ipc-namespace",
                "--deterministic-exit-code",
                "--deterministic-shutdown",
                "--net=none",
                "--private",
                "--private-tmp",
                "--whitelist=/run/altair-shows-nothing",
                "--read-only=/",
                "--read-write=/srv/base/sandbox-abc",
                "--env=HOME=/srv/base/sandbox-abc",
                "--",
                "/bin/sh",
                "-c",
                ONLY_CONFINED,
                "sh",
                "echo",
                "hello",
            ]
        );
        assert_eq!(
            difference(&args(&given(), None), &args(&given(), HOME)),
            (vec![], vec!["--private"])
        );
    }

    #[test]
    fn network_and_memory_follow_the_policy() {
        let mut given = given();
        let base = args(&given, HOME);
        given.policy.network = true;
        // The service that resolves names has a socket there.
        assert_eq!(
            difference(&args(&given, HOME), &base),
            (
                vec!["--whitelist=/run/systemd/resolve"],
                vec!["--net=none", "--whitelist=/run/altair-shows-nothing"]
            )
        );
        for (memory, bytes) in [
            (Memory::Default, Some(128 << 20)),
            (Memory::Megabytes(64), Some(64 << 20)),
            (Memory::Unlimited, None),
        ] {
            given.policy.memory = memory;
            assert_eq!(invocation(&given.order(), None).limits.data_bytes, bytes);
        }
    }

    #[test]
    fn of_hidden_places_the_policys_paths_are_shown() {
        let mut given = given();
        let base = args(&given, HOME);
        given.paths.readable = vec!["/home/me/app".into(), "/run/db/sock".into()];
        given.paths.writable = vec!["/srv/rw".into(), "/tmp/a b:c".into()];
        assert_eq!(
            difference(&args(&given, HOME), &base),
            (
                vec![
                    "--whitelist=/home/me/app",
                    "--whitelist=/tmp/a b:c",
                    "--whitelist=/run/db/sock",
                    "--read-only=/home/me/app",
                    "--read-only=/run/db/sock",
                    "--read-write=/srv/rw",
                    "--read-write=/tmp/a b:c",
                ],
                vec!["--private", "--private-tmp"]
            )
        );
        given.paths.readable = vec!["/home/me".into(), "/run".into()];
        given.paths.writable = vec!["/tmp".into()];
        assert_eq!(
            difference(&args(&given, HOME), &base),
            (
                vec![
                    "--read-only=/home/me",
                    "--read-only=/run",
                    "--read-write=/tmp"
                ],
                vec![
                    "--private",
                    "--private-tmp",
                    "--whitelist=/run/altair-shows-nothing"
                ]
            )
        );
    }

    #[test]
    fn what_is_mounted_is_read_only_too() {
        let mut given = given();
        let base = args(&given, HOME);
        given.paths.readable = vec!["/home/me/app".into()];
        given.paths.writable = vec!["/srv/rw".into()];
        given.mounts.extend(
            [
                "/data",
                "/home/me/disk",
                "/home/me/app/disk",
                "/run/user/1",
                "/srv/rw/disk",
                "/srv",
            ]
            .map(PathBuf::from),
        );
        assert_eq!(
            difference(&args(&given, HOME), &base).0,
            [
                "--whitelist=/home/me/app",
                "--read-only=/data",
                "--read-only=/home/me/app",
                "--read-only=/home/me/app/disk",
                "--read-only=/srv",
                "--read-write=/srv/rw"
            ]
        );
    }

    #[test]
    fn variables_are_its_own_but_the_mark_is_firejails() {
        let mut given = given();
        let base = args(&given, None);
        given.env = [
            ("SECRET", "s3cret"),
            ("container", "firejail"),
            ("HOME", "/home/me"),
        ]
        .map(|(name, value)| (name.into(), value.into()))
        .to_vec();
        let inherited = invocation(&given.order(), None);
        assert_eq!(inherited.args, base);
        assert_eq!(inherited.env.len(), 2);
        given.policy.env = vec![("HOME".into(), "/srv/rw".into())];
        assert_eq!(
            difference(&args(&given, None), &base).0,
            ["--env=HOME=/srv/rw"]
        );
    }
}
