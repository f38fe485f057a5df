//! Finds the program of a driver.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use altair_engine::php_binary;

use crate::{CommandError, Driver};

/// Where programs are looked for after `PATH`, which is short under some servers.
const MORE_DIRECTORIES: &[&str] = &[
    "/usr/bin",
    "/usr/local/bin",
    "/opt/homebrew/bin",
    "/snap/bin",
];

/// Finds the program of a driver in the environment that the caller was started with: what the caller
/// names, otherwise what the driver's variable names
/// ([`Driver::program`]), otherwise the first of its name in `PATH` and then in some directories.
/// A name without a slash is looked for in these, too. `None`: the driver needs no program.
///
/// # Errors
/// [`CommandError::Start`] if there is none. One that was named is not replaced by another.
pub fn find(
    driver: Driver,
    named: Option<&OsStr>,
    environment: &[(OsString, OsString)],
) -> Result<Option<PathBuf>, CommandError> {
    let Some((program, variable)) = driver.program() else {
        return Ok(None);
    };
    let value_of = |name: &str| {
        let found = environment.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_os_str())
    };
    let name = [named, value_of(variable)]
        .into_iter()
        .flatten()
        .find(|name| !name.is_empty())
        .unwrap_or(OsStr::new(program));
    let mut directories = OsString::from(MORE_DIRECTORIES.join(":"));
    if let Some(path) = value_of("PATH").filter(|path| !path.is_empty()) {
        let mut all = path.to_owned();
        all.push(":");
        all.push(directories);
        directories = all;
    }
    match php_binary::find(name, Some(&directories)) {
        Ok(found) => Ok(Some(found)),
        Err(_) => Err(CommandError::Start(format!("Failed to start {program}"))),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    fn executable(dir: &Path, name: &str) -> PathBuf {
        let path = dir.join(name);
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn environment(variables: &[(&str, &Path)]) -> Vec<(OsString, OsString)> {
        variables
            .iter()
            .map(|(name, value)| ((*name).into(), value.into()))
            .collect()
    }

    #[test]
    fn a_program_is_what_is_named_or_else_found() {
        let dirs = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let [on_path, of_variable, of_argument] =
            [0, 1, 2].map(|i: usize| executable(dirs[i].path(), "docker"));
        let path = ("PATH", dirs[0].path());
        let variable = ("DOCKER_BIN", of_variable.as_path());
        let find = |named: Option<&Path>, variables: &[(&str, &Path)]| {
            let named = named.map(Path::as_os_str);
            super::find(Driver::Docker, named, &environment(variables))
        };
        assert_eq!(find(None, &[path]).unwrap(), Some(on_path.clone()));
        assert_eq!(
            find(None, &[path, variable]).unwrap(),
            Some(of_variable.clone())
        );
        assert_eq!(
            find(Some(&of_argument), &[path, variable]).unwrap(),
            Some(of_argument)
        );
        let other = executable(dirs[0].path(), "docker-28");
        assert_eq!(
            find(Some(Path::new("docker-28")), &[path]).unwrap(),
            Some(other)
        );
        let empty = ("DOCKER_BIN", Path::new(""));
        assert_eq!(
            find(Some(Path::new("")), &[path, empty]).unwrap(),
            Some(on_path)
        );
    }

    #[test]
    fn programs_are_found_without_a_path() {
        // Stands for a driver's program: every system has one of these.
        let found = super::find(Driver::Bubblewrap, Some(OsStr::new("env")), &[]).unwrap();
        assert_eq!(found, Some("/usr/bin/env".into()));
    }

    #[test]
    fn a_missing_program_is_named() {
        for (driver, name) in [
            (Driver::Docker, "docker"),
            (Driver::Podman, "podman"),
            (Driver::Firejail, "firejail"),
            (Driver::Bubblewrap, "bwrap"),
        ] {
            let error = find(driver, Some(OsStr::new("/nowhere")), &[]).unwrap_err();
            let expected = format!("Failed to start {name}");
            assert_eq!(error, CommandError::Start(expected));
        }
        assert_eq!(find(Driver::Host, None, &[]), Ok(None));
        assert_eq!(find(Driver::Native, None, &[]), Ok(None));
    }
}
