//! The filesystem view: each case as the user that the tests run as and, where that is root, as an
//! ordinary user, too, who needs a user namespace for it.
#![allow(clippy::unwrap_used, clippy::expect_used, unsafe_code)]

mod common;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Instant;

use altair_sandbox::{
    Change, ChangeKind, Connections, Ended, Launch, Limits, Place as Found, Policy, Privileges,
    Project, RunAs, Shown, SpawnError, Status, Temp, View, Writes,
};
use common::{LONG, sh, stdout, supervision};
use nix::libc;
use tempfile::TempDir;

/// An ordinary user, where the tests run as root.
const NOBODY: u32 = 65534;

/// What a shell and the usual tools need.
const SYSTEM: &[&str] = &[
    "/bin",
    "/lib",
    "/lib64",
    "/usr/bin",
    "/usr/lib",
    "/etc/passwd",
];

const MIB: u64 = 1 << 20;

fn found(path: impl AsRef<Path>) -> Found {
    Found::find(path.as_ref()).unwrap()
}

fn later() -> Instant {
    Instant::now() + LONG
}

/// Runs a case as the tests' own user and, from root, as an ordinary one.
fn as_each_user(case: fn(&Place)) {
    case(&Place::new(None));
    if nix::unistd::geteuid().is_root() {
        let place = Place::new(Some(NOBODY));
        std::thread::scope(|scope| {
            let run = || {
                become_ordinary();
                case(&place);
            };
            scope.spawn(run).join().unwrap();
        });
    }
}

/// Raw calls change the calling thread alone.
fn become_ordinary() {
    let id = libc::c_long::from(NOBODY);
    // SAFETY: no pointer but a null one for an empty list.
    unsafe {
        assert_eq!(
            libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<u32>()),
            0
        );
        assert_eq!(libc::syscall(libc::SYS_setresgid, id, id, id), 0);
        assert_eq!(libc::syscall(libc::SYS_setresuid, id, id, id), 0);
    }
}

/// A project `app` with a file and a directory, and a secret beside it.
struct Place {
    dir: TempDir,
    ordinary: bool,
}

