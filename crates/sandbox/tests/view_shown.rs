//! A view shows what it names, by the same paths and links as outside, and nothing else.
#![allow(clippy::unwrap_used, clippy::expect_used, unsafe_code)]

mod common;

use std::fs;
use std::os::unix::fs::symlink;

use altair_sandbox::{ChangeKind, Shown, SpawnError, Writes};
use common::sh;
use common::view::{Place, as_each_user, become_ordinary, change, found, with_writes};
use nix::libc;

#[test]
fn what_is_not_named_is_not_there() {
    as_each_user(|place| {
        let secret = place.path("secret");
        // Without a view it can be read.
        let script = format!("cat '{}' 2>&1; stat '{0}' 2>&1; true", secret.display());
        let mut open = sh(&script);
        open.cwd = place.path("app");
        assert!(common::output_of(open).contains("the secret"));
        let seen = place.shows(&script);
        assert!(!seen.contains("the secret"), "{seen}");
        assert_eq!(seen.matches("No such file").count(), 2, "{seen}");
        let root = place.shows("ls -A / /dev /etc /tmp; cat file");
        let top = place
            .path("")
            .components()
            .nth(1)
            .unwrap()
            .as_os_str()
            .to_owned();
        assert!(root.contains("null") && !root.contains("nothing"), "{root}");
        assert!(
            root.contains("passwd") && !root.contains("shadow"),
            "{root}"
        );
        assert!(
            root.contains(top.to_str().unwrap()) && root.ends_with("content"),
            "{root}"
        );
        for absent in ["proc", "sys", "home", "root", "var", ".lower", ".layer"] {
            assert!(!root.lines().any(|line| line == absent), "{absent}: {root}");
        }
    });
}

#[test]
fn what_may_be_read_cannot_be_written() {
    as_each_user(|place| {
        place.write("shown", "shown");
        place.write("below/kept", "kept");
        let mut view = place.view();
        view.readable
            .extend([place.path("shown"), place.path("below")].map(Shown::of_system));
        let (seen, _) = place.run(
            "cat ../shown; for f in ../below/new /new /dev/new; do (: > $f) 2>/dev/null && echo made $f; done; \
             chmod 600 ../shown 2>/dev/null && echo chmod; \
             touch ../shown 2>/dev/null && echo touch; \
             echo discarded > /dev/null && echo null; true",
            view,
        );
        assert_eq!(seen, "shownnull\n");
        assert_eq!(fs::read_dir(place.path("below")).unwrap().count(), 1);
    });
}

#[test]
fn links_on_the_way_are_there_and_lead_to_the_same() {
    as_each_user(|place| {
        place.write("real/deep/file", "deep");
        symlink("real", place.path("first")).unwrap();
        symlink(place.path("first/deep"), place.path("second")).unwrap();
        symlink("loop", place.path("loop")).unwrap();
        let mut view = place.view();
        view.readable.extend(
            [
                place.path("second/file"),
                place.path("loop"),
                place.path("nowhere/file"),
                place.path("app/../real/deep/../deep"),
            ]
            .map(Shown::of_system),
        );
        let base = place.path("").display().to_string();
        let (seen, _) = place.run(
            &format!("cd '{base}'; readlink first; readlink second; cat second/file; ls"),
            view,
        );
        // A path that leads nowhere does not exist in the view.
        let expected = format!("real\n{base}first/deep\ndeepapp\nfirst\nreal\nsecond\n");
        assert_eq!(seen, expected);
    });
}

