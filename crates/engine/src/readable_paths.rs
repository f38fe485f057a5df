//! The paths that a confined run may read besides the project: what PHP needs to run, and the
//! application's files elsewhere.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use altair_sandbox::{Place, Shown, with_files_of};

pub(crate) use credentials::Below;
#[cfg(fuzzing)]
pub(crate) use elsewhere::linked_packages;
pub(crate) use elsewhere::{Elsewhere, Homes, Left};

use crate::ini_extensions;
use crate::owner::{FILE_PATIENCE, run_as};

mod credentials;
mod elsewhere;
mod territory;

/// Composer's list of installed packages, below a project. It decides which package directories are
/// shown.
pub(crate) const INSTALLED: &str = "vendor/composer/installed.json";

/// What PHP and its libraries read on common distributions. Paths that do not exist are skipped.
/// Each path that exists costs a run about 12 µs, so nothing is listed that only tools read.
const SYSTEM: &[&str] = &[
    // Shared libraries, PHP's extensions among them, locales and character sets.
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/local/lib64",
    "/etc/ld.so.cache",
    "/etc/ld-musl-x86_64.path",
    "/etc/ld-musl-aarch64.path",
    // PHP's ini files and shared code (its default include_path).
    "/etc/php",
    "/etc/php.d",
    "/etc/php.ini",
    "/etc/php8",
    "/etc/php82",
    "/etc/php83",
    "/etc/php84",
    "/etc/php85",
    "/usr/local/etc/php",
    "/usr/share/php",
    "/usr/share/php82",
    "/usr/share/php83",
    "/usr/share/php84",
    "/usr/share/php85",
    "/usr/share/pear",
    // Time zones, translations, file types.
    "/etc/localtime",
    "/usr/share/zoneinfo",
    "/usr/share/locale",
    "/usr/share/misc/magic.mgc",
    // Read by image extensions: fonts, and the extensions' own limits.
    "/etc/fonts",
    "/usr/share/fonts",
    "/etc/ImageMagick-6",
    "/etc/ImageMagick-7",
    // CA certificates, but not the private keys beside them.
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/ssl/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/openssl.cnf",
    "/etc/pki/ca-trust/extracted",
    "/etc/crypto-policies",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
    // Name service.
    "/etc/nsswitch.conf",
    "/etc/hosts",
    "/etc/resolv.conf",
    "/etc/gai.conf",
    "/etc/passwd",
    "/etc/group",
    "/etc/protocols",
    "/etc/services",
    // System facts, not processes.
    "/proc/loadavg",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/uptime",
    "/sys/devices/system/cpu/online",
];

/// Read below the prefix of a self-built PHP (`<prefix>/bin/php`).
const BELOW_PREFIX: &[&str] = &["lib", "lib64", "etc", "share/php", "share/locale", "var/db"];

/// Marks that identify a prefix as PHP's, as opposed to a home directory with a `bin` in it.
const OF_PHP: &[&str] = &[
    "lib/php",
    "lib64/php",
    "etc/php",
    "etc/php.ini",
    "etc/php.d",
];

/// Stores in which every package has its own prefix and depends on others.
const STORES: &[&str] = &["/nix/store", "/gnu/store"];

/// The inputs that depend on the host and the request.
pub(crate) struct Sources<'a> {
    /// The interpreter.
    pub php: &'a Path,
    /// The extension's file.
    pub extension: Option<&'a Path>,
    /// `PHP_INI_SCAN_DIR`.
    pub ini_scan_dir: Option<&'a OsStr>,
    /// What a PHP host knows of its own paths: extension directory, include path.
    pub known: &'a [PathBuf],
    /// The project.
    pub root: &'a Place,
    /// [`Target::named_root`](crate::request::Target::named_root).
    pub named_root: &'a Path,
    /// The paths that the request names.
    pub requested: &'a [Shown],
    /// Sockets of services.
    pub sockets: Vec<PathBuf>,
    /// The homes that no file of the application opens.
    pub homes: Homes,
    /// How long all of it may take.
    pub patience: Duration,
}

