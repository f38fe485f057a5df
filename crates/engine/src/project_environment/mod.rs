//! What a host knows about an application before a run begins: its secrets and its services, from
//! the run's environment, from the `.env` files that its boot will read, and from `composer.json`.

mod effective;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use altair_sandbox::{Inode, Place, with_files_of};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, openat2};
use nix::libc;
use nix::sys::stat::{FileStat, fstat, fstatat};

use crate::allowed::allowed_for;
use crate::dotenv::{self, Entry, Names};
use crate::environment::{self, Filtered, OtherUser, Receiver, Variable as HostVariable};
use crate::error::reason;
use crate::freshness::{is_on_this_machine, is_settled};
use crate::owner::{FILE_PATIENCE, run_as};
use crate::redaction::output::KnownSecrets;
use crate::redaction::{Variable, is_secret, is_secret_variable};
use crate::services::{self, Declarations, Declared, MANIFEST_MAX_BYTES};
use crate::surroundings::Surroundings;
use effective::Effective;

/// Environments whose files are read in addition to those of `APP_ENV`: a file may name the
/// environment that applies, and knowing the secrets of the others does no harm.
const ENVIRONMENTS: [&str; 6] = ["dev", "local", "prod", "production", "test", "testing"];

/// Files that name variables and do not set them: Laravel's, and that of Symfony before 4.2.
const EXAMPLES: [&str; 2] = [".env.example", ".env.dist"];

/// Maximum bytes of all `.env` files together, and of what references insert into their values;
/// large applications have some KiB. A file that exceeds it is ignored.
const VARIABLES_MAX: usize = 256 << 10;

/// The state of a file when it was read; `None` if there was none.
type Stamp = Option<(u64, u64, i64, i64, i64, i64, i64)>;

/// A file of the project, relative to its root, and its state.
type Stamped = (String, Stamp);

/// What is known about an application.
pub(crate) struct ProjectEnvironment {
    environment: Vec<HostVariable>,
    set_later: Vec<OsString>,
    receiver: Receiver,
    /// The variables that its files name, with an example's.
    named: environment::Names,
    /// What a run gets of the environment.
    pub(crate) given: Arc<Filtered>,
    root: Inode,
    files: Vec<Stamped>,
    /// The ctime of the root since when those of the files that are not there are known not to be, in
    /// nanoseconds; 0 if they are looked for each time. A name that comes gives the directory a new one.
    none_since: AtomicI64,
    pub(crate) secrets: KnownSecrets,
    /// Services that the application declares.
    pub(crate) services: Declarations,
}

impl std::fmt::Debug for ProjectEnvironment {
    /// Shows no secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Known").finish_non_exhaustive()
    }
}

/// The last result: neither the environment nor the files change much from one run to the next.
static LAST: Mutex<Option<Arc<ProjectEnvironment>>> = Mutex::new(None);

impl ProjectEnvironment {
    /// What is known about runs in the project at `root`, of a host with this environment, of which
    /// `receiver` gets a part; `set_later`: as [`Surroundings::set_later`](crate::surroundings::Surroundings)
    /// has it.
    ///
    /// Its files are under the owner's control: they are read as the user of its runs, only as
    /// regular files below the root, and with a time limit.
    ///
    /// # Errors
    /// If they cannot be read like this.
    pub(crate) fn of(
        environment: &[HostVariable],
        set_later: &[OsString],
        receiver: Receiver,
        root: &Place,
        patience: Duration,
    ) -> io::Result<Arc<Self>> {
        // In a fork of the host, the lock may be held forever by a thread that does not exist
        // there.
        let last = LAST.try_lock().ok().and_then(|last| last.clone());
        let last = last.filter(|last| {
            last.environment == environment
                && last.set_later == set_later
                && last.receiver == receiver
                && last.root == root.inode()
        });
        // To look, and not to read, takes no thread where nothing can hang.
        if let Some(last) = last.as_ref().filter(|last| last.is_known_to_hold(root)) {
            return Ok(Arc::clone(last));
        }
        let names = files(environment);
        let (own, before) = (root.clone(), last.as_ref().map(|last| last.files.clone()));
        let looked = with_files_of(run_as(root), FILE_PATIENCE.min(patience), move || {
            let stamped: Vec<Stamped> = names
                .into_iter()
                .map(|name| {
                    let stamp = stamp(&own, &name);
                    (name, stamp)
                })
                .collect();
            let is_same = before.as_ref() == Some(&stamped);
            (!is_same).then(|| Read::of(&own, stamped))
        });
        match (looked, last) {
            (Ok(Some(read)), _) => Ok(Self::new(environment, set_later, receiver, root, read)),
            // Unchanged, or unreadable: then the last state is better than nothing.
            (Ok(None) | Err(_), Some(last)) => Ok(last),
            (Ok(None), None) => Ok(Self::new(
                environment,
                set_later,
                receiver,
                root,
                Read::default(),
            )),
            (Err(error), None) => Err(error),
        }
    }

