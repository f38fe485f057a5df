//! Finds the child's extension.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, reason};
use crate::host::Host;

/// The environment variable that names the extension for the child.
pub const VARIABLE: &str = "ALTAIR_EVAL_EXTENSION";

/// File names of the extension as built by Cargo and as installed.
const NAMES: [&str; 2] = ["libaltair_eval.so", "altair_eval.so"];

/// Finds the extension: the one that [`VARIABLE`] names, or `host`'s, or a file next to this
/// executable.
///
/// With `None`, the child's own ini files must load it.
///
/// # Errors
///
/// If [`VARIABLE`] names something that is no file.
pub fn find(host: &Host) -> Result<Option<PathBuf>, Failure> {
    match std::env::var_os(VARIABLE) {
        Some(path) if !path.is_empty() => named(path).map(Some),
        _ => Ok(host.extension.clone().or_else(|| {
            let executable = std::env::current_exe().and_then(std::fs::canonicalize);
            beside(executable.ok().as_deref())
        })),
    }
}

/// Makes the path absolute, because the child's working directory is the project.
fn named(path: OsString) -> Result<PathBuf, Failure> {
    let refuse = |why: &str| {
        let shown = Path::new(&path).display();
        Failure::new(format!(
            "the extension {shown}, named by {VARIABLE}, cannot be used: {why}"
        ))
    };
    let absolute = std::fs::canonicalize(&path).map_err(|error| refuse(&reason(&error)))?;
    if absolute.is_file() {
        Ok(absolute)
    } else {
        Err(refuse("it is not a file"))
    }
}

fn beside(executable: Option<&Path>) -> Option<PathBuf> {
    let directory = executable?.parent()?;
    NAMES
        .iter()
        .map(|name| directory.join(name))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_build_beside_the_command_is_found_before_the_installed_name() -> std::io::Result<()> {
        let directory = tempfile::tempdir()?;
        let executable = directory.path().join("altair");
        assert_eq!(beside(Some(&executable)), None);

        std::fs::write(directory.path().join("altair_eval.so"), "")?;
        assert_eq!(
            beside(Some(&executable)),
            Some(directory.path().join("altair_eval.so"))
        );

        std::fs::write(directory.path().join("libaltair_eval.so"), "")?;
        assert_eq!(
            beside(Some(&executable)),
            Some(directory.path().join("libaltair_eval.so"))
        );
        Ok(())
    }
}
