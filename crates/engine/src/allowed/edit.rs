//! Changes a file of what is allowed: comments and order stay, and whoever reads it meanwhile sees
//! the whole of the old or of the new one.

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg, OFlag, openat, renameat};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, unlinkat};
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, value};

use super::content::{Content, Entry, Root};
use super::error::AllowedError;
use super::file::{Source, Way};
use super::values;

/// What is to be allowed for the roots of an entry, or no longer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// Services: `host:port`, or absolute paths of Unix sockets.
    pub services: Vec<String>,
    /// Names of environment variables.
    pub env: Vec<String>,
    /// Files and directories that may be read; absolute.
    pub read: Vec<String>,
    /// The largest deadline, in milliseconds.
    pub max_timeout_ms: Option<u64>,
    /// The largest memory limit, in MiB.
    pub max_memory_mb: Option<u64>,
}

impl Change {
    /// Checks what is to be allowed.
    ///
    /// # Errors
    /// What cannot be, and why, in a sentence without its period.
    pub fn check(&self) -> Result<(), String> {
        let Self {
            services,
            env,
            read,
            max_timeout_ms,
            max_memory_mb,
        } = self;
        services
            .iter()
            .try_for_each(|text| values::check_service(text))?;
        env.iter().try_for_each(|name| values::check_env(name))?;
        for path in read {
            values::check_read(path)?;
            crate::request::check_readable(Path::new(path))?;
        }
        max_timeout_ms.map_or(Ok(()), values::check_timeout)?;
        max_memory_mb.map_or(Ok(()), values::check_memory)
    }

    /// The lists, by their keys.
    fn lists(&self) -> [(&'static str, &[String]); 3] {
        [
            ("services", &self.services),
            ("env", &self.env),
            ("read", &self.read),
        ]
    }

    /// The bounds, by their keys.
    fn bounds(&self) -> [(&'static str, Option<u64>); 2] {
        [
            ("max_timeout_ms", self.max_timeout_ms),
            ("max_memory_mb", self.max_memory_mb),
        ]
    }
}

impl Source {
    /// Its entries.
    ///
    /// # Errors
    /// As for [`allowed_for`](super::allowed_for).
    pub fn entries(&self) -> Result<Vec<(Root, Entry)>, AllowedError> {
        Ok(self.read(None)?.into_entries().collect())
    }

    /// Adds what is allowed for the roots of an entry.
    ///
    /// # Errors
    /// If the file cannot be trusted, understood or written.
    pub fn allow(&self, root: &Root, change: &Change) -> Result<(), AllowedError> {
        let directory = self.path().parent().unwrap_or(Path::new("/"));
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(|error| self.unusable(error))?;
        self.edit(|projects| {
            let entry = projects
                .entry(root.as_str())
                .or_insert(Item::Table(Table::new()));
            let entry = entry.as_table_like_mut()?;
            for (key, texts) in change.lists() {
                for text in texts {
                    let list = entry
                        .entry(key)
                        .or_insert(value(Array::new()))
                        .as_array_mut()?;
                    if !list.iter().any(|one| one.as_str() == Some(text)) {
                        list.push(text);
                    }
                }
            }
            for (key, bound) in change.bounds() {
                if let Some(bound) = bound {
                    entry.insert(key, value(i64::try_from(bound).ok()?));
                }
            }
            Some(true)
        })
        .map(drop)
    }

    /// Removes what is allowed for the roots of an entry; all of it if `change` is empty. Returns
    /// whether there was any of it.
    ///
    /// # Errors
    /// As for [`Source::allow`].
    pub fn forbid(&self, root: &Root, change: &Change) -> Result<bool, AllowedError> {
        if self.text(None)?.is_none() {
            return Ok(false);
        }
        self.edit(|projects| {
            if *change == Change::default() {
                return Some(projects.remove(root.as_str()).is_some());
            }
            let Some(entry) = projects.get_mut(root.as_str()) else {
                return Some(false);
            };
            let entry = entry.as_table_like_mut()?;
            let mut was_there = false;
            for (key, texts) in change.lists() {
                let Some(list) = entry.get_mut(key) else {
                    continue;
                };
                let list = list.as_array_mut()?;
                let before = list.len();
                list.retain(|one| !texts.iter().any(|text| one.as_str() == Some(text)));
                was_there |= list.len() < before;
                if list.is_empty() {
                    entry.remove(key);
                }
            }
            for (key, bound) in change.bounds() {
                was_there |= bound.is_some() && entry.remove(key).is_some();
            }
            if entry.is_empty() {
                projects.remove(root.as_str());
            }
            Some(was_there)
        })
    }

    /// Changes the table of roots. `change` returns whether it has; `None` if the file has another
    /// shape, which reading it would have told.
    fn edit(
        &self,
        change: impl FnOnce(&mut dyn TableLike) -> Option<bool>,
    ) -> Result<bool, AllowedError> {
        let way = self.trusted_way()?;
        let directory = openat(
            &way.directory,
            ".",
            OFlag::O_RDONLY | OFlag::O_CLOEXEC,
            Mode::empty(),
        );
        let directory = directory.map_err(|errno| self.unusable(errno.into()))?;
        // Another `altair allow` waits, so that neither's change is lost.
        let directory = Flock::lock(directory, FlockArg::LockExclusive)
            .map_err(|(_, errno)| self.unusable(errno.into()))?;
        let text = self.text(None)?.unwrap_or_default();
        Content::parse(&text).map_err(|mistake| self.invalid(mistake))?;
        let mut document: DocumentMut = (text.parse()).map_err(|error: toml_edit::TomlError| {
            self.invalid((None, error.message().to_owned()))
        })?;
        let projects = document.entry("project").or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        });
        let has_changed = projects
            .as_table_like_mut()
            .and_then(change)
            .ok_or_else(|| {
                self.invalid((None, "it has another shape than it should".to_owned()))
            })?;
        let text = document.to_string();
        Content::parse(&text).map_err(|mistake| self.invalid(mistake))?;
        if has_changed {
            let written = write(&*directory, &way, text.as_bytes());
            written.map_err(|error| self.unusable(error))?;
        }
        Ok(has_changed)
    }
}

fn write(directory: &impl AsFd, way: &Way, text: &[u8]) -> io::Result<()> {
    let new = PathBuf::from(format!(".config.toml.{}", ulid::Ulid::generate()));
    let flags =
        OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mut file = File::from(openat(
        directory,
        &new,
        flags,
        Mode::S_IRUSR | Mode::S_IWUSR,
    )?);
    let written = file
        .write_all(text)
        .and_then(|()| file.sync_all())
        .and_then(|()| Ok(renameat(directory, &new, directory, way.name.as_os_str())?));
    if written.is_err() {
        let _ = unlinkat(directory, &new, UnlinkatFlags::NoRemoveDir);
    }
    written
}