    /// Whether none of its files is another than it was, if that can be told at once.
    fn is_known_to_hold(&self, root: &Place) -> bool {
        let Ok(directory) = fstat(root.descriptor()) else {
            return false;
        };
        let ctime_ns = (directory.st_ctime)
            .saturating_mul(1_000_000_000)
            .saturating_add(directory.st_ctime_nsec);
        let is_settled = is_settled(ctime_ns);
        let has_no_others = self.none_since.load(Relaxed) == ctime_ns;
        let mut files = self.files.iter();
        let holds = is_on_this_machine(&root.descriptor())
            && files.all(|(name, before)| match before {
                None if has_no_others => true,
                before => near_stamp(root, name) == Some(*before),
            });
        if holds && is_settled {
            self.none_since.store(ctime_ns, Relaxed);
        }
        holds
    }

    /// What a run gets of another environment of its host's.
    pub(crate) fn filtered(&self, environment: &[HostVariable]) -> Filtered {
        self.receiver.filter(environment, &self.named)
    }

    fn new(
        environment: &[HostVariable],
        set_later: &[OsString],
        receiver: Receiver,
        root: &Place,
        read: Read,
    ) -> Arc<Self> {
        let inherited = environment
            .iter()
            .map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()));
        // Names need no value. What the application does not get it does not go by, and neither do values
        // that are made from variables: the host would look up a name, or a path, with a secret in it.
        let named = of_files(&read.variables, &[])
            .iter()
            .chain(&of_files(&read.examples, &[]))
            .flat_map(|(_, entries)| entries)
            .map(|entry| entry.name.clone())
            .collect();
        let given = receiver.filter(environment, &named);
        let entries = of_files(&read.variables, &given.variables);
        let in_files = entries.iter().flat_map(|(_, entries)| entries);
        let secret: Vec<Variable> = inherited
            .chain(in_files.flat_map(may_be_secret))
            .filter(|(name, value)| is_secret(name, value))
            .collect();
        let effective = Effective::new(&given.variables, set_later, &entries);
        let services = Declarations::of(read.manifest.as_deref(), &effective);
        let known = Arc::new(Self {
            environment: environment.to_vec(),
            set_later: set_later.to_vec(),
            receiver,
            named,
            given: Arc::new(given),
            root: root.inode(),
            files: read.stamped,
            none_since: AtomicI64::new(0),
            secrets: KnownSecrets::of(secret),
            services,
        });
        if let Ok(mut last) = LAST.try_lock() {
            *last = Some(Arc::clone(&known));
        }
        known
    }
}

/// The services that are found in the project at `root` and in this process's environment, and those that
/// the user's file allows.
///
/// # Errors
/// What is wrong with the project's declarations or with the user's file, in sentences for the user.
pub fn services_of_project(root: &Path) -> Result<Vec<Declared>, String> {
    let unseen = |e: io::Error| {
        format!(
            "The project {} cannot be looked at: {}.",
            root.display(),
            reason(&e)
        )
    };
    let Surroundings {
        environment,
        set_later,
        ..
    } = Surroundings::here(None);
    let place = Place::find(root).map_err(unseen)?;
    let receiver = Receiver {
        has_terminal: true,
        other: OtherUser::in_project(&place, run_as(&place)),
        ..Receiver::default()
    };
    let known = ProjectEnvironment::of(&environment, &set_later, receiver, &place, FILE_PATIENCE);
    let found = known.map_err(unseen)?.services.services()?;
    let allowed = allowed_for(place.path()).map_err(|error| error.to_string())?;
    services::with_allowed(found, &allowed)
}

/// The files read from a project.
#[derive(Default)]
struct Read {
    stamped: Vec<Stamped>,
    /// The existing `.env` files, and their content.
    variables: Vec<(String, Vec<u8>)>,
    /// Files that say by example which variables the application has. Their values mean nothing.
    examples: Vec<(String, Vec<u8>)>,
    manifest: Option<Vec<u8>>,
}

