//! The request: a snippet, the application it runs against, and what it may do.

use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use altair_sandbox::{Inode, Place, Shown, with_files_of};
use nix::unistd::Uid;
use serde::{Deserialize, Serialize};

use crate::EvalError;
use crate::allowed::{Allowed, AllowedError, MOST_MEMORY_MB, MOST_TIMEOUT_MS, Source, allowed_for};
use crate::arguments::Arguments;
use crate::channel::Watched;
use crate::encode::Limits;
use crate::error::reason;
use crate::owner::{FILE_PATIENCE, run_as};
use crate::sql::Mode;

/// Default of [`EvalRequest::timeout_ms`], in milliseconds.
pub const DEFAULT_TIMEOUT_MS: i64 = 5_000;
/// Smallest deadline, in milliseconds: PHP's start alone may take as long.
pub const MIN_TIMEOUT_MS: i64 = 100;
/// Largest deadline, in milliseconds, unless the user allows more
/// ([`allowed`](crate::allowed)): an agent that waits longer has lost the thread.
pub const MAX_TIMEOUT_MS: i64 = 60_000;
/// Default of [`EvalRequest::memory_limit_mb`], in MiB; PHP's own default.
pub const DEFAULT_MEMORY_MB: i64 = 128;
/// Smallest memory limit, in MiB: PHP's heap grows in chunks of 2 MiB, and a booted application has
/// several.
pub const MIN_MEMORY_MB: i64 = 16;
/// Largest memory limit, in MiB, unless the user allows more.
pub const MAX_MEMORY_MB: i64 = 512;

/// Smallest [`EvalRequest::depth`]: the value itself.
pub const MIN_DEPTH: i64 = 1;
/// Largest [`EvalRequest::depth`].
pub const MAX_DEPTH: i64 = 10;
/// Smallest [`EvalRequest::max_items`].
pub const MIN_ITEMS: i64 = 1;
/// Largest [`EvalRequest::max_items`].
pub const MAX_ITEMS: i64 = 10_000;
/// Smallest [`EvalRequest::max_string`], in bytes.
pub const MIN_STRING: i64 = 100;
/// Largest [`EvalRequest::max_string`], in bytes.
pub const MAX_STRING: i64 = 1_000_000;

/// The environment variable that names the container bootstrap where the request names none.
pub const BOOTSTRAP_VARIABLE: &str = "ALTAIR_EVAL_BOOTSTRAP";
/// The container bootstrap that is used if none is named, relative to the root.
pub const DEFAULT_BOOTSTRAP: &str = "config/container.php";

/// A request to evaluate a snippet in an application.
///
/// ```
/// use altair_engine::EvalRequest;
///
/// let request = EvalRequest::new("return 1 + 1;", "/srv/shop").with_timeout_ms(20);
/// assert_eq!(request.timeout_ms(), 100); // clamped
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct EvalRequest {
    /// PHP code, any bytes; a leading `<?php` is accepted.
    pub snippet: Vec<u8>,
    /// The application: the directory that holds `vendor/autoload.php`.
    pub project_root: PathBuf,
    /// The deadline of the whole call, boot included.
    pub timeout: Timeout,
    /// PHP's `memory_limit`.
    pub memory_limit: MemoryLimit,
    /// Whether writes to the project are real.
    pub allow_writes: bool,
    /// Whether outbound connections are allowed.
    pub allow_network: bool,
    /// Whether the run has no guards; such a run is audited.
    pub unconfined: bool,
    /// The file that returns the container, absolute or relative to the root.
    pub bootstrap: Option<PathBuf>,
    /// Addresses that may be connected to while the network is off: `host:port` or absolute paths
    /// of Unix sockets. `None`: those that the project's `composer.json` declares or the
    /// application's environment names.
    pub services: Option<Vec<String>>,
    /// Files and directories that may be read besides the project and what PHP needs; absolute.
    pub readable_paths: Vec<PathBuf>,
    /// Whether secrets are replaced in the answer.
    pub redact: bool,
    /// What database sessions may do. `None`: write if [`EvalRequest::allow_writes`] is set,
    /// otherwise only read.
    pub database: Option<Database>,
    /// Whether database statements are reported. For a run that is rolled back they always are.
    pub queries: bool,
    /// Variables of the snippet.
    pub arguments: Arguments,
    /// How deeply containers are shown; `None`: the encoder's default.
    pub depth: Option<Depth>,
    /// How many items of an array, an object or an iterable are shown; `None`: the encoder's defaults.
    pub max_items: Option<ShownItems>,
    /// How many bytes of a string are shown; `None`: the encoder's default.
    pub max_string: Option<ShownString>,
    /// Whether changed text files are told of with a unified diff.
    pub diff: bool,
    /// Names of variables of the host's environment that the run gets, although they would be withheld.
    pub env: Vec<String>,
}

