//! What can be said of a change in a layer.

use std::ffi::OsStr;
use std::fmt;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::fcntl::readlinkat;
use nix::libc;
use nix::sys::stat::FileStat;

/// The most names of a note that are written out.
pub(super) const NAMED: usize = 5;

/// A file or directory that a process created, modified or deleted in its layer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Change {
    /// Relative to the project.
    pub path: PathBuf,
    /// What happened.
    pub kind: ChangeKind,
    /// What it is; what it was, if it was deleted.
    pub what: What,
    /// Size in bytes; the previous size if it was deleted. 0 for a directory.
    pub size: u64,
    /// The mode before and afterwards, if it was changed.
    pub mode: Option<(u32, u32)>,
    /// What else there is to say.
    pub notes: Vec<Note>,
}

impl Change {
    /// Whether it is a directory.
    #[must_use]
    pub fn is_directory(&self) -> bool {
        self.what == What::Directory
    }
}

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeKind {
    /// It did not exist before.
    Created,
    /// Its content, mode, type or anything else of it differs.
    Modified,
    /// It was deleted; a directory with everything below it.
    Deleted,
}

/// The type of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, and what it leads to.
    Link(PathBuf),
    /// A named pipe.
    Pipe,
    /// A socket or a device.
    Other,
}

impl What {
    /// What `name` is in a directory. `stat` tells of it.
    pub(super) fn of(directory: &impl AsFd, name: &OsStr, stat: &FileStat) -> Self {
        match stat.st_mode & libc::S_IFMT {
            libc::S_IFREG => Self::File,
            libc::S_IFDIR => Self::Directory,
            libc::S_IFLNK => Self::Link(readlinkat(directory, name).unwrap_or_default().into()),
            libc::S_IFIFO => Self::Pipe,
            _ => Self::Other,
        }
    }
}

/// What else there is to say of a change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Note {
    /// Something of another type is replaced.
    Was(What),
    /// A directory is replaced by another one with what is listed below it.
    AsAWhole,
    /// Users' attributes that are set, changed or removed.
    Attributes(Vec<String>),
    /// The time of modification is another one, apart from that of a change of content.
    Time,
    /// Owner and group change.
    Owner {
        /// Before.
        from: (u32, u32),
        /// Afterwards.
        to: (u32, u32),
    },
    /// Everybody may write to it. Its mode.
    ForEverybody(u32),
    /// What the process set is not made real.
    LeftOut(LeftOut),
    /// The access control list that it has stays, although the process removed it.
    ListStays,
    /// What has taken its place has no access control list, as it had.
    ListGone,
    /// The file has other names outside of the layer, which stay as they are.
    LinkedElsewhere,
    /// The file has other names, all of which are in the layer and change with this one.
    LinkedWith(Vec<PathBuf>),
    /// The file has other names in the layer, which become files of their own.
    Parted,
    /// It becomes one file with others that are listed: what is written to one of them is then in
    /// all.
    OneFileWith {
        /// The first of the others, before all those that existed.
        first: Vec<PathBuf>,
        /// The number of further ones.
        more: usize,
    },
}

/// What a layer can have that is not made real.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeftOut {
    /// The set-user-ID bit.
    SetUser,
    /// The set-group-ID bit.
    SetGroup,
    /// An access control list.
    List,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Was(What::Directory) => f.write_str("replaces a directory and everything in it"),
            Self::Was(What::File) => f.write_str("replaces a file"),
            Self::Was(What::Link(_)) => f.write_str("replaces a link"),
            Self::Was(What::Pipe) => f.write_str("replaces a pipe"),
            Self::Was(What::Other) => f.write_str("replaces a socket or a device"),
            Self::AsAWhole => f.write_str("replaced as a whole"),
            Self::Attributes(names) => {
                f.write_str("attributes ")?;
                some(f, names.iter().map(String::as_str), 0)
            }
            Self::Time => f.write_str("time set"),
            Self::Owner { from, to } => {
                write!(f, "owner {}:{} → {}:{}", from.0, from.1, to.0, to.1)
            }
            Self::ForEverybody(mode) => write!(f, "everybody may write it (mode {mode:03o})"),
            Self::LeftOut(LeftOut::SetUser) => f.write_str("set-user-ID left out"),
            Self::LeftOut(LeftOut::SetGroup) => f.write_str("set-group-ID left out"),
            Self::LeftOut(LeftOut::List) => f.write_str("access list left out"),
            Self::ListStays => f.write_str("access list stays"),
            Self::ListGone => f.write_str("access list gone"),
            Self::Parted => f.write_str("no longer linked with its other names"),
            Self::LinkedElsewhere => f.write_str("linked elsewhere: replaced"),
            Self::LinkedWith(names) => {
                f.write_str("changes with it: ")?;
                paths(f, names, 0)
            }
            Self::OneFileWith { first, more } => {
                f.write_str("one file with ")?;
                paths(f, first, *more)
            }
        }
    }
}

/// Writes the first paths, and how many more there are with those that are not among them.
fn paths(f: &mut fmt::Formatter<'_>, paths: &[PathBuf], more: usize) -> fmt::Result {
    let names: Vec<_> = paths.iter().map(|path| shown_path(path)).collect();
    some(f, names.iter().map(String::as_str), more)
}

/// The same for names.
fn some<'a>(
    f: &mut fmt::Formatter<'_>,
    names: impl ExactSizeIterator<Item = &'a str>,
    more: usize,
) -> fmt::Result {
    let more = names.len().saturating_sub(NAMED) + more;
    for (index, name) in names.take(NAMED).enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        write!(f, "{comma}{name}")?;
    }
    match more {
        0 => Ok(()),
        more => write!(f, " and {more} more"),
    }
}

/// A path as text: bytes that are no UTF-8 as `\xff`, so that two paths that differ in one look
/// different.
#[must_use]
pub fn shown_path(path: &Path) -> String {
    let mut out = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        out.push_str(chunk.valid());
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out
}

/// Some of the changes of one kind of work, the rest counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// The first changes, sorted by path.
    pub first: Vec<Change>,
    /// The number of further changes.
    pub more: u64,
}