impl Sources<'_> {
    /// The existing paths, in no particular order.
    ///
    /// System paths are listed by name. Everything else is looked up once, as the run's user,
    /// except for the two files that the host was told to start.
    ///
    /// # Errors
    /// If the files cannot be looked up in time, or not as that user.
    pub(crate) fn shown(&self) -> io::Result<Vec<Shown>> {
        let of_script = of_script(self.php).into_iter();
        let mut shown: Vec<Shown> = of_script.map(Shown::of_system).collect();
        for file in [Some(self.php), self.extension].into_iter().flatten() {
            shown.extend(Place::find(file).map(|place| Shown::found(file, place)));
        }
        shown.extend(self.requested.iter().cloned());
        let scanned = self.ini_scan_dir.map(OsStr::as_bytes).unwrap_or_default();
        let ini = scanned
            .split(|byte| *byte == b':')
            .map(|dir| PathBuf::from(OsStr::from_bytes(dir)));
        let paths: Vec<PathBuf> = below_prefix(self.php)
            .into_iter()
            .chain(ini)
            .chain(self.known.iter().cloned())
            .filter(|path| path.is_absolute())
            .collect();
        let (root, sockets) = (self.root.clone(), self.sockets.clone());
        let homes = self.homes.clone();
        let (php, scanned) = (self.php.to_owned(), self.ini_scan_dir.map(OsStr::to_owned));
        let named_root = self.named_root.to_owned();
        let (there, found) = with_files_of(
            run_as(self.root),
            FILE_PATIENCE.min(self.patience),
            move || {
                // Every user sees the same of them: their parents may be searched by all.
                let system = SYSTEM.iter().map(Path::new).filter(|path| path.exists());
                let system: Vec<Shown> = system.map(Shown::of_system).collect();
                let mut found: Vec<Shown> = paths
                    .into_iter()
                    .filter_map(|path| Some(Shown::found(&path, Place::find(&path).ok()?)))
                    .collect();
                let extensions = ini_extensions::of(&php, scanned.as_deref()).into_iter();
                found.extend(extensions.filter_map(|path| {
                    let place = Place::find(&path).ok().filter(Place::is_file)?;
                    Some(Shown::found(path, place))
                }));
                found.extend(Elsewhere::of(&root, &homes).shown);
                // Absolute paths recorded under another name of the project resolve through it.
                found.push(Shown::found(named_root, root));
                // Applications check that a socket exists before they connect. Anything at that
                // path that is not a socket is not shown.
                found.extend(sockets.into_iter().filter_map(|path| {
                    let place = Place::find(&path).ok().filter(Place::is_socket)?;
                    Some(Shown::found(path, place))
                }));
                (system, found)
            },
        )?;
        // Each costs a fork without mounts a rule of Landlock, and PHP's own file functions a comparison.
        let system: Vec<&Path> = SYSTEM.iter().map(Path::new).collect();
        shown.extend(there);
        shown.extend(found.into_iter().filter(|found| !found.is_below(&system)));
        Ok(shown)
    }
}

/// Those of a PHP's own paths that a run cannot read unless it is told of them: what distributions
/// have where they have it is shown to every run. Hosts that differ in nothing else are alike.
#[must_use]
pub fn beyond_system(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let system: Vec<&Path> = SYSTEM.iter().map(Path::new).collect();
    beyond(&system, paths)
}

fn beyond(system: &[&Path], mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut directories = Directories {
        system,
        known: HashMap::new(),
    };
    paths.retain(|path| !directories.show(path.clone()));
    paths
}

/// Whether the system's paths show a path, and every link on the way. Most of a PHP's files are in a
/// few directories, each of which is looked up once.
struct Directories<'a> {
    system: &'a [&'a Path],
    known: HashMap<PathBuf, bool>,
}

impl Directories<'_> {
    /// Whether they show a file or directory, and every link that leads to it.
    fn show(&mut self, mut file: PathBuf) -> bool {
        for _ in 0..LINKS_MAX {
            let Some(directory) = file.parent() else {
                return false;
            };
            if !self.is_shown(directory) {
                return self.is_shown(&file);
            }
            match file.read_link() {
                Ok(target) => file = directory.join(target),
                // It is there, and no link (readlink(2)).
                Err(error) => return error.kind() == io::ErrorKind::InvalidInput,
            }
        }
        false
    }

    fn is_shown(&mut self, path: &Path) -> bool {
        if let Some(known) = self.known.get(path) {
            return *known;
        }
        let place = Place::find(path);
        let is_shown = place.is_ok_and(|place| Shown::found(path, place).is_below(self.system));
        self.known.insert(path.to_owned(), is_shown);
        is_shown
    }
}

/// Links that one file may be behind.
const LINKS_MAX: usize = 8;

