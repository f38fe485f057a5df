//! What a confined run may read beside the project: what PHP needs to run, and what the
//! application has elsewhere.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use altair_sandbox::RunAs;
use serde::Deserialize;

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
    /// The project, free of symbolic links.
    pub root: &'a Path,
    /// The project as it was named.
    pub named_root: &'a Path,
    /// Whom the run reads as, where that is another user than the host.
    pub reader: Option<RunAs>,
    /// What the request names.
    pub requested: &'a [PathBuf],
}

impl Sources<'_> {
    /// The paths, in no order.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
        paths.push(self.php.to_owned());
        paths.extend(self.extension.map(Path::to_owned));
        paths.extend(below_prefix(self.php));
        paths.extend(of_script(self.php));
        let scanned = self.ini_scan_dir.map(OsStr::as_bytes).unwrap_or_default();
        paths.extend(
            scanned
                .split(|byte| *byte == b':')
                .filter(|dir| dir.starts_with(b"/"))
                .map(|dir| PathBuf::from(OsStr::from_bytes(dir))),
        );
        paths.extend(self.known.iter().filter(|path| path.is_absolute()).cloned());
        paths.extend(packages(self.root, self.reader));
        // Absolute paths that were written down under another name of the project lead there.
        paths.extend(std::path::absolute(self.named_root));
        paths.extend(self.requested.iter().cloned());
        paths
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

/// Bytes of a file of Composer's that are read; a large application's list of packages has one or
/// two MiB.
const COMPOSER_MAX_BYTES: u64 = 16 << 20;

/// The content of a file of the project: of a regular one of sensible size. A run with real writes
/// may have put anything in its place, a pipe that nobody writes to among it.
fn content(path: &Path) -> Option<Vec<u8>> {
    use std::io::Read;
    use std::os::unix::fs::OpenOptionsExt;
    let file = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(nix::libc::O_NONBLOCK)
        .open(path)
        .ok()?;
    let meta = file.metadata().ok()?;
    if !meta.is_file() || meta.len() > COMPOSER_MAX_BYTES {
        return None;
    }
    let mut text = Vec::new();
    file.take(COMPOSER_MAX_BYTES).read_to_end(&mut text).ok()?;
    Some(text)
}

/// Packages of the application that lie outside of its root.
fn packages(root: &Path, reader: Option<RunAs>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let vendor = vendor_dir(root);
    let Ok(resolved) = vendor.canonicalize() else {
        return found;
    };
    if !resolved.starts_with(root) && is_vendor(&resolved) && may_be_shown(&resolved, root, reader)
    {
        found.push(vendor.clone());
    }
    let Some(text) = content(&resolved.join("composer/installed.json")) else {
        return found;
    };
    let Ok(installed) = serde_json::from_slice::<Installed>(&text) else {
        return found;
    };
    for package in installed.packages {
        let is_path = package.dist.is_some_and(|dist| dist.kind == "path");
        let (true, Some(at)) = (is_path, package.install_path) else {
            continue;
        };
        let Ok(directory) = resolved.join("composer").join(at).canonicalize() else {
            continue;
        };
        if !directory.starts_with(root)
            && directory.join("composer.json").is_file()
            && may_be_shown(&directory, root, reader)
        {
            found.push(directory);
        }
    }
    found
}

/// Whether a directory is one that Composer installs into, and not any that a project names.
fn is_vendor(directory: &Path) -> bool {
    directory.join("autoload.php").is_file() && directory.join("composer/installed.json").is_file()
}

/// Whether a user can come to a directory and read it. A root host can come anywhere, and what it
/// mounts is seen past the directories that it is in.
fn can_enter(directory: &Path, reader: RunAs) -> bool {
    const READ: u32 = 4;
    const SEARCH: u32 = 1;
    directory.ancestors().all(|dir| {
        let needed = if dir == directory {
            READ | SEARCH
        } else {
            SEARCH
        };
        dir.metadata().is_ok_and(|meta| {
            let shift = match () {
                () if meta.uid() == reader.uid => 6,
                () if meta.gid() == reader.gid => 3,
                () => 0,
            };
            meta.mode() >> shift & needed == needed
        })
    })
}

/// Composer's `vendor-dir`, by default `vendor`. Variables in it (`$HOME`) are not expanded.
fn vendor_dir(root: &Path) -> PathBuf {
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
    let manifest = content(&root.join("composer.json"))
        .and_then(|text| serde_json::from_slice::<Manifest>(&text).ok())
        .unwrap_or_default();
    root.join(
        manifest
            .config
            .vendor_dir
            .unwrap_or_else(|| "vendor".into()),
    )
}

/// `vendor/composer/installed.json`, as Composer 2 writes it.
#[derive(Deserialize)]
struct Installed {
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
fn may_be_shown(directory: &Path, root: &Path, reader: Option<RunAs>) -> bool {
    let homes = std::env::var_os("HOME").map(PathBuf::from);
    let is_home = homes.is_some_and(|home| home.starts_with(directory))
        || directory.parent() == Some(Path::new("/home"));
    reader.is_none_or(|reader| can_enter(directory, reader))
        && directory != Path::new("/")
        && !root.starts_with(directory)
        && !is_home
        && !SYSTEM_DIRECTORIES.iter().any(|system| {
            let system = Path::new(system);
            system.starts_with(directory)
        })
        && !["/proc", "/sys", "/dev", "/etc", "/run", "/boot"]
            .iter()
            .any(|system| directory.starts_with(system))
}
