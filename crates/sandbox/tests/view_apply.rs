//! Applying a layer makes real what the process saw.
#![allow(clippy::unwrap_used, clippy::expect_used, unsafe_code)]

mod common;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use altair_sandbox::Note;
use common::apply::{as_each, attribute, set_attribute, set_mode};

#[test]
fn every_kind_of_change_becomes_real() {
    as_each(|site| {
        site.outside(
            "mkdir -p old/deep closed empty; echo x > old/deep/x; echo y > old/y; echo s > script; \
             ln -s file way; ln -s nowhere dangling; mkfifo pipe; echo z > other; chmod 555 closed; \
             touch -d 2001-02-03 dir old script; echo same > same; echo t > touched",
        );
        site.applies(
            "echo new > new; echo more >> file; rm dir/one; mkdir -p made/deep/deeper; \
             echo x > made/deep/x; chmod 600 dir/two; ln -s file link; mkfifo made/pipe; \
             mv old/y moved; rm -r old; mkdir old; echo n > old/n; chmod 755 script; \
             rm way; echo now-a-file > way; ln -sf elsewhere dangling; rm pipe; mkdir pipe; \
             touch pipe/in; rm other; ln -s file other; chmod 700 dir; touch -d 2003-04-05 touched; \
             touch -hd 2004-05-06 link; : >> same; mkdir -m 1777 sticky; rmdir empty; echo e > empty; \
             touch -d 2005-06-07 made/deep made/deep/x; chmod 755 closed; echo c > closed/c; \
             chmod 555 closed; touch -d 2006-07-08 dir",
        );
        assert_eq!(site.place.read("app/file"), "contentmore\n");
        // Once more, on top of it.
        site.applies("rm -r made old pipe sticky; mv new dir/new; mkdir -p made; rm dangling");
        site.applies("rm -rf * 2>/dev/null; true");
    });
}

#[test]
fn a_layer_without_changes_changes_nothing() {
    as_each(|site| {
        let before = site.state();
        site.run("cat file; : >> file; touch x; rm x")
            .apply()
            .unwrap();
        assert_eq!(site.state(), before);
    });
}

#[test]
fn a_layer_on_disk_is_applied_too() {
    as_each(|site| {
        let left = site.run_in(
            "echo new > new; rm file; mkdir d; mv dir/one d",
            site.view_on_disk(),
        );
        left.apply().unwrap();
        assert_eq!(site.shows(), left.saw);
    });
}

#[test]
fn a_replaced_directory_and_what_becomes_one() {
    as_each(|site| {
        site.applies(
            "rm -r dir; mkdir dir; echo 3 > dir/three; rm file; mkdir file; echo x > file/x",
        );
        site.applies("rm -r dir; echo now > dir; rm -r file; ln -s dir file");
        site.applies("rm dir; mkdir -p dir/a/b; mv file dir/a/b/c");
    });
}

#[test]
fn links_between_new_files_stay_links() {
    as_each(|site| {
        site.applies(
            "echo x > a; ln a b; mkdir -p sub/deep; ln a sub/deep/c; ln -s a l; ln l m; \
             mkfifo p; ln p sub/q; mkdir other; echo y > other/d; ln other/d other/e",
        );
        let (a, c) = (
            site.path("a").metadata(),
            site.path("sub/deep/c").metadata(),
        );
        assert_eq!(
            (a.unwrap().ino(), 3),
            (c.unwrap().ino(), site.path("b").metadata().unwrap().nlink())
        );
        // overlayfs shows the two with numbers of their own.
        site.run("ln file linked").apply().unwrap();
        assert_eq!(
            site.path("file").metadata().unwrap().ino(),
            site.path("linked").metadata().unwrap().ino()
        );
    });
}

#[test]
fn a_file_whose_names_are_all_inside_is_written_in_place() {
    as_each(|site| {
        site.outside("printf 1234567890 > a; ln a b; ln a dir/c; chmod 440 a");
        let before = site.path("a").metadata().unwrap().ino();
        let left = site.run("chmod 640 a; printf short > a; chmod 444 a");
        let planned = left.changes();
        let others = vec!["b".into(), "dir/c".into()];
        assert_eq!(planned[0].notes, [Note::LinkedWith(others)]);
        left.apply().unwrap();
        for name in ["a", "b", "dir/c"] {
            assert_eq!(site.place.read(&format!("app/{name}")), "short", "{name}");
            assert_eq!(site.path(name).metadata().unwrap().ino(), before);
            assert_eq!(site.path(name).metadata().unwrap().mode() & 0o7777, 0o444);
        }
        // Two of its names cannot have two contents.
        site.outside("chmod 644 a");
        let left = site.run("echo one > a; echo two > b; rm dir/c");
        left.apply().unwrap();
        assert_eq!(site.shows(), left.saw);
        // Deleting several names is no conflict with oneself.
        site.outside("rm -f a b; echo x > a; ln a b; ln a c; mkdir d; ln a d/e");
        let left = site.run("rm a; rm -r d; echo y > c; chmod 600 c");
        left.apply().unwrap();
        assert_eq!(site.place.read("app/b"), "y\n");
        site.has_nothing_left();
    });
}

