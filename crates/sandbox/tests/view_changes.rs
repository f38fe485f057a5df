//! The changes in a process's layer are reported exactly.
#![allow(clippy::unwrap_used, clippy::expect_used, unsafe_code)]

mod common;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use altair_sandbox::{Change, ChangeKind, Listed, What, Writes};
use common::view::{MIB, as_each_user, change, found, later, with_writes};
use common::{LONG, supervision};
use nix::libc;

#[test]
fn writes_go_to_a_layer_and_are_told() {
    as_each_user(|place| {
        let (_, changes) = place.run(
            "echo new > new; echo more >> file; rm dir/one; mkdir -p made/deep; echo x > made/deep/x; \
             chmod 600 dir/two; ln -s file link; mkfifo pipe; mv dir/two moved",
            place.view(),
        );
        use ChangeKind::{Created, Deleted, Modified};
        assert_eq!(
            changes,
            [
                change(Deleted, "dir/one", 1),
                change(Deleted, "dir/two", 2),
                change(Modified, "file", 12),
                Change {
                    what: What::Link("file".into()),
                    ..change(Created, "link", 4)
                },
                change(Created, "made/", 0),
                change(Created, "made/deep/", 0),
                change(Created, "made/deep/x", 2),
                change(Created, "moved", 2),
                change(Created, "new", 4),
                Change {
                    what: What::Pipe,
                    ..change(Created, "pipe", 0)
                },
            ]
        );
        assert_eq!(place.read("app/file"), "content");
        assert_eq!(place.read("app/dir/one"), "1");
        assert_eq!(fs::read_dir(place.path("app")).unwrap().count(), 2);
        assert_eq!(
            place.path("app/dir/two").metadata().unwrap().mode() & 0o777,
            0o644
        );
    });
}

#[test]
fn a_file_that_was_touched_or_opened_for_writing_has_not_changed() {
    as_each_user(|place| {
        let (_, changes) = place.run(
            "touch file; : >> dir/one; chmod 600 dir/two; chmod 644 dir/two; cp file copy; rm copy; \
             mv file other; mv other file; mkdir d; rmdir d; ln -s x y; rm y",
            place.view(),
        );
        assert_eq!(changes, []);
    });
}

#[test]
fn a_directory_in_place_of_another_hides_it() {
    as_each_user(|place| {
        let (seen, changes) = place.run(
            "rm -r dir; mkdir -m 755 dir; echo 333 > dir/three; ls dir; rm file; mkdir file; echo x > file/x",
            place.view(),
        );
        use ChangeKind::{Created, Deleted, Modified};
        assert_eq!(seen, "three\n");
        assert_eq!(
            changes,
            [
                change(Deleted, "dir/one", 1),
                change(Created, "dir/three", 4),
                change(Deleted, "dir/two", 2),
                change(Modified, "file/", 0),
                change(Created, "file/x", 2),
            ]
        );
        let (_, changes) = place.run("rm -r dir; echo now > dir", place.view());
        assert_eq!(changes, [change(Modified, "dir", 4)]);
        let (_, changes) = place.run("rm -r dir", place.view());
        assert_eq!(changes, [change(Deleted, "dir/", 0)]);
    });
}

#[test]
fn what_a_process_leaves_in_its_layer_cannot_disturb_the_host() {
    as_each_user(|place| {
        place.write("outside", "outside");
        let (_, changes) = place.run(
            "mkdir -p closed/in; echo x > closed/in/x; chmod 0 closed/in closed; \
             ln -s /etc/passwd link; rm file; ln -s ../outside file; \
             printf 'a' > \"$(printf 'odd\\nname\\377')\"; \
             d=d; mkdir $d; for i in 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2; do \
               cd $d; d=$(printf '%0200d' $i); mkdir $d; done",
            place.view(),
        );
        let find = |path: &str| changes.iter().find(|change| change.path == Path::new(path));
        assert_eq!(find("closed/in/x").unwrap().size, 2);
        assert_eq!(find("link").unwrap().size, 11);
        assert_eq!(find("file").unwrap().kind, ChangeKind::Modified);
        assert!(changes.len() > 20, "{}", changes.len());
        assert_eq!(place.read("app/file"), "content");
    });
}

#[test]
fn a_layer_on_disk_does_the_same() {
    as_each_user(|place| {
        let store = place.path("store");
        fs::create_dir(&store).unwrap();
        let view = with_writes(
            place,
            Writes::Layer {
                bytes: MIB,
                on_disk: Some(found(&store)),
            },
        );
        let (_, changes) = place.run("echo new > new; rm file", view);
        use ChangeKind::{Created, Deleted};
        assert_eq!(
            changes,
            [change(Deleted, "file", 7), change(Created, "new", 4)]
        );
        altair_sandbox::remove_directory(&store, None);
        assert!(!store.exists());
    });
}

