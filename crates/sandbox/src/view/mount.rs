//! Making the private root: system calls only, between the clone and the program.
//!
//! As in [`crate::system_calls`], everything is async-signal-safe.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::{fs, io};

use nix::errno::Errno;
use nix::libc::{self, c_int, c_long, c_uint, c_ulong};
use nix::sys::prctl;
use nix::sys::stat::{Mode, umask};

use super::plan::{IdMaps, PreparedView, Stashed};
use super::renewal::{
    BACKSTAGE, COVER, LayerMount, MountKind, Mounts, RUN, Renewal, kept as kept_name,
    upper_of_first,
};
use super::tree::{DIRECTORY_MODE, Entry};
use crate::error::{Failure, Step};
use crate::process::LIFELINE;
use crate::{Inode, raw_descriptors, system_calls};

/// What is mounted is nobody's way to more rights.
const ALWAYS: c_ulong = libc::MS_NOSUID | libc::MS_NODEV;

/// Makes the view of the calling process, in namespaces of its own. Where there is a layer, its
/// directory is sent to the host over `lifeline`.
pub(crate) fn apply(prepared: &PreparedView, lifeline: RawFd) -> Result<(), Failure> {
    let old_mask = umask(Mode::empty());
    // Neither what is mounted here is to be seen outside, nor the other way round.
    mount(None, c"/", None, libc::MS_REC | libc::MS_PRIVATE, None)
        .map_err(|e| Step::Namespace.failed(e))?;
    build(prepared, lifeline)?;
    umask(old_mask);
    Ok(())
}

/// Gives the calling process its namespaces.
pub(crate) fn enter_namespaces(prepared: &PreparedView, lifeline: RawFd) -> Result<(), Failure> {
    let map = |e| Step::IdMaps.failed(e);
    let unshare = |flags| {
        // SAFETY: no pointer is passed.
        let made = Errno::result(unsafe { libc::unshare(flags) });
        made.map(drop).map_err(|e| Step::Namespace.failed(e))
    };
    let Some(namespace) = &prepared.user_namespace else {
        return unshare(libc::CLONE_NEWNS);
    };
    if namespace.by_host {
        unshare(libc::CLONE_NEWNS | libc::CLONE_NEWUSER)?;
        return ask_for_maps(lifeline).map_err(map);
    }
    // A change of user before this has made the process's files in /proc the root's.
    prctl::set_dumpable(true).map_err(map)?;
    unshare(libc::CLONE_NEWNS | libc::CLONE_NEWUSER)?;
    // Without this a process without rights may not map its group (user_namespaces(7)).
    write_file(c"/proc/self/setgroups", b"deny").map_err(map)?;
    write_file(c"/proc/self/uid_map", namespace.maps.uid.to_bytes()).map_err(map)?;
    write_file(c"/proc/self/gid_map", namespace.maps.gid.to_bytes()).map_err(map)
}

/// Bytes of the packet by which a process asks its host to map its ids: its own. The answer is an
/// errno, or 0.
pub(crate) const MAP_REQUEST_BYTES: usize = 4;

/// How long the answer is waited for, in milliseconds.
const MAP_PATIENCE_MS: c_int = 5_000;

fn ask_for_maps(lifeline: RawFd) -> nix::Result<()> {
    let own: [u8; MAP_REQUEST_BYTES] = nix::unistd::getpid().as_raw().to_ne_bytes();
    raw_descriptors::send(lifeline, &own);
    let mut fds = [libc::pollfd {
        fd: lifeline,
        events: libc::POLLIN,
        revents: 0,
    }];
    raw_descriptors::poll(&mut fds, MAP_PATIENCE_MS);
    let mut answer = [0; 4];
    match raw_descriptors::receive(lifeline, &mut answer)? {
        4 => match i32::from_ne_bytes(answer) {
            0 => Ok(()),
            errno => Err(Errno::from_raw(errno)),
        },
        _ => Err(Errno::EPIPE),
    }
}