#[test]
fn a_file_with_a_name_elsewhere_is_replaced() {
    as_each(|site| {
        site.outside(
            "mkdir ../store 2>/dev/null || true; for f in a b c d; do echo $f > $f; chmod 644 $f; done",
        );
        let store = site.place.path("store");
        fs::create_dir_all(&store).unwrap();
        for name in ["a", "b", "c", "d"] {
            fs::hard_link(site.path(name), store.join(name)).unwrap();
        }
        let before = |name: &str| {
            let meta = store.join(name).metadata().unwrap();
            (
                fs::read(store.join(name)).unwrap(),
                meta.mode(),
                meta.mtime(),
            )
        };
        let all = ["a", "b", "c", "d"].map(before);
        let left = site.run("echo more >> a; chmod 600 b; touch -d 2001-02-03 c; ln d e");
        let planned = left.changes();
        for name in ["a", "b", "c", "d"] {
            let change = planned.iter().find(|each| each.path == Path::new(name));
            assert!(
                change.unwrap().notes.contains(&Note::LinkedElsewhere),
                "{planned:?}"
            );
        }
        left.apply().unwrap();
        assert_eq!(["a", "b", "c", "d"].map(before), all);
        assert_eq!(site.shows(), left.saw);
        for name in ["a", "b", "c", "d"] {
            fs::remove_file(store.join(name)).unwrap();
        }
    });
}

#[test]
fn set_id_bits_are_left_out_but_those_of_before_stay() {
    as_each(|site| {
        site.outside(
            "echo p > program; chmod 4755 program; echo q > other; chmod 4755 other; \
             mkdir shared; chmod 2775 shared",
        );
        let left = site.run(
            "echo x > x; chmod 6755 x; mkdir d; chmod 2775 d; chmod 4711 program; \
             echo more >> other; chmod 4755 other; mkdir -p e; echo y > e/y; chmod 4755 e/y; \
             chmod 2755 dir; mkdir -p shared/new/deep",
        );
        let planned = left.changes();
        let notes = |path: &str| -> Vec<String> {
            let change = planned.iter().find(|each| each.path == Path::new(path));
            let notes = change.map(|change| change.notes.iter().map(ToString::to_string));
            notes.into_iter().flatten().collect()
        };
        for (path, lost) in [
            ("x", &["set-user-ID left out", "set-group-ID left out"][..]),
            ("e/y", &["set-user-ID left out"]),
            ("other", &["set-user-ID left out"]),
            ("d", &["set-group-ID left out"]),
            ("dir", &["set-group-ID left out"]),
            ("program", &[]),
            ("shared/new", &[]),
        ] {
            assert_eq!(notes(path), lost, "{path}");
        }
        left.apply().unwrap();
        let mode = |name: &str| site.path(name).metadata().unwrap().mode() & 0o7777;
        assert_eq!([mode("x"), mode("e/y"), mode("other")], [0o755; 3]);
        assert_eq!([mode("d"), mode("dir")], [0o775, 0o755]);
        assert_eq!(mode("program"), 0o4711);
        // As the kernel gives it to any directory that is made there.
        assert_eq!(mode("shared/new") & 0o2000, 0o2000);
        assert_eq!(mode("shared/new/deep") & 0o2000, 0o2000);
    });
}

#[test]
fn attributes_are_kept_but_not_the_marks_of_a_layer() {
    as_each(|site| {
        set_attribute(&site.path("file"), "user.kept", "1");
        set_attribute(&site.path("dir"), "user.of-dir", "2");
        set_attribute(&site.path("dir/one"), "user.of-one", "3");
        set_attribute(&site.app(), "user.of-app", "4");
        site.run("echo more >> file; echo x > dir/x; chmod 500 dir/one; chmod 711 dir")
            .apply()
            .unwrap();
        assert_eq!(
            attribute(&site.path("file"), "user.kept").as_deref(),
            Some("1")
        );
        assert_eq!(
            attribute(&site.path("dir"), "user.of-dir").as_deref(),
            Some("2")
        );
        assert_eq!(
            attribute(&site.path("dir/one"), "user.of-one").as_deref(),
            Some("3")
        );
        assert_eq!(attribute(&site.app(), "user.of-app").as_deref(), Some("4"));
        for name in [
            "user.overlay.origin",
            "trusted.overlay.origin",
            "user.overlay.opaque",
        ] {
            assert_eq!(attribute(&site.path("file"), name), None);
            assert_eq!(attribute(&site.path("dir"), name), None);
        }
    });
}

