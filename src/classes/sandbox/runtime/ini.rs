//! The ini settings of an isolated PHP: its host's, and those that its caller gives.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use altair_engine::launch::{IniFiles, OwnIni};
use ext_php_rs::types::Zval;

use crate::zend::Bailout;
use crate::zend::json::text_of;
use crate::zend::startup::{self, IniOptions};

/// Settings that take a list.
const LISTS: [&str; 2] = ["disable_functions", "disable_classes"];

/// Settings that are ignored. What is loaded while PHP starts, before its guards, is the affair of
/// whoever administers this PHP: extensions, where they are, and what is preloaded. The channel is
/// ours.
const IGNORED: [&str; 6] = [
    "extension",
    "zend_extension",
    "extension_dir",
    "opcache.preload",
    "ffi.preload",
    "altair_eval.channel",
];

/// Settings, name and value.
pub type Settings = Vec<(String, Vec<u8>)>;

/// Reads settings as the contract has them: names are strings that an ini file can hold, values are
/// cast to string. The inner error is a message for the caller.
///
/// # Errors
///
/// [`Bailout`] if a cast ended in one.
pub fn read(ini: &Zval) -> Result<Result<Settings, String>, Bailout> {
    let mut settings = Vec::new();
    let Some(array) = ini.array() else {
        return Ok(Ok(settings));
    };
    for (key, value) in array {
        let name = match key {
            ext_php_rs::types::ArrayKey::Long(_) => continue,
            key => key.to_string(),
        };
        let can_be_named = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if name.is_empty()
            || !name.bytes().all(can_be_named)
            || IGNORED.contains(&name.to_ascii_lowercase().as_str())
        {
            continue;
        }
        let text: Vec<u8> = match value.array() {
            Some(list) if LISTS.contains(&name.as_str()) => {
                let mut names = Vec::new();
                for item in list.values() {
                    names.push(text_of(item)?);
                }
                names.join(&b',')
            }
            Some(_) => continue,
            None => text_of(value)?,
        };
        if text.contains(&0) {
            return Ok(Err(format!(
                "optional configuration array expected: the value of {name} holds a NUL byte"
            )));
        }
        settings.push((name, text));
    }
    Ok(Ok(settings))
}

/// What settings say of `memory_limit`, in bytes.
pub fn memory_limit(settings: &[(String, Vec<u8>)]) -> Option<u64> {
    let mut of_memory = settings.iter().filter(|(name, _)| name == "memory_limit");
    let (_, text) = of_memory.next_back()?;
    // As PHP has it: a negative limit is none.
    Some(u64::try_from(startup::ini_quantity(text)).unwrap_or(u64::MAX))
}

/// The ini files and switches of this process, with settings of its own; and the directories to
/// search for ini files, where they differ from those of a PHP command line.
pub fn of_host(settings: Vec<(String, Vec<u8>)>) -> (OwnIni, Option<OsString>) {
    let IniOptions {
        is_command_line,
        path,
        ignores_files,
        switches,
        opened,
        scanned,
    } = startup::ini_options();
    let loads_by_file = || {
        startup::ini_paths().iter().any(|path| {
            path.is_file() && std::fs::read(path).is_ok_and(|text| loads_extension(&text))
        })
    };
    if !is_command_line {
        // The files of this SAPI, read by a command line. Its switches are for it alone.
        let own = OwnIni {
            files: opened.map_or(IniFiles::Found, IniFiles::At),
            switches: Vec::new(),
            settings,
            loads_extension: loads_by_file(),
        };
        return (own, scanned.map(OsString::from_vec));
    }
    let files = match (ignores_files, path) {
        (true, _) => IniFiles::None,
        (false, Some(path)) => IniFiles::At(path),
        (false, None) => IniFiles::Found,
    };
    let own = OwnIni {
        loads_extension: loads_extension(&switches) || !ignores_files && loads_by_file(),
        files,
        switches,
        settings,
    };
    (own, None)
}

/// Whether the text of an ini file loads the extension.
fn loads_extension(text: &[u8]) -> bool {
    text.split(|byte| *byte == b'\n').any(|line| {
        let line = line.trim_ascii_start();
        line.starts_with(b"extension") && find(line, b"altair_eval")
    })
}

fn find(text: &[u8], what: &[u8]) -> bool {
    text.windows(what.len()).any(|part| part == what)
}