impl Place {
    fn new(owner: Option<u32>) -> Self {
        let place = Self {
            dir: TempDir::with_prefix("altair view ").unwrap(),
            ordinary: owner.is_some(),
        };
        fs::set_permissions(place.path(""), fs::Permissions::from_mode(0o755)).unwrap();
        place.write("secret", "the secret");
        place.write("app/file", "content");
        place.write("app/dir/one", "1");
        place.write("app/dir/two", "22");
        if let Some(owner) = owner {
            let chown = |path: PathBuf| {
                std::os::unix::fs::lchown(path, Some(owner), Some(owner)).unwrap();
            };
            for path in [
                "",
                "secret",
                "app",
                "app/file",
                "app/dir",
                "app/dir/one",
                "app/dir/two",
            ] {
                chown(place.path(path));
            }
        }
        place
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(path)
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    fn view(&self) -> View {
        View {
            readable: SYSTEM.iter().map(Shown::of_system).collect(),
            devices: vec!["/dev/null".into(), "/dev/nothing".into()],
            files: Vec::new(),
            project: Project {
                root: found(self.path("app")),
                writes: Writes::Layer {
                    bytes: 8 * MIB,
                    on_disk: None,
                },
                sealed: Some(".sealed".into()),
            },
            temp: Temp {
                path: "/tmp".into(),
                bytes: MIB,
            },
        }
    }

    fn launch(&self, script: &str, view: View) -> Launch {
        Launch {
            cwd: view.project.root.path().to_owned(),
            policy: Policy {
                limits: Limits::default(),
                privileges: Privileges::Drop { run_as: None },
                view: Some(view),
                connections: Connections::default(),
                makes_real_files: false,
            },
            ..sh(script)
        }
    }

    /// Runs a script that must succeed; its output and what it changed.
    fn run(&self, script: &str, view: View) -> (String, Vec<Change>) {
        let (ended, changes) = self.end_of(script, view);
        assert_eq!(
            ended.status,
            Status::Exited(0),
            "{}",
            String::from_utf8_lossy(&ended.stderr.head)
        );
        (stdout(&ended), changes)
    }

    fn end_of(&self, script: &str, view: View) -> (Ended, Vec<Change>) {
        let mut child = self.launch(script, view).spawn().unwrap();
        let layer = child.take_layer();
        let ended = child.supervise(supervision(LONG), &mut common::Recorder::default());
        (
            ended,
            layer
                .map(|layer| layer.changes(1000, later()).first)
                .unwrap_or_default(),
        )
    }

    fn shows(&self, script: &str) -> String {
        self.run(script, self.view()).0
    }
}

fn change(kind: ChangeKind, path: &str, size: u64) -> Change {
    Change {
        path: path.trim_end_matches('/').into(),
        kind,
        directory: path.ends_with('/'),
        size,
    }
}

fn with_writes(place: &Place, writes: Writes) -> View {
    let mut view = place.view();
    view.project.writes = writes;
    view
}

#[test]
fn what_is_not_named_is_not_there() {
    as_each_user(|place| {
        let secret = place.path("secret");
        // Without a view it is read.
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
        // What leads nowhere is not there.
        let expected = format!("real\n{base}first/deep\ndeepapp\nfirst\nreal\nsecond\n");
        assert_eq!(seen, expected);
    });
}

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
                change(Created, "link", 4),
                change(Created, "made/", 0),
                change(Created, "made/deep/", 0),
                change(Created, "made/deep/x", 2),
                change(Created, "moved", 2),
                change(Created, "new", 4),
                change(Created, "pipe", 0),
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
        // Not there: no way to make it, and nothing of it is told or left.
        let (seen, changes) = place.run(attack, place.view());
        assert_eq!((seen.as_str(), changes), ("", vec![]));
        assert!(!place.path("app/.sealed").exists());
        // Made first where writes are real.
        let (seen, _) = place.run(attack, with_writes(place, Writes::Real));
        assert_eq!(seen, "");
        assert!(place.path("app/.sealed").is_dir());
        // There: it stays what it is, and is not even read: who can open it can lock it.
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
                    text.contains(".sealed cannot be kept from being written"),
                    "{text}"
                );
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(fs::read_dir(place.path("target")).unwrap().count(), 1);
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
            view.project.root = found(app);
            let (seen, changes) = place.run("cat file; echo x > new", view);
            assert_eq!(seen, name);
            assert_eq!(changes, [change(ChangeKind::Created, "new", 2)], "{name}");
        }
        // Below what is readable, and with the temporary directory around it or below.
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
fn what_is_mounted_below_the_project_is_never_silently_empty() {
    if !nix::unistd::geteuid().is_root() {
        return; // only root can mount something there to begin with
    }
    let place = Place::new(None);
    fs::create_dir(place.path("app/volume")).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // SAFETY: the calling thread's own namespace; no pointer is passed.
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
            // For an ordinary user the kernel refuses the layer; the step is named.
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
fn the_process_has_no_rights_over_its_namespace() {
    as_each_user(|place| {
        let mut view = place.view();
        view.readable
            .extend(["/sbin", "/usr/sbin"].map(Shown::of_system));
        let seen = place
            .run(
                "umount /tmp 2>/dev/null && echo umount; \
                 mount -t tmpfs x dir 2>/dev/null && echo mount; \
                 mount -o remount,rw,bind dir 2>/dev/null && echo remount; \
                 chroot . true 2>/dev/null && echo chroot; true",
                view,
            )
            .0;
        assert_eq!(seen, "");
    });
}

#[test]
fn root_has_the_project_seen_by_its_owner() {
    if !nix::unistd::geteuid().is_root() {
        return; // another user's process is root's to start
    }
    let place = Place::new(Some(NOBODY));
    fs::set_permissions(place.path("app/file"), fs::Permissions::from_mode(0o600)).unwrap();
    let mut launch = place.launch(
        "cat file; id -u; echo x > dir/one; stat -c %u dir/one",
        place.view(),
    );
    launch.policy.privileges = Privileges::Drop {
        run_as: Some(RunAs {
            uid: NOBODY,
            gid: NOBODY,
        }),
    };
    assert_eq!(common::output_of(launch), "content65534\n65534\n");
    assert_eq!(place.read("app/dir/one"), "1");
}

#[test]
fn nothing_of_a_view_is_left() {
    as_each_user(|place| {
        let mounts = || fs::read_to_string("/proc/self/mountinfo").unwrap();
        let descriptors = || fs::read_dir("/proc/self/fd").unwrap().count();
        let before = mounts();
        let open = descriptors();
        place.run("echo x > new", place.view());
        assert_eq!(mounts(), before);
        // Other tests run beside this one: only a leak of each run would add up.
        for _ in 0..40 {
            place.run("echo x > new", place.view());
        }
        assert!(descriptors() < open + 40, "{} after {open}", descriptors());
        assert!(!place.ordinary || place.path("app").metadata().unwrap().uid() == NOBODY);
    });
}

#[test]
fn the_hosts_null_device_is_not_reached_by_standard_input() {
    as_each_user(|place| {
        // The mount that a descriptor came by is the namespace's own, which is read-only.
        let seen = place.shows("read x; echo \"<$x>\"; touch - <&0 >&0 2>/dev/null && echo touched; stat -L -c %F /dev/stdin 2>/dev/null; true");
        assert_eq!(seen, "<>\n");
        let mut view = place.view();
        view.devices.clear();
        let (seen, _) = place.run("read x; echo \"<$x>\"", view);
        assert_eq!(seen, "<>\n");
    });
}

#[test]
fn a_file_that_is_mounted_in_the_project_is_what_is_seen() {
    if !nix::unistd::geteuid().is_root() {
        return; // only root can mount something there to begin with
    }
    let place = Place::new(None);
    place.write("env", "mounted");
    place.write("app/.env", "");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // SAFETY: the calling thread's own namespace; no pointer is passed.
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

#[test]
fn an_attribute_of_anybodys_hides_nothing_from_the_host() {
    as_each_user(|place| {
        // Copied up with the directory, as one is that the process sets itself.
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
        let changes = layer.changes(10, later());
        assert_eq!(changes.first.len(), 10);
        // Not entered from the 64th directory on, the first of which is the project itself.
        assert_eq!(changes.more, 3000 + 64 - 10);
        assert!(!changes.incomplete);
        assert_eq!(changes.first[0].path, Path::new("d"));
        assert_eq!(changes.first[9].path, Path::new("d/d/d/d/d/d/d/d/d/d"));
    });
}

#[test]
fn a_directory_is_removed_however_deep_it_goes() {
    as_each_user(|place| {
        let top = place.path("deep");
        fs::create_dir(&top).unwrap();
        let script = "cd \"$0\" && i=0 && while [ $i -lt 3000 ]; do i=$((i+1)); mkdir dddddddddd && cd dddddddddd && printf x > f; done; \
             chmod 0 . ; cd \"$0\"; mkdir closed; printf x > closed/f; chmod 0 closed; ln -s / link; mkfifo pipe";
        let mut launch = sh(script);
        launch.args.push(top.clone().into());
        common::output_of(launch);
        altair_sandbox::remove_directory(&top, None);
        assert!(!top.exists());
        assert!(Path::new("/etc").exists());
    });
}
