//! What a confined run may read beside the project: what PHP needs to run, and what the
//! application has elsewhere.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use altair_sandbox::bounded::at_most;
use altair_sandbox::{Place, Shown, with_files_of};
use serde::Deserialize;

use crate::owner::{FILE_PATIENCE, run_as};
use crate::services::{Declarations, MANIFEST_MAX_BYTES};

/// What Composer has installed, below a project: what it says decides about what is shown.
pub(crate) const INSTALLED: &str = "vendor/composer/installed.json";

/// What PHP and its libraries read on the distributions that there are. What does not exist is
/// passed over. Each costs a run about 12 µs, so there is nothing here that only tools read.
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
    // Time zones, translations, the types of files.
    "/etc/localtime",
    "/usr/share/zoneinfo",
    "/usr/share/locale",
    "/usr/share/misc/magic.mgc",
    // What extensions for images read: fonts, and limits of their own.
    "/etc/fonts",
    "/usr/share/fonts",
    "/etc/ImageMagick-6",
    "/etc/ImageMagick-7",
    // Certificates of authorities; not the private keys that lie beside them.
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
    // Facts of the system, no process.
    "/proc/loadavg",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/uptime",
    "/sys/devices/system/cpu/online",
];

/// Below the prefix of a PHP that was built by itself (`<prefix>/bin/php`).
const BELOW_PREFIX: &[&str] = &["lib", "lib64", "etc", "share/php", "share/locale", "var/db"];

/// What shows that a prefix is PHP's, and not a home with a `bin` in it.
const OF_PHP: &[&str] = &[
    "lib/php",
    "lib64/php",
    "etc/php",
    "etc/php.ini",
    "etc/php.d",
];

/// Where every package has a prefix of its own, and needs those of others.
const STORES: &[&str] = &["/nix/store", "/gnu/store"];

/// What of it depends on the host and the request.
pub(crate) struct Sources<'a> {
    /// The interpreter.
    pub php: &'a Path,
    /// The extension's file.
    pub extension: Option<&'a Path>,
    /// `PHP_INI_SCAN_DIR`.
    pub ini_scan_dir: Option<&'a OsStr>,
    /// What a host that is PHP itself knows of its own: extension directory, include path.
    pub known: &'a [PathBuf],
    /// The project.
    pub root: &'a Place,
    /// The project as it was named.
    pub named_root: &'a Path,
    /// What the request names.
    pub requested: &'a [Shown],
    /// Sockets of services.
    pub sockets: Vec<PathBuf>,
    /// How long all of it may take.
    pub patience: Duration,
}

impl Sources<'_> {
    /// What there is, in no order.
    ///
    /// What the system itself has is named; all else is found once, and by the run's own user, but
    /// for the two files that the host was told to start.
    ///
    /// # Errors
    /// Where files cannot be looked at in time, or not as that user.
    pub(crate) fn shown(&self) -> io::Result<Vec<Shown>> {
        let mut shown: Vec<Shown> = SYSTEM.iter().map(Shown::of_system).collect();
        shown.extend(of_script(self.php).into_iter().map(Shown::of_system));
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
        let named_root = std::path::absolute(self.named_root).ok();
        let found = with_files_of(
            run_as(self.root),
            FILE_PATIENCE.min(self.patience),
            move || {
                let mut found: Vec<Shown> = paths
                    .into_iter()
                    .filter_map(|path| Some(Shown::found(&path, Place::find(&path).ok()?)))
                    .collect();
                found.extend(packages(&root));
                // Absolute paths that were written down under another name of the project lead there.
                found.extend(named_root.map(|named| Shown::found(named, root)));
                // Applications look whether a socket is there before they connect to it. What else is
                // under its path is not to be shown.
                found.extend(sockets.into_iter().filter_map(|path| {
                    let place = Place::find(&path).ok().filter(Place::is_socket)?;
                    Some(Shown::found(path, place))
                }));
                found
            },
        )?;
        shown.extend(found);
        Ok(shown)
    }
}

/// Where the programs are that a script may go by.
const PROGRAMS: &[&str] = &["/bin", "/usr/bin", "/usr/local/bin"];

/// What a PHP that is a script (a wrapper, a version manager's shim) needs beside itself: programs,
/// the real PHP among them. Only until the child takes its last guards: then nothing is executed.
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

/// Bytes of Composer's list of packages that are read; a large application's has one or two MiB.
const COMPOSER_MAX_BYTES: u64 = 16 << 20;

