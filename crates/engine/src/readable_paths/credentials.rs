//! Credentials among the files of what an application names. Landlock cannot leave anything out of a
//! directory that it grants, so one that has them is not followed.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use altair_sandbox::Place;

use super::elsewhere::is_vendor;

/// Files that hold credentials, also in a repository.
const FILES: &[&str] = &[
    "auth.json",
    "credentials",
    "credentials.json",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_rsa",
];
/// Files of private keys, by their extensions.
const KEYS: &[&str] = &["key", "p12", "pem", "pfx"];
/// Hidden files and directories in which programs keep theirs.
const HIDDEN: &[&str] = &[
    ".aws",
    ".azure",
    ".config",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".my.cnf",
    ".netrc",
    ".password-store",
    ".pgpass",
    ".pypirc",
    ".ssh",
    ".vault-token",
];
/// Whether the content of a file has credentials.
type Says = fn(&[u8]) -> bool;

/// Files that count for what they contain: most packages have some without.
const BY_CONTENT: &[(&str, Says)] = &[
    (".docker/config.json", |text| has(text, "\"auth")),
    (".git/config", |text| {
        has(text, "extraheader") || has(text, "extraHeader") || has_url_with_user(text)
    }),
    (".npmrc", |text| {
        has(text, "_auth") || has(text, "_password")
    }),
];
/// Bytes of such a file. One that has more is something else.
const CONTENT_MAX: u64 = 1 << 20;

/// Entries to look at for one application, in all directories that it names: some milliseconds.
const ENTRIES_MAX: usize = 20_000;

/// Whether a file is one of credentials, by its name.
pub(super) fn is_one(file: &Path) -> bool {
    FILES.iter().any(|name| file.ends_with(name)) || is_key(file)
}

fn is_key(file: &Path) -> bool {
    KEYS.iter()
        .any(|key| file.extension().is_some_and(|own| own == *key))
}

/// Why a directory is not followed for what is below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Below {
    /// These are credentials.
    Credentials(PathBuf),
    /// Whether there are any is not known: there is too much, or it cannot be listed.
    Unknown,
}

/// Whether the keys in a directory are the application's own, as Passport's in Laravel's `storage`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keys {
    Own,
    Others,
}

/// Looks for credentials below the directories that one application names.
pub(super) struct Search {
    /// The entries that it may still look at.
    left: usize,
}

impl Search {
    pub(super) fn new() -> Self {
        Self { left: ENTRIES_MAX }
    }

    /// What speaks against following a directory. What is near its top is looked at first, and links
    /// are not followed, since following the directory does not show where they lead. What Composer and
    /// npm have installed is public code.
    pub(super) fn below(&mut self, top: &Place, keys: Keys) -> Option<Below> {
        let mut level = vec![PathBuf::new()];
        while !level.is_empty() {
            let mut next = Vec::new();
            for directory in &level {
                match self.at(top, directory, keys, &mut next) {
                    Ok(None) => {}
                    Ok(found) => return found,
                    Err(_) if is_closed(&top.path().join(directory)) => {}
                    Err(_) => return Some(Below::Unknown),
                }
            }
            level = next;
        }
        None
    }

    /// Looks at the entries of one directory, and collects those in it.
    fn at(
        &mut self,
        top: &Place,
        directory: &Path,
        keys: Keys,
        next: &mut Vec<PathBuf>,
    ) -> io::Result<Option<Below>> {
        let path = top.path().join(directory);
        if directory.ends_with("node_modules") || is_vendor(&Place::find(&path)?) {
            return Ok(None);
        }
        for entry in std::fs::read_dir(&path)? {
            if self.left == 0 {
                return Ok(Some(Below::Unknown));
            }
            self.left -= 1;
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_symlink() {
                continue;
            }
            let name = entry.file_name();
            let below = directory.join(&name);
            if HIDDEN.iter().any(|hidden| name == *hidden)
                || kind.is_file() && is_credential(top, &below, keys)
            {
                return Ok(Some(Below::Credentials(entry.path())));
            }
            // The rest of a repository's own files is what its files have been.
            if kind.is_dir() && name == OsStr::new(".git") {
                let config = below.join("config");
                if is_credential(top, &config, keys) {
                    return Ok(Some(Below::Credentials(top.path().join(config))));
                }
            } else if kind.is_dir() {
                next.push(below);
            }
        }
        Ok(None)
    }
}

