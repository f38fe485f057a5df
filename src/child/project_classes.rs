//! Finds classes of the project by their last name: in the class maps that Composer has loaded, and
//! in the directories of its PSR-4 and PSR-0 rules. Looks at the project's own files only, not at
//! those of `vendor/`, and runs no code.

use std::collections::BTreeSet;
use std::fs::{File, read_dir};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use crate::zend::composer::Autoloaders;

/// Entries of directories that one search reads. Where there are more, nothing is found: it is not
/// known whether what was seen is all.
const ENTRIES_MAX: usize = 50_000;
/// How deeply directories are nested that are looked into.
const DEPTH_MAX: usize = 32;
/// Bytes at the beginning of a file that are searched for the class's declaration.
const HEAD_MAX: u64 = 256 << 10;

/// The classes below `root` that have these last names, sorted; a list for each name.
pub fn find(root: &Path, names: &[&str]) -> Vec<Vec<String>> {
    let nothing = || names.iter().map(|_| Vec::new()).collect();
    if names.is_empty() {
        return Vec::new();
    }
    let wanted = |class: &[u8]| {
        let at = class.iter().rposition(|b| *b == b'\\');
        at.is_some_and(|at| is_one_of(names, &class[at + 1..]))
    };
    let loaders = Autoloaders::read(&wanted);
    let Ok(real_root) = root.canonicalize() else {
        return nothing();
    };
    let vendor = root.join("vendor");
    let mut search = Search {
        vendor: vendor.canonicalize().unwrap_or(vendor),
        root: real_root,
        names,
        found: BTreeSet::new(),
        left: ENTRIES_MAX,
    };
    for (class, file) in &loaders.classes {
        search.candidate(class, file);
    }
    for (prefix, dir) in &loaders.psr4 {
        search.directory(prefix, dir);
    }
    for (prefix, dir) in &loaders.psr0 {
        // The namespace has directories of its own there.
        let within = prefix.trim_end_matches('\\').replace('\\', "/");
        let prefix = match prefix.is_empty() || prefix.ends_with('\\') {
            true => prefix.clone(),
            false => format!("{prefix}\\"),
        };
        search.directory(&prefix, &dir.join(within));
    }
    if search.left == 0 {
        return nothing();
    }
    let of = |name: &&str| {
        let all = search.found.iter();
        let all = all.filter(|class| last_name(class).eq_ignore_ascii_case(name));
        all.cloned().collect()
    };
    names.iter().map(of).collect()
}

struct Search<'a> {
    /// Real.
    root: PathBuf,
    /// Real.
    vendor: PathBuf,
    names: &'a [&'a str],
    found: BTreeSet<String>,
    /// Entries that may still be read.
    left: usize,
}

impl Search<'_> {
    /// The real path of one of the project's own files or directories.
    fn own(&self, path: &Path) -> Option<PathBuf> {
        // Where that leads outside already by its name, nothing there is asked for.
        let named = normal(path);
        if !named.starts_with(&self.root) || named.starts_with(&self.vendor) {
            return None;
        }
        let real = named.canonicalize().ok()?;
        (real.starts_with(&self.root) && !real.starts_with(&self.vendor)).then_some(real)
    }

    fn directory(&mut self, prefix: &str, dir: &Path) {
        if let Some(dir) = self.own(dir) {
            self.walk(prefix, &dir, 0);
        }
    }

    /// Looks into a directory, but follows no links to others.
    fn walk(&mut self, prefix: &str, dir: &Path, depth: usize) {
        let Ok(entries) = read_dir(dir) else { return };
        for entry in entries.flatten() {
            self.left = self.left.saturating_sub(1);
            if self.left == 0 {
                return;
            }
            let name = entry.file_name();
            let (Some(name), Ok(kind)) = (name.to_str(), entry.file_type()) else {
                continue;
            };
            match name.strip_suffix(".php") {
                _ if kind.is_dir() => {
                    let path = entry.path();
                    if is_identifier(name) && depth < DEPTH_MAX && path != self.vendor {
                        self.walk(&format!("{prefix}{name}\\"), &path, depth + 1);
                    }
                }
                Some(class) if is_one_of(self.names, class.as_bytes()) => {
                    self.candidate(&format!("{prefix}{class}"), &entry.path());
                }
                _ => {}
            }
        }
    }

    /// Adds a class if its file is one of the project's own, is there, and declares it.
    fn candidate(&mut self, class: &str, file: &Path) {
        // A class without a namespace would have been loaded by its name.
        if class.contains('\\')
            && let Some(file) = self.own(file)
            && declares(&file, class)
        {
            self.found.insert(class.to_owned());
        }
    }
}

/// Whether a file seems to declare a class: a template, or a file that has moved, does not.
fn declares(file: &Path, class: &str) -> bool {
    let mut text = Vec::new();
    // A pipe of that name would keep an open() waiting.
    let opened = File::options()
        .read(true)
        .custom_flags(nix::libc::O_NONBLOCK)
        .open(file);
    let read = match opened {
        Ok(file) if file.metadata().is_ok_and(|meta| meta.is_file()) => {
            file.take(HEAD_MAX).read_to_end(&mut text)
        }
        _ => return false,
    };
    let (namespace, name) = class.rsplit_once('\\').unwrap_or(("", class));
    read.is_ok()
        && has_words(&text, "namespace", namespace)
        && ["class", "interface", "trait", "enum"]
            .iter()
            .any(|kind| has_words(&text, kind, name))
}

/// Whether a keyword stands in a text with a name behind it.
fn has_words(text: &[u8], keyword: &str, name: &str) -> bool {
    let is_part = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_' || *b == b'\\' || *b >= 0x80;
    let ends = |at: usize| !text.get(at).is_some_and(is_part);
    let starts_with = |at: usize, word: &str| {
        let found = text.get(at..at + word.len());
        found.is_some_and(|found| found.eq_ignore_ascii_case(word.as_bytes()))
    };
    (0..text.len()).any(|at| {
        let after = at + keyword.len();
        if !starts_with(at, keyword) || at > 0 && is_part(&text[at - 1]) || !ends(after) {
            return false;
        }
        let blank = text[after..].iter().take_while(|b| b.is_ascii_whitespace());
        let from = after + blank.count();
        starts_with(from, name) && ends(from + name.len())
    })
}

/// A path without `.` and `..`, as Composer writes them into its class maps.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            part => normal.push(part),
        }
    }
    normal
}

fn is_one_of(names: &[&str], name: &[u8]) -> bool {
    let mut names = names.iter();
    names.any(|own| own.as_bytes().eq_ignore_ascii_case(name))
}

fn last_name(class: &str) -> &str {
    class.rsplit('\\').next().unwrap_or(class)
}

/// Whether a directory's name can be a part of a namespace.
fn is_identifier(name: &str) -> bool {
    let is_start = |b: u8| b.is_ascii_alphabetic() || b == b'_' || b >= 0x80;
    let bytes = name.as_bytes();
    bytes.first().is_some_and(|b| is_start(*b))
        && bytes.iter().all(|b| is_start(*b) || b.is_ascii_digit())
}