/// A number that was brought within its bounds, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounded<const MIN: i64, const MAX: i64>(u32);

impl<const MIN: i64, const MAX: i64> Bounded<MIN, MAX> {
    /// The nearest number within the bounds.
    #[must_use]
    pub fn clamped(number: i64) -> Self {
        Self(clamp(number, MIN, MAX))
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0
    }
}

/// A deadline, in milliseconds. How much of it a request gets, the user's word decides.
pub type Timeout = Bounded<MIN_TIMEOUT_MS, { MOST_TIMEOUT_MS.cast_signed() }>;
/// A memory limit, in MiB. How much of it a request gets, the user's word decides.
pub type MemoryLimit = Bounded<MIN_MEMORY_MB, { MOST_MEMORY_MB.cast_signed() }>;
/// How deeply containers are shown; the value itself is the first level.
pub type Depth = Bounded<MIN_DEPTH, MAX_DEPTH>;
/// How many items of a container are shown.
pub type ShownItems = Bounded<MIN_ITEMS, MAX_ITEMS>;
/// How many bytes of a string are shown.
pub type ShownString = Bounded<MIN_STRING, MAX_STRING>;

/// What the database sessions of a run may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Database {
    /// Read.
    ReadOnly,
    /// Write; everything is rolled back.
    Rollback,
    /// Whatever the account may do.
    Write,
}

impl Database {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::ReadOnly, Self::Rollback, Self::Write];

    /// The mode's name in options and arguments.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::Rollback => "rollback",
            Self::Write => "write",
        }
    }

    /// Returns the mode of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
}

impl EvalRequest {
    /// A request with the defaults: confined, 5 s, 128 MiB.
    pub fn new(snippet: impl Into<Vec<u8>>, project_root: impl Into<PathBuf>) -> Self {
        Self {
            snippet: snippet.into(),
            project_root: project_root.into(),
            timeout: Timeout::clamped(DEFAULT_TIMEOUT_MS),
            memory_limit: MemoryLimit::clamped(DEFAULT_MEMORY_MB),
            allow_writes: false,
            allow_network: false,
            unconfined: false,
            bootstrap: None,
            services: None,
            readable_paths: Vec::new(),
            redact: true,
            database: None,
            queries: false,
            arguments: Arguments::default(),
            depth: None,
            max_items: None,
            max_string: None,
            diff: false,
            env: Vec::new(),
        }
    }

    /// Sets the deadline of the whole call, boot included, at least [`MIN_TIMEOUT_MS`]. A run gets at
    /// most [`MAX_TIMEOUT_MS`], or what the user allows.
    #[must_use]
    pub fn with_timeout_ms(mut self, timeout_ms: i64) -> Self {
        self.timeout = Timeout::clamped(timeout_ms);
        self
    }

    /// Sets PHP's `memory_limit`, at least [`MIN_MEMORY_MB`] MiB. A run gets at most
    /// [`MAX_MEMORY_MB`], or what the user allows.
    #[must_use]
    pub fn with_memory_limit_mb(mut self, memory_limit_mb: i64) -> Self {
        self.memory_limit = MemoryLimit::clamped(memory_limit_mb);
        self
    }