/// Maps the ids of a process that has asked for it, in the host.
pub(crate) fn map_ids(pid: i32, maps: &IdMaps) -> io::Result<()> {
    let proc = std::path::PathBuf::from(format!("/proc/{pid}"));
    fs::write(proc.join("gid_map"), maps.gid.to_bytes())?;
    fs::write(proc.join("uid_map"), maps.uid.to_bytes())
}

fn build(prepared: &PreparedView, lifeline: RawFd) -> Result<(), Failure> {
    let root = |e| Step::PrivateRoot.failed(e);
    // On top of the old root: a path from `/` still leads through the old one, one from the
    // working directory through the new one.
    mount(
        Some(c"altair"),
        c"/",
        Some(c"tmpfs"),
        ALWAYS | libc::MS_NOEXEC,
        Some(&prepared.root_options),
    )
    .map_err(root)?;
    enter_top_of_root().map_err(root)?;
    for entry in &prepared.entries {
        make(entry, prepared).map_err(root)?;
    }
    // One call for all of them; what may be written is set free, or mounted, after it.
    set_attributes(libc::AT_FDCWD, c".", READ_ONLY, 0, true).map_err(root)?;
    let unlocked = libc::MOUNT_ATTR_RDONLY;
    set_attributes(libc::AT_FDCWD, c".", 0, unlocked, false).map_err(root)?;
    for entry in &prepared.entries {
        release(entry).map_err(root)?;
    }
    let step = prepared.mounts.step();
    make_directory(libc::AT_FDCWD, relative(BACKSTAGE), DIRECTORY_MODE).map_err(root)?;
    let base = open_directory(relative(BACKSTAGE)).map_err(root)?;
    for stashed in &prepared.stash {
        stash(base, stashed).map_err(|e| step.failed(e))?;
    }
    raw_descriptors::close(base);
    let pivot = |e| Step::PivotRoot.failed(e);
    set_attributes(libc::AT_FDCWD, c".", libc::MOUNT_ATTR_RDONLY, 0, false).map_err(pivot)?;
    become_root().map_err(pivot)?;
    nix::unistd::chdir(BACKSTAGE).map_err(pivot)?;
    if let Some(store) = mount_project(&prepared.mounts).map_err(|e| step.failed(e))? {
        let sent = raw_descriptors::send_descriptor(lifeline, store);
        raw_descriptors::close(store);
        sent.map_err(|e| step.failed(e))?;
    }
    hide_backstage().map_err(pivot)?;
    empty_input().map_err(pivot)
}

/// An absolute path as one relative to the private root under construction.
fn relative(path: &CStr) -> &CStr {
    match path.to_bytes_with_nul() {
        [b'/', rest @ ..] => CStr::from_bytes_with_nul(rest).unwrap_or(path),
        _ => path,
    }
}

/// Keeps something of the host's, or an empty directory, in the directory `base`.
fn stash(base: RawFd, stashed: &Stashed) -> nix::Result<()> {
    if stashed.directory {
        make_directory(base, &stashed.name, DIRECTORY_MODE)?;
    } else {
        make_file_at(base, &stashed.name)?;
    }
    let Some(source) = &stashed.source else {
        return Ok(());
    };
    let attributes = libc::MOUNT_ATTR_NOSUID
        | libc::MOUNT_ATTR_NODEV
        | if stashed.writable {
            0
        } else {
            libc::MOUNT_ATTR_RDONLY
        };
    let tree = match clone_tree(source, stashed.whole) {
        // What the process's user could not reach outside either: an empty place is left.
        Err(Errno::EACCES | Errno::ENOENT | Errno::ENOTDIR) if !stashed.directory => return Ok(()),
        other => other?,
    };
    let result = is_inode(tree, stashed.inode)
        .and_then(|()| set_attributes(tree, c"", attributes, 0, stashed.whole))
        .and_then(|()| attach(tree, base, &stashed.name));
    raw_descriptors::close(tree);
    result
}

/// Whether a file is the one that it has to be: `ESTALE` where its path leads to another by now.
fn is_inode(file: RawFd, wanted: Option<Inode>) -> nix::Result<()> {
    let Some(wanted) = wanted else { return Ok(()) };
    // SAFETY: all zeros is a valid stat.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `stat` outlives the call.
    Errno::result(unsafe { libc::fstat(file, &raw mut stat) })?;
    match Inode::of(&stat) == wanted {
        true => Ok(()),
        false => Err(Errno::ESTALE),
    }
}

