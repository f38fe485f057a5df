//! The private root where `pivot_root` alone is refused, as by the default filter of container engines:
//! the old root stays in the namespace, and no way leads back to it.
#![allow(clippy::unwrap_used, clippy::expect_used, unsafe_code)]

mod common;

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use altair_sandbox::{Policy, Privileges, Shown, Writes};
use common::attack::{Guarded, attack_under, c, call, say};
use common::view::{Place, as_each_user, with_writes};
use common::{LONG, is_root};
use nix::libc;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

attacks!(
    upwards,
    root_of_its_own,
    unmount,
    unmount_in_a_namespace_of_its_own,
    descriptors,
);

/// Refuses the call for the calling thread and everything that it starts.
fn without_pivot_root() {
    let refused = [(libc::SYS_pivot_root, vec![])];
    let filter = SeccompFilter::new(
        refused.into_iter().collect(),
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EPERM as u32),
        std::env::consts::ARCH.try_into().unwrap(),
    );
    let program: BpfProgram = filter.unwrap().try_into().unwrap();
    seccompiler::apply_filter(&program).unwrap();
    assert_eq!(call(libc::SYS_pivot_root, &[0, 0]), -1);
    assert_eq!(nix::errno::Errno::last(), nix::errno::Errno::EPERM);
}

#[test]
fn the_view_is_the_same() {
    without_pivot_root();
    as_each_user(|place| {
        let (seen, changes) = place.run(
            "cat file; echo; ls -A /; cat ../secret 2>/dev/null; echo x > new; mkdir /tmp/a && ls -d /tmp/a",
            place.view(),
        );
        let lines: Vec<&str> = seen.lines().collect();
        assert!(
            lines.contains(&"content") && lines.contains(&"/tmp/a"),
            "{seen}"
        );
        assert!(!seen.contains("the secret"), "{seen}");
        for absent in ["proc", "sys", "root", "home"] {
            assert!(!lines.contains(&absent), "{absent}: {seen}");
        }
        assert_eq!(changes.len(), 1);
        assert!(!place.path("app/new").exists());
    });
}

/// What an attack prints that has read the secret.
const REACHED: &str = "reached";

/// Runs an attack on the secret beside the project, in a view that shows the attacker's program.
fn attacked(place: &Place, name: &str, privileges: Privileges) -> String {
    let mut view = with_writes(place, Writes::Refused);
    let program = std::env::current_exe().unwrap();
    view.readable.push(Shown::of_system(
        program.parent().unwrap().to_str().unwrap(),
    ));
    let policy = Policy {
        view: Some(view),
        privileges,
        ..Policy::unconfined()
    };
    let secret = place.path("secret");
    let attacked = attack_under(policy, name, Guarded::Not, secret.to_str().unwrap(), LONG);
    let output = attacked.output();
    assert!(
        output.ends_with("over\n"),
        "{output}{}",
        String::from_utf8_lossy(&attacked.ended.stderr.head)
    );
    output
}

/// The attacks are real: with the capabilities of root one of them reaches the old root.
#[test]
fn with_capabilities_there_is_a_way_back() {
    if !is_root() {
        return; // An ordinary user's program has none to keep.
    }
    without_pivot_root();
    let place = Place::new(None);
    let output = attacked(&place, "unmount", Privileges::Keep);
    assert!(output.contains(REACHED), "{output}");
}

/// This is no ordinary chroot: not even root with all capabilities leaves it by a root of its own.
#[test]
fn another_root_does_not_lead_back() {
    if !is_root() {
        return;
    }
    without_pivot_root();
    let place = Place::new(None);
    let output = attacked(&place, "root_of_its_own", Privileges::Keep);
    assert!(output.contains("chroot 0\n"), "{output}");
    assert!(!output.contains(REACHED), "{output}");
}

#[test]
fn no_way_leads_back() {
    without_pivot_root();
    // Of the host's, not closed by exec: the start has to close it.
    assert!(
        call(
            libc::SYS_openat,
            &[u64::MAX, path(&c("/")), libc::O_DIRECTORY as u64]
        ) >= 0
    );
    as_each_user(|place| {
        for name in [
            "upwards",
            "root_of_its_own",
            "unmount",
            "unmount_in_a_namespace_of_its_own",
            "descriptors",
        ] {
            let output = attacked(place, name, Privileges::Drop { run_as: None });
            assert!(!output.contains(REACHED), "{name}: {output}");
            for refused in ["chroot", "umount", "setns"] {
                assert!(
                    !output.contains(&format!("{refused} 0\n")),
                    "{name}: {output}"
                );
            }
        }
    });
}

/// Looks for the secret below the root and the working directory, and as many levels above them as it
/// is deep.
fn look(secret: &str) {
    let up = "../".repeat(Path::new(secret).components().count() + 8);
    for way in [
        secret.to_owned(),
        format!("/{up}{secret}"),
        format!("{up}{secret}"),
    ] {
        if std::fs::read(&way).is_ok_and(|read| read == b"the secret") {
            println!("{REACHED} by {way}");
        }
    }
}

fn path(text: &std::ffi::CStr) -> u64 {
    text.as_ptr() as u64
}

fn upwards(secret: &str) {
    look(secret);
    let _ = std::env::set_current_dir("/tmp");
    look(secret);
    println!("over");
}

fn root_of_its_own(secret: &str) {
    std::fs::create_dir("/tmp/root").unwrap();
    let (root, up) = (c("/tmp/root"), c(".."));
    say("chroot", call(libc::SYS_chroot, &[path(&root)]));
    look(secret);
    for _ in 0..16 {
        call(libc::SYS_chdir, &[path(&up)]);
    }
    look(secret);
    call(libc::SYS_chroot, &[path(&c("."))]);
    look(secret);
    println!("over");
}

fn unmount(secret: &str) {
    let root = c("/");
    say(
        "umount",
        call(libc::SYS_umount2, &[path(&root), libc::MNT_DETACH as u64]),
    );
    look(secret);
    let own = call(libc::SYS_pidfd_open, &[std::process::id().into(), 0]);
    say(
        "setns",
        call(libc::SYS_setns, &[own as u64, libc::CLONE_NEWNS as u64]),
    );
    look(secret);
    println!("over");
}

fn unmount_in_a_namespace_of_its_own(secret: &str) {
    let flags = libc::CLONE_NEWUSER | libc::CLONE_NEWNS;
    println!("unshare {}", call(libc::SYS_unshare, &[flags as u64]));
    let root = c("/");
    say(
        "umount",
        call(libc::SYS_umount2, &[path(&root), libc::MNT_DETACH as u64]),
    );
    look(secret);
    println!("over");
}

fn descriptors(secret: &str) {
    let secret = Path::new(secret).strip_prefix("/").unwrap();
    let secret = c(std::str::from_utf8(secret.as_os_str().as_bytes()).unwrap());
    for fd in 0..1024 {
        for way in [secret.clone(), c("..")] {
            if call(libc::SYS_openat, &[fd, path(&way), libc::O_RDONLY as u64]) >= 0 {
                println!("{REACHED} by {fd}");
            }
        }
    }
    println!("over");
}