    /// The request with no more time and memory than the user allows its project, which is only
    /// looked up if it asks for more than every request may.
    ///
    /// # Errors
    ///
    /// [`EvalError::Launch`] if what the user allows is not known.
    pub fn within_bounds(&self) -> Result<Cow<'_, Self>, EvalError> {
        let asks_for_more = i64::from(self.timeout_ms()) > MAX_TIMEOUT_MS
            || i64::from(self.memory_limit_mb()) > MAX_MEMORY_MB;
        if !asks_for_more {
            return Ok(Cow::Borrowed(self));
        }
        // What cannot be found is refused when it is resolved.
        let allowed = match Place::find(&self.project_root) {
            Ok(root) => allowed_for(root.path()).map_err(not_known)?,
            Err(_) => Allowed::default(),
        };
        Ok(Cow::Owned(self.clone().within(&allowed)))
    }

    /// The request with no more time and memory than is allowed.
    #[must_use]
    pub(crate) fn within(self, allowed: &Allowed) -> Self {
        let ms = i64::from(self.timeout_ms()).min(allowed.most_ms());
        let mb = i64::from(self.memory_limit_mb()).min(allowed.most_mb());
        self.with_timeout_ms(ms).with_memory_limit_mb(mb)
    }

    /// The deadline of the whole call, in milliseconds.
    #[must_use]
    pub fn timeout_ms(&self) -> u32 {
        self.timeout.get()
    }

    /// How much of a value is shown.
    #[must_use]
    pub fn value_limits(&self) -> Limits {
        let or = |given: Option<u32>, default| given.map_or(default, |n| n as usize);
        let default = Limits::default();
        let items = self.max_items.map(Bounded::get);
        Limits {
            depth: or(self.depth.map(Bounded::get), default.depth),
            entries: or(items, default.entries),
            preview: or(items, default.preview),
            string: or(self.max_string.map(Bounded::get), default.string),
        }
    }

    /// What database sessions may do.
    #[must_use]
    pub fn database(&self) -> Database {
        match (self.database, self.allow_writes) {
            (Some(database), _) => database,
            (None, true) => Database::Write,
            (None, false) => Database::ReadOnly,
        }
    }

    /// Returns whether database statements are reported.
    #[must_use]
    pub(crate) fn tells_queries(&self) -> bool {
        self.queries || self.database() == Database::Rollback
    }

    /// How database sessions are watched; `None` if they are not.
    #[must_use]
    pub(crate) fn watched(&self) -> Option<Watched> {
        let mode = match self.database() {
            _ if self.unconfined => None,
            Database::ReadOnly => Some(Mode::ReadOnly),
            Database::Rollback => Some(Mode::Rollback),
            Database::Write => None,
        };
        (mode.is_some() || self.queries).then_some(Watched {
            mode,
            keeps_sqlite: mode == Some(Mode::ReadOnly) || mode.is_some() && self.allow_writes,
        })
    }

    /// PHP's `memory_limit`, in MiB.
    #[must_use]
    pub fn memory_limit_mb(&self) -> u32 {
        self.memory_limit.get()
    }

    /// Checks that there is a snippet.
    ///
    /// # Errors
    ///
    /// [`EvalError::InvalidRequest`] if it is blank.
    pub fn check_snippet(&self) -> Result<(), EvalError> {
        match self.has_snippet() {
            true => Ok(()),
            false => Err(invalid("The snippet is empty: give some PHP to run.")),
        }
    }

    /// Names the project independently of the directory that this process is in now.
    #[must_use]
    pub(crate) fn with_root_from_here(mut self) -> Self {
        if let Ok(absolute) = std::path::absolute(&self.project_root) {
            self.project_root = absolute;
        }
        self
    }

    /// Returns whether there is a snippet.
    #[must_use]
    pub(crate) fn has_snippet(&self) -> bool {
        !is_blank(&self.snippet)
    }

    /// Checks the request against the disk and resolves its paths.
    ///
    /// `env_bootstrap` is the host's value of `ALTAIR_EVAL_BOOTSTRAP`, if it is set.
    ///
    /// # Errors
    ///
    /// [`EvalError::InvalidRequest`] for a NUL byte in a path, a root that is
    /// missing or not a directory, a bootstrap that is missing, not a file, or outside the root, a
    /// readable path that is missing, relative, or too broad to be shown, and an unsafe run whose
    /// database sessions are to be guarded.
    pub fn resolve(&self, env_bootstrap: Option<OsString>) -> Result<Target, EvalError> {
        if let (true, Some(asked @ (Database::ReadOnly | Database::Rollback))) =
            (self.unconfined, self.database)
        {
            return Err(invalid(format!(
                "An unsafe run has no guards, so its database sessions cannot be kept {}: leave out one of the two options.",
                asked.name()
            )));
        }
        let root = resolve_root(&self.project_root)?;
        let path = root.path();
        if !self.unconfined && path == Path::new("/") {
            return Err(invalid(
                "The project root is `/`, and a confined run can read its whole project: name the directory of the application.",
            ));
        }
        if self.allow_writes && !self.unconfined {
            check_writes(&root)?;
        }
        let named = match (&self.bootstrap, env_bootstrap) {
            (Some(path), _) => Some((path.clone(), "bootstrap")),
            (None, Some(path)) if !path.is_empty() => {
                Some((PathBuf::from(path), BOOTSTRAP_VARIABLE))
            }
            (None, _) => None,
        };
        let bootstrap = match named {
            Some((named, source)) => Bootstrap::File(resolve_bootstrap(path, &named, source)?),
            None => {
                let default = path.join(DEFAULT_BOOTSTRAP);
                if default.is_file() {
                    Bootstrap::File(default)
                } else {
                    Bootstrap::Discover
                }
            }
        };
        let allowed = allowed_for(path).map_err(not_known)?;
        let readable = self.readable(&root, &allowed.read)?;
        Ok(Target {
            allowed,
            named_root: named_root(&self.project_root, &root),
            root,
            bootstrap,
            readable,
        })
    }

    /// Finds the paths that may be read besides the project. Looks them up as the run's user, who
    /// may have replaced a path and must see no more than this user could alone.
    fn readable(&self, root: &Place, allowed: &[PathBuf]) -> Result<Vec<Shown>, EvalError> {
        if self.readable_paths.is_empty() && allowed.is_empty() {
            return Ok(Vec::new());
        }
        let (paths, allowed) = (self.readable_paths.clone(), allowed.to_vec());
        let find = move || {
            // What is allowed once and for all need not be there each time, nor for each user.
            let there = allowed.iter().filter(|path| Place::find(path).is_ok());
            let found = paths.iter().chain(there).map(|path| find_readable(path));
            found.collect::<Result<Vec<Shown>, EvalError>>()
        };
        match self.unconfined {
            true => find(),
            false => with_files_of(run_as(root), FILE_PATIENCE, find).map_err(|e| {
                invalid(format!(
                    "The readable paths cannot be used: {}.",
                    reason(&e)
                ))
            })?,
        }
    }
}

