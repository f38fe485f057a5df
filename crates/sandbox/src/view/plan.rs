//! Plans the private root in the host, since the process that builds it may not allocate.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::sys::stat::fstatat;

use super::renewal::{
    COVER, Further, LAYER, LayerMount, Mounts, NEW_TEMP, OLD_TEMP, Part, RUN, Renewal, Store,
    WritesRenewed, file, kept, lower,
};
use super::tree::{Entry, Tree, bytes};
use super::{Home, Project, View, Writes};
use crate::{Inode, Place, RunAs, Shown, SpawnError, with_files_of};

/// Files that a layer or the directory for temporary files may hold per MiB of its size. Besides
/// its content, a file costs the kernel about 1 KiB.
const FILES_A_MIB: u64 = 256;

/// A view in the form of system calls.
pub(crate) struct PreparedView {
    pub(super) entries: Vec<Entry>,
    pub(super) root_options: CString,
    pub(super) temp_options: CString,
    /// The data of mount(2) for the home, if there is one.
    pub(super) home_options: Option<CString>,
    /// Paths that are covered with a file.
    pub(super) covered: Vec<Covered>,
    /// Whether there is a `/proc`.
    pub(super) processes: bool,
    /// What is kept backstage.
    pub(super) stash: Vec<Stashed>,
    /// The first mounts of the project.
    pub(super) mounts: Mounts,
    /// The user namespace, if one is needed.
    pub(crate) user_namespace: Option<UserNamespace>,
    /// What the host needs to determine the changes in the layers.
    pub(crate) layers: Option<Layers>,
    /// What a fork of the process mounts anew.
    pub(crate) renewal: Renewal,
}

/// Something that is kept backstage: a mount of the host's, or an empty directory.
pub(super) struct Stashed {
    /// Its path outside; `None`: there is nothing to mount.
    pub source: Option<CString>,
    /// The inode that the path must still lead to.
    pub inode: Option<Inode>,
    /// Its name backstage.
    pub name: CString,
    pub directory: bool,
    pub writable: bool,
    /// Whether mounts below it are included.
    pub whole: bool,
}

/// A user namespace that a process makes.
pub(crate) struct UserNamespace {
    pub(crate) maps: IdMaps,
    pub(crate) made: Made,
}

/// Who makes a user namespace, and who maps its ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Made {
    /// The process does both.
    ByProcess,
    /// The process makes it, and the host maps the ids because the process's user differs from the
    /// host's. Until execve(2) the process holds a copy of the host's memory; to map ids itself, it
    /// would have to let its user read that memory.
    ByProcessMappedByHost,
    /// The keeper is made in it, the first process of its own pid namespace; the host maps the ids.
    WithKeeper,
}

impl UserNamespace {
    /// Whether the host maps the ids.
    pub(crate) fn is_mapped_by_host(&self) -> bool {
        self.made != Made::ByProcess
    }
}

/// The contents of `/proc/<pid>/uid_map` and `gid_map`.
#[derive(Clone)]
pub(crate) struct IdMaps {
    pub(super) uid: CString,
    pub(super) gid: CString,
}

impl IdMaps {
    /// Maps one user and one group, each to itself.
    pub(crate) fn of(uid: u32, gid: u32) -> Result<Self, SpawnError> {
        Ok(Self {
            uid: c_string(OsStr::new(&format!("{uid} {uid} 1\n")))?,
            gid: c_string(OsStr::new(&format!("{gid} {gid} 1\n")))?,
        })
    }
}

/// The layers of a run, for the host.
#[derive(Debug, Clone)]
pub(crate) struct Layers {
    /// The project.
    pub root: Place,
    /// The process's user.
    pub user: Option<RunAs>,
    /// The lower directory of each layer, relative to the project; the first is the project itself.
    pub mounts: Vec<PathBuf>,
    /// The name of the sealed directory.
    pub sealed: Option<OsString>,
    /// The extended attribute that marks a directory of the layer as opaque.
    pub opaque: &'static CStr,
}