/// The paths under which the shown files are found.
pub(crate) fn paths_of(readable: &[Shown]) -> Vec<PathBuf> {
    readable
        .iter()
        .map(|shown| shown.path().to_owned())
        .chain(readable.iter().filter_map(Shown::found_at))
        .collect()
}

/// Where the programs are that a script may use.
const PROGRAMS: &[&str] = &["/bin", "/usr/bin", "/usr/local/bin"];

/// The additional paths that a PHP that is a script (a wrapper, a version manager's shim) needs:
/// programs, including the real PHP. They are usable only until the child applies its final guards,
/// after which nothing can be executed.
fn of_script(php: &Path) -> Vec<PathBuf> {
    use std::io::Read;
    let mut head = [0; 2];
    let read = std::fs::File::open(php).and_then(|mut file| file.read_exact(&mut head));
    match read {
        Ok(()) if &head == b"#!" => PROGRAMS.iter().map(PathBuf::from).collect(),
        _ => Vec::new(),
    }
}

fn below_prefix(php: &Path) -> Vec<PathBuf> {
    let Ok(php) = php.canonicalize() else {
        return Vec::new();
    };
    if let Some(store) = STORES.iter().find(|store| php.starts_with(store)) {
        return vec![PathBuf::from(store)];
    }
    match php.parent().and_then(Path::parent) {
        // `/usr` and `/` are the system's.
        Some(prefix)
            if prefix != Path::new("/usr")
                && prefix != Path::new("/")
                && OF_PHP.iter().any(|mark| prefix.join(mark).exists()) =>
        {
            BELOW_PREFIX.iter().map(|dir| prefix.join(dir)).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_a_run_must_be_told_of_is_what_the_system_does_not_show() {
        use std::os::unix::fs::symlink;

        let place = tempfile::tempdir().unwrap();
        let named = |name: &str| place.path().join(name);
        for directory in ["system", "system/deep", "elsewhere"] {
            std::fs::create_dir(named(directory)).unwrap();
        }
        for file in ["system/file", "elsewhere/file"] {
            std::fs::write(named(file), "").unwrap();
        }
        for (link, target) in [
            ("system/deep/link", "../file"),
            ("system/deep/links", "link"),
            ("system/out", "../elsewhere/file"),
            ("system/through", "../elsewhere/in"),
            ("system/directory", "../elsewhere"),
            ("system/absent", "nothing"),
            ("system/round", "round"),
            ("elsewhere/in", "../system/file"),
        ] {
            symlink(target, named(link)).unwrap();
        }
        let shown = [
            "system",
            "system/file",
            "system/deep",
            "system/deep/link",
            "system/deep/links",
        ];
        let told = [
            "system/out",
            "system/through",
            "system/directory",
            "system/directory/file",
            "system/absent",
            "system/round",
            "system/nothing",
            "system/../elsewhere/file",
            "elsewhere",
            "elsewhere/file",
            "elsewhere/in",
        ];
        let paths = shown.iter().chain(&told).map(|name| named(name)).collect();
        let wanted: Vec<PathBuf> = told.iter().map(|name| named(name)).collect();
        assert_eq!(beyond(&[&named("system")], paths), wanted);
    }

    #[test]
    fn no_path_is_shown_that_a_directory_of_the_system_shows() {
        let project = tempfile::tempdir().unwrap();
        std::fs::write(project.path().join("known"), "").unwrap();
        let root = Place::find(project.path()).unwrap();
        let known = [
            PathBuf::from("/usr/lib/os-release"),
            root.path().join("known"),
        ];
        let sources = Sources {
            php: Path::new("/bin/sh"),
            extension: None,
            ini_scan_dir: None,
            known: &known,
            root: &root,
            named_root: root.path(),
            requested: &[],
            sockets: Vec::new(),
            homes: Homes::default(),
            patience: Duration::from_secs(10),
        };
        assert!(known.iter().all(|path| path.exists()));
        let shown = sources.shown().unwrap();
        let paths: Vec<&Path> = shown.iter().map(Shown::path).collect();
        assert!(paths.contains(&Path::new("/usr/lib")), "{paths:?}");
        assert!(!paths.contains(&known[0].as_path()), "{paths:?}");
        assert!(paths.contains(&known[1].as_path()), "{paths:?}");
        assert!(paths.iter().all(|path| path.exists()), "{paths:?}");
    }
}