/// Whether nothing in a directory can be opened: what a user can only not list, it can open by name.
fn is_closed(directory: &Path) -> bool {
    let error = directory.join(".").symlink_metadata().err();
    error.is_some_and(|error| {
        matches!(
            error.kind(),
            io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound
        )
    })
}

fn is_credential(top: &Place, file: &Path, keys: Keys) -> bool {
    let content = || top.read(file, CONTENT_MAX).unwrap_or_default();
    if let Some((_, says)) = BY_CONTENT.iter().find(|(name, _)| file.ends_with(name)) {
        return says(&content());
    }
    if is_key(file) {
        // Certificates have this extension, too.
        let may_be_public = file.extension() == Some(OsStr::new("pem"));
        return keys == Keys::Others && (!may_be_public || has(&content(), "PRIVATE KEY"));
    }
    is_one(file)
}

fn has(text: &[u8], word: &str) -> bool {
    text.windows(word.len()).any(|at| at == word.as_bytes())
}

/// Whether there is an URL with a user, who is a token for git over HTTP.
fn has_url_with_user(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let hosts = ["http://", "https://"].into_iter().flat_map(|scheme| {
        let rests = text.split(scheme).skip(1);
        rests.filter_map(|rest| rest.split(['/', '\n']).next())
    });
    hosts.into_iter().any(|host| host.contains('@'))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)], keys: Keys) -> Option<Below> {
        let dir = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let file = dir.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, content).unwrap();
        }
        let top = Place::find(dir.path()).unwrap();
        match Search::new().below(&top, keys)? {
            Below::Credentials(path) => {
                let below = path.strip_prefix(top.path()).unwrap();
                Some(Below::Credentials(below.to_owned()))
            }
            Below::Unknown => Some(Below::Unknown),
        }
    }

    #[test]
    fn credentials_are_found_at_any_depth() {
        for (file, content, told) in [
            (".ssh/known_hosts", "", ".ssh"),
            (
                "a/b/c/d/e/f/g/h/.aws/credentials",
                "",
                "a/b/c/d/e/f/g/h/.aws",
            ),
            ("deploy/.config/gh/hosts.yml", "", "deploy/.config"),
            ("auth.json", "", "auth.json"),
            (".composer/auth.json", "", ".composer/auth.json"),
            ("tls/server.key", "", "tls/server.key"),
            ("tls/a.pem", "-----BEGIN EC PRIVATE KEY-----", "tls/a.pem"),
            (
                ".docker/config.json",
                "{\"auths\": {}}",
                ".docker/config.json",
            ),
            (".npmrc", "//npm.example/:_authToken=x", ".npmrc"),
            (
                "package/.git/config",
                "url = https://x:token@git.example/a",
                "package/.git/config",
            ),
        ] {
            let told = Some(Below::Credentials(told.into()));
            assert_eq!(found(&[(file, content)], Keys::Others), told, "{file}");
        }
    }

    #[test]
    fn what_packages_have_is_no_credential() {
        let files = [
            ("composer.json", "{}"),
            (".docker/nginx.conf", "server {}"),
            (".github/workflows/test.yml", ""),
            (
                ".git/config",
                "url = git@git.example:a/b\nurl = https://git.example/a/b",
            ),
            (".npmrc", "engine-strict=true"),
            ("res/cacert.pem", "-----BEGIN CERTIFICATE-----"),
            ("vendor/autoload.php", ""),
            ("vendor/composer/installed.json", "{}"),
            ("vendor/a/b/tests/server.key", ""),
            ("node_modules/a/test.key", ""),
        ];
        assert_eq!(found(&files, Keys::Others), None);
    }

    #[test]
    fn a_key_of_the_applications_own_is_no_reason() {
        let key = [("storage/oauth-private.key", "")];
        assert!(found(&key, Keys::Others).is_some());
        assert_eq!(found(&key, Keys::Own), None);
        assert!(found(&[("auth.json", "")], Keys::Own).is_some());
    }

    #[test]
    fn what_is_too_much_to_look_through_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        for n in 0..3 {
            std::fs::write(dir.path().join(n.to_string()), "").unwrap();
        }
        let top = Place::find(dir.path()).unwrap();
        let mut search = Search { left: 5 };
        assert_eq!(search.below(&top, Keys::Others), None);
        assert_eq!(search.below(&top, Keys::Others), Some(Below::Unknown));
    }
}
