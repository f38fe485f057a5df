//! What a host knows of an application before a run of it begins: its secrets and its services, from
//! the environment that the run is to have, from the `.env` files that its boot is about to read, and
//! from `composer.json`.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use nix::libc::O_NONBLOCK;

use crate::secrets::{Secrets, is_secret};
use crate::services::Declarations;

/// A variable's name and value.
pub(crate) type Variable = (Vec<u8>, Vec<u8>);

/// Environments whose files are looked into beside that of `APP_ENV`: a file may name the one that
/// holds, and to know the secrets of others does no harm.
const ENVIRONMENTS: [&str; 6] = ["dev", "local", "prod", "production", "test", "testing"];

/// Bytes of a file that are read; what is larger is none of those.
const FILE_MAX: u64 = 1 << 20;

/// What a file was when it was read; `None` where there was none.
type Stamp = Option<(u64, u64, u64, i64, i64, i64, i64)>;

/// What is known.
pub(crate) struct Known {
    environment: Vec<(OsString, OsString)>,
    files: Vec<(PathBuf, Stamp)>,
    /// Variables that may hold secrets.
    pub(crate) variables: Vec<Variable>,
    pub(crate) secrets: Option<Arc<Secrets>>,
    /// Services that the application declares.
    pub(crate) services: Declarations,
}

impl std::fmt::Debug for Known {
    /// No secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Known").finish_non_exhaustive()
    }
}

/// The last: neither the environment nor the files change much from one run to the next.
static LAST: Mutex<Option<Arc<Known>>> = Mutex::new(None);

impl Known {
    /// What is known of runs with this environment in the project at `root`.
    pub(crate) fn of(environment: &[(OsString, OsString)], root: &Path) -> Arc<Self> {
        let manifest = Declarations::file(root);
        let files: Vec<(PathBuf, Stamp)> = files(environment, root)
            .into_iter()
            .chain([manifest.clone()])
            .map(|file| {
                let stamp = stamp(&file);
                (file, stamp)
            })
            .collect();
        // In a fork of a host another thread may have the lock for ever.
        let mut last = LAST.try_lock().ok();
        if let Some(Some(last)) = last.as_deref()
            && last.environment == environment
            && last.files == files
        {
            return Arc::clone(last);
        }
        let inherited = environment
            .iter()
            .map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()));
        let is_there = |(_, stamp): &&(PathBuf, Stamp)| stamp.is_some();
        let read: Vec<(&Path, Vec<Variable>)> = files
            .iter()
            .filter(is_there)
            .filter(|(file, _)| *file != manifest)
            .map(|(file, _)| (file.as_path(), read(file).unwrap_or_default()))
            .collect();
        let of_files = read.iter().flat_map(|(_, variables)| variables.clone());
        let variables: Vec<Variable> = inherited
            .chain(of_files)
            .filter(|(name, value)| is_secret(name, value))
            .collect();
        let manifest = files
            .iter()
            .filter(is_there)
            .find(|(file, _)| *file == manifest)
            .and_then(|(file, _)| content(file).ok());
        let effective = Effective::new(environment, &read);
        let services = Declarations::of(manifest.as_deref(), &|name| effective.variable(name));
        let known = Arc::new(Self {
            environment: environment.to_vec(),
            files,
            secrets: Secrets::of(&variables),
            variables,
            services,
        });
        if let Some(last) = last.as_deref_mut() {
            *last = Some(Arc::clone(&known));
        }
        known
    }
}

/// The variables that hold: those of the environment before those of files.
struct Effective<'a> {
    environment: &'a [(OsString, OsString)],
    /// The files that hold, the first of which decides.
    files: Vec<(&'a str, &'a [Variable])>,
}

impl<'a> Effective<'a> {
    fn new(environment: &'a [(OsString, OsString)], read: &'a [(&'a Path, Vec<Variable>)]) -> Self {
        let file = |name: &str| {
            read.iter().find_map(|(path, variables)| {
                let own = path.file_name()?.to_str()?;
                (own == name).then_some((own, variables.as_slice()))
            })
        };
        let without_environment: Vec<_> = [".env.local", ".env"]
            .into_iter()
            .filter_map(file)
            .collect();
        let plain = Self {
            environment,
            files: without_environment,
        };
        // What Symfony and Laravel take where nothing is said.
        let of = match plain.variable("APP_ENV") {
            Some((of, _)) => vec![of],
            None => vec!["dev".to_owned(), "local".to_owned()],
        };
        let own = |suffix: &str| {
            of.iter()
                .filter_map(|of| file(&format!(".env.{of}{suffix}")))
                .collect::<Vec<_>>()
        };
        let mut files = own(".local");
        files.extend(file(".env.local"));
        files.extend(own(""));
        files.extend(file(".env"));
        Self { environment, files }
    }

    /// The value of a variable, and the file that has it, where it is none of the environment's.
    fn variable(&self, name: &str) -> Option<(String, Option<String>)> {
        let inherited = self.environment.iter().find(|(own, _)| own == name);
        if let Some((_, value)) = inherited {
            return Some((value.to_str()?.to_owned(), None));
        }
        self.files.iter().find_map(|(file, variables)| {
            let (_, value) = variables.iter().find(|(own, _)| own == name.as_bytes())?;
            let value = String::from_utf8(value.clone()).ok()?;
            Some((value, Some((*file).to_owned())))
        })
    }
}

fn files(environment: &[(OsString, OsString)], root: &Path) -> Vec<PathBuf> {
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
        .map(|name| root.join(name))
        .collect()
}

fn stamp(file: &Path) -> Stamp {
    let meta = std::fs::metadata(file).ok().filter(|meta| meta.is_file())?;
    Some((
        meta.dev(),
        meta.ino(),
        meta.len(),
        meta.mtime(),
        meta.mtime_nsec(),
        meta.ctime(),
        meta.ctime_nsec(),
    ))
}

/// The variables of a file. A line that is none is passed over: how it is to be read is the
/// application's affair.
fn read(file: &Path) -> io::Result<Vec<Variable>> {
    let text = content(file)?;
    let lines = dotenvy::from_read_iter(text.as_slice());
    Ok(lines
        .flatten()
        .map(|(name, value)| (name.into_bytes(), value.into_bytes()))
        .collect())
}

fn content(file: &Path) -> io::Result<Vec<u8>> {
    // It may have become a FIFO, which is not to be waited for.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(O_NONBLOCK)
        .open(file)?;
    let mut text = Vec::new();
    if file.metadata()?.is_file() {
        file.take(FILE_MAX).read_to_end(&mut text)?;
    }
    Ok(text)
}
