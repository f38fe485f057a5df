//! The pool's look at a host: whether it has the pool's rights, and what its runs get at most.

use std::io::{self, ErrorKind};
use std::os::fd::AsFd;

use altair_engine::Delegator;
use altair_sandbox::peer::Sender;
use altair_sandbox::{Inspected, Standing, Surroundings};

use crate::challenge;
use crate::message::Shows;
use crate::server::Held;

/// A host, as the pool sees it.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// What `/proc` shows of it.
    inspected: Option<Inspected>,
    /// Where the pool is, if a child of the host has the pool's rights: such a child tells of a host
    /// that may not be looked into what that shows to nobody.
    witnessed: Option<Surroundings>,
}

impl Seen {
    /// The name of the descriptor that a host shows.
    ///
    /// # Errors
    /// Why the host is refused.
    pub(crate) fn shown(
        &mut self,
        host: &Sender,
        shows: &Shows,
        held: &Held,
    ) -> Result<String, String> {
        let descriptor = shows.descriptor;
        let Some(witness) = shows.witness else {
            return challenge::look(host.pid, descriptor).map_err(unseen);
        };
        let inspected = Inspected::new(witness).map_err(unseen)?;
        // Of others the pool tells nothing: it sees more than somebody who is confined.
        let differs = inspected.difference_of_child(host.pid, &held.rights);
        if let Some(what) = differs.map_err(unseen)? {
            return Err(differing(what));
        }
        let name = challenge::look(witness, descriptor).map_err(unseen)?;
        // Another process may have had its id meanwhile.
        match inspected.is_child_of(host.pid).map_err(unseen)? {
            true => self.witnessed = Some(Surroundings::own().map_err(unseen)?),
            false => return Err(unseen(ErrorKind::NotFound.into())),
        }
        Ok(name)
    }

    /// Looks at a host: whether it has the pool's rights, no more and no less, and what its runs get at
    /// most.
    ///
    /// # Errors
    /// Why it is refused.
    pub(crate) fn look(&mut self, host: &Sender, held: &Held) -> Result<Delegator, String> {
        let inspected = match &mut self.inspected {
            Some(inspected) => inspected,
            none => none.insert(Inspected::new(host.pid).map_err(unseen)?),
        };
        let pidfd = host.pidfd.as_fd();
        let (difference, umask) = match (inspected.rights(pidfd), &mut self.witnessed) {
            (Ok((rights, umask)), _) => (held.rights.difference(&rights), umask),
            (Err(error), Some(place)) if error.kind() == ErrorKind::PermissionDenied => inspected
                .difference_where_hidden(&held.rights, place, pidfd)
                .map_err(unseen)?,
            (Err(error), _) => return Err(unseen(error)),
        };
        if let Some(what) = difference {
            return Err(differing(what));
        }
        // They are the host's, too.
        (held.rights.check_filters()).map_err(|why| why.to_string())?;
        let standing = Standing::of(host.pid).map_err(|error| error.to_string())?;
        Ok(Delegator {
            standing: (!standing.is_equal_to(&held.standing())).then_some(standing),
            umask: umask.ok_or("the kernel does not tell its umask")?,
            is_only: held.has_one_request(),
        })
    }
}

fn differing(what: &str) -> String {
    format!("it differs from the pool in its {what}")
}

fn unseen(error: io::Error) -> String {
    format!("the pool may not look into it ({error})")
}
