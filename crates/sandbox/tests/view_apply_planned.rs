//! Only what was planned, and can be shown, is applied.
#![allow(clippy::unwrap_used, clippy::expect_used, unsafe_code)]

mod common;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use altair_sandbox::{ApplyError, Change, ChangeKind, Note, What};
use common::apply::{as_each, set_attribute, set_mode};

fn find<'a>(changes: &'a [Change], path: &str) -> &'a Change {
    let found = changes.iter().find(|each| each.path == Path::new(path));
    found.unwrap_or_else(|| panic!("{path} is not in {changes:?}"))
}

#[test]
fn what_changes_is_said() {
    as_each(|site| {
        site.outside("echo t > timed; echo b > back; ln -s a link; echo o > old; mkdir -p tree/in; echo x > tree/in/x");
        let left = site.run(
            "chmod 777 .; chmod 600 file; touch -d 2001-02-03 timed; echo B > back; touch -d 2001-02-03 back; \
             ln -sf b link; rm old; mkdir old; rm -r dir; echo now > dir; mkfifo -m 600 pipe; \
             rm -r tree; mkdir -p tree/in; echo y > tree/in/y; touch -d 2001-02-03 tree/in/y; echo > open; chmod 666 open",
        );
        let changes = left.changes();
        let modes = |path: &str| find(&changes, path).mode.map(|(_, now)| now);
        assert_eq!([modes(""), modes("file")], [Some(0o777), Some(0o600)]);
        assert_eq!(find(&changes, "timed").notes, [Note::Time]);
        assert_eq!(find(&changes, "back").notes, [Note::Time]);
        assert_eq!(find(&changes, "link").what, What::Link("b".into()));
        assert_eq!(find(&changes, "old").notes, [Note::Was(What::File)]);
        assert_eq!(find(&changes, "dir").notes, [Note::Was(What::Directory)]);
        assert_eq!(find(&changes, "pipe").what, What::Pipe);
        assert_eq!(find(&changes, "open").notes, [Note::ForEverybody(0o666)]);
        assert_eq!(find(&changes, "tree").notes, [Note::AsAWhole]);
        assert_eq!(find(&changes, "tree/in/x").kind, ChangeKind::Deleted);
        assert_eq!(find(&changes, "tree/in/y").kind, ChangeKind::Created);
        left.apply().unwrap();
        assert_eq!(site.shows(), left.saw);
    });
}

/// What is said of a change, in words.
fn notes(changes: &[Change], path: &str) -> Vec<String> {
    let notes = find(changes, path).notes.iter();
    notes.map(ToString::to_string).collect()
}

#[test]
fn each_name_of_what_becomes_one_file_is_listed_and_names_the_others() {
    as_each(|site| {
        site.outside(
            "mkdir storage d; echo conf > conf; echo a > a; cp -p a d/x; echo s > d/single",
        );
        let left = site.run(
            "ln conf storage/upload; cp -a d e; rm -r d; mv e d; rm d/x; ln a d/x; echo n > n; \
             mkdir new; ln n new/m; ln -s n l; ln l new/l; mkfifo p; ln p new/p; echo o > o; ln o o2; rm o2",
        );
        let changes = left.changes();
        for (one, other) in [
            ("conf", "storage/upload"),
            ("a", "d/x"),
            ("n", "new/m"),
            ("l", "new/l"),
            ("p", "new/p"),
        ] {
            let said = |path, of: &str| {
                let said = notes(&changes, path);
                assert_eq!(said, [format!("one file with {of}")], "{path}");
            };
            said(one, other);
            said(other, one);
        }
        assert_eq!(find(&changes, "d/x").kind, ChangeKind::Modified);
        assert_eq!(notes(&changes, "o"), [""; 0]);
        // It is what it was.
        assert!(
            !changes
                .iter()
                .any(|each| each.path == Path::new("d/single"))
        );
        left.apply().unwrap();
        // overlayfs shows names of what was there with numbers of their own.
        let inode = |path| fs::symlink_metadata(site.path(path)).unwrap().ino();
        assert_eq!(inode("a"), inode("d/x"));
        assert_eq!(inode("conf"), inode("storage/upload"));
        assert_eq!(inode("l"), inode("new/l"));
    });
}

