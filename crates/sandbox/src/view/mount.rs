//! Making the private root: system calls only, between the clone and the program.
//!
//! As in [`crate::sys`], everything is async-signal-safe.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::os::fd::RawFd;

use nix::errno::Errno;
use nix::libc::{self, c_int, c_uint, c_ulong};
use nix::sys::prctl;
use nix::sys::stat::{Mode, umask};

use super::plan::{LayerMount, Mount, Prepared, Store};
use super::tree::{DIRECTORY_MODE, Entry};
use crate::error::{Failure, Step};
use crate::process::LIFELINE;
use crate::raw;

/// Where the lower directory of a layer, and the layer itself, are while the layer is mounted.
const LOWER: &CStr = c".lower";
const LAYER: &CStr = c".layer";

/// What is mounted is nobody's way to more rights.
const ALWAYS: c_ulong = libc::MS_NOSUID | libc::MS_NODEV;

/// Makes the view of the calling process. Where there is a layer, its directory is sent to the
/// host over `lifeline`.
pub(crate) fn apply(prepared: &Prepared, lifeline: RawFd) -> Result<(), Failure> {
    let old_mask = umask(Mode::empty());
    enter_namespaces(prepared)?;
    build(prepared, lifeline)?;
    umask(old_mask);
    Ok(())
}

fn enter_namespaces(prepared: &Prepared) -> Result<(), Failure> {
    let mut flags = libc::CLONE_NEWNS;
    if prepared.user_namespace.is_some() {
        flags |= libc::CLONE_NEWUSER;
        // A change of user before this has made the process's files in /proc the root's.
        prctl::set_dumpable(true).map_err(|e| Step::IdMaps.failed(e))?;
    }
    // SAFETY: no pointer is passed.
    Errno::result(unsafe { libc::unshare(flags) }).map_err(|e| Step::Namespace.failed(e))?;
    if let Some(maps) = &prepared.user_namespace {
        // Without this a process without rights may not map its group (user_namespaces(7)).
        write_file(c"/proc/self/setgroups", b"deny").map_err(|e| Step::IdMaps.failed(e))?;
        write_file(c"/proc/self/uid_map", maps.uid.to_bytes())
            .map_err(|e| Step::IdMaps.failed(e))?;
        write_file(c"/proc/self/gid_map", maps.gid.to_bytes())
            .map_err(|e| Step::IdMaps.failed(e))?;
    }
    // Neither what is mounted here is to be seen outside, nor the other way round.
    mount(None, c"/", None, libc::MS_REC | libc::MS_PRIVATE, None)
        .map_err(|e| Step::Namespace.failed(e))
}

fn build(prepared: &Prepared, lifeline: RawFd) -> Result<(), Failure> {
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
    match &prepared.project {
        Mount::Bind {
            source,
            at,
            writable,
        } => {
            bind(
                source,
                at,
                libc::MOUNT_ATTR_NOSUID
                    | libc::MOUNT_ATTR_NODEV
                    | if *writable {
                        0
                    } else {
                        libc::MOUNT_ATTR_RDONLY
                    },
                true,
            )
            .map_err(|e| Step::Project.failed(e))?;
        }
        Mount::Layers {
            store,
            parts,
            files,
        } => {
            let in_user_namespace = prepared.user_namespace.is_some();
            let failed = |e| Step::ProjectLayer.failed(e);
            layer(store, parts, in_user_namespace, lifeline).map_err(failed)?;
            for (source, at) in files {
                bind(source, at, READ_ONLY, false).map_err(failed)?;
            }
        }
    }
    if let Some(sealed) = &prepared.sealed {
        bind(sealed, sealed, READ_ONLY, false).map_err(|e| Step::Project.failed(e))?;
    }
    let pivot = |e| Step::PivotRoot.failed(e);
    set_attributes(libc::AT_FDCWD, c".", libc::MOUNT_ATTR_RDONLY, 0, false).map_err(pivot)?;
    become_root().map_err(pivot)?;
    empty_input().map_err(pivot)
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
            let (reading, writing) = raw::pipe_at(LIFELINE + 1)?;
            raw::close(writing);
            reading
        }
    };
    let put = raw::put(input, 0, false);
    raw::close(input);
    put
}

