//! What a host knows of a run's secrets before it begins: from the environment that the run is to
//! have, and from the `.env` files that its boot is about to read.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use nix::libc::O_NONBLOCK;

use super::{Secrets, is_secret};

/// A variable's name and value.
pub(crate) type Variable = (Vec<u8>, Vec<u8>);

/// Environments whose files are looked into beside that of `APP_ENV`: a file may name the one that
/// holds, and to know the secrets of others does no harm.
const ENVIRONMENTS: [&str; 6] = ["dev", "local", "prod", "production", "test", "testing"];

/// Bytes of a `.env` file; what is larger is none.
const FILE_MAX: u64 = 1 << 20;

/// What a file was when it was read; `None` where there was none.
type Stamp = Option<(u64, u64, u64, i64, i64, i64, i64)>;

/// What is known.
pub(crate) struct Known {
    environment: Vec<(OsString, OsString)>,
    files: Vec<(PathBuf, Stamp)>,
    /// Variables that may hold secrets.
    pub(super) variables: Vec<Variable>,
    pub(crate) secrets: Option<Arc<Secrets>>,
}

/// The last: neither the environment nor the files change much from one run to the next.
static LAST: Mutex<Option<Arc<Known>>> = Mutex::new(None);

impl Known {
    /// What is known of runs with this environment in the project at `root`.
    pub(crate) fn of(environment: &[(OsString, OsString)], root: &Path) -> Arc<Self> {
        let files: Vec<(PathBuf, Stamp)> = files(environment, root)
            .into_iter()
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
        let read = files
            .iter()
            .filter(|(_, stamp)| stamp.is_some())
            .flat_map(|(file, _)| read(file).unwrap_or_default());
        let variables: Vec<Variable> = inherited
            .chain(read)
            .filter(|(name, value)| is_secret(name, value))
            .collect();
        let known = Arc::new(Self {
            environment: environment.to_vec(),
            files,
            secrets: Secrets::of(&variables),
            variables,
        });
        if let Some(last) = last.as_deref_mut() {
            *last = Some(Arc::clone(&known));
        }
        known
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
    // It may have become a FIFO, which is not to be waited for.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(O_NONBLOCK)
        .open(file)?;
    let text = contents(file)?;
    let lines = dotenvy::from_read_iter(text.as_slice());
    Ok(lines
        .flatten()
        .map(|(name, value)| (name.into_bytes(), value.into_bytes()))
        .collect())
}

fn contents(file: File) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    if file.metadata()?.is_file() {
        file.take(FILE_MAX).read_to_end(&mut text)?;
    }
    Ok(text)
}
