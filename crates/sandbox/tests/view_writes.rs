//! Writes go to a bounded layer, nowhere, or to the files themselves, as the view permits, and
//! never into the sealed directory.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use altair_sandbox::{SpawnError, Writes};
use common::view::{as_each_user, with_writes};

#[test]
fn the_layer_and_the_temporary_directory_are_bounded_and_private() {
    as_each_user(|place| {
        let seen = place.shows(
            "cat /bin/sh > a; for i in 1 2 3 4 5 6 7; do cat a a > b && mv b a; done 2>/dev/null || echo layer full; rm -f a b; \
             i=0; while [ $i -lt 9000 ]; do i=$((i+1)); printf '' > f$i || break; done 2>/dev/null; \
             [ $i -lt 9000 ] && echo layer full of files; \
             cat /bin/sh /bin/sh /bin/sh /bin/sh /bin/sh /bin/sh /bin/sh /bin/sh /bin/sh /bin/sh /bin/sh /bin/sh > /tmp/bigger 2>/dev/null || echo temp full; \
             rm -f /tmp/bigger; cp /bin/sh /tmp/program; chmod +x /tmp/program; /tmp/program -c 'echo run' 2>/dev/null || echo temp not executable; \
             stat -c %a /tmp",
        );
        assert!(
            seen.starts_with("layer full\nlayer full of files\n"),
            "{seen}"
        );
        assert!(
            seen.ends_with("temp full\ntemp not executable\n1777\n"),
            "{seen}"
        );
        assert!(!Path::new("/tmp/program").exists());
    });
}

#[test]
fn writes_that_are_refused_fail_and_real_ones_stay() {
    as_each_user(|place| {
        let write = "(echo new > new) 2>/dev/null || echo refused; true";
        let (seen, changes) = place.run(write, with_writes(place, Writes::Refused));
        assert_eq!((seen.as_str(), changes.len()), ("refused\n", 0));
        assert!(!place.path("app/new").exists());

        let (seen, changes) = place.run(write, with_writes(place, Writes::Real));
        assert_eq!((seen.as_str(), changes.len()), ("", 0));
        assert_eq!(place.read("app/new"), "new\n");
    });
}

#[test]
fn the_sealed_directory_is_never_written() {
    as_each_user(|place| {
        let attack = "(echo x > .sealed/x) 2>/dev/null && echo written; \
             mv .sealed moved 2>/dev/null && echo moved; rmdir .sealed 2>/dev/null && echo removed; \
             rm -rf .sealed 2>/dev/null && echo gone; chmod 777 .sealed 2>/dev/null && echo chmod; \
             ln -sfn dir .sealed 2>/dev/null; cat .sealed/log 2>/dev/null; true";
        // If it is missing, it cannot be made, and nothing is reported or left.
        let (seen, changes) = place.run(attack, place.view());
        assert_eq!((seen.as_str(), changes), ("", vec![]));
        assert!(!place.path("app/.sealed").exists());
        // With real writes it is made first.
        let (seen, _) = place.run(attack, with_writes(place, Writes::Real));
        assert_eq!(seen, "");
        assert!(place.path("app/.sealed").is_dir());
        // If it exists, it stays unchanged and cannot even be read: a process that opens it can
        // lock it.
        fs::write(place.path("app/.sealed/log"), "log").unwrap();
        let real = with_writes(place, Writes::Real);
        for view in [place.view(), real, with_writes(place, Writes::Refused)] {
            let (seen, changes) = place.run(attack, view);
            assert_eq!((seen.as_str(), changes), ("", vec![]));
            assert_eq!(place.read("app/.sealed/log"), "log");
        }
    });
}

#[test]
fn a_link_in_place_of_the_sealed_directory_does_not_work() {
    as_each_user(|place| {
        place.write("target/log", "target");
        symlink("../target", place.path("app/.sealed")).unwrap();
        let (seen, _) = place.run(
            "cat .sealed/log 2>/dev/null; (echo x > .sealed/x) 2>/dev/null && echo written; true",
            place.view(),
        );
        assert_eq!(seen, "");
        let real = with_writes(place, Writes::Real);
        match place.launch("true", real).spawn() {
            Err(error @ SpawnError::Sealed { .. }) => {
                let text = error.to_string();
                assert!(
                    text.contains(".sealed cannot be protected from writes"),
                    "{text}"
                );
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(fs::read_dir(place.path("target")).unwrap().count(), 1);
    });
}