/// Mounts the project, from what is kept in the working directory, which is [`BACKSTAGE`]. Where
/// there is a layer, gives its directory.
pub(super) fn mount_project(mounts: &Mounts) -> nix::Result<Option<RawFd>> {
    let store = match &mounts.kind {
        MountKind::Bind { source } => {
            bind(source, &mounts.project)?;
            None
        }
        MountKind::Layers {
            store,
            options,
            parts,
            user_xattr,
        } => {
            if let Some(options) = options {
                mount(
                    Some(c"altair-layer"),
                    store,
                    Some(c"tmpfs"),
                    ALWAYS,
                    Some(options),
                )?;
            }
            for (index, part) in parts.iter().enumerate() {
                match layer_part(part, *user_xattr) {
                    Ok(()) => {}
                    // The project itself has to have its layer; what is mounted below it can do
                    // without.
                    Err(_) if index > 0 => bind(&part.source, &part.at)?,
                    Err(errno) => return Err(errno),
                }
            }
            Some(open_directory(store)?)
        }
    };
    for (source, at) in &mounts.files {
        bind(source, at)?;
    }
    if let Some(at) = &mounts.sealed {
        match bind(COVER, at) {
            // The place for it is gone since the template was made.
            Err(Errno::ENOENT) => {
                match make_directory(libc::AT_FDCWD, at, DIRECTORY_MODE) {
                    Err(Errno::EEXIST) => {}
                    made => made?,
                }
                bind(COVER, at)?;
            }
            other => other?,
        }
    }
    Ok(store)
}

/// Covers [`BACKSTAGE`], which is the working directory, with an empty directory, and leaves it.
pub(super) fn hide_backstage() -> nix::Result<()> {
    mount(Some(COVER), BACKSTAGE, None, libc::MS_BIND, None)?;
    nix::unistd::chdir(c"/")
}

/// What of the mounts a process has made that its forks make anew.
pub(crate) struct Renewed {
    mounts: Mounts,
    temp: TempMount,
}

/// Where a fork's directory for temporary files is mounted.
struct TempMount {
    at: CString,
    options: CString,
    /// What is mounted below it: source and place.
    kept: Vec<(CString, CString)>,
    /// Whether it shows what is in the first one.
    over: bool,
}

impl Renewal {
    /// Gives up the mounts of the calling process that its forks are to make anew: what it wrote is
    /// part of what they see, and is not written any more.
    ///
    /// # Errors
    /// What the system said.
    pub(crate) fn settle(&self) -> io::Result<Renewed> {
        let text = |bytes: &[u8]| CString::new(bytes).map_err(io::Error::from);
        let is_empty = |path: &OsStr, but: Option<&[u8]>| {
            Ok::<_, io::Error>(
                fs::read_dir(path)?
                    .flatten()
                    .all(|entry| but.is_some_and(|but| entry.file_name().as_bytes() == but)),
            )
        };
        let temp = text(&self.temp)?;
        let over = !is_empty(OsStr::from_bytes(&self.temp), None)?;
        nix::unistd::chdir(c"/")?;
        unmount(&text(&self.project)?)?;
        unmount(BACKSTAGE)?;
        nix::unistd::chdir(BACKSTAGE)?;
        let mut written = Vec::new();
        for index in 0..self.layers() {
            let but = self.sealed.as_deref().filter(|_| index == 0);
            written.push(!is_empty(OsStr::new(&upper_of_first(index)), but)?);
        }
        let kept = self.kept.iter().enumerate();
        Ok(Renewed {
            mounts: self.mounts(RUN, &written).map_err(io::Error::other)?,
            temp: TempMount {
                at: temp,
                options: text(&self.temp_options)?,
                kept: kept
                    .map(|(index, path)| Ok((text(kept_name(index).as_bytes())?, text(path)?)))
                    .collect::<io::Result<_>>()?,
                over,
            },
        })
    }
}

