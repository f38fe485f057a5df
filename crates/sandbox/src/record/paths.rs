//! The calls that name a path. The path is looked up just before the call is made.
//!
//! So the recorded state is never newer than what the process sees: a file that changes in between
//! no longer matches the record. And after the call, what it changed would be lost.
#![allow(unsafe_code)]

use nix::libc::*;

use super::Unseen;
use super::calls::{Links, PathCall, What};
use super::handler::make;
use super::kernel::{self, Call};
use super::log::{self, Place};
use super::sight::{Entry, SeenFile, Sight};

/// Makes a call that names one or two paths.
#[inline]
pub(super) fn answer(call: Call, lines: &[PathCall]) -> isize {
    let mut places = [None; 2];
    for (line, place) in lines.iter().zip(&mut places) {
        *place = look(call, line);
    }
    let answer = make(call);
    if answer >= 0 {
        for place in places.into_iter().flatten() {
            place.set_done();
        }
    }
    answer
}

/// Logs what is at one path of a call.
#[inline]
fn look(call: Call, line: &PathCall) -> Option<Place> {
    let arg = |at: usize| call.args.get(at).copied().unwrap_or(0);
    let has = |at: usize, bit: c_int| arg(at) as c_int & bit != 0;
    let at_links = match line.links {
        Links::Follow => false,
        Links::Stay => true,
        Links::StayIf(at, bit) => has(at, bit),
        Links::FollowIf(at, bit) => !has(at, bit),
    };
    let (sight, stays_at_links) = match line.what {
        What::Does(sight) => (sight, at_links),
        What::Opens(at) => opened(arg(at) as c_int),
        What::OpensAsTold(at) => opened_as_told(arg(at)),
    };
    let wanted = Wanted {
        start: line.directory.map_or(AT_FDCWD, |at| arg(at) as c_int),
        sight,
        stays_at_links,
    };
    wanted.log(arg(line.path))
}

/// What the flags of open(2) ask for, and whether a link at the end is left unfollowed.
#[inline]
fn opened(flags: c_int) -> (Sight, bool) {
    let has = |bits| flags & bits == bits;
    let stays = has(O_NOFOLLOW) || has(O_CREAT | O_EXCL);
    // `O_PATH` gives no access to content; `O_TMPFILE` adds no name to the directory.
    if has(O_PATH) || has(O_TMPFILE) {
        return (Sight::Opened, stays);
    }
    let writes = flags & O_ACCMODE != O_RDONLY || flags & (O_CREAT | O_TRUNC) != 0;
    let sight = if writes {
        Sight::Written
    } else {
        Sight::Opened
    };
    (sight, stays)
}

/// The same for `struct open_how` (openat2(2)): flags, mode, and how to resolve the path.
fn opened_as_told(how: usize) -> (Sight, bool) {
    // It changes what absolute paths start at (linux/openat2.h).
    const RESOLVE_IN_ROOT: u64 = 0x10;
    match kernel::read::<[u64; 3]>(how) {
        Some([flags, _, resolve]) => {
            if resolve & RESOLVE_IN_ROOT != 0 {
                log::note(Unseen::TooMuch);
            }
            opened(flags as c_int)
        }
        None => (Sight::Opened, false),
    }
}

/// How to look at a path.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    /// The descriptor of the directory that a relative path starts at.
    start: c_int,
    sight: Sight,
    stays_at_links: bool,
}

impl Wanted {
    /// Logs what is at a path, if the path is valid.
    #[inline]
    fn log(mut self, path: usize) -> Option<Place> {
        let at_ns = kernel::now();
        let flags = if self.stays_at_links {
            AT_SYMLINK_NOFOLLOW
        } else {
            0
        };
        let found = match kernel::stat_at(self.start, path, flags) {
            Ok(stat) => Some(SeenFile::new(&stat)),
            Err(ENOENT | ENOTDIR | ELOOP | EACCES | ENAMETOOLONG) => None,
            // The pointer or the descriptor is invalid: the call itself will fail.
            Err(EFAULT | EBADF) => return None,
            Err(_) => {
                log::note(Unseen::TooMuch);
                return None;
            }
        };
        // SAFETY: the kernel has just read it: all results above except EFAULT come after that.
        let path = unsafe { kernel::path_at(path) }?;
        let first = path.first()?;
        let directory = match self.start {
            _ if *first == b'/' => None,
            AT_FDCWD => None,
            descriptor => Some(SeenFile::new(&kernel::stat_of(descriptor).ok()?)),
        };
        if directory.is_some_and(|directory| directory.kind() != S_IFDIR) {
            return None;
        }
        if self.sight == Sight::Written && found.is_some_and(|found| found.kind() != S_IFREG) {
            // Writing to a device or a pipe changes no stored content.
            self.sight = Sight::Opened;
        }
        let adds_or_removes = match self.sight {
            Sight::Written => found.is_none(),
            sight => sight.changes() && sight != Sight::Touched,
        };
        if adds_or_removes {
            self.log_parent(path);
        }
        let entry = Entry {
            at_ns,
            found,
            directory: directory.map(|directory| directory.id),
            sight: self.sight,
            stays_at_links: self.stays_at_links,
            done: false,
        };
        log::append(entry, path)
    }

    /// Logs the parent directory of a path before the call changes its times; only the first look
    /// at it counts. Not inlined: few calls need its buffer on the stack.
    #[inline(never)]
    fn log_parent(self, path: &[u8]) {
        let mut parent = [0_u8; PATH_MAX as usize];
        let end = path.iter().rposition(|byte| *byte != b'/').unwrap_or(0);
        let path = path.get(..=end).unwrap_or(path);
        let path: &[u8] = match path.iter().rposition(|byte| *byte == b'/') {
            Some(at) => path.get(..=at).unwrap_or(path),
            None => b".",
        };
        for (to, from) in parent.iter_mut().zip(path) {
            *to = *from;
        }
        let wanted = Self {
            sight: Sight::Presence,
            stays_at_links: false,
            ..self
        };
        wanted.log(parent.as_ptr() as usize);
    }
}