impl PreparedView {
    /// Plans the private root of `view`.
    pub(crate) fn new(
        view: &View,
        user_namespace: Option<UserNamespace>,
        user: Option<RunAs>,
    ) -> Result<Self, SpawnError> {
        let project = &view.project;
        let at = project.at.as_path();
        let further = further_points(view);
        let mut tree = Tree::new(at, &further, &view.temp.path, view.home.as_ref());
        for (path, content) in &view.files {
            tree.make_file(path, content);
        }
        for shown in &view.readable {
            tree.show(shown);
        }
        for path in &view.devices {
            tree.show_device(path);
        }
        for (path, target) in &view.links {
            tree.make_link(path, target);
        }
        tree.make_way(bytes(at));
        for place in &further {
            tree.make_point(place);
        }
        if view.processes {
            tree.make_way(PROC);
        }
        let entries = tree.entries()?;
        let mut plan = Plan {
            renewal: Renewal {
                project: bytes_of(at),
                writes: WritesRenewed::Bind,
                files: Vec::new(),
                sealed: None,
                temp: bytes_of(&view.temp.path),
                temp_options: memory_options(view.temp.bytes, "1777"),
                kept: Vec::new(),
            },
            stash: Vec::new(),
            layers: None,
        };
        match &project.writes {
            Writes::Refused => {
                plan.bind(project, false)?;
                // If it does not exist, there is no mount point for it.
                if sealed_is_there(project, user)? {
                    plan.seal(project);
                }
            }
            Writes::Real => {
                check_sealed(project, user)?;
                plan.bind(project, true)?;
                plan.seal(project);
            }
            Writes::Layer { bytes, on_disk } => {
                plan.layer(
                    project,
                    *bytes,
                    on_disk.as_ref(),
                    user_namespace.is_some(),
                    user,
                )?;
                plan.seal(project);
            }
        }
        let further = plan.further(view, user_namespace.is_some(), user)?;
        plan.keep(&entries, &view.temp.path)?;
        let Plan {
            renewal,
            stash,
            layers,
        } = plan;
        let mut mounts = renewal.mounts(LAYER, &[])?;
        (mounts.further, mounts.further_store) = further;
        // In a user namespace, it is that user already.
        mounts.sealed_as = user.filter(|_| user_namespace.is_none());
        // One file or directory for each, and some spare.
        let inodes = entries.len() + stash.len() + view.covered.len() + 64;
        let files = || view.files.iter().chain(&view.covered);
        let contents: usize = files().map(|(_, content)| content.len()).sum();
        let kib = 1024 + contents.div_ceil(1024) + 4 * files().count();
        let root_options = format!("mode=0755,size={kib}k,nr_inodes={inodes}");
        Ok(Self {
            entries,
            root_options: c_string(OsStr::new(&root_options))?,
            temp_options: c_string(OsStr::from_bytes(&renewal.temp_options))?,
            home_options: view.home.as_ref().map(home_options).transpose()?,
            mounts,
            covered: covered(&view.covered)?,
            processes: view.processes,
            stash,
            user_namespace,
            layers,
            renewal,
        })
    }
}

/// A file that is mounted over another.
pub(super) struct Covered {
    /// The path that it covers.
    pub at: CString,
    /// Its own path.
    pub file: CString,
    pub content: Vec<u8>,
}

fn covered(files: &[(PathBuf, Vec<u8>)]) -> Result<Vec<Covered>, SpawnError> {
    let each = files.iter().enumerate();
    each.map(|(index, (path, content))| {
        Ok(Covered {
            at: c_string(path.as_os_str())?,
            file: c_string(OsStr::new(&format!("/.altair-cover{index}")))?,
            content: content.clone(),
        })
    })
    .collect()
}

/// The plan under construction.
struct Plan {
    renewal: Renewal,
    stash: Vec<Stashed>,
    layers: Option<Layers>,
}

impl Plan {
    fn stash(
        &mut self,
        source: Option<(&Path, Option<Inode>)>,
        name: String,
        kind: Kind,
    ) -> Result<(), SpawnError> {
        let (source, inode) = match source {
            Some((path, inode)) => (Some(c_string(path.as_os_str())?), inode),
            None => (None, None),
        };
        self.stash.push(Stashed {
            source,
            inode,
            name: c_string(OsStr::new(&name))?,
            directory: !matches!(kind, Kind::File | Kind::WritableFile),
            writable: matches!(
                kind,
                Kind::Store | Kind::WritableFile | Kind::Tree { writable: true }
            ),
            whole: matches!(kind, Kind::Tree { .. }),
        });
        Ok(())
    }

    fn bind(&mut self, project: &Project, writable: bool) -> Result<(), SpawnError> {
        self.stash(source(&project.root), lower(0), Kind::Tree { writable })
    }

