//! The extensions that the ini files of a PHP load from elsewhere than its own directory. Only a host
//! that is this PHP itself knows what it has loaded; for any other host, the files tell.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where PHP's builds look for ini files: Debian's, Fedora's and Arch's, Docker's official images and
/// self-built ones. `*` is any name.
const PLACES: &[&str] = &[
    "/etc/php/*/cli",
    "/etc/php",
    "/etc",
    "/etc/php8*",
    "/usr/local/etc/php",
    "/usr/local/lib",
];

/// The same below the prefix of a self-built PHP (`<prefix>/bin/php`).
const BELOW_PREFIX: &[&str] = &["lib", "etc", "etc/php", "var/db"];

/// Directories of ini files in such a place; the place itself is searched for `php.ini` alone.
const SCANNED: &[&str] = &["conf.d", "php.d"];

/// Ini files that are read, at most; a distribution's PHP has some 40.
const FILES_MAX: usize = 512;

/// Bytes that are read of each. The longest, `php.ini`, has some 70 KiB.
const FILE_MAX_BYTES: u64 = 1 << 20;

/// The files of extensions that the ini files of `php` name by an absolute path, or by a name in another
/// directory than that of its build (`extension_dir`). `scanned` is `PHP_INI_SCAN_DIR`. They may not
/// exist, and not all of the ini files are this PHP's.
pub(crate) fn of(php: &Path, scanned: Option<&OsStr>) -> Vec<PathBuf> {
    let mut named = Named::default();
    for file in ini_files(php, scanned).iter().take(FILES_MAX) {
        if let Some(text) = read(file) {
            named.take(&text);
        }
    }
    named.files()
}

/// What ini files say of extensions.
#[derive(Debug, Default)]
struct Named {
    /// Absolute paths.
    files: BTreeSet<PathBuf>,
    /// Names in the directory of extensions.
    names: BTreeSet<Vec<u8>>,
    /// Directories of extensions, absolute.
    directories: BTreeSet<PathBuf>,
}

impl Named {
    fn take(&mut self, text: &[u8]) {
        for line in text.split(|byte| *byte == b'\n') {
            let Some((name, value)) = setting(line) else {
                continue;
            };
            let path = Path::new(OsStr::from_bytes(value));
            let _is_new = match (name, path.is_absolute()) {
                (b"extension_dir", true) => self.directories.insert(path.to_owned()),
                (b"extension" | b"zend_extension", true) => self.files.insert(path.to_owned()),
                (b"extension" | b"zend_extension", false) => self.names.insert(value.to_vec()),
                _ => false,
            };
        }
    }

    fn files(mut self) -> Vec<PathBuf> {
        for directory in &self.directories {
            for name in &self.names {
                // PHP adds the ending where it is left out.
                for file in [name.clone(), [name, &b".so"[..]].concat()] {
                    let file = directory.join(OsStr::from_bytes(&file));
                    self.files.insert(file);
                }
            }
        }
        self.files.into_iter().collect()
    }
}

fn ini_files(php: &Path, scanned: Option<&OsStr>) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = PLACES.iter().flat_map(|place| matching(place)).collect();
    if let Some(prefix) = php.canonicalize().ok().as_deref().and_then(prefix) {
        places.extend(BELOW_PREFIX.iter().map(|below| prefix.join(below)));
    }
    let mut files = Vec::new();
    for place in &places {
        files.extend(["php.ini", "php-cli.ini"].map(|name| place.join(name)));
        for directory in SCANNED {
            files.extend(ini_files_in(&place.join(directory)));
        }
    }
    let scanned = scanned.map(OsStr::as_bytes).unwrap_or_default();
    for directory in scanned.split(|byte| *byte == b':') {
        let directory = Path::new(OsStr::from_bytes(directory));
        if directory.is_absolute() {
            files.extend(ini_files_in(directory));
        }
    }
    files
}

fn prefix(php: &Path) -> Option<&Path> {
    php.parent()?.parent()
}

/// The paths that a pattern with at most one `*` stands for.
fn matching(pattern: &str) -> Vec<PathBuf> {
    let Some((before, after)) = pattern.split_once('*') else {
        return vec![pattern.into()];
    };
    let (directory, start) = before.rsplit_once('/').unwrap_or_default();
    let names = fs::read_dir(directory).into_iter().flatten().flatten();
    let names = names.filter(|entry| entry.file_name().as_bytes().starts_with(start.as_bytes()));
    names
        .map(|entry| entry.path().join(after.trim_start_matches('/')))
        .collect()
}

fn ini_files_in(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths
        .filter(|path| path.extension() == Some(OsStr::new("ini")))
        .collect()
}

/// The text of a regular file; opening another kind may wait for ever.
fn read(file: &Path) -> Option<Vec<u8>> {
    if !fs::metadata(file).ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    let file = fs::File::open(file).ok()?;
    file.take(FILE_MAX_BYTES).read_to_end(&mut text).ok()?;
    Some(text)
}

/// The name and the value of a setting, as far as it needs no more of PHP's own parser.
fn setting(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = line.iter().position(|byte| *byte == b'=')?;
    let (name, value) = (line.get(..at)?, line.get(at + 1..)?.trim_ascii());
    let value = match value.first()? {
        quote @ (b'"' | b'\'') => value.get(1..)?.split(|byte| byte == quote).next()?,
        // A comment ends a value without quotes.
        _ => value.split(|byte| *byte == b';').next()?.trim_ascii(),
    };
    (!value.is_empty()).then_some((name.trim_ascii(), value))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_is_found_by_the_absolute_path_that_an_ini_file_gives() {
        let text = b"; extension=/a/comment.so\n\
            extension = /one.so ; why\r\n\
            zend_extension=\"/two with; semicolon.so\"\n\
            extension='/three.so'\n\
            extension=in_its_directory\n\
            extension_dir = /four\n\
            extensions=/five.so\n\
            extension=\n=\nextension\n";
        let mut named = Named::default();
        named.take(text);
        let expected = [
            "/four/in_its_directory",
            "/four/in_its_directory.so",
            "/one.so",
            "/three.so",
            "/two with; semicolon.so",
        ];
        assert_eq!(named.files(), expected.map(PathBuf::from));
    }

    #[test]
    fn ini_files_are_those_of_the_prefix_and_of_the_scanned_directories() {
        let prefix = tempfile::tempdir().unwrap();
        let at = prefix.path().canonicalize().unwrap();
        for (file, text) in [
            ("bin/php", ""),
            ("lib/php.ini", "extension=/main.so"),
            ("etc/conf.d/a.ini", "extension=/scanned.so"),
            ("etc/conf.d/a.txt", "extension=/no-ini-file.so"),
            ("own/b.ini", "extension=/own.so"),
        ] {
            let file = at.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let scanned = format!(":relative:{}", at.join("own").display());
        let found = of(&at.join("bin/php"), Some(OsStr::new(&scanned)));
        for name in ["/main.so", "/scanned.so", "/own.so"] {
            assert!(found.contains(&PathBuf::from(name)), "{name} in {found:?}");
        }
        assert!(!found.contains(&PathBuf::from("/no-ini-file.so")));
    }
}
