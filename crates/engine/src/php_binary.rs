//! Finds the child's PHP interpreter.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use crate::EvalError;
use crate::error::reason;

/// The name that selects whichever PHP is available.
pub const DEFAULT: &str = "php";

/// Where an interpreter is looked up without a search path, which workers of php-fpm do not have
/// (`clear_env`).
const USUAL_PLACES: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

/// Returns the path of the interpreter that `name` stands for.
///
/// [`DEFAULT`] stands for `running`, the binary of a host that is itself a PHP command line,
/// otherwise for the first `php` on `search_path`. Without a search path it is looked up in `own`, the
/// directory that a PHP host has its programs in, then in the usual places. Any other name without a
/// slash is looked up there, too.
///
/// # Errors
///
/// [`EvalError::Launch`], naming the path, what was found there and what was needed.
pub fn resolve(
    name: &OsStr,
    running: Option<&Path>,
    search_path: Option<&OsStr>,
    own: Option<&Path>,
) -> Result<PathBuf, EvalError> {
    if name.as_bytes().contains(&0) {
        return Err(launch(
            "The path of the PHP binary contains a NUL byte, which no path can.".into(),
        ));
    }
    match running {
        Some(running) if name == DEFAULT => Ok(running.to_owned()),
        _ => find(name, search_path)
            .or_else(|why| match search_path {
                Some(path) if !path.is_empty() => Err(why),
                _ => elsewhere(name, own).ok_or(why),
            })
            .map_err(|why| {
                launch(format!(
                    "{why} Name an executable PHP command line (--php=<path>)."
                ))
            }),
    }
}

/// A name in the places that are searched without a search path.
fn elsewhere(name: &OsStr, own: Option<&Path>) -> Option<PathBuf> {
    if name.is_empty() || name.as_bytes().contains(&b'/') {
        return None;
    }
    let own = own.filter(|own| own.is_absolute()).map(Path::to_owned);
    own.into_iter()
        .chain(std::env::split_paths(USUAL_PLACES))
        .find_map(|dir| executable(&dir.join(name)).ok())
}

/// Finds the executable that `name` stands for: a path if it has a slash, otherwise the first of
/// that name on `search_path`.
///
/// # Errors
///
/// The problem, in a sentence.
pub fn find(name: &OsStr, search_path: Option<&OsStr>) -> Result<PathBuf, String> {
    let shown = name.display();
    if name.is_empty() {
        return Err("The name of the program is empty.".into());
    }
    if name.as_bytes().contains(&b'/') {
        return executable(Path::new(name)).map_err(|found| format!("{shown} {found}."));
    }
    search_path
        .into_iter()
        .flat_map(std::env::split_paths)
        .find_map(|dir| executable(&dir.join(name)).ok())
        .ok_or_else(|| format!("There is no executable `{shown}` on PATH."))
}

/// `path` made absolute, or a description of the problem.
fn executable(path: &Path) -> Result<PathBuf, String> {
    let meta = path.metadata().map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => "does not exist".to_owned(),
        _ => format!("cannot be used ({})", reason(&e)),
    })?;
    if !meta.is_file() {
        return Err("is not a file".into());
    }
    access(path, AccessFlags::X_OK).map_err(|_| "is not executable".to_owned())?;
    std::path::absolute(path).map_err(|e| reason(&e))
}

fn launch(message: String) -> EvalError {
    EvalError::Launch(message)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn refusal(name: &str, search_path: &str) -> String {
        match resolve(name.as_ref(), None, Some(search_path.as_ref()), None) {
            Err(EvalError::Launch(message)) => message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_binary_that_cannot_be_used_is_named_with_what_is_wrong() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("php");
        std::fs::write(&file, "").unwrap();
        let file = file.to_str().unwrap();
        assert!(refusal(file, "").contains("is not executable"));
        assert!(refusal("/nowhere/php", "").contains("/nowhere/php does not exist"));
        assert!(refusal("/", "").contains("is not a file"));
        assert!(refusal("", "").contains("empty"));
        assert!(refusal("a\0b", "").contains("NUL"));
        let on_path = dir.path().to_str().unwrap();
        assert!(refusal("no-php", on_path).contains("no executable `no-php` on PATH"));
    }

    #[test]
    fn php_is_the_running_binary_or_the_first_on_the_path() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let second = dirs[1].path().join("php");
        std::fs::write(&second, "").unwrap();
        std::fs::set_permissions(&second, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = std::env::join_paths(dirs.iter().map(tempfile::TempDir::path)).unwrap();
        let found = resolve("php".as_ref(), None, Some(&path), None);
        assert_eq!(found.unwrap(), second);
        let running = Path::new("/running/php");
        assert_eq!(
            resolve("php".as_ref(), Some(running), Some(&path), None).unwrap(),
            running
        );
        let other = resolve("no-php".as_ref(), Some(running), Some(&path), None);
        assert!(other.is_err(), "another name is not the running binary");
    }

    #[test]
    fn without_a_path_it_is_looked_for_where_php_has_its_programs_and_in_the_usual_places() {
        let own = tempfile::tempdir().unwrap();
        let php = own.path().join("php");
        std::fs::write(&php, "").unwrap();
        std::fs::set_permissions(&php, std::fs::Permissions::from_mode(0o755)).unwrap();
        for search_path in [None, Some(OsStr::new(""))] {
            let found = resolve("php".as_ref(), None, search_path, Some(own.path()));
            assert_eq!(found.unwrap(), php);
            // Stands for PHP: every system has it, and none in that directory.
            let found = resolve("env".as_ref(), None, search_path, Some(own.path()));
            assert_eq!(found.unwrap(), Path::new("/usr/bin/env"));
        }
        let elsewhere = Some(OsStr::new("/nowhere"));
        let found = resolve("php".as_ref(), None, elsewhere, Some(own.path()));
        assert!(
            found.is_err(),
            "a path that is given is all that is searched"
        );
        let slash = resolve("bin/env".as_ref(), None, None, Some(Path::new("/usr")));
        assert!(slash.is_err(), "a path is no name");
    }
}