    fn seal(&mut self, project: &Project) {
        self.renewal.sealed = project.sealed.as_ref().map(|name| name.as_bytes().to_vec());
    }

    /// Plans the layers over the project and over the mounts below it.
    fn layer(
        &mut self,
        project: &Project,
        layer_bytes: u64,
        on_disk: Option<&Place>,
        user_xattr: bool,
        user: Option<RunAs>,
    ) -> Result<(), SpawnError> {
        let root = &project.root;
        let is_sealed = sealed_is_there(project, user)?;
        let (below, files) = mounts_below(root, user)?;
        let mut parts = Vec::new();
        for (index, place) in [root].into_iter().chain(&below).enumerate() {
            // This hides a lower entry of this name that is not a directory.
            let make = match &project.sealed {
                Some(name) if index == 0 && !is_sealed => Some(name.as_bytes().to_vec()),
                _ => None,
            };
            parts.push(part_of(place, relative(place, root), make));
            self.stash(source(place), lower(index), Kind::Directory)?;
        }
        for (index, place) in files.iter().enumerate() {
            self.renewal.files.push(bytes_of(relative(place, root)));
            self.stash(source(place), file(index), Kind::File)?;
        }
        self.stash(on_disk.and_then(source), LAYER.into(), Kind::Store)?;
        self.layers = Some(Layers {
            root: root.clone(),
            user,
            mounts: parts
                .iter()
                .map(|part| PathBuf::from(OsString::from_vec(part.below.clone())))
                .collect(),
            sealed: project.sealed.clone(),
            opaque: opaque_mark(user_xattr),
        });
        self.renewal.writes = WritesRenewed::Layer {
            options: on_disk
                .is_none()
                .then(|| memory_options(layer_bytes, "0755")),
            parts,
            user_xattr,
        };
        Ok(())
    }

    /// Plans the mounts of further writable files and directories, and those with a layer.
    fn further(
        &mut self,
        view: &View,
        user_xattr: bool,
        user: Option<RunAs>,
    ) -> Result<(Vec<Further>, Option<Store>), SpawnError> {
        let mut further: Vec<(PathBuf, Further)> = Vec::new();
        for (index, place) in view.writable.iter().enumerate() {
            let name = format!(".writable{index}");
            let kind = match place.is_directory() {
                true => Kind::Tree { writable: true },
                false => Kind::WritableFile,
            };
            self.stash(source(place), name.clone(), kind)?;
            let mount = Further::Bind {
                source: c_string(OsStr::new(&name))?,
                at: c_string(place.path().as_os_str())?,
            };
            further.push((place.path().to_owned(), mount));
        }
        for (index, place) in readable_within(view).enumerate() {
            let name = format!(".readable{index}");
            let kind = match place.is_directory() {
                true => Kind::Tree { writable: false },
                false => Kind::File,
            };
            self.stash(source(place), name.clone(), kind)?;
            let mount = Further::Bind {
                source: c_string(OsStr::new(&name))?,
                at: c_string(place.path().as_os_str())?,
            };
            further.push((place.path().to_owned(), mount));
        }
        let Some(layered) = &view.layered else {
            return Ok((sorted(further), None));
        };
        let top = Place::find(Path::new("/")).map_err(|source| SpawnError::Host {
            what: "the root directory cannot be opened",
            source,
        })?;
        let mut mounts = Vec::new();
        let mut told = 0;
        let directories = layered.directories.iter().map(|one| (one, true));
        let thrown = layered.thrown.iter().map(|one| (one, false));
        for (directory, is_told) in directories.chain(thrown) {
            let (below, files) = mounts_below(directory, user)?;
            for (nth, place) in [directory].into_iter().chain(&below).enumerate() {
                let index = mounts.len();
                let name = format!(".layered{index}");
                self.stash(source(place), name.clone(), Kind::Directory)?;
                let at = c_string(place.path().as_os_str())?;
                let part = part_of(place, Path::new(""), None);
                let layer = LayerMount::new((LAYERED, index), name, at, &part, false, user_xattr)?;
                let mount = Further::Layer {
                    layer,
                    user_xattr,
                    can_do_without: nth > 0,
                };
                further.push((place.path().to_owned(), mount));
                mounts.push(relative(place, &top).to_owned());
                told += usize::from(is_told);
            }
            for place in &files {
                let name = format!(".file-of-layered{}", self.stash.len());
                self.stash(source(place), name.clone(), Kind::File)?;
                let mount = Further::Bind {
                    source: c_string(OsStr::new(&name))?,
                    at: c_string(place.path().as_os_str())?,
                };
                further.push((place.path().to_owned(), mount));
            }
        }
        self.stash(
            layered.on_disk.as_ref().and_then(source),
            LAYERED.into(),
            Kind::Store,
        )?;
        // Those that nobody is told of come last.
        mounts.truncate(told);
        self.layers = (told > 0).then(|| Layers {
            root: top,
            user,
            mounts,
            sealed: None,
            opaque: opaque_mark(user_xattr),
        });
        let options = memory_options(layered.bytes, "0755");
        let store = Store {
            path: c_string(OsStr::new(LAYERED))?,
            options: match &layered.on_disk {
                None => Some(c_string(OsStr::from_bytes(&options))?),
                Some(_) => None,
            },
            sent: told > 0,
        };
        Ok((sorted(further), Some(store)))
    }