/// The attributes of what may be read and nothing else.
const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;

fn make(entry: &Entry, prepared: &Prepared) -> nix::Result<()> {
    match entry {
        Entry::Directory { at } => make_directory(libc::AT_FDCWD, at, DIRECTORY_MODE),
        Entry::Temp { at } => mount(
            Some(c"altair-temp"),
            at,
            Some(c"tmpfs"),
            ALWAYS | libc::MS_NOEXEC,
            Some(&prepared.temp_options),
        ),
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
        } => {
            let mut flags = libc::MS_BIND;
            if *directory {
                make_directory(libc::AT_FDCWD, at, DIRECTORY_MODE)?;
                // Without what is mounted below, a user namespace refuses.
                flags |= libc::MS_REC;
            } else {
                make_file(at)?;
            }
            match mount(Some(source), at, None, flags, None) {
                // What the process's user could not reach outside either, or what is gone by now:
                // an empty place is left.
                Err(Errno::EACCES | Errno::ENOENT | Errno::ENOTDIR) => Ok(()),
                other => other,
            }
        }
    }
}

/// Takes back what is too strict for an entry.
fn release(entry: &Entry) -> nix::Result<()> {
    let (at, cleared) = match entry {
        Entry::Temp { at } => (at, libc::MOUNT_ATTR_RDONLY),
        Entry::Bind {
            at, device: true, ..
        } => (at, libc::MOUNT_ATTR_NODEV),
        Entry::Bind { .. } | Entry::Directory { .. } | Entry::Link { .. } => return Ok(()),
    };
    match set_attributes(libc::AT_FDCWD, at, libc::MOUNT_ATTR_NOEXEC, cleared, false) {
        // Not mounted, because it could not be.
        Err(Errno::EINVAL) => Ok(()),
        other => other,
    }
}

