//! What a host knows of an application before a run of it begins: its secrets and its services, from
//! the environment that the run is to have, from the `.env` files that its boot is about to read, and
//! from `composer.json`.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use altair_sandbox::{Inode, Place, with_files_of};
use nix::fcntl::AtFlags;
use nix::libc;
use nix::sys::stat::fstatat;

use crate::confinement::{FILE_PATIENCE, run_as};
use crate::secrets::{Secrets, is_secret};
use crate::services::{Declarations, MANIFEST_MAX_BYTES};

/// A variable's name and value.
pub(crate) type Variable = (Vec<u8>, Vec<u8>);

/// Environments whose files are looked into beside that of `APP_ENV`: a file may name the one that
/// holds, and to know the secrets of others does no harm.
const ENVIRONMENTS: [&str; 6] = ["dev", "local", "prod", "production", "test", "testing"];

/// Bytes of a `.env` file, and of all of them together once their variables are put in: those of large
/// applications have some KiB. What is larger is none of those.
const VARIABLES_MAX: usize = 256 << 10;

/// What a file was when it was read; `None` where there was none.
type Stamp = Option<(u64, u64, i64, i64, i64, i64, i64)>;

/// A file of the project that is read here, below its root, and what it was.
type Stamped = (String, Stamp);

/// What is known.
pub(crate) struct Known {
    environment: Vec<(OsString, OsString)>,
    root: Inode,
    files: Vec<Stamped>,
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
    ///
    /// Its files are its owner's: they are looked at as the user that its runs have, as nothing but
    /// regular files below the root, and not for ever.
    ///
    /// # Errors
    /// Where they cannot be looked at so.
    pub(crate) fn of(
        environment: &[(OsString, OsString)],
        root: &Place,
        patience: Duration,
    ) -> io::Result<Arc<Self>> {
        // In a fork of a host another thread may have the lock for ever.
        let last = LAST.try_lock().ok().and_then(|last| last.clone());
        let last = last.filter(|last| last.environment == environment && last.root == root.inode());
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
            (Ok(Some(read)), _) => Ok(Self::new(environment, root, read)),
            // They do not answer: what they were is better than nothing.
            (Ok(None) | Err(_), Some(last)) => Ok(last),
            (Ok(None), None) => Ok(Self::new(environment, root, Read::default())),
            (Err(error), None) => Err(error),
        }
    }

    fn new(environment: &[(OsString, OsString)], root: &Place, read: Read) -> Arc<Self> {
        let inherited = environment
            .iter()
            .map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()));
        let variables = of_files(&read.variables, environment);
        let of_files = variables
            .iter()
            .flat_map(|(_, variables)| variables.clone());
        let secret: Vec<Variable> = inherited
            .chain(of_files)
            .filter(|(name, value)| is_secret(name, value))
            .collect();
        let effective = Effective::new(environment, &variables);
        let services = Declarations::of(read.manifest.as_deref(), &|name| effective.variable(name));
        let known = Arc::new(Self {
            environment: environment.to_vec(),
            root: root.inode(),
            files: read.stamped,
            secrets: Secrets::of(&secret),
            variables: secret,
            services,
        });
        if let Ok(mut last) = LAST.try_lock() {
            *last = Some(Arc::clone(&known));
        }
        known
    }
}

/// What was read of a project.
#[derive(Default)]
struct Read {
    stamped: Vec<Stamped>,
    /// The `.env` files that there are, and what is in them.
    variables: Vec<(String, Vec<u8>)>,
    manifest: Option<Vec<u8>>,
}

impl Read {
    fn of(root: &Place, stamped: Vec<Stamped>) -> Self {
        let mut room = VARIABLES_MAX;
        let mut variables = Vec::new();
        for (name, stamp) in &stamped {
            if stamp.is_none() || name == Declarations::FILE {
                continue;
            }
            if let Ok(text) = root.read(Path::new(name), room as u64) {
                room -= text.len();
                variables.push((name.clone(), text));
            }
        }
        Self {
            manifest: root
                .read(Path::new(Declarations::FILE), MANIFEST_MAX_BYTES)
                .ok(),
            stamped,
            variables,
        }
    }
}

/// The variables of files, in their order. A line that is none is passed over: how it is to be read is
/// the application's affair.
fn of_files(
    read: &[(String, Vec<u8>)],
    environment: &[(OsString, OsString)],
) -> Vec<(String, Vec<Variable>)> {
    let mut room = VARIABLES_MAX;
    read.iter()
        .map(|(name, text)| {
            let variables = variables(&String::from_utf8_lossy(text), environment, &mut room);
            (name.clone(), variables)
        })
        .collect()
}

