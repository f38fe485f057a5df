//! The files that would have changed.

use altair_engine::guards::{Guard, GuardState};
use altair_engine::{Blocked, BootChanges, FileChange, FileChanges, FileType, Outcome};

use super::{plain, result};

fn change(path: &str, size: u64) -> FileChange {
    FileChange {
        path: path.into(),
        size,
        file_type: path.ends_with('/').then_some(FileType::Directory),
        ..FileChange::default()
    }
}

/// What is printed after the figures.
fn printed(changes: FileChanges) -> String {
    let mut changed = result(Outcome::Returned);
    changed.diagnostics.file_changes = Some(changes);
    plain(&changed)
        .strip_prefix("✓ null\n  duration=12ms  memory=8192 KB  exit=0\n")
        .unwrap()
        .to_owned()
}

#[test]
fn each_is_named_with_what_would_have_happened_to_it() {
    assert_eq!(
        printed(FileChanges {
            incomplete: false,
            created: vec![change("var/cache/", 4096), change("var/cache/a", 1)],
            modified: vec![change("config/app.php", 210)],
            deleted: vec![change("old\u{1b}[2J\n.php", 0)],
            more: Some(3),
            ..FileChanges::default()
        }),
        "\x20 not kept: 7 changes to the project; --writes keeps them\n\
        \x20   modified config/app.php (210 bytes)\n\
        \x20   deleted  old\\x1b[2J\\n.php (0 bytes)\n\
        \x20   created  var/cache/\n\
        \x20   created  var/cache/a (1 byte)\n\
        \x20   … and 3 more\n"
    );
}

#[test]
fn of_many_the_first_are_named() {
    let many = printed(FileChanges {
        created: (0..85).map(|n| change(&format!("var/{n}"), 1)).collect(),
        modified: vec![change("a", 1)],
        more: Some(4),
        ..FileChanges::default()
    });

    assert!(many.starts_with("  not kept: 90 changes to the project; --writes keeps them\n"));
    assert!(
        many.ends_with("\n    created  var/18 (1 byte)\n    … and 70 more\n"),
        "{many}"
    );
}

#[test]
fn one_is_no_plural_and_none_is_nothing() {
    assert_eq!(
        printed(FileChanges {
            created: vec![change("a", 2)],
            ..FileChanges::default()
        }),
        "\x20 not kept: 1 change to the project; --writes keeps it\n\
        \x20   created  a (2 bytes)\n"
    );
    assert_eq!(printed(FileChanges::default()), "");
}

#[test]
fn they_stand_between_refusals_and_guards_that_are_missing() {
    let mut all = result(Outcome::Returned);
    all.diagnostics.blocked = vec![Blocked {
        what: "connect to 127.0.0.1:8443".into(),
        guard: Guard::Seccomp,
        lift: Some("--network".into()),
    }];
    all.diagnostics.file_changes = Some(FileChanges {
        created: vec![change("a", 2)],
        ..FileChanges::default()
    });
    all.diagnostics.guards = [(
        Guard::Landlock,
        GuardState::Missing {
            because: "the kernel has none".into(),
        },
    )]
    .into();
    assert_eq!(
        plain(&all),
        "✓ null\n\
        \x20 duration=12ms  memory=8192 KB  exit=0\n\
        \x20 refused: connect to 127.0.0.1:8443 by seccomp; --network allows it\n\
        \x20 not kept: 1 change to the project; --writes keeps it\n\
        \x20   created  a (2 bytes)\n\
        \x20 not in force: landlock (missing: the kernel has none)\n"
    );
}

#[test]
fn a_diff_follows_its_file_without_control_characters() {
    let diff = "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n kept\n-old\n+new\u{1b}[2J\n";
    let text = printed(FileChanges {
        modified: vec![FileChange {
            diff: Some(diff.into()),
            ..change("a", 2)
        }],
        diffs_left_out: Some(2),
        ..FileChanges::default()
    });
    assert_eq!(
        text,
        "\x20 not kept: 1 change to the project; --writes keeps it\n\
        \x20   modified a (2 bytes)\n\
        \x20       @@ -1,2 +1,2 @@\n\
        \x20        kept\n\
        \x20       -old\n\
        \x20       +new\\x1b[2J\n\
        \x20   the diffs of 2 more files do not fit\n"
    );
}

#[test]
fn what_boot_changed_is_counted() {
    let text = printed(FileChanges {
        boot: Some(142),
        boot_changes: Some(BootChanges {
            created: vec![change("var/cache/a", 1)],
            ..BootChanges::default()
        }),
        ..FileChanges::default()
    });
    assert_eq!(
        text,
        "  not kept: 142 changes by the boot of the application\n"
    );
}

#[test]
fn what_changes_is_said_and_cannot_be_forged() {
    let text = printed(FileChanges {
        modified: vec![FileChange {
            mode: Some("755 → 777".into()),
            ..change("./", 0)
        }],
        created: vec![
            FileChange {
                file_type: Some(FileType::Link),
                target: Some("/etc\r\u{202e}/x".into()),
                ..change("away", 4)
            },
            FileChange {
                file_type: Some(FileType::Pipe),
                notes: vec![
                    "everybody may write it (mode 666)".into(),
                    "attributes user.\u{1b}c".into(),
                ],
                ..change("pipe", 0)
            },
        ],
        ..FileChanges::default()
    });
    assert_eq!(
        text,
        "\x20 not kept: 3 changes to the project; --writes keeps them\n\
        \x20   modified ./ (mode 755 → 777)\n\
        \x20   created  away → /etc\\r\\u{202e}/x\n\
        \x20   created  pipe (pipe; everybody may write it (mode 666); attributes user.\\x1bc)\n"
    );
}
