//! Boot: the application's autoloader and its container.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use altair_engine::channel::{Ending, Task};
use ext_php_rs::types::Zval;

use super::ending;
use crate::zend::child::{self as engine, Cut};

/// Sources of a container without a bootstrap file, in order: PHP code that returns it, or null if
/// the application has none of that kind.
const CONTAINERS: [Source; 4] = [
    Source {
        what: "The Laravel application",
        hint: INSTEAD,
        code: include_str!("containers/laravel.php"),
    },
    Source {
        what: "The Symfony kernel",
        hint: INSTEAD,
        code: include_str!("containers/symfony.php"),
    },
    Source {
        what: "Altair\\Container\\Container",
        hint: INSTEAD,
        code: include_str!("containers/univeros.php"),
    },
    Source {
        what: "The minimal container",
        hint: "",
        code: include_str!("containers/minimal.php"),
    },
];

/// Advice if the container cannot be made.
const INSTEAD: &str = " To use another container, return it from a file config/container.php.";

/// PHP code that tells frameworks where to write what they would write into the project.
const READ_ONLY: &str = include_str!("containers/read_only.php");

struct Source {
    what: &'static str,
    /// Appended to the error message.
    hint: &'static str,
    code: &'static str,
}

/// Boots the application and returns its container.
///
/// # Errors
///
/// The ending of a boot that failed.
pub fn boot(task: &Task) -> Result<Zval, Ending> {
    let root = Path::new(OsStr::from_bytes(&task.root));
    let autoload = root.join("vendor/autoload.php");
    readable(&autoload).map_err(|why| {
        failed(format!(
            "The autoloader {} {why}: run `composer install` (or `composer dump-autoload`) in {}.",
            autoload.display(),
            root.display()
        ))
    })?;
    let loader =
        engine::require(path_bytes(&autoload)).map_err(|cut| cut_short(cut, "The autoloader"))?;
    // Objects of boot are never destroyed: a destructor is the application's code.
    std::mem::forget(loader);
    if let Some(caches) = &task.caches {
        if !task.private_root {
            engine::own_directory(caches);
            engine::own_directory(std::env::temp_dir().as_os_str().as_bytes());
        }
        let told = engine::run_own(READ_ONLY, &task.root, Some(caches));
        told.map_err(|cut| cut_short(cut, "Looking for a framework"))?;
    }
    let Some(bootstrap) = &task.bootstrap else {
        return discovered(task);
    };
    let bootstrap = PathBuf::from(OsStr::from_bytes(bootstrap));
    let shown = bootstrap
        .strip_prefix(root)
        .unwrap_or(&bootstrap)
        .display()
        .to_string();
    readable(&bootstrap)
        .map_err(|why| failed(format!("The container bootstrap {shown} {why}.")))?;
    let container = engine::require(path_bytes(&bootstrap))
        .map_err(|cut| cut_short(cut, &format!("The container bootstrap {shown}")))?;
    if !engine::is_container(&container) {
        let found = describe(&container);
        std::mem::forget(container);
        return Err(failed(format!(
            "The container bootstrap {shown} returned {found}, which is not a container: it must be an object with get() and has()."
        )));
    }
    Ok(container)
}

fn discovered(task: &Task) -> Result<Zval, Ending> {
    for source in &CONTAINERS {
        let found = engine::run_own(source.code, &task.root, task.caches.as_deref())
            .map_err(|cut| hinted(cut_short(cut, source.what), source.hint))?;
        if engine::is_container(&found) {
            return Ok(found);
        }
    }
    Err(failed("There is no container.".into()))
}

fn hinted(mut ending: Ending, hint: &str) -> Ending {
    if let Ending::BootFailed { message, .. } = &mut ending {
        message.push_str(hint);
    }
    ending
}

fn readable(path: &Path) -> Result<(), String> {
    match std::fs::File::open(path).and_then(|file| file.metadata()) {
        Ok(meta) if meta.is_file() => Ok(()),
        Ok(_) => Err("is not a file".into()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Err("does not exist".into()),
        Err(e) => Err(format!("cannot be read ({})", e.kind())),
    }
}

fn cut_short(cut: Cut, what: &str) -> Ending {
    match cut {
        Cut::Threw(thrown) => Ending::BootFailed {
            message: format!("{what} threw."),
            exception: Some(ending::encoded(&thrown)),
        },
        other => match ending::of(other) {
            Ending::Exited(status) => failed(format!("{what} called exit({status}).")),
            ending => ending,
        },
    }
}

fn failed(message: String) -> Ending {
    Ending::BootFailed {
        message,
        exception: None,
    }
}

fn describe(value: &Zval) -> String {
    match value.object() {
        Some(object) => format!(
            "an object of {}",
            crate::zend::exception::class_name(object)
        ),
        None if value.is_long() => "an integer (a file without `return` gives 1)".into(),
        None if value.is_array() => "an array".into(),
        None if value.is_string() => "a string".into(),
        None if value.is_bool() => "a boolean".into(),
        None if value.is_null() => "null".into(),
        None => "something else".into(),
    }
}

fn path_bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}