    /// Stashes the mounts that a new directory for temporary files would hide, and the empty
    /// directories that are needed backstage.
    fn keep(&mut self, entries: &[Entry], temp: &Path) -> Result<(), SpawnError> {
        for entry in entries {
            let Entry::Bind {
                source,
                directory,
                inode,
                ..
            } = entry
            else {
                continue;
            };
            let path = Path::new(OsStr::from_bytes(source.to_bytes()));
            if path.starts_with(temp) {
                let index = self.renewal.kept.len();
                self.renewal.kept.push(source.to_bytes().to_vec());
                let whole = Kind::Tree { writable: false };
                let kind = if *directory { whole } else { Kind::File };
                self.stash(Some((path, *inode)), kept(index), kind)?;
            }
        }
        let cover = COVER.to_string_lossy();
        for name in [RUN, NEW_TEMP, OLD_TEMP, &cover] {
            self.stash(None, name.into(), Kind::Directory)?;
        }
        Ok(())
    }
}

/// Where the files of further layers are, backstage.
const LAYERED: &str = ".layered";
/// Where processes are shown.
const PROC: &[u8] = b"/proc";

/// The files and directories that are mounted besides the project.
fn further_points(view: &View) -> Vec<&Place> {
    let layered = view
        .layered
        .iter()
        .flat_map(|layered| layered.directories.iter().chain(&layered.thrown));
    view.writable.iter().chain(layered).collect()
}

/// What may only be read, below a directory that may be written.
fn readable_within(view: &View) -> impl Iterator<Item = &Place> {
    let readable = view.readable.iter().filter_map(Shown::found_as);
    readable.map(|found| &found.place).filter(|place| {
        let is_within = |writable: &Place| {
            place.path() != writable.path() && place.path().starts_with(writable.path())
        };
        view.writable.iter().any(is_within)
    })
}

/// Mounts by path, so that each comes after those above it.
fn sorted(mut mounts: Vec<(PathBuf, Further)>) -> Vec<Further> {
    mounts.sort_by(|(one, _), (other, _)| one.cmp(other));
    mounts.into_iter().map(|(_, mount)| mount).collect()
}

/// The part of a layer that lies over a directory.
fn part_of(place: &Place, below: &Path, make: Option<Vec<u8>>) -> Part {
    let owner = place.owner();
    Part {
        below: bytes_of(below),
        mode: place.mode() & 0o7777,
        uid: owner.uid,
        gid: owner.gid,
        make,
    }
}

/// The mark of opaque directories. To overlayfs, the respective other name is an ordinary attribute,
/// which the process may set freely (Documentation/filesystems/overlayfs.rst).
fn opaque_mark(user_xattr: bool) -> &'static CStr {
    if user_xattr {
        c"user.overlay.opaque"
    } else {
        c"trusted.overlay.opaque"
    }
}

/// What is stashed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    WritableFile,
    Directory,
    /// A directory with all mounts below it.
    Tree {
        writable: bool,
    },
    /// The directory with a layer's files.
    Store,
}

pub(super) fn c_string(text: &OsStr) -> Result<CString, SpawnError> {
    CString::new(text.as_bytes()).map_err(|_| SpawnError::NulByte {
        what: format!("the path {}", text.display()),
    })
}

/// Makes an absolute path relative to the private root.
pub(super) fn inside(path: &Path) -> Result<CString, SpawnError> {
    c_string(path.strip_prefix("/").unwrap_or(path).as_os_str())
}

