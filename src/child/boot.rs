//! Boot: the application's autoloader and its container.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use altair_engine::channel::{Ending, Task};
use ext_php_rs::types::Zval;

use super::ending;
use crate::zend::child::{self as engine, Cut};

/// The container that is used where nothing else is there to be used.
const MINIMAL_CONTAINER: &str = include_str!("minimal_container.php");
/// The framework's own container, where it autoloads.
const FRAMEWORK_CONTAINER: &str = "return \\class_exists(\\Altair\\Container\\Container::class) \
    ? new \\Altair\\Container\\Container() : null;";

/// Boots the application and gives its container.
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
    // What boot made is not destroyed, here or later: a destructor is the application's code.
    std::mem::forget(loader);
    let Some(bootstrap) = &task.bootstrap else {
        return discovered();
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
            "The container bootstrap {shown} returned {found}, which is no container: an object with get() and has() is needed."
        )));
    }
    Ok(container)
}

fn discovered() -> Result<Zval, Ending> {
    let framework = engine::run_own(FRAMEWORK_CONTAINER)
        .map_err(|cut| cut_short(cut, "Altair\\Container\\Container"))?;
    if engine::is_container(&framework) {
        return Ok(framework);
    }
    engine::run_own(MINIMAL_CONTAINER).map_err(|cut| cut_short(cut, "The minimal container"))
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
