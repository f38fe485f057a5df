//! What a policy means for Landlock.

use std::path::{Path, PathBuf};

use altair_sandbox::{Granted, Landlock, with_files_of};

use super::{DEVICES, Native, OWN, SYSTEM, TERMINAL, WRITABLE_DEVICES};
use crate::hidden::{Parts, has_below};
use crate::level::Level;
use crate::{CommandError, surroundings};

impl Native<'_> {
    /// What Landlock grants, and the directories of which it cannot grant the whole.
    pub(super) fn landlock(&self, level: &Level) -> (Landlock, Vec<PathBuf>) {
        let has_root = level.has_root();
        let mut writable: Vec<Granted> = self
            .writable
            .iter()
            .chain(&self.layered)
            .map(|place| Granted::from(place.path()))
            .chain([self.temp(level).into()])
            .collect();
        let parts = match level {
            Level::Full | Level::LayerOnDisk(_) | Level::NoLayer => {
                if self.workplace.is_own {
                    writable.push(self.workplace.at.as_path().into());
                }
                writable.extend(self.own_home().map(|home| home.path.into()));
                let places = self.thrown(level).map(|place| place.path().into());
                writable.extend(places);
                Parts {
                    readable: vec![Granted::from("/")],
                    divided: Vec::new(),
                }
            }
            Level::NoRoot(_) => self.parts(),
        };
        let own_network = has_root && self.has_own_network();
        let landlock = Landlock {
            readable: parts.readable,
            readable_but: None,
            // The names in the system's directories are no secrets.
            listed: parts
                .divided
                .iter()
                .filter(|path| self.may_be_listed(path))
                .cloned()
                .collect(),
            writable,
            devices: WRITABLE_DEVICES
                .iter()
                .copied()
                .chain(self.has_terminal.then_some(TERMINAL))
                .map(PathBuf::from)
                .collect(),
            network: self.policy.network || own_network,
            ports: self.services.ports(),
            command: true,
        };
        let divided = parts
            .divided
            .into_iter()
            .filter(|path| !self.may_be_listed(path));
        (landlock, divided.collect())
    }

    /// Whether the names below a directory are no secrets: the system's, with no home among them.
    fn may_be_listed(&self, path: &Path) -> bool {
        let holds_home = || {
            let home = self.own_home().map(|home| home.path);
            home.is_some_and(|home| home.starts_with(path) || path.starts_with(home))
        };
        let system = surroundings::SYSTEM.iter();
        is_of_system(path) || (system.into_iter().any(|of| path.starts_with(of)) && !holds_home())
    }

    /// What may be read without a private root: what one would show. Looked for as the command's user:
    /// directories of somebody else's may lead elsewhere by now. Where they do not answer, nothing is
    /// granted.
    fn parts(&self) -> Parts {
        let mut granted: Vec<Granted> = SYSTEM.iter().map(|path| (*path).into()).collect();
        let around = self.surroundings.iter().flat_map(|_| surroundings::SYSTEM);
        granted.extend(around.map(|path| Granted::from(*path)));
        for place in self.readable.iter().chain(self.beside()) {
            match place.path() == Path::new("/") {
                true => granted.extend(super::top_level().map(Granted::from)),
                false if is_own(place.path()) => {}
                false => granted.push(Granted::place(place)),
            }
        }
        granted.extend(
            self.toolchains()
                .iter()
                .map(|one| Granted::place(&one.place)),
        );
        if !is_own(self.workplace.place.path()) {
            granted.push(Granted::place(&self.workplace.place));
        }
        granted.extend(facts().into_iter().map(Granted::from));
        granted.extend(DEVICES.iter().map(|path| Granted::from(*path)));
        let hidden = self.hidden.clone();
        let parts = with_files_of(self.user, surroundings::PATIENCE, move || {
            let mut parts = Parts::default();
            granted.into_iter().for_each(|one| parts.add(one, &hidden));
            parts
        });
        parts.unwrap_or_default()
    }

    /// Whether everything that is hidden can be kept from the command at this level.
    ///
    /// # Errors
    /// [`CommandError::Invalid`]: which path that may be written cannot be permitted.
    pub(crate) fn check(&self, level: &Level) -> Result<(), CommandError> {
        if level.has_root() {
            return Ok(());
        }
        for place in self.writable.iter().chain(&self.layered) {
            if is_own(place.path()) || has_below(place.path(), &self.hidden) {
                return Err(CommandError::Start(format!(
                    "Without a private root, {} cannot be made writable: keys or devices in it would be, too. Name the directories in it that are to be written.",
                    place.path().display()
                )));
            }
        }
        Ok(())
    }
}

/// Whether a path is one of those that the command has of its own, or below one: in a private root
/// the host's are not there, or are no devices.
pub(super) fn is_own(path: &Path) -> bool {
    let of_temp = Path::new(super::TEMP);
    OWN.iter()
        .any(|own| Path::new(own) != of_temp && path.starts_with(own))
        && !DEVICES.iter().any(|device| path == Path::new(device))
}

fn is_of_system(path: &Path) -> bool {
    SYSTEM.iter().any(|system| path.starts_with(system))
}

/// What a process may read about itself: not the network's tables, which are the host's here.
const ABOUT_ITSELF: &[&str] = &[
    "auxv",
    "cgroup",
    "cmdline",
    "comm",
    "environ",
    "fd",
    "fdinfo",
    "io",
    "limits",
    "maps",
    "mountinfo",
    "mounts",
    "oom_score",
    "oom_score_adj",
    "smaps",
    "smaps_rollup",
    "stat",
    "statm",
    "status",
];

/// What in `/proc` is about the system, and about the command itself: no other process, and nothing
/// that only root may read.
fn facts() -> Vec<PathBuf> {
    use std::os::unix::fs::MetadataExt;
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_fact = |entry: &std::fs::DirEntry| {
        let name = entry.file_name();
        let is_process = name
            .to_string_lossy()
            .bytes()
            .all(|byte| byte.is_ascii_digit());
        !is_process
            && entry
                .metadata()
                .is_ok_and(|of| !of.is_symlink() && of.mode() & 0o004 != 0)
    };
    let facts = entries.filter(is_fact).map(|entry| entry.path());
    // Whose they are, is looked up by the command when it takes the rules: those of its first process.
    let own = ABOUT_ITSELF
        .iter()
        .map(|name| Path::new("/proc/self").join(name));
    facts.chain(own).collect()
}