#[test]
fn a_project_may_have_any_name_and_any_place() {
    as_each_user(|place| {
        for name in [
            "a:b,c",
            "back\\slash",
            "sp ace\ttab",
            "\u{20ac}",
            "o=,upperdir=x",
            "-o",
        ] {
            let app = place.path(name).join("app");
            fs::create_dir_all(&app).unwrap();
            fs::write(app.join("file"), name).unwrap();
            let mut view = place.view();
            view.project.at.clone_from(&app);
            view.project.root = found(app);
            let (seen, changes) = place.run("cat file; echo x > new", view);
            assert_eq!(seen, name);
            assert_eq!(changes, [change(ChangeKind::Created, "new", 2)], "{name}");
        }
        // The project below a readable path, and with the temporary directory around or below it.
        let mut view = place.view();
        view.readable.push(Shown::of_system(place.path("")));
        assert_eq!(
            place.run("cat ../secret; echo x > new", view).0,
            "the secret"
        );
        let mut view = place.view();
        view.temp.path = place.path("");
        view.readable.push(Shown::of_system(place.path("secret")));
        let (seen, _) = place.run("echo x > ../new && cat ../secret ../new file; ls ..", view);
        assert_eq!(seen, "the secretx\ncontentapp\nnew\nsecret\n");
        assert!(!place.path("new").exists());
    });
}

#[test]
fn what_is_mounted_below_the_project_is_never_silently_empty() {
    if !nix::unistd::geteuid().is_root() {
        return; // only root can mount something there
    }
    let place = Place::new(None);
    fs::create_dir(place.path("app/volume")).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // SAFETY: affects the calling thread's namespace only; no pointer is passed.
            let entered = unsafe { libc::unshare(libc::CLONE_NEWNS | libc::CLONE_FS) };
            assert_eq!(entered, 0);
            let none = None::<&str>;
            let flags = nix::mount::MsFlags::MS_REC | nix::mount::MsFlags::MS_PRIVATE;
            nix::mount::mount(none, "/", none, flags, none).unwrap();
            let volume = place.path("app/volume");
            let flags = nix::mount::MsFlags::empty();
            nix::mount::mount(Some("v"), &volume, Some("tmpfs"), flags, none).unwrap();
            fs::write(volume.join("kept"), "kept").unwrap();
            for writes in [place.view().project.writes, Writes::Refused] {
                let view = with_writes(&place, writes);
                let (seen, changes) = place.run(
                    "cat volume/kept; (echo x > volume/new) 2>/dev/null && rm volume/kept; true",
                    view.clone(),
                );
                assert_eq!(seen, "kept");
                if view.project.writes != Writes::Refused {
                    use ChangeKind::{Created, Deleted};
                    let expected = [
                        change(Deleted, "volume/kept", 4),
                        change(Created, "volume/new", 2),
                    ];
                    assert_eq!(changes, expected);
                }
                assert_eq!(fs::read_dir(&volume).unwrap().count(), 1);
            }
            // For an ordinary user the kernel refuses the layer; the error names the step.
            become_ordinary();
            match place.launch("true", place.view()).spawn() {
                Err(SpawnError::Step { step, .. }) => assert!(step.is_of_view(), "{step}"),
                other => panic!("{other:?}"),
            }
            let (seen, _) = place.run("cat volume/kept", with_writes(&place, Writes::Refused));
            assert_eq!(seen, "kept");
        });
    });
}

#[test]
fn a_file_that_is_mounted_in_the_project_is_what_is_seen() {
    if !nix::unistd::geteuid().is_root() {
        return; // only root can mount something there
    }
    let place = Place::new(None);
    place.write("env", "mounted");
    place.write("app/.env", "");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // SAFETY: affects the calling thread's namespace only; no pointer is passed.
            let entered = unsafe { libc::unshare(libc::CLONE_NEWNS | libc::CLONE_FS) };
            assert_eq!(entered, 0);
            let none = None::<&str>;
            let private = nix::mount::MsFlags::MS_REC | nix::mount::MsFlags::MS_PRIVATE;
            nix::mount::mount(none, "/", none, private, none).unwrap();
            let (source, target) = (place.path("env"), place.path("app/.env"));
            let bind = nix::mount::MsFlags::MS_BIND;
            nix::mount::mount(Some(&source), &target, none, bind, none).unwrap();
            let (seen, changes) = place.run(
                "cat .env; (echo x > .env) 2>/dev/null && echo written; true",
                place.view(),
            );
            assert_eq!((seen.as_str(), changes), ("mounted", vec![]));
            assert_eq!(place.read("env"), "mounted");
        });
    });
}