/// Makes the mounts of a fork, whose working directory is [`BACKSTAGE`] as its maker's is, in a
/// mount namespace of its own. Gives the directory of its layer, where it has one.
pub(crate) fn renew(renewed: &Renewed) -> Result<Option<RawFd>, Failure> {
    let namespace = c_long::from(libc::CLONE_NEWNS);
    // SAFETY: no pointer is passed.
    unsafe { system_calls::with_pass(libc::SYS_unshare, [namespace, 0, 0, 0, 0]) }
        .map_err(|e| Step::Namespace.failed(e))?;
    renew_temp(&renewed.temp).map_err(|e| Step::PrivateRoot.failed(e))?;
    let step = renewed.mounts.step();
    let store = mount_project(&renewed.mounts).map_err(|e| step.failed(e))?;
    hide_backstage().map_err(|e| step.failed(e))?;
    Ok(store)
}

fn renew_temp(temp: &TempMount) -> nix::Result<()> {
    let flags = ALWAYS | libc::MS_NOEXEC;
    let memory = |at: &CStr| {
        let source = Some(c"altair-temp");
        mount(source, at, Some(c"tmpfs"), flags, Some(&temp.options))
    };
    if !temp.over {
        return memory(&temp.at);
    }
    mount(
        Some(&temp.at),
        c".old",
        None,
        libc::MS_BIND | libc::MS_REC,
        None,
    )?;
    memory(c".temp")?;
    make_directory(libc::AT_FDCWD, c".temp/upper", 0o1777)?;
    make_directory(libc::AT_FDCWD, c".temp/work", 0o700)?;
    let options = c"lowerdir=.old,upperdir=.temp/upper,workdir=.temp/work,index=off,metacopy=off,redirect_dir=nofollow,userxattr";
    mount(
        Some(c"altair-temp"),
        &temp.at,
        Some(c"overlay"),
        flags,
        Some(options),
    )?;
    for (source, at) in &temp.kept {
        bind(source, at)?;
    }
    Ok(())
}

/// Opens standard input anew. The host's `/dev/null` came by a mount of the host's, through which
/// its owner could change the device's mode for all of the machine.
fn empty_input() -> nix::Result<()> {
    // SAFETY: a C string.
    let null = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    let input = match Errno::result(null) {
        Ok(null) => null,
        // Not part of the view: what is read from a pipe that nobody can write to is as empty.
        Err(_) => {
            let (reading, writing) = raw_descriptors::pipe_at(LIFELINE + 1)?;
            raw_descriptors::close(writing);
            reading
        }
    };
    let put = raw_descriptors::put(input, 0, false);
    raw_descriptors::close(input);
    put
}

/// The attributes of what may be read and nothing else.
const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;

fn make(entry: &Entry, prepared: &PreparedView) -> nix::Result<()> {
    match entry {
        Entry::Directory { at } => make_directory(libc::AT_FDCWD, at, DIRECTORY_MODE),
        Entry::Temp { at } => mount(
            Some(c"altair-temp"),
            at,
            Some(c"tmpfs"),
            ALWAYS | libc::MS_NOEXEC,
            Some(&prepared.temp_options),
        ),
        Entry::File { at, content } => make_file_of(at, content),
        Entry::Link { at, target } => {
            // SAFETY: two C strings that outlive the call.
            let result = unsafe { libc::symlinkat(target.as_ptr(), libc::AT_FDCWD, at.as_ptr()) };
            Errno::result(result).map(drop)
        }
        Entry::Bind {
            source,
            at,
            directory,
            device: _,
            inode,
        } => {
            let mut flags = libc::MS_BIND;
            if *directory {
                make_directory(libc::AT_FDCWD, at, DIRECTORY_MODE)?;
                // Without what is mounted below, a user namespace refuses.
                flags |= libc::MS_REC;
            } else {
                make_file(at)?;
            }
            let mounted = match inode {
                None => mount(Some(source), at, None, flags, None),
                Some(_) => mount_inode(source, at, *directory, *inode),
            };
            match mounted {
                // What the process's user could not reach outside either, or what is gone by now:
                // an empty place is left.
                Err(Errno::EACCES | Errno::ENOENT | Errno::ENOTDIR | Errno::ESTALE) => Ok(()),
                other => other,
            }
        }
    }
}