#[test]
fn an_attribute_of_anybodys_hides_nothing_from_the_host() {
    as_each_user(|place| {
        // Copied up with the directory, like one that the process sets itself.
        let dir =
            std::ffi::CString::new(place.path("app/dir").as_os_str().as_encoded_bytes()).unwrap();
        let name = c"user.overlay.opaque";
        // SAFETY: C strings, and a value of one byte.
        let set =
            unsafe { libc::setxattr(dir.as_ptr(), name.as_ptr(), c"y".as_ptr().cast(), 1, 0) };
        assert_eq!(set, 0, "the file system of the tests has user attributes");
        let (seen, changes) = place.run("printf '' > dir/new; ls dir", place.view());
        assert_eq!(seen, "new\none\ntwo\n");
        assert_eq!(changes, [change(ChangeKind::Created, "dir/new", 0)]);
    });
}

#[test]
fn a_layer_full_of_files_is_looked_at_within_bounds() {
    as_each_user(|place| {
        let mut view = place.view();
        view.project.writes = Writes::Layer {
            bytes: 64 * MIB,
            on_disk: None,
        };
        let script = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); printf '' > f$i; done; \
             i=0; while [ $i -lt 300 ]; do i=$((i+1)); mkdir d || break; cd d || break; done 2>/dev/null; true";
        let mut child = place.launch(script, view).spawn().unwrap();
        let layer = child.take_layer().unwrap();
        child.supervise(supervision(LONG), &mut common::Recorder::default());
        let changes = layer.changes(10, None, later());
        assert_eq!(changes.early, Listed::default());
        assert_eq!(changes.late.first.len(), 10);
        // Not entered from the 64th directory on, counting the project itself.
        assert_eq!(changes.late.more, 3000 + 64 - 10);
        assert!(!changes.incomplete);
        assert_eq!(changes.late.first[0].path, Path::new("d"));
        assert_eq!(changes.late.first[9].path, Path::new("d/d/d/d/d/d/d/d/d/d"));
    });
}

#[test]
fn changes_before_and_after_a_time_are_told_apart() {
    as_each_user(|place| {
        // A change cannot be made to look early: `touch -d` sets another time.
        let script = "echo 2 > early; rm dir/one; sleep 0.05; date +%s%N; sleep 0.05; \
             echo 3 > late; touch -d 2001-01-01 late";
        let mut child = place.launch(script, place.view()).spawn().unwrap();
        let layer = child.take_layer().unwrap();
        let ended = child.supervise(supervision(LONG), &mut common::Recorder::default());
        let between = Duration::from_nanos(common::stdout(&ended).trim().parse().unwrap());
        let names = |changes: &Listed| -> Vec<_> {
            let each = changes.first.iter();
            each.map(|change| change.path.display().to_string())
                .collect()
        };
        let all = layer.changes(10, None, later());
        assert_eq!(names(&all.late), ["dir/one", "early", "late"]);
        let parted = layer.changes(10, Some(between), later());
        assert_eq!(names(&parted.early), ["dir/one", "early"]);
        assert_eq!(names(&parted.late), ["late"]);
    });
}

#[test]
fn contents_are_read_before_and_after_and_nothing_else_is() {
    as_each_user(|place| {
        let script = "echo new > new; echo more >> file; rm dir/one; ln -s /etc/passwd link; mkfifo pipe; \
             printf '%101s' x > large; rm dir/two; mkdir dir/two; ln -s .. dir/up";
        let mut child = place.launch(script, place.view()).spawn().unwrap();
        let layer = child.take_layer().unwrap();
        child.supervise(supervision(LONG), &mut common::Recorder::default());
        let read = |path: &str| {
            let mut contents = layer.contents(vec![path.into()], 100, later());
            let contents = contents.pop().unwrap();
            contents.map(|contents| (contents.before, contents.after))
        };
        let bytes = |text: &str| Some(text.as_bytes().to_vec());
        assert_eq!(read("new"), Some((None, bytes("new\n"))));
        assert_eq!(
            read("file"),
            Some((bytes("content"), bytes("contentmore\n")))
        );
        assert_eq!(read("dir/one"), Some((bytes("1"), None)));
        for other in [
            "link",
            "pipe",
            "large",
            "dir/two",
            "dir",
            "dir/up/file",
            "../secret",
            "dir/../file",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
        let late = layer.contents(vec!["new".into()], 100, std::time::Instant::now());
        assert_eq!(late, [None]);
    });
}