/// What stands for a `$` until the lines are read: of a few short ones that name each other again and
/// again, `dotenvy` would make values of any length.
const NAMES: char = '\u{e000}';
/// The same for one that is meant as such.
const DOLLAR: char = '\u{e001}';

/// The variables of a file, with those that they name put in as long as there is room.
fn variables(text: &str, environment: &[(OsString, OsString)], room: &mut usize) -> Vec<Variable> {
    let text = text.replace("\\$", &DOLLAR.to_string());
    let text = text.replace('$', &NAMES.to_string());
    let inherited = environment
        .iter()
        .filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value.to_str()?.to_owned())));
    let mut known: HashMap<String, String> = inherited.collect();
    let mut variables = Vec::new();
    for (name, value) in dotenvy::from_read_iter(text.as_bytes()).flatten() {
        let value = substituted(&value, &known, *room);
        *room = room.saturating_sub(value.len());
        // The environment's own goes before.
        known.entry(name.clone()).or_insert_with(|| value.clone());
        variables.push((name.into_bytes(), value.into_bytes()));
    }
    variables
}

/// A value with the variables that it names, `${NAME}` or `$NAME`, put in; as it is written, where it
/// would become longer than there is room.
fn substituted(value: &str, known: &HashMap<String, String>, room: usize) -> String {
    let mut parts = value.split(NAMES);
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (name, rest) = match part.strip_prefix('{').and_then(|part| part.split_once('}')) {
            Some(named) => named,
            None => part.split_at(part.find(|c| !is_name(c)).unwrap_or(part.len())),
        };
        let named = known.get(name).map_or("", String::as_str);
        if whole.len() + named.len() + rest.len() > room {
            return value.replace([NAMES, DOLLAR], "$");
        }
        whole.push_str(named);
        whole.push_str(rest);
    }
    whole.replace(DOLLAR, "$")
}

/// The variables that hold: those of the environment before those of files.
struct Effective<'a> {
    environment: &'a [(OsString, OsString)],
    /// The files that hold, the first of which decides.
    files: Vec<(&'a str, &'a [Variable])>,
}

impl<'a> Effective<'a> {
    fn new(environment: &'a [(OsString, OsString)], read: &'a [(String, Vec<Variable>)]) -> Self {
        let file = |name: &str| {
            let (own, variables) = read.iter().find(|(own, _)| own == name)?;
            Some((own.as_str(), variables.as_slice()))
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

/// The files of a project that are looked at, by name.
fn files(environment: &[(OsString, OsString)]) -> Vec<String> {
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
        .chain([Declarations::FILE.to_owned()])
        .collect()
}

/// A regular file's; a link is none.
fn stamp(root: &Place, name: &str) -> Stamp {
    let stat = fstatat(root.descriptor(), name, AtFlags::AT_SYMLINK_NOFOLLOW).ok()?;
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<(String, String)> {
        let environment = [("HOST".into(), "database.example".into())];
        let files = [(".env".to_owned(), text.as_bytes().to_vec())];
        let text = |bytes: &Vec<u8>| String::from_utf8(bytes.clone()).unwrap();
        let mut read = of_files(&files, &environment);
        let (_, variables) = read.remove(0);
        variables.iter().map(|(a, b)| (text(a), text(b))).collect()
    }

    #[test]
    fn variables_that_name_each_other_again_and_again_take_no_more_than_their_files() {
        // Each line is ten of the line before, in all the ways that names are written.
        let ways: [fn(usize) -> (String, String); 4] = [
            |line| (format!("A{line}"), format!("${{A{line}}}")),
            |line| (format!("A{line}"), format!("$A{line}-")),
            |line| (format!("A.{line}"), format!("${{A.{line}}}")),
            |line| (format!("export\tA{line}"), format!("${{A{line}}}")),
        ];
        for way in ways {
            let mut text = format!("{}=0123456789\n", way(0).0);
            for line in 1..20 {
                let before = way(line - 1).1.repeat(10);
                text.push_str(&format!("{}=\"{before}\"\n", way(line).0));
            }
            let sum: usize = of(&text).iter().map(|(_, value)| value.len()).sum();
            assert!(sum <= VARIABLES_MAX + text.len(), "{sum}");
        }
    }

    #[test]
    fn a_variable_is_put_in_where_that_is_not_too_much() {
        let text =
            "DB=db\nURL=mysql://${DB}:$PORT/shop\nAT=\"$HOST:1\"\nPLAIN=\"\\$DB\"\nBROKEN=${DB\n";
        let found = of(text);
        let value = |name: &str| {
            found
                .iter()
                .find(|(own, _)| own == name)
                .unwrap()
                .1
                .as_str()
        };
        assert_eq!(value("URL"), "mysql://db:/shop");
        assert_eq!(value("AT"), "database.example:1");
        assert_eq!(value("PLAIN"), "$DB");
    }
}
