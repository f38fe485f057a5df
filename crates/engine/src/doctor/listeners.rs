//! Who listens at a service now, and whether a run may connect to it on the word of whoever declares it.

use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use altair_sandbox::{Listener, RunAs, Word, listener_of_path, listeners_of_address, thread};
use nix::unistd::{Uid, User};

use crate::services::{Services, why_not_by_project};

/// How long to wait for a file system and a socket.
const PATIENCE: Duration = Duration::from_secs(2);

/// Who listens, each in words, and why a run is refused to connect, in a sentence.
pub(super) fn of(services: &Services, user: Option<RunAs>) -> (Vec<String>, Option<String>) {
    let addresses = services.addresses().iter().map(|one| {
        let listeners = listeners_of_address(one.address, user);
        let port = Some(one.address.port());
        (one.address.to_string(), one.word, port, listeners)
    });
    let sockets = services.sockets().iter().map(|socket| {
        let listeners = at_path(socket.path.clone(), user).into_iter().collect();
        (
            socket.named.display().to_string(),
            socket.word,
            None,
            listeners,
        )
    });
    let (mut words, mut refused) = (Vec::new(), None);
    for (to, word, port, listeners) in addresses.chain(sockets) {
        let why = match word {
            Word::User => None,
            Word::Insufficient => Some(None),
            Word::Project => listeners
                .iter()
                .find(|listener| !listener.takes_projects_word(port))
                .map(|listener| Some(*listener)),
        };
        if let Some(listener) = why {
            let why = why_not_by_project(&to, listener);
            refused.get_or_insert_with(|| format!("A run cannot connect to {to}: {why}."));
        }
        for listener in listeners {
            let who = in_words(listener, user);
            if !words.contains(&who) {
                words.push(who);
            }
        }
    }
    (words, refused)
}

/// Who listens at a path, asked on a thread that ends with its answer.
fn at_path(path: PathBuf, user: Option<RunAs>) -> Option<Listener> {
    let (sender, told) = sync_channel(1);
    let ask = move || drop(sender.send(listener_of_path(&path, user)));
    thread::start("altair-listener", ask).ok()?;
    told.recv_timeout(PATIENCE).ok()?.ok()
}

fn in_words(listener: Listener, user: Option<RunAs>) -> String {
    let named = |uid: u32| {
        let known = User::from_uid(Uid::from_raw(uid)).ok().flatten();
        known.map_or_else(|| format!("user {uid}"), |user| user.name)
    };
    match listener {
        Listener::Own => {
            let own = user.map_or_else(|| nix::unistd::geteuid().as_raw(), |user| user.uid);
            format!("{} (as runs do)", named(own))
        }
        Listener::Other(uid) => named(uid),
        Listener::Root => named(0),
        Listener::Untold => "somebody whom the kernel does not tell".into(),
        Listener::Unknown => "unknown".into(),
    }
}