/// Refuses real writes where they could change what a user allows other projects: the host's, and the
/// project's owner's, whose file a run of a root host could make.
fn check_writes(root: &Place) -> Result<(), EvalError> {
    let owners = Source::of(Uid::from_raw(root.owner().uid));
    let sources = Source::all().chain(owners);
    match sources.into_iter().find(|source| source.is_in(root.path())) {
        None => Ok(()),
        Some(source) => Err(invalid(format!(
            "Writes cannot be allowed (--writes, allowWrites) in {}: it contains {}, where what other projects may do is allowed. Name the directory of the application as the root.",
            root.path().display(),
            source.path().display()
        ))),
    }
}

/// The application as found on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The project root. It is opened once: this directory is inspected, read and shown, and its
    /// owner is the run's user, even if something else appears at its path meanwhile.
    pub root: Place,
    /// The absolute path by which the project was requested: paths recorded under it resolve, too.
    /// It has no `..` if it leads to the root without it.
    pub named_root: PathBuf,
    /// Where the container comes from.
    pub bootstrap: Bootstrap,
    /// What the user allows the project.
    pub allowed: Allowed,
    /// The paths besides it that the request, or the user, allows to be read.
    pub readable: Vec<Shown>,
}

/// Where the container comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bootstrap {
    /// This file returns it.
    File(PathBuf),
    /// `Altair\Container\Container` if it autoloads, else a minimal one.
    Discover,
}

/// A value clamped to its bounds, which are all positive and small.
fn clamp(value: i64, min: i64, max: i64) -> u32 {
    u32::try_from(value.clamp(min, max)).unwrap_or(u32::MAX)
}

fn not_known(error: AllowedError) -> EvalError {
    EvalError::Launch(error.to_string())
}