/// Mounts what is at `source` at `at`, where that is the file that it has to be.
fn mount_inode(source: &CStr, at: &CStr, whole: bool, inode: Option<Inode>) -> nix::Result<()> {
    let tree = clone_tree(source, whole)?;
    let attached = is_inode(tree, inode).and_then(|()| attach(tree, libc::AT_FDCWD, at));
    raw_descriptors::close(tree);
    attached
}

/// Takes back what is too strict for an entry.
fn release(entry: &Entry) -> nix::Result<()> {
    let (at, cleared) = match entry {
        Entry::Temp { at } => (at, libc::MOUNT_ATTR_RDONLY),
        Entry::Bind {
            at, device: true, ..
        } => (at, libc::MOUNT_ATTR_NODEV),
        Entry::Bind { .. } | Entry::Directory { .. } | Entry::File { .. } | Entry::Link { .. } => {
            return Ok(());
        }
    };
    match set_attributes(libc::AT_FDCWD, at, libc::MOUNT_ATTR_NOEXEC, cleared, false) {
        // Not mounted, because it could not be.
        Err(Errno::EINVAL) => Ok(()),
        other => other,
    }
}

/// Mounts what is mounted at `source` at `at`, too, with all below it, and as little writable.
fn bind(source: &CStr, at: &CStr) -> nix::Result<()> {
    mount(Some(source), at, None, libc::MS_BIND | libc::MS_REC, None)
}

/// A copy of the mounts at `source` that is not attached anywhere. Links are not followed.
fn clone_tree(source: &CStr, whole: bool) -> nix::Result<RawFd> {
    let recursive = if whole {
        libc::AT_RECURSIVE as c_uint
    } else {
        0
    };
    let flags = libc::OPEN_TREE_CLONE
        | libc::OPEN_TREE_CLOEXEC
        | libc::AT_SYMLINK_NOFOLLOW as c_uint
        | recursive;
    // SAFETY: a C string that outlives the call.
    let fd = unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, source.as_ptr(), flags) };
    descriptor(fd)
}

fn attach(tree: RawFd, directory: RawFd, name: &CStr) -> nix::Result<()> {
    // SAFETY: C strings that outlive the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree,
            c"".as_ptr(),
            directory,
            name.as_ptr(),
            libc::MOVE_MOUNT_F_EMPTY_PATH,
        )
    };
    Errno::result(result).map(drop)
}

fn set_attributes(at: RawFd, path: &CStr, set: u64, cleared: u64, whole: bool) -> nix::Result<()> {
    let recursive = if whole { libc::AT_RECURSIVE } else { 0 };
    let wanted = libc::mount_attr {
        attr_set: set,
        attr_clr: cleared,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: both outlive the call; the size is the struct's.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            at,
            path.as_ptr(),
            libc::AT_EMPTY_PATH | recursive,
            &raw const wanted,
            size_of::<libc::mount_attr>(),
        )
    };
    Errno::result(result).map(drop)
}

fn layer_part(part: &LayerMount, user_xattr: bool) -> nix::Result<()> {
    make_directory(libc::AT_FDCWD, &part.upper, 0o700)?;
    make_directory(libc::AT_FDCWD, &part.work, 0o700)?;
    if let Some(name) = &part.make {
        let upper = open_directory(&part.upper)?;
        let made = make_directory(upper, name, DIRECTORY_MODE);
        raw_descriptors::close(upper);
        made?;
    }
    own(part, user_xattr)?;
    mount(
        Some(c"altair-project"),
        &part.at,
        Some(c"overlay"),
        ALWAYS,
        Some(&part.options),
    )
}

/// The upper directory shows as the project's own: its owner and mode are to be the same.
fn own(part: &LayerMount, in_user_namespace: bool) -> nix::Result<()> {
    // SAFETY: a C string that outlives the call.
    let result =
        unsafe { libc::fchownat(libc::AT_FDCWD, part.upper.as_ptr(), part.uid, part.gid, 0) };
    match Errno::result(result) {
        Ok(_) => {}
        // Another user's, which is none in the namespace: shown as the process's own.
        Err(Errno::EINVAL | Errno::EPERM) if in_user_namespace => {}
        Err(errno) => return Err(errno),
    }
    // SAFETY: a C string that outlives the call.
    let result = unsafe { libc::fchmodat(libc::AT_FDCWD, part.upper.as_ptr(), part.mode, 0) };
    Errno::result(result).map(drop)
}