impl Read {
    fn of(root: &Place, stamped: Vec<Stamped>) -> Self {
        let mut room = VARIABLES_MAX;
        let mut variables = Vec::new();
        let mut examples = Vec::new();
        for (name, stamp) in &stamped {
            if stamp.is_none() || name == Declarations::FILE {
                continue;
            }
            if let Ok(text) = root.read(Path::new(name), room as u64) {
                room -= text.len();
                match EXAMPLES.contains(&name.as_str()) {
                    true => examples.push((name.clone(), text)),
                    false => variables.push((name.clone(), text)),
                }
            }
        }
        Self {
            manifest: root
                .read(Path::new(Declarations::FILE), MANIFEST_MAX_BYTES)
                .ok(),
            stamped,
            variables,
            examples,
        }
    }
}

/// The variables of files, in order. Invalid lines are skipped: only the application knows how to
/// read them.
fn of_files(read: &[(String, Vec<u8>)], environment: &[HostVariable]) -> Vec<(String, Vec<Entry>)> {
    let inherited = environment
        .iter()
        .map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()))
        .collect();
    let mut room = VARIABLES_MAX;
    // Other files may refer to variables of the first, which is `.env`.
    let mut first = Names::new();
    read.iter()
        .map(|(name, text)| {
            let entries = dotenv::entries(text, &inherited, &first, &mut room);
            if first.is_empty() {
                first = names(&entries);
            }
            (name.clone(), entries)
        })
        .collect()
}

fn names(entries: &[Entry]) -> Names {
    let mut names = Names::new();
    for entry in entries {
        if let Some(value) = entry.values.first() {
            names
                .entry(entry.name.clone())
                .or_insert_with(|| value.clone());
        }
    }
    names
}

/// What may be secret in a line: its values and, if its name marks a secret, the text as written.
fn may_be_secret(entry: &Entry) -> Vec<Variable> {
    let mut texts: Vec<&[u8]> = entry.values.iter().map(Vec::as_slice).collect();
    if is_secret_variable(&String::from_utf8_lossy(&entry.name)) {
        let is_quote = |byte: &u8| matches!(byte, b'"' | b'\'');
        let raw = entry.raw.as_slice();
        let first = raw.split_first().filter(|(first, _)| is_quote(first));
        let unquoted = first.map_or(raw, |(_, rest)| rest);
        // A value and its closing quote or comment reveal nothing more.
        let is_all = |value: &&[u8]| {
            let behind = unquoted.strip_prefix(*value);
            let ends = |byte: &u8| is_quote(byte) || *byte == b'#' || byte.is_ascii_whitespace();
            !value.is_empty() && behind.is_some_and(|rest| rest.first().is_none_or(ends))
        };
        if !texts.iter().any(is_all) {
            texts.push(raw);
            if entry.values.is_empty() {
                let last = unquoted.split_last().filter(|(last, _)| is_quote(last));
                texts.push(last.map_or(unquoted, |(_, inner)| inner));
            }
        }
    }
    let texts = texts.into_iter();
    texts
        .map(|text| (entry.name.clone(), text.to_vec()))
        .collect()
}

/// The names of the project's files that are read.
fn files(environment: &[HostVariable]) -> Vec<String> {
    let named = environment
        .iter()
        .find(|(name, _)| name == "APP_ENV")
        .and_then(|(_, value)| value.to_str())
        .filter(|value| !value.contains('/') && !ENVIRONMENTS.contains(value));
    let of_each = ENVIRONMENTS
        .into_iter()
        .chain(named)
        .flat_map(|of| [format!(".env.{of}"), format!(".env.{of}.local")]);
    [".env".to_owned(), ".env.local".to_owned()]
        .into_iter()
        .chain(of_each)
        .filter(|name| name != ".env.local.local")
        .chain(EXAMPLES.map(str::to_owned))
        .chain([Declarations::FILE.to_owned()])
        .collect()
}

/// The state of a regular file; `None` for a link.
fn stamp(root: &Place, name: &str) -> Stamp {
    stamp_of(&fstatat(root.descriptor(), name, AtFlags::AT_SYMLINK_NOFOLLOW).ok()?)
}

/// The same of a file on the root's own file system. `None`: something is mounted over it, whose file
/// system may not answer, or the kernel cannot tell (before 5.6).
fn near_stamp(root: &Place, name: &str) -> Option<Stamp> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_XDEV);
    match openat2(root.descriptor(), name, how) {
        Ok(file) => fstat(&file).ok().map(|stat| stamp_of(&stat)),
        Err(Errno::ENOENT) => Some(None),
        Err(_) => None,
    }
}

fn stamp_of(stat: &FileStat) -> Stamp {
    (stat.st_mode & libc::S_IFMT == libc::S_IFREG).then_some((
        stat.st_dev,
        stat.st_ino,
        stat.st_size,
        stat.st_mtime,
        stat.st_mtime_nsec,
        stat.st_ctime,
        stat.st_ctime_nsec,
    ))
}