/// Mounts a copy of `source`, with all below it where `whole`, at `at`.
fn bind(source: &CStr, at: &CStr, attributes: u64, whole: bool) -> nix::Result<()> {
    let tree = clone_tree(source, whole)?;
    let result = set_attributes(tree, c"", attributes, 0, whole).and_then(|()| attach(tree, at));
    raw::close(tree);
    result
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

fn attach(tree: RawFd, at: &CStr) -> nix::Result<()> {
    // SAFETY: C strings that outlive the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree,
            c"".as_ptr(),
            libc::AT_FDCWD,
            at.as_ptr(),
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

/// Mounts each part of the project under its layer.
fn layer(
    store: &Store,
    parts: &[LayerMount],
    in_user_namespace: bool,
    lifeline: RawFd,
) -> nix::Result<()> {
    make_directory(libc::AT_FDCWD, LAYER, 0o700)?;
    match store {
        Store::Disk(directory) => bind(
            directory,
            LAYER,
            libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV,
            false,
        )?,
        Store::Memory(options) => mount(
            Some(c"altair-layer"),
            LAYER,
            Some(c"tmpfs"),
            ALWAYS,
            Some(options),
        )?,
    }
    let store = open_directory(LAYER)?;
    make_directory(libc::AT_FDCWD, LOWER, 0o700)?;
    for (index, part) in parts.iter().enumerate() {
        match layer_part(part, store, in_user_namespace) {
            Ok(()) => {}
            // The project itself has to have its layer; what is mounted below it can do without.
            Err(_) if index > 0 => bind(&part.source, &part.at, READ_ONLY, true)?,
            Err(errno) => return Err(errno),
        }
    }
    // The layers hold what they need of both.
    unmount(LAYER)?;
    remove_directory(LOWER)?;
    remove_directory(LAYER)?;
    let sent = raw::send_descriptor(lifeline, store);
    raw::close(store);
    sent
}

fn layer_part(part: &LayerMount, store: RawFd, in_user_namespace: bool) -> nix::Result<()> {
    make_directory(store, &part.upper, 0o700)?;
    make_directory(store, &part.work, 0o700)?;
    if let Some(name) = &part.make {
        let upper = open_directory_at(store, &part.upper)?;
        let made = make_directory(upper, name, DIRECTORY_MODE);
        raw::close(upper);
        made?;
    }
    own(store, part, in_user_namespace)?;
    let lower = clone_tree(&part.source, false)?;
    let attached = attach(lower, LOWER);
    raw::close(lower);
    attached?;
    let mounted = mount(
        Some(c"altair-project"),
        &part.at,
        Some(c"overlay"),
        ALWAYS,
        Some(&part.options),
    );
    unmount(LOWER)?;
    mounted
}

/// The upper directory shows as the project's own: its owner and mode are to be the same.
fn own(store: RawFd, part: &LayerMount, in_user_namespace: bool) -> nix::Result<()> {
    // SAFETY: a C string that outlives the call.
    let result = unsafe { libc::fchownat(store, part.upper.as_ptr(), part.uid, part.gid, 0) };
    match Errno::result(result) {
        Ok(_) => {}
        // Another user's, which is none in the namespace: shown as the process's own.
        Err(Errno::EINVAL | Errno::EPERM) if in_user_namespace => {}
        Err(errno) => return Err(errno),
    }
    // SAFETY: a C string that outlives the call.
    let result = unsafe { libc::fchmodat(store, part.upper.as_ptr(), part.mode, 0) };
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
    let pointer = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: C strings that outlive the call, or null where mount(2) allows it.
    let result = unsafe {
        libc::mount(
            pointer(source),
            target.as_ptr(),
            pointer(kind),
            flags,
            pointer(data).cast(),
        )
    };
    Errno::result(result).map(drop)
}

fn unmount(target: &CStr) -> nix::Result<()> {
    // SAFETY: a C string that outlives the call.
    Errno::result(unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) }).map(drop)
}

fn make_directory(at: RawFd, path: &CStr, mode: u32) -> nix::Result<()> {
    // SAFETY: a C string that outlives the call.
    Errno::result(unsafe { libc::mkdirat(at, path.as_ptr(), mode) }).map(drop)
}

fn remove_directory(path: &CStr) -> nix::Result<()> {
    // SAFETY: a C string that outlives the call.
    Errno::result(unsafe { libc::rmdir(path.as_ptr()) }).map(drop)
}

fn make_file(at: &CStr) -> nix::Result<()> {
    // SAFETY: a C string that outlives the call.
    Errno::result(unsafe { libc::mknod(at.as_ptr(), libc::S_IFREG | 0o444, 0) }).map(drop)
}

fn open_directory(path: &CStr) -> nix::Result<RawFd> {
    open_directory_at(libc::AT_FDCWD, path)
}

fn open_directory_at(at: RawFd, path: &CStr) -> nix::Result<RawFd> {
    let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: a C string that outlives the call.
    Errno::result(unsafe { libc::openat(at, path.as_ptr(), flags) })
}

fn write_file(path: &CStr, content: &[u8]) -> nix::Result<()> {
    // SAFETY: a C string that outlives the call.
    let fd: c_int =
        Errno::result(unsafe { libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) })?;
    // SAFETY: pointer and length are of one slice.
    let written = Errno::result(unsafe { libc::write(fd, content.as_ptr().cast(), content.len()) });
    raw::close(fd);
    written.map(drop)
}

fn descriptor(result: libc::c_long) -> nix::Result<RawFd> {
    RawFd::try_from(Errno::result(result)?).map_err(|_| Errno::EBADF)
}