/// Makes the new root the root, and lets go of the old one.
fn become_root() -> nix::Result<()> {
    // SAFETY: two C strings. With the same directory twice the old root is mounted on top of the
    // new one (pivot_root(2), "pivot_root(".", ".")").
    let result = unsafe { libc::syscall(libc::SYS_pivot_root, c".".as_ptr(), c".".as_ptr()) };
    match Errno::result(result) {
        Ok(_) => unmount(c".")?,
        // The old root is the kernel's first one, which cannot be replaced: it stays below.
        Err(Errno::EINVAL) => {
            // SAFETY: a C string.
            Errno::result(unsafe { libc::chroot(c".".as_ptr()) })?;
        }
        Err(errno) => return Err(errno),
    }
    nix::unistd::chdir(c"/")
}

/// Enters what is mounted on top of `/`, to which no path leads.
fn enter_top_of_root() -> nix::Result<()> {
    // `..` of the root is what is mounted on top of it (`follow_dotdot` in fs/namei.c).
    nix::unistd::chdir(c"/..")
}

fn mount(
    source: Option<&CStr>,
    target: &CStr,
    kind: Option<&CStr>,
    flags: c_ulong,
    data: Option<&CStr>,
) -> nix::Result<()> {
    let pointer = |text: Option<&CStr>| text.map_or(0, |text| text.as_ptr() as c_long);
    // SAFETY: C strings that outlive the call, or null where mount(2) allows it.
    unsafe {
        system_calls::with_pass(
            libc::SYS_mount,
            [
                pointer(source),
                pointer(Some(target)),
                pointer(kind),
                flags.cast_signed(),
                pointer(data),
            ],
        )
    }
    .map(drop)
}

fn unmount(target: &CStr) -> nix::Result<()> {
    let detach = c_long::from(libc::MNT_DETACH);
    // SAFETY: a C string that outlives the call.
    unsafe {
        system_calls::with_pass(
            libc::SYS_umount2,
            [target.as_ptr() as c_long, detach, 0, 0, 0],
        )
    }
    .map(drop)
}

fn make_directory(at: RawFd, path: &CStr, mode: u32) -> nix::Result<()> {
    // SAFETY: a C string that outlives the call.
    Errno::result(unsafe { libc::mkdirat(at, path.as_ptr(), mode) }).map(drop)
}

fn make_file(at: &CStr) -> nix::Result<()> {
    make_file_at(libc::AT_FDCWD, at)
}

fn make_file_of(at: &CStr, content: &[u8]) -> nix::Result<()> {
    make_file(at)?;
    let file = raw_descriptors::open_for_writing(at)?;
    let written = raw_descriptors::write_all(file, content);
    raw_descriptors::close(file);
    written
}

fn make_file_at(directory: RawFd, name: &CStr) -> nix::Result<()> {
    // SAFETY: a C string that outlives the call.
    let made = unsafe { libc::mknodat(directory, name.as_ptr(), libc::S_IFREG | 0o444, 0) };
    Errno::result(made).map(drop)
}

fn open_directory(path: &CStr) -> nix::Result<RawFd> {
    let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: a C string that outlives the call.
    Errno::result(unsafe { libc::open(path.as_ptr(), flags) })
}

fn write_file(path: &CStr, content: &[u8]) -> nix::Result<()> {
    // SAFETY: a C string that outlives the call.
    let fd: c_int =
        Errno::result(unsafe { libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) })?;
    // SAFETY: pointer and length are of one slice.
    let written = Errno::result(unsafe { libc::write(fd, content.as_ptr().cast(), content.len()) });
    raw_descriptors::close(fd);
    written.map(drop)
}

fn descriptor(result: libc::c_long) -> nix::Result<RawFd> {
    RawFd::try_from(Errno::result(result)?).map_err(|_| Errno::EBADF)
}
