//! seccomp alone, against links, devices, set-id files and changes of metadata: each attack
//! succeeds without it and fails with it, seen from outside where that is possible.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::attack::Guarded::Not;
use common::attack::{SECCOMP, WITHOUT_METADATA, attack, c, call, say};
use libc::EPERM;

attacks![link_files, change_metadata];

fn link_files(path: &str) {
    let (from, hard, soft) = (
        c(path),
        c(&format!("{path}.hard")),
        c(&format!("{path}.soft")),
    );
    let at = libc::AT_FDCWD as u64;
    let [from, hard, soft] = [&from, &hard, &soft].map(|path| path.as_ptr() as u64);
    say("link", call(libc::SYS_linkat, &[at, from, at, hard, 0]));
    say("symlink", call(libc::SYS_symlinkat, &[from, at, soft]));
    let device = c(&format!("{path}.device"));
    let device = device.as_ptr() as u64;
    let null = libc::makedev(1, 3);
    let mode = u64::from(libc::S_IFCHR | 0o600);
    say("device", call(libc::SYS_mknodat, &[at, device, mode, null]));
    let set_id = c(&format!("{path}.set_id"));
    let flags = (libc::O_CREAT | libc::O_WRONLY) as u64;
    say(
        "set_id",
        call(
            libc::SYS_openat,
            &[at, set_id.as_ptr() as u64, flags, 0o4755],
        ),
    );
}

#[test]
fn no_link_device_or_set_id_file_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let entries = || std::fs::read_dir(dir.path()).unwrap().count();
    let attacked = attack("link_files", SECCOMP, file.to_str().unwrap());
    for refused in ["link", "symlink", "device", "set_id"] {
        assert_eq!(attacked.errno(refused), EPERM, "{refused}");
    }
    assert_eq!(entries(), 1);
    attack("link_files", Not, file.to_str().unwrap());
    assert_eq!(entries(), if common::is_root() { 5 } else { 4 });
}

fn change_metadata(path: &str) {
    let file = c(path);
    let at = libc::AT_FDCWD as u64;
    let pointer = file.as_ptr() as u64;
    say("chmod", call(libc::SYS_fchmodat, &[at, pointer, 0o600]));
    say("set_id", call(libc::SYS_fchmodat, &[at, pointer, 0o4600]));
    let opened = call(libc::SYS_openat, &[at, pointer, libc::O_RDONLY as u64]);
    let descriptor = u64::try_from(opened).unwrap();
    say(
        "by_descriptor",
        call(libc::SYS_fchmod, &[descriptor, 0o600]),
    );
    say(
        "set_id_by_descriptor",
        call(libc::SYS_fchmod, &[descriptor, 0o4600]),
    );
    say("utimes", call(libc::SYS_utimensat, &[at, pointer, 0, 0]));
    let owner = u64::from(u32::MAX);
    say(
        "chown",
        call(libc::SYS_fchownat, &[at, pointer, owner, owner, 0]),
    );
    let name = c("user.altair");
    say(
        "xattr",
        call(libc::SYS_removexattr, &[pointer, name.as_ptr() as u64]),
    );
}

#[test]
fn metadata_changes_where_the_policy_says_so_but_for_set_id_bits() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let attacked = attack("change_metadata", WITHOUT_METADATA, path);
    let all = [
        "chmod",
        "set_id",
        "by_descriptor",
        "set_id_by_descriptor",
        "utimes",
        "chown",
        "xattr",
    ];
    for refused in all {
        assert_eq!(attacked.errno(refused), EPERM, "{refused}");
    }
    let attacked = attack("change_metadata", SECCOMP, path);
    for made in ["chmod", "by_descriptor", "utimes", "chown"] {
        assert_eq!(attacked.errno(made), 0, "{made}");
    }
    assert_ne!(attacked.errno("xattr"), EPERM);
    let unguarded = attack("change_metadata", Not, path);
    for set_id in ["set_id", "set_id_by_descriptor"] {
        assert_eq!(attacked.errno(set_id), EPERM, "{set_id}");
        assert_eq!(unguarded.errno(set_id), 0, "{set_id}");
    }
}
