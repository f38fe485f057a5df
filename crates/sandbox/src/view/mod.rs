//! Guard: the filesystem view. A private root in a private mount namespace, in which only what
//! may be read is there.

mod changes;
mod mount;
mod namespaces;
mod plan;
mod remove;
mod renewal;
mod tree;

use std::ffi::OsString;
use std::path::PathBuf;

pub use changes::{Change, ChangeKind, Changes, Layer};
pub(crate) use mount::{Renewed, apply, renew};
pub(crate) use namespaces::{MAP_REQUEST_BYTES, enter_namespaces, map_ids};
pub(crate) use plan::{IdMaps, Layers, PreparedView, UserNamespace};
pub use remove::remove_directory;
pub use renewal::Renewal;

use crate::{GuardState, Place, Shown};

/// What is there for a process, everything under the path that it has outside. What is not named
/// does not exist for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Files, and directories with all below, that are there to be read. A symbolic link on the
    /// way to one is made anew; one that does not exist is passed over.
    pub readable: Vec<Shown>,
    /// Device files, as they are outside. One that does not exist is passed over.
    pub devices: Vec<PathBuf>,
    /// Files that are there with another content than outside, read-only; in no directory that is
    /// there as a whole.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// The directory that the process works on.
    pub project: Project,
    /// The directory for temporary files: made for the process, empty, gone when it has ended.
    pub temp: Temp,
}

/// The directory that a process works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// The directory.
    pub root: Place,
    /// What writes to it do.
    pub writes: Writes,
    /// The name of a directory in it that is empty for the process and cannot be written, whatever
    /// `writes` is.
    pub sealed: Option<OsString>,
}

/// What writes to the project do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Writes {
    /// They fail.
    Refused,
    /// They go to a layer that only the process sees and that is gone afterwards.
    Layer {
        /// Bytes that the layer may hold.
        bytes: u64,
        /// An empty directory on disk for the layer; `None`: in memory.
        on_disk: Option<Place>,
    },
    /// They are real.
    Real,
}

/// The directory for temporary files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Temp {
    /// Absolute.
    pub path: PathBuf,
    /// Bytes that it may hold.
    pub bytes: u64,
}

/// Whether the view is in force once the process runs.
pub(crate) fn state(view: Option<&View>) -> GuardState {
    match view {
        Some(_) => GuardState::InForce,
        None => GuardState::LeftOut {
            because: "the policy shows the files of the host".into(),
        },
    }
}
