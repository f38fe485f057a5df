//! Guard: the filesystem view. A private root in a private mount namespace, which contains only
//! what the process may read.

mod apply;
mod change;
mod changes;
mod mount;
mod namespaces;
mod opened;
mod plan;
mod remove;
mod renewal;
mod tree;

use std::ffi::OsString;
use std::path::PathBuf;

pub use apply::{ApplyError, Planned};
pub use change::{Change, ChangeKind, LeftOut, Listed, Note, What, shown_path};
pub use changes::{Changes, Contents, Layer};
pub(crate) use mount::{Renewed, apply, renew};
pub(crate) use namespaces::{
    MAP_PATIENCE_MS, MAP_REQUEST_BYTES, ask_for_maps, ask_for_maps_of, bring_up_loopback,
    clone_flags, enter_namespaces, map_ids,
};
pub(crate) use plan::{IdMaps, Layers, Made, PreparedView, UserNamespace};
pub(crate) use remove::remove_entries;
pub use remove::{remove_directory, remove_place};
pub use renewal::Renewal;

use crate::{GuardState, Place, RunAs, Shown};

/// The files that exist for a process, each under the same path as outside. Everything else does
/// not exist for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Readable files, and directories with everything below them. Symbolic links on the way to
    /// them are recreated; missing ones are skipped.
    pub readable: Vec<Shown>,
    /// Device files, as they are outside. Missing ones are skipped.
    pub devices: Vec<PathBuf>,
    /// Read-only files with a different content than outside. None may be in a directory that is
    /// shown as a whole.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// Symbolic links of its own: where they are, and where they lead.
    pub links: Vec<(PathBuf, PathBuf)>,
    /// The directory that the process works on.
    pub project: Project,
    /// Further files and directories that the process may write, shown where they are.
    pub writable: Vec<Place>,
    /// Further directories that the process may write, and where its writes go.
    pub layered: Option<Layered>,
    /// Files of shown directories that have another content for the process; a directory is empty
    /// then. Neither can be written, whatever else permits it. Missing ones are skipped.
    pub covered: Vec<(PathBuf, Vec<u8>)>,
    /// Whether the process has a `/proc`, which needs a pid namespace of its own
    /// ([`Spaces`](crate::Spaces)).
    pub processes: bool,
    /// The directory for temporary files: new and empty, removed when the process ends.
    pub temp: Temp,
    /// A home: like the directory for temporary files, but the process's own, and programs in it may
    /// be executed. What is shown below its path is shown in it.
    pub home: Option<Home>,
}

/// A home that ends with its process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    /// Absolute.
    pub path: PathBuf,
    /// Maximum size in bytes.
    pub bytes: u64,
    /// Whose it is: the process's user.
    pub owner: RunAs,
}

/// The directory that a process works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// The directory.
    pub root: Place,
    /// Where the process finds it; an absolute path.
    pub at: PathBuf,
    /// What writes to it do.
    pub writes: Writes,
    /// The name of a directory in it that is empty and read-only for the process, whatever
    /// `writes` is.
    pub sealed: Option<OsString>,
}

/// Directories whose writes go to a layer that only the process sees. If the project's go to a
/// layer, too, there must be none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layered {
    /// The directories.
    pub directories: Vec<Place>,
    /// Directories whose writes are thrown away: nobody is told of their changes.
    pub thrown: Vec<Place>,
    /// Maximum size of all layers together in bytes.
    pub bytes: u64,
    /// An empty directory on disk for the layers; `None`: in memory.
    pub on_disk: Option<Place>,
}

/// What writes to the project do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Writes {
    /// They fail.
    Refused,
    /// They go to a layer that only the process sees and that is discarded afterwards.
    Layer {
        /// Maximum size of the layer in bytes.
        bytes: u64,
        /// An empty directory on disk for the layer; `None`: in memory.
        on_disk: Option<Place>,
    },
    /// They change the project itself.
    Real,
}

/// The directory for temporary files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Temp {
    /// Absolute.
    pub path: PathBuf,
    /// Maximum size in bytes.
    pub bytes: u64,
}

/// The state of this guard once the process runs.
pub(crate) fn state(view: Option<&View>) -> GuardState {
    match view {
        Some(_) => GuardState::InForce,
        None => GuardState::LeftOut {
            because: "the policy shows the files of the host".into(),
        },
    }
}