fn memory_options(bytes: u64, mode: &str) -> Vec<u8> {
    let files = (bytes >> 20).saturating_mul(FILES_A_MIB).max(FILES_A_MIB);
    format!("size={bytes},nr_inodes={files},mode={mode}").into_bytes()
}

fn home_options(home: &Home) -> Result<CString, SpawnError> {
    let mut options = memory_options(home.bytes, "0700");
    options.extend(format!(",uid={},gid={}", home.owner.uid, home.owner.gid).into_bytes());
    c_string(OsStr::from_bytes(&options))
}

fn bytes_of(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

/// A place's path outside, and the inode that it must lead to.
fn source(place: &Place) -> Option<(&Path, Option<Inode>)> {
    Some((place.path(), Some(place.inode())))
}

/// The path of a place relative to the project.
fn relative<'a>(place: &'a Place, root: &Place) -> &'a Path {
    place
        .path()
        .strip_prefix(root.path())
        .unwrap_or(place.path())
}

/// How long to wait for accesses to the project.
const PATIENCE: Duration = Duration::from_secs(1);

/// Accesses files of the project as the process's own user, with a time limit: they may be on a
/// network or FUSE file system whose server does not answer.
fn in_project<T: Send + 'static>(
    project: &Place,
    user: Option<RunAs>,
    look: impl FnOnce(&Place) -> T + Send + 'static,
) -> Result<T, SpawnError> {
    let project = project.clone();
    with_files_of(user, PATIENCE, move || look(&project)).map_err(|source| SpawnError::Host {
        what: "files of the project cannot be looked at",
        source,
    })
}

/// Whether there is a directory of this name; a link to one does not count.
fn has_directory(root: &Place, name: &OsStr) -> bool {
    root.below(Path::new(name))
        .is_ok_and(|found| found.is_directory())
}

/// Whether the sealed directory exists.
fn sealed_is_there(project: &Project, user: Option<RunAs>) -> Result<bool, SpawnError> {
    match project.sealed.clone() {
        Some(name) => in_project(&project.root, user, move |root| has_directory(root, &name)),
        None => Ok(false),
    }
}

/// Checks that the name of the sealed directory is free for it, or its own. The process makes it where
/// it does not exist ([`Mounts::sealed_as`]): a start that fails leaves nothing in the project.
fn check_sealed(project: &Project, user: Option<RunAs>) -> Result<(), SpawnError> {
    let Some(name) = &project.sealed else {
        return Ok(());
    };
    let own = name.clone();
    let is_other = in_project(&project.root, user, move |root| {
        let found = fstatat(
            root.descriptor(),
            own.as_os_str(),
            AtFlags::AT_SYMLINK_NOFOLLOW,
        );
        found.is_ok() && !has_directory(root, &own)
    })?;
    match is_other {
        true => Err(SpawnError::Sealed {
            path: project.root.path().join(name),
            source: Errno::ENOTDIR.into(),
        }),
        false => Ok(()),
    }
}

/// The mount points below `root`: directories, each before those below it, and files. A path that
/// by now leads through a link is skipped.
fn mounts_below(root: &Place, user: Option<RunAs>) -> Result<(Vec<Place>, Vec<Place>), SpawnError> {
    // A thread may have its own mount namespace; the process gets a copy of this thread's.
    let Ok(text) = std::fs::read("/proc/thread-self/mountinfo") else {
        return Ok((Vec::new(), Vec::new()));
    };
    let found: BTreeSet<PathBuf> = text
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.split(|byte| *byte == b' ').nth(4))
        .map(unescape)
        .filter_map(|path| path.strip_prefix(root.path()).ok().map(Path::to_owned))
        .filter(|path| !path.as_os_str().is_empty())
        .collect();
    if found.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    in_project(root, user, move |root| {
        found
            .iter()
            .filter_map(|path| root.below(path).ok())
            .partition(Place::is_directory)
    })
}

/// Undoes the octal escapes of `/proc/self/mountinfo`: space, tab, newline and backslash.
fn unescape(field: &[u8]) -> PathBuf {
    let mut path = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte == b'\\'
            && let Some((digits, after)) = tail.split_at_checked(3)
            && let Some(value) = std::str::from_utf8(digits)
                .ok()
                .and_then(|digits| u8::from_str_radix(digits, 8).ok())
        {
            path.push(value);
            rest = after;
        } else {
            path.push(byte);
        }
    }
    PathBuf::from(OsString::from_vec(path))
}
