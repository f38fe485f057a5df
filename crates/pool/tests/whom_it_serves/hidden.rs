//! Callers that have changed their user, into which nobody of that user may look, as workers of php-fpm.
//! A child of theirs shows what they do not. They are confined before they change their user, and say
//! that another process is that child.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use altair_sandbox::Witness;

use crate::confinement::{become_nobody, enter, hide, reduce_to_nothing};
use crate::{
    Again, Answer, CLOSED, Next, Order, Pool, Proof, REFUSED_LOOK, Received, SERVED, STATE, Shows,
    UNEQUAL, Work, end, helped, intent_of, look, permits, pid, reach, receive, send, send_message,
    show,
};

/// What a caller has for a child that shows the pool's rights.
const NO_CHILD: &str = "the pool may not look into it (its witness is no child of it)";
const UNSEEN: &str = "the pool may not look into it (Permission denied (os error 13))";
const CAPABLE: &str = "the pool may not look into it (it has capabilities)";
const ELSEWHERE: &str = "namespaces or root directory";

/// Whom it serves of them, and whom not.
pub fn test(check: &mut impl FnMut(String, String, &str)) {
    let pool = Pool::start("nobody");
    let outside = Outside::start();
    let mut tried = |confinement: &str, way: &str, wanted: &str| {
        let said = pool.called_as(&["hidden", &outside.pid()], confinement, way);
        check(format!("hidden, {confinement}, {way}"), said, wanted);
    };
    tried("none", "with its child", SERVED);
    tried("none", "with its child, kept", SERVED);
    tried("none", "with an earlier child", SERVED);
    tried("none", "with another's child", NO_CHILD);
    tried("none", "without one", UNSEEN);
    // The pool would tell what only those may see who may look into that process.
    tried("none", "with the pool as its child", NO_CHILD);
    for (confinement, differing) in [
        ("net", "namespaces"),
        ("mnt", "namespaces"),
        ("uts", "namespaces"),
        ("ipc", "namespaces"),
        ("cgroup", "namespaces"),
        ("pid_for_children", "namespaces"),
        ("chroot", "root directory"),
        ("no_new_privs", "no_new_privs"),
        ("filter", "system call filters"),
        ("bounding", "capabilities"),
    ] {
        tried(
            confinement,
            "with its child",
            &format!("{UNEQUAL}{differing}"),
        );
        tried(confinement, "with another's child", NO_CHILD);
    }
    // A child from before is confined less. What it does not show of its parent the kernel shows.
    for (confinement, differing) in [
        ("net", ELSEWHERE),
        ("mnt", ELSEWHERE),
        ("chroot", ELSEWHERE),
        ("no_new_privs", "no_new_privs"),
        ("filter", "system call filters"),
        ("bounding", "capabilities"),
    ] {
        tried(
            confinement,
            "with an earlier child",
            &format!("{UNEQUAL}{differing}"),
        );
    }
    // Served first, and confined then: what a process can enter without capabilities.
    tried(
        "user",
        "with its child, confined",
        &format!("{UNEQUAL}{ELSEWHERE}"),
    );
    tried(
        "no_new_privs",
        "with its child, confined",
        &format!("{UNEQUAL}no_new_privs"),
    );
    tried("landlock", "with its child, alone", REFUSED_LOOK);
    // Its child has none, as it executes a program.
    tried("keeping", "with its child", CAPABLE);
}

/// A process of the same user that is not confined, and shows a descriptor.
struct Outside(Child);

impl Outside {
    fn start() -> Self {
        let (shown, _) = show();
        Self(
            Command::new(std::env::current_exe().unwrap())
                .arg("outside")
                .stdin(Stdio::piped())
                .stdout(shown)
                .spawn()
                .unwrap(),
        )
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// What [`Outside`] does.
pub fn wait_outside() {
    become_nobody();
    std::io::stdin().lines().next();
}

/// A child of this process that is not confined yet, and shows a descriptor.
fn earlier_child(shown: &OwnedFd) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .arg("outside")
        .stdin(Stdio::piped())
        .stdout(shown.try_clone().unwrap())
        .spawn()
        .unwrap()
}

/// Calls, and says what the pool answers. `other`: a process that is not its own.
pub fn call(path: &Path, confinement: &str, way: &str, other: i32) -> String {
    let (shown, name) = show();
    let connection = reach(path);
    let pool = pid(path, 0);
    let fd = connection.as_raw_fd();
    let earlier = (way == "with an earlier child").then(|| earlier_child(&shown));
    let confines_later = way.ends_with("confined");
    if !confines_later {
        enter(confinement);
    }
    become_nobody();
    hide();
    let (own, witness) = match way {
        "without one" => (None, None),
        "with another's child" => (None, Some(other)),
        "with the pool as its child" => (None, Some(pool.cast_signed())),
        "with an earlier child" => (None, earlier.as_ref().map(|child| child.id().cast_signed())),
        _ => {
            let own = Witness::start(shown.as_fd()).unwrap();
            let pid = own.pid();
            (Some(own), Some(pid))
        }
    };
    // What has not become nobody yet may not be looked into by the pool.
    if let Some(child) = &earlier {
        until_nobody(child.id());
    }
    send(
        fd,
        &intent_of(Some(Shows {
            witness,
            descriptor: if witness.is_some() {
                Witness::SHOWS
            } else {
                shown.as_raw_fd()
            },
        })),
    );
    let descriptor = match receive(fd) {
        Received::Answer(Answer::Looked {
            name: seen,
            descriptor,
        }) => {
            assert_eq!(seen, Some(name), "it has looked");
            descriptor
        }
        other => return end(other),
    };
    drop(own);
    let proof = match way.ends_with("alone") {
        true => look(pool, descriptor).unwrap_or_default(),
        false => helped(descriptor),
    };
    send_message(fd, &Order { work: &STATE });
    send_message(fd, &Proof { name: &proof });
    let next = match receive(fd) {
        Received::Served(next) => next,
        other => return end(other),
    };
    let Next { proof, permit } = match next {
        Some(next) if way.ends_with("kept") || confines_later => next,
        Some(_) => return SERVED.into(),
        None => return CLOSED.into(),
    };
    let permit = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(format!("/proc/{pool}/fd/{permit}"))
        .unwrap();
    if confines_later {
        enter(confinement);
        reduce_to_nothing();
        hide();
    }
    let again = Again {
        name: &helped(proof),
        work: Work::State,
    };
    permits(&permit);
    send_message(fd, &again);
    end(receive(fd))
}

/// Waits until a process is that user's, and may be looked into by it.
fn until_nobody(pid: u32) {
    use std::os::unix::fs::MetadataExt;
    let at = format!("/proc/{pid}/environ");
    while std::fs::metadata(&at).unwrap().uid() != crate::confinement::NOBODY {
        std::thread::yield_now();
    }
}