fn invalid(message: impl Into<String>) -> EvalError {
    EvalError::InvalidRequest(message.into())
}

/// Returns whether a snippet holds only white space and, perhaps, an opening tag.
fn is_blank(snippet: &[u8]) -> bool {
    let text = snippet
        .strip_prefix(b"\xEF\xBB\xBF")
        .unwrap_or(snippet)
        .trim_ascii();
    let text = match text.get(..5) {
        Some(tag) if tag.eq_ignore_ascii_case(b"<?php") => text[5..].trim_ascii(),
        _ => text,
    };
    text.is_empty()
}

fn refuse_nul(path: &Path, what: &str) -> Result<(), EvalError> {
    if path.as_os_str().as_bytes().contains(&0) {
        return Err(invalid(format!(
            "The {what} contains a NUL byte, which no path can."
        )));
    }
    Ok(())
}

fn resolve_root(root: &Path) -> Result<Place, EvalError> {
    refuse_nul(root, "project root")?;
    if root.as_os_str().is_empty() {
        return Err(invalid(
            "The project root is empty: name the directory that holds vendor/autoload.php.",
        ));
    }
    let resolved = Place::find(root).map_err(|e| {
        invalid(format!(
            "The project root {} cannot be used: {}.",
            root.display(),
            reason(&e)
        ))
    })?;
    if !resolved.is_directory() {
        return Err(invalid(format!(
            "The project root {} is not a directory.",
            root.display()
        )));
    }
    Ok(resolved)
}

/// [`Target::named_root`]: `sub/..` is left out, unless `sub` is a link to elsewhere.
fn named_root(named: &Path, root: &Place) -> PathBuf {
    let Ok(named) = std::path::absolute(named) else {
        return root.path().to_owned();
    };
    let mut plain = PathBuf::new();
    for part in named.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    let leads_to_root = || {
        let found = std::fs::metadata(&plain);
        found.is_ok_and(|found| Inode::of_metadata(&found) == root.inode())
    };
    if plain == named || !leads_to_root() {
        return named;
    }
    plain
}

fn resolve_bootstrap(root: &Path, path: &Path, source: &str) -> Result<PathBuf, EvalError> {
    refuse_nul(path, source)?;
    let shown = path.display();
    let resolved = root.join(path).canonicalize().map_err(|e| {
        invalid(format!(
            "The container bootstrap {shown} ({source}) cannot be used: {}; it is looked up below the project root {}.",
            reason(&e),
            root.display()
        ))
    })?;
    if !resolved.starts_with(root) {
        return Err(invalid(format!(
            "The container bootstrap {shown} ({source}) is outside the project root {}.",
            root.display()
        )));
    }
    if !resolved.is_file() {
        return Err(invalid(format!(
            "The container bootstrap {shown} ({source}) is not a file."
        )));
    }
    Ok(resolved)
}

/// Kernel views of processes and devices, which may never be shown.
const KERNEL_VIEWS: &[&str] = &["/proc", "/sys", "/dev"];
/// Replaced by a private directory in every run.
const TEMP: &str = "/tmp";

/// Whether a path can be allowed to be read.
///
/// # Errors
/// Why not, in a sentence without its period.
pub(crate) fn check_readable(path: &Path) -> Result<(), String> {
    let found = find_readable(path).map(drop);
    found.map_err(|error| error.to_string().trim_end_matches('.').to_owned())
}

