//! Resolves paths as the kernel does (path_resolution(7)), one name after the other, so that each
//! directory on the way is watched for the name that was looked up in it.

use super::tree::{DirId, Node, Place, ROOT, Tree};
use super::visible_files::Sight;
use super::{Changed, What};

/// Maximum number of symbolic links that one resolution follows (`MAXSYMLINKS` in linux/namei.h).
const LINKS_MAX: usize = 40;

/// How to resolve a path.
pub(super) struct Walk {
    /// Follow a link that is the last component.
    pub follow: bool,
    /// It should be a file, and its content matters.
    pub file: bool,
    pub scope: Scope,
}

#[derive(Clone, Copy)]
pub(super) enum Scope {
    /// Only where the template saw the host's files.
    Visible,
    Everywhere,
    /// Everywhere; nothing on the way may have changed since then (nanoseconds since 1970).
    UnchangedSince(i64),
}

impl Walk {
    pub(super) fn everywhere() -> Self {
        Self {
            follow: true,
            file: false,
            scope: Scope::Everywhere,
        }
    }
}

/// Where a path led.
pub(super) enum Resolved {
    At(Place),
    /// Nowhere, because of what is (or is not) at that place.
    Nothing(Place),
    /// To where the template did not see the host's files.
    PassedOver,
}

impl Tree {
    /// Resolves an absolute path.
    ///
    /// # Errors
    /// [`Changed`] if the kernel does not report what is there, if it changed meanwhile, or since
    /// the time of [`Scope::UnchangedSince`].
    pub(super) fn walk(&mut self, path: &[u8], how: &Walk) -> Result<Resolved, Changed> {
        let mut rest = path.to_vec();
        let (mut at, mut dir, mut links) = (0, ROOT, 0);
        while let Some(skip) = rest[at..].iter().position(|byte| *byte != b'/') {
            let start = at + skip;
            let length = rest[start..].iter().position(|byte| *byte == b'/');
            let end = length.map_or(rest.len(), |length| start + length);
            at = end;
            let name = &rest[start..end];
            if name == b"." {
                continue;
            }
            if name == b".." {
                dir = self.dirs[dir].place.dir.max(ROOT);
                continue;
            }
            let last = end == rest.len();
            let Some(node) = self.step(dir, name, last && how.file, how.scope)? else {
                return Ok(Resolved::PassedOver);
            };
            let place = || Place {
                dir,
                name: name.to_vec(),
            };
            match node {
                Node::Directory(next) => dir = next,
                Node::Other if last => return Ok(Resolved::At(place())),
                Node::Link(_) if last && !how.follow => return Ok(Resolved::At(place())),
                Node::Absent | Node::Other => return Ok(Resolved::Nothing(place())),
                Node::Link(mut target) => {
                    links += 1;
                    if links > LINKS_MAX {
                        return Ok(Resolved::Nothing(place()));
                    }
                    if target.starts_with(b"/") {
                        dir = ROOT;
                    }
                    target.extend_from_slice(&rest[end..]);
                    (rest, at) = (target, 0);
                }
            }
        }
        Ok(Resolved::At(self.dirs[dir].place.clone()))
    }

    /// What `name` is in `dir`; `None` if the template did not see it.
    fn step(
        &mut self,
        dir: DirId,
        name: &[u8],
        file: bool,
        scope: Scope,
    ) -> Result<Option<Node>, Changed> {
        let known = self.dirs[dir].entries.get(name);
        let sight = known.map_or_else(|| self.sight(dir, name), |entry| entry.sight);
        if sight == Sight::Own && matches!(scope, Scope::Visible) {
            return Ok(None);
        }
        if known.is_none() {
            self.enter(dir, name, file)?;
        }
        let Some(entry) = self.dirs[dir].entries.get(name) else {
            return Ok(None);
        };
        // A rename gives a directory a new ctime, as do names that come and go in it. A directory
        // with the sticky bit (/tmp) is exempt: it is not renamed, and its names come and go.
        if let (Scope::UnchangedSince(then), Some(stat)) = (scope, &entry.stat)
            && stat.ctime_ns >= then
            && !(stat.is_directory() && stat.mode & nix::libc::S_ISVTX != 0)
        {
            return Err(Changed::new(self.join(dir, name), What::Racy));
        }
        Ok(Some(entry.node.clone()))
    }
}
