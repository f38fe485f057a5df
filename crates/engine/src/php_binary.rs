//! Finds the child's PHP interpreter.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use crate::EvalError;
use crate::error::reason;

/// The name that selects whichever PHP is available.
pub const DEFAULT: &str = "php";

/// Returns the path of the interpreter that `name` stands for.
///
/// [`DEFAULT`] stands for `running`, the binary of a host that is itself a PHP command line,
/// otherwise for the first `php` on `search_path`. Any other name without a slash is looked up
/// there, too.
///
/// # Errors
///
/// [`EvalError::Launch`], naming the path, what was found there and what was needed.
pub fn resolve(
    name: &OsStr,
    running: Option<&Path>,
    search_path: Option<&OsStr>,
) -> Result<PathBuf, EvalError> {
    if name.as_bytes().contains(&0) {
        return Err(launch(
            "The path of the PHP binary contains a NUL byte, which no path can.".into(),
        ));
    }
    match running {
        Some(running) if name == DEFAULT => Ok(running.to_owned()),
        _ => find(name, search_path).map_err(|why| {
            launch(format!(
                "{why} Name an executable PHP command line (--php=<path>)."
            ))
        }),
    }
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
        match resolve(name.as_ref(), None, Some(search_path.as_ref())) {
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
        assert!(
            refusal("php", dir.path().to_str().unwrap()).contains("no executable `php` on PATH")
        );
    }

    #[test]
    fn php_is_the_running_binary_or_the_first_on_the_path() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let second = dirs[1].path().join("php");
        std::fs::write(&second, "").unwrap();
        std::fs::set_permissions(&second, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = std::env::join_paths(dirs.iter().map(tempfile::TempDir::path)).unwrap();
        assert_eq!(resolve("php".as_ref(), None, Some(&path)).unwrap(), second);
        let running = Path::new("/running/php");
        assert_eq!(
            resolve("php".as_ref(), Some(running), Some(&path)).unwrap(),
            running
        );
        let other = resolve("php8.2".as_ref(), Some(running), Some(&path));
        assert!(other.is_err(), "another name is not the running binary");
    }
}