fn find_readable(path: &Path) -> Result<Shown, EvalError> {
    refuse_nul(path, "readable path")?;
    let shown = path.display();
    if !path.is_absolute() {
        return Err(invalid(format!(
            "The readable path \"{shown}\" is not absolute."
        )));
    }
    let place = Place::find(path).map_err(|e| {
        let whose = match e.kind() {
            std::io::ErrorKind::PermissionDenied => " for the run's user",
            _ => "",
        };
        invalid(format!(
            "The readable path {shown} cannot be used: {}{whose}.",
            reason(&e)
        ))
    })?;
    let resolved = place.path();
    let why = if resolved == Path::new("/") {
        "that is the whole disk"
    } else if KERNEL_VIEWS.iter().any(|view| resolved.starts_with(view)) {
        "that shows processes and devices"
    } else if resolved == Path::new(TEMP) {
        "a run has a directory of its own there; name a path below it"
    } else {
        return Ok(Shown::found(path, place));
    };
    Err(invalid(format!(
        "The readable path {shown} cannot be allowed: {why}."
    )))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::fs::symlink;

    fn message(request: &EvalRequest, env: Option<&str>) -> String {
        match request.resolve(env.map(OsString::from)) {
            Err(EvalError::InvalidRequest(message)) => message,
            other => panic!("{other:?}"),
        }
    }

    /// A project with `config/container.php`.
    fn project() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("config")).unwrap();
        std::fs::write(dir.path().join(DEFAULT_BOOTSTRAP), "<?php").unwrap();
        dir
    }

    /// The names of the fields. A field missing here is a compile error.
    macro_rules! fields {
        ($($field:ident),* $(,)?) => {{
            let EvalRequest { $($field: _),* } = EvalRequest::new("", "");
            [$(stringify!($field)),*]
        }};
    }

    #[test]
    fn each_field_has_its_place_in_the_table_of_options() {
        let table: serde_json::Value =
            serde_json::from_str(include_str!("../options.json")).unwrap();
        let placed: Vec<_> = table
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["field"].as_str().unwrap())
            .collect();
        let fields = fields![
            snippet,
            project_root,
            timeout,
            memory_limit,
            allow_writes,
            allow_network,
            unconfined,
            bootstrap,
            services,
            readable_paths,
            redact,
            database,
            queries,
            arguments,
            depth,
            max_items,
            max_string,
            diff,
            env,
        ];
        assert_eq!(placed, fields);
    }

    proptest! {
        #[test]
        fn limits_are_clamped_and_never_changed_otherwise(timeout in any::<i64>(), memory in any::<i64>()) {
            let request = EvalRequest::new("1", "/").with_timeout_ms(timeout).with_memory_limit_mb(memory);
            let (got_timeout, got_memory) =
                (i64::from(request.timeout_ms()), i64::from(request.memory_limit_mb()));
            let (most_timeout, most_memory) = (600_000, 4_096);
            prop_assert!((MIN_TIMEOUT_MS..=most_timeout).contains(&got_timeout));
            prop_assert!((MIN_MEMORY_MB..=most_memory).contains(&got_memory));
            prop_assert_eq!(got_timeout == timeout, (MIN_TIMEOUT_MS..=most_timeout).contains(&timeout));
            prop_assert_eq!(got_memory == memory, (MIN_MEMORY_MB..=most_memory).contains(&memory));
            let request = request.within(&Allowed::default());
            prop_assert_eq!(i64::from(request.timeout_ms()), got_timeout.min(MAX_TIMEOUT_MS));
            prop_assert_eq!(i64::from(request.memory_limit_mb()), got_memory.min(MAX_MEMORY_MB));
            let allowed = Allowed { max_timeout_ms: Some(120_000), max_memory_mb: Some(1024), ..Allowed::default() };
            let request = EvalRequest::new("1", "/").with_timeout_ms(timeout).with_memory_limit_mb(memory).within(&allowed);
            prop_assert_eq!(i64::from(request.timeout_ms()), got_timeout.min(120_000));
            prop_assert_eq!(i64::from(request.memory_limit_mb()), got_memory.min(1024));
        }

        #[test]
        fn no_snippet_and_no_path_panics(snippet in prop::collection::vec(any::<u8>(), 0..50), root in ".*", bootstrap in ".*") {
            let mut request = EvalRequest::new(snippet, root);
            request.bootstrap = Some(bootstrap.into());
            let _ = request.resolve(None);
        }
    }

    #[test]
    fn nothing_to_run_is_refused() {
        for blank in ["", "  \n", "<?php", "<?PHP \n", "\u{feff}<?php "] {
            let refused = EvalRequest::new(blank, "/").check_snippet();
            let said = refused.unwrap_err().to_string();
            assert!(said.contains("empty"), "{blank:?}: {said}");
        }
    }

    #[test]
    fn a_root_that_cannot_be_used_is_named() {
        let dir = project();
        let file = dir.path().join(DEFAULT_BOOTSTRAP);
        assert!(
            message(&EvalRequest::new("1", dir.path().join("nope")), None).contains("no such file")
        );
        assert!(message(&EvalRequest::new("1", &file), None).contains("not a directory"));
        assert!(message(&EvalRequest::new("1", "a\0b"), None).contains("NUL"));
        assert!(message(&EvalRequest::new("1", ""), None).contains("empty"));
    }

    #[test]
    fn a_bootstrap_is_looked_up_below_the_root_and_stays_there() {
        let (dir, outside) = (project(), project());
        let with = |bootstrap: &Path| {
            let mut request = EvalRequest::new("1", dir.path());
            request.bootstrap = Some(bootstrap.into());
            request
        };
        let target = with(Path::new("config/container.php"))
            .resolve(None)
            .unwrap();
        assert_eq!(
            target.bootstrap,
            Bootstrap::File(target.root.path().join(DEFAULT_BOOTSTRAP))
        );
        assert!(message(&with(Path::new("nope.php")), None).contains("no such file"));
        assert!(message(&with(Path::new("config")), None).contains("not a file"));
        assert!(message(&with(Path::new("a\0b")), None).contains("NUL"));
        let elsewhere = outside.path().join(DEFAULT_BOOTSTRAP);
        assert!(message(&with(&elsewhere), None).contains("outside the project root"));
        symlink(&elsewhere, dir.path().join("link.php")).unwrap();
        assert!(message(&with(Path::new("link.php")), None).contains("outside the project root"));
    }

    #[test]
    fn the_environment_names_a_bootstrap_where_the_request_does_not() {
        let dir = project();
        let request = EvalRequest::new("1", dir.path());
        assert!(message(&request, Some("nope.php")).contains(BOOTSTRAP_VARIABLE));
        let target = request.resolve(Some("".into())).unwrap();
        assert_eq!(
            target.bootstrap,
            Bootstrap::File(target.root.path().join(DEFAULT_BOOTSTRAP))
        );
        std::fs::remove_file(target.root.path().join(DEFAULT_BOOTSTRAP)).unwrap();
        assert_eq!(
            request.resolve(None).unwrap().bootstrap,
            Bootstrap::Discover
        );
    }

    #[test]
    fn a_root_that_is_a_symlink_is_the_directory_it_points_to() {
        let dir = project();
        let link = dir.path().join("link");
        symlink(dir.path(), &link).unwrap();
        let target = EvalRequest::new("1", link).resolve(None).unwrap();
        assert_eq!(target.root.path(), dir.path().canonicalize().unwrap());
    }

    #[test]
    fn a_project_has_one_name_however_it_is_spelled() {
        let dir = project();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("sub/deep")).unwrap();
        let links = tempfile::tempdir().unwrap();
        let links = links.path().canonicalize().unwrap();
        symlink(&root, links.join("project")).unwrap();
        symlink(root.join("sub/deep"), links.join("deep")).unwrap();
        let named = |path: PathBuf| {
            let target = EvalRequest::new("1", path).resolve(None).unwrap();
            assert_eq!(target.root.path(), root);
            target.named_root
        };
        for spelled in ["", ".", "sub/..", "sub/deep/../..", "sub/./../sub/..//"] {
            assert_eq!(named(root.join(spelled)), root, "{spelled}");
        }
        let link = links.join("project");
        assert_eq!(named(link.join("sub/..")), link);
        // Without its `..` it leads nowhere, or elsewhere.
        let through = links.join("deep/../..");
        assert_eq!(named(through.clone()), through);
    }

    #[test]
    fn a_readable_path_is_there_and_no_more_than_may_be_shown() {
        let project = project();
        let refused = |path: &str| {
            let mut request = EvalRequest::new("1", project.path());
            request.readable_paths = vec![project.path().into(), path.into()];
            message(&request, None)
        };
        assert!(refused("src").contains("not absolute"));
        assert!(refused("").contains("not absolute"));
        assert!(refused("/no\0where").contains("NUL byte"));
        assert!(refused("/no/where").contains("no such file"));
        assert!(refused("/usr/..").contains("whole disk"));
        assert!(refused("/proc/self").contains("processes"));
        assert!(refused("/tmp/").contains("directory of its own"));
        let link = project.path().join("link");
        symlink("/dev", &link).unwrap();
        assert!(refused(link.to_str().unwrap()).contains("devices"));
    }
}