#[test]
fn a_time_that_no_change_gives_is_said() {
    as_each(|site| {
        site.outside(
            "mkdir entries old same; echo a > changed; echo b > back; echo s > same/s; echo t > usual; echo r > reset; echo l > linked; \
             touch -d 2001-02-03 changed back old reset; touch -d 2001-02-03 linked",
        );
        let left = site.run(
            "echo new > changed; echo new > back; echo new > usual; echo n > entries/n; echo n > old/n; \
             mkdir made; echo f > made/future; echo p > made/past; rm -r same; mkdir same; echo t > same/s; \
             touch -d 2100-01-01 changed entries made/future same/s same; \
             touch -d 2002-03-04 back old made/past; echo R > reset; touch -d 2001-02-03 reset; ln linked name",
        );
        let changes = left.changes();
        for path in [
            "changed",
            "back",
            "reset",
            "entries",
            "old",
            "made/future",
            "same/s",
        ] {
            assert_eq!(notes(&changes, path), ["time set"], "{path}");
        }
        // It only got another name.
        assert_eq!(notes(&changes, "linked"), ["one file with name"]);
        let whole = ["replaced as a whole", "time set"];
        assert_eq!(notes(&changes, "same"), whole);
        // A new file may be older than the command: it comes from an archive.
        for path in ["usual", "entries/n", "made", "made/past"] {
            assert_eq!(notes(&changes, path), [""; 0], "{path}");
        }
        left.apply().unwrap();
        let year = |path| site.path(path).metadata().unwrap().mtime() / 31_556_952 + 1970;
        assert_eq!(
            [year("changed"), year("entries"), year("back")],
            [2100, 2100, 2002]
        );
    });
}

#[test]
fn a_new_directory_that_everybody_may_write_to_is_noted_with_the_sticky_bit_too() {
    as_each(|site| {
        let left = site.run("mkdir -m 1777 sticky; mkdir -m 1755 own");
        let changes = left.changes();
        assert_eq!(find(&changes, "sticky").notes, [Note::ForEverybody(0o1777)]);
        assert_eq!(find(&changes, "own").notes, []);
    });
}

#[test]
fn of_many_changes_those_of_what_was_there_come_first() {
    as_each(|site| {
        let left = site.run("mkdir a; for i in 1 2 3; do echo x > a/$i; done; echo x > b; rm dir/one; echo y >> file");
        let planned = left.planned.as_ref().unwrap();
        let paths = |at_most| -> Vec<String> {
            let listed = planned.changes(at_most).first;
            listed
                .iter()
                .map(|each| each.path.display().to_string())
                .collect()
        };
        assert_eq!(paths(2), ["dir/one", "file"]);
        assert_eq!(paths(4), ["a", "b", "dir/one", "file"]);
        assert_eq!(planned.changes(4).more, 3);
        // What cannot be in the list is not applied.
        let plan = |at_most| left.layer.plan(left.since, at_most, common::view::later());
        assert!(plan(4).is_ok());
        assert!(matches!(plan(3), Err(ApplyError::TooMuch { .. })));
    });
}

#[test]
fn a_survey_that_takes_too_long_is_none() {
    as_each(|site| {
        let left = site.run("echo x > x");
        let result = left.layer.plan(left.since, usize::MAX, Instant::now());
        assert!(
            matches!(result, Err(ApplyError::TooLong { .. })),
            "{result:?}"
        );
    });
}

#[test]
fn a_layer_that_was_changed_after_it_was_planned_is_not_applied() {
    for change in ["content", "new", "mode", "gone", "attribute"] {
        as_each_on_disk(change);
    }
}

fn as_each_on_disk(change: &'static str) {
    let site = common::apply::Site::new(None, None);
    let left = site.run_in(
        "echo new > made; mkdir d; echo x > d/x",
        site.view_on_disk(),
    );
    let before = site.state_but(&["made"]);
    let upper = fs::read_dir(site.place.path("store")).unwrap();
    let upper = upper.map(|entry| entry.unwrap().path()).find_map(|path| {
        let found = [path.clone(), path.join("upper0")];
        found.into_iter().find(|path| path.join("made").exists())
    });
    let upper = upper.expect("the layer is in the store");
    let times = upper.join("made").metadata().unwrap().modified().unwrap();
    match change {
        "content" => {
            // Of the same size and time.
            fs::write(upper.join("made"), "NEW\n").unwrap();
            let file = fs::File::options().write(true).open(upper.join("made"));
            file.unwrap().set_modified(times).unwrap();
        }
        "new" => fs::write(upper.join("d/y"), "y").unwrap(),
        "mode" => set_mode(&upper.join("d"), 0o777),
        "gone" => fs::remove_file(upper.join("d/x")).unwrap(),
        _ => set_attribute(&upper.join("made"), "user.x", "1"),
    }
    let result = left.apply();
    assert!(
        matches!(result, Err(ApplyError::Changed { .. })),
        "{change}: {result:?}"
    );
    drop(left);
    let after = site.state_but(&["made"]);
    let own = |state: &str| -> Vec<String> {
        let app = format!("{:?}", site.app().join(""))
            .trim_end_matches('"')
            .to_owned();
        state
            .lines()
            .filter(|line| line.starts_with(&app))
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(own(&before), own(&after), "{change}");
}