#[test]
fn what_the_process_closed_is_applied_as_well_before_and_after_it_was_looked_at() {
    as_each(|site| {
        site.outside("echo s > secret");
        let left = site.run(
            "mkdir -p closed/in; echo x > closed/in/x; chmod 0 closed/in/x closed/in; chmod 100 closed; \
             chmod 0 secret; echo y > dir/y; chmod 400 dir",
        );
        let changes = || left.layer.changes(100, None, common::view::later());
        let before = changes();
        left.apply().unwrap();
        drop(before);
        let mode = |name: &str| {
            site.path(name)
                .symlink_metadata()
                .map(|meta| meta.mode() & 0o7777)
        };
        assert_eq!(mode("closed").unwrap(), 0o100);
        assert_eq!(mode("secret").unwrap(), 0);
        assert_eq!(mode("dir").unwrap(), 0o400);
        set_mode(&site.path("closed"), 0o700);
        assert_eq!(mode("closed/in").unwrap(), 0);
        set_mode(&site.path("closed/in"), 0o700);
        assert_eq!(mode("closed/in/x").unwrap(), 0);
        set_mode(&site.path("closed/in/x"), 0o600);
        assert_eq!(site.place.read("app/closed/in/x"), "x\n");
        set_mode(&site.path("dir"), 0o700);
        assert_eq!(site.place.read("app/dir/y"), "y\n");
    });
}

#[test]
fn the_project_itself_can_be_closed() {
    as_each(|site| {
        let left = site.run("echo x > x; trap \"chmod 0 '$PWD'\" EXIT");
        left.apply().unwrap();
        assert_eq!(site.app().metadata().unwrap().mode() & 0o7777, 0);
        set_mode(&site.app(), 0o700);
        assert_eq!(site.place.read("app/x"), "x\n");
        site.has_nothing_left();
    });
}

#[test]
fn sockets_count_as_nothing() {
    as_each(|site| {
        if !std::path::Path::new("/usr/bin/perl").exists() {
            return;
        }
        let bind = |path: &str| {
            format!(
                "perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local => \"{path}\", Listen => 1) or die'"
            )
        };
        let mut view = site.view();
        view.readable
            .push(altair_sandbox::Shown::of_system("/usr/share/perl"));
        let script = format!(
            "rm file; {}; mkdir d; {}; {}",
            bind("file"),
            bind("d/s"),
            bind("s")
        );
        let left = site.run_in(&script, view);
        left.apply().unwrap();
        assert!(!site.path("file").exists());
        assert!(!site.path("s").exists());
        assert_eq!(fs::read_dir(site.path("d")).unwrap().count(), 0);
    });
}

#[test]
fn holes_stay_holes() {
    as_each(|site| {
        site.applies(
            "printf x > sparse; truncate -s 20M sparse; printf y >> sparse; truncate -s 40M sparse",
        );
        let meta = site.path("sparse").metadata().unwrap();
        assert_eq!(meta.len(), 40 << 20);
        assert!(meta.blocks() * 512 < 1 << 20, "{}", meta.blocks());
    });
}

/// An access control list of the owner, the user 1000, the group and others (acl(5), in the form
/// of the attributes).
fn list(of_1000: u8, mask: u8) -> Vec<u8> {
    let entry = |tag: u8, rights: u8, id: [u8; 4]| [tag, 0, rights, 0, id[0], id[1], id[2], id[3]];
    let nobody = [0xff; 4];
    let entries = [
        entry(1, 6, nobody),
        entry(2, of_1000, [0xe8, 3, 0, 0]),
        entry(4, 4, nobody),
        entry(0x10, mask, nobody),
        entry(0x20, 4, nobody),
    ];
    [2, 0, 0, 0].into_iter().chain(entries.concat()).collect()
}

#[test]
fn access_control_lists_are_kept_and_only_those() {
    const ACCESS: &str = "system.posix_acl_access";
    as_each(|site| {
        if nix::unistd::geteuid().as_raw() != 0 {
            return; // in a user namespace there is no user 1000
        }
        set_attribute(&site.path("file"), ACCESS, list(6, 6));
        set_attribute(&site.app(), "system.posix_acl_default", list(7, 7));
        let before = attribute(&site.path("file"), ACCESS);
        assert!(before.is_some());
        site.run("echo more >> file; echo n > new; mkdir d; echo y > d/y; mkfifo d/p")
            .apply()
            .unwrap();
        assert_eq!(attribute(&site.path("file"), ACCESS), before);
        for name in ["new", "d", "d/y", "d/p"] {
            // The process saw none.
            assert_eq!(attribute(&site.path(name), ACCESS), None, "{name}");
        }
    });
}