/// Packages of the application that lie outside of its root, as the calling thread's user finds them.
fn packages(root: &Place) -> Vec<Shown> {
    let mut found = Vec::new();
    let named = root.path().join(vendor_dir(root));
    let Ok(vendor) = Place::find(&named) else {
        return found;
    };
    if !vendor.path().starts_with(root.path()) && is_vendor(&vendor) && may_be_shown(&vendor, root)
    {
        found.push(Shown::found(named, vendor.clone()));
    }
    let Ok(text) = vendor.read(Path::new("composer/installed.json"), COMPOSER_MAX_BYTES) else {
        return found;
    };
    for at in linked_packages(&text) {
        if found.len() >= ELSEWHERE_MAX {
            break;
        }
        let Ok(directory) = Place::find(&vendor.path().join("composer").join(at)) else {
            continue;
        };
        let is_known = |shown: &Shown| shown.inode() == Some(directory.inode());
        if !directory.path().starts_with(root.path())
            && !found.iter().any(is_known)
            && has_file(&directory, "composer.json")
            && may_be_shown(&directory, root)
        {
            found.push(Shown::found(directory.path(), directory.clone()));
        }
    }
    found
}

/// Where the packages are that Composer links, by what it says in `installed.json`: relative to its
/// directory.
pub(crate) fn linked_packages(installed: &[u8]) -> Vec<PathBuf> {
    let Ok(installed) = serde_json::from_slice::<Installed>(installed) else {
        return Vec::new();
    };
    let linked = installed.packages.into_iter().filter(|package| {
        let dist = package.dist.as_ref();
        dist.is_some_and(|dist| dist.kind == "path")
    });
    linked.filter_map(|package| package.install_path).collect()
}

fn has_file(directory: &Place, name: &str) -> bool {
    directory
        .below(Path::new(name))
        .is_ok_and(|found| found.is_file())
}

/// Whether a directory is one that Composer installs into, and not any that a project names.
fn is_vendor(directory: &Place) -> bool {
    has_file(directory, "autoload.php") && has_file(directory, "composer/installed.json")
}

/// Composer's `vendor-dir`, by default `vendor`. Variables in it (`$HOME`) are not expanded.
fn vendor_dir(root: &Place) -> PathBuf {
    #[derive(Default, Deserialize)]
    struct Manifest {
        #[serde(default)]
        config: Config,
    }
    #[derive(Default, Deserialize)]
    struct Config {
        #[serde(rename = "vendor-dir")]
        vendor_dir: Option<PathBuf>,
    }
    let manifest = root
        .read(Path::new(Declarations::FILE), MANIFEST_MAX_BYTES)
        .ok()
        .and_then(|text| serde_json::from_slice::<Manifest>(&text).ok())
        .unwrap_or_default();
    manifest
        .config
        .vendor_dir
        .unwrap_or_else(|| "vendor".into())
}

/// Packages that an application has at most, and of those as many that lie elsewhere.
const PACKAGES_MAX: usize = 10_000;
const ELSEWHERE_MAX: usize = 256;

/// `vendor/composer/installed.json`, as Composer 2 writes it.
#[derive(Deserialize)]
struct Installed {
    #[serde(deserialize_with = "at_most::<PACKAGES_MAX, _, _>")]
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    #[serde(rename = "install-path")]
    install_path: Option<PathBuf>,
    dist: Option<Dist>,
}

#[derive(Deserialize)]
struct Dist {
    #[serde(rename = "type")]
    kind: String,
}

/// Directories of the system, which no package is: neither they nor what holds them.
const SYSTEM_DIRECTORIES: &[&str] = &[
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/root", "/run", "/sbin",
    "/sys", "/tmp", "/usr", "/var",
];

/// Whether a directory that the application's own files name may be read: not one that holds more
/// than a package would.
fn may_be_shown(directory: &Place, root: &Place) -> bool {
    let path = directory.path();
    let homes = std::env::var_os("HOME").map(PathBuf::from);
    let is_home = homes.is_some_and(|home| home.starts_with(path))
        || path.parent() == Some(Path::new("/home"));
    directory.is_directory()
        && path != Path::new("/")
        && !root.path().starts_with(path)
        && !is_home
        && !SYSTEM_DIRECTORIES.iter().any(|system| {
            let system = Path::new(system);
            system.starts_with(path)
        })
        && !["/proc", "/sys", "/dev", "/etc", "/run", "/boot"]
            .iter()
            .any(|system| path.starts_with(system))
}
