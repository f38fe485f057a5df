//! What a command has written to its layer, until it is applied or discarded.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use altair_engine::{FileChanges, file_changes};
use altair_sandbox::{Layer, Planned};

use crate::{CommandError, WorkDir};

/// How long to look at a layer, before nothing of it can be applied.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long to look what is in a layer that cannot be applied.
const PATIENCE_TO_TELL: Duration = Duration::from_secs(2);

/// A layer that can be applied. Dropping it discards it.
#[derive(Debug)]
pub struct PendingLayer {
    layer: Layer,
    /// What applying does, or why it cannot be applied.
    plan: Result<Planned, String>,
    /// How many changes are listed.
    at_most: usize,
    /// What holds it, if it is on disk.
    _store: Option<WorkDir>,
}

impl PendingLayer {
    /// Plans what applying does. `since` is when the command began, by the clock of files.
    pub(crate) fn new(
        layer: Layer,
        since: Duration,
        at_most: usize,
        store: Option<WorkDir>,
    ) -> Self {
        let plan = layer.plan(since, at_most, Instant::now() + PATIENCE);
        Self {
            layer,
            plan: plan.map_err(|error| error.to_string()),
            at_most,
            _store: store,
        }
    }

    /// Why it cannot be applied, if that is certain already.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        self.plan.as_ref().err().map(String::as_str)
    }

    /// Makes the changes real that were listed, and nothing else.
    ///
    /// # Errors
    /// [`CommandError::Apply`]: which path has changed since the command began, or what failed. What
    /// was there is there again then.
    pub fn apply(&self) -> Result<(), CommandError> {
        let plan = match &self.plan {
            Ok(plan) => plan,
            Err(why) => return Err(CommandError::Apply(why.clone())),
        };
        let applied = self.layer.apply(plan);
        applied.map_err(|error| CommandError::Apply(error.to_string()))
    }

    /// The changes, with diffs if `diff`. `directories`: those that have a layer. Paths are relative
    /// to the directory if there is only one, otherwise absolute.
    pub(crate) fn changes(&self, directories: &[PathBuf], diff: bool) -> FileChanges {
        let mut changes = match &self.plan {
            Ok(plan) => file_changes::planned(plan, self.at_most),
            Err(_) => {
                let until = Instant::now() + PATIENCE_TO_TELL;
                file_changes::list(&self.layer, until).unwrap_or_default()
            }
        };
        if diff {
            file_changes::add_diffs(&mut changes, &self.layer);
        }
        let only = match directories {
            [only] => Some(only.as_path()),
            _ => None,
        };
        let FileChanges {
            created,
            modified,
            deleted,
            ..
        } = &mut changes;
        for change in created.iter_mut().chain(modified).chain(deleted) {
            change.path = shown(&change.path, only);
        }
        changes
    }
}

/// A path below the root directory, as it is shown.
fn shown(path: &str, directory: Option<&Path>) -> String {
    let absolute = format!("/{path}");
    let below = directory
        .and_then(|directory| directory.to_str())
        .and_then(|directory| absolute.strip_prefix(directory)?.strip_prefix('/'));
    match below {
        // The directory itself.
        Some("") => "./".to_owned(),
        Some(below) => below.to_owned(),
        None => absolute,
    }
}

/// A time by the clock of files that every earlier change is before, and no later one.
pub(crate) fn beginning() -> Duration {
    let first = file_changes::timestamp();
    loop {
        let next = file_changes::timestamp();
        if next > first {
            return next;
        }
        // Before kernel 6.13, the clock of files ticks.
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_relative_to_the_only_directory() {
        let only = Some(Path::new("/srv/app"));
        assert_eq!(shown("srv/app/src/a.php", only), "src/a.php");
        assert_eq!(shown("srv/app/", only), "./");
        assert_eq!(shown("srv/application/x", only), "/srv/application/x");
        assert_eq!(shown("srv/app/x", None), "/srv/app/x");
    }

    #[test]
    fn the_beginning_is_after_earlier_changes() {
        let dir = tempfile::tempdir();
        let Ok(dir) = dir else { return };
        let file = dir.path().join("a");
        assert!(std::fs::write(&file, "a").is_ok());
        use std::os::unix::fs::MetadataExt;
        let changed = |path: &Path| {
            path.metadata().map_or(Duration::MAX, |meta| {
                Duration::new(
                    meta.ctime().unsigned_abs(),
                    u32::try_from(meta.ctime_nsec()).unwrap_or(0),
                )
            })
        };
        let before = changed(&file);
        let since = beginning();
        assert!(before < since);
        assert!(std::fs::write(&file, "b").is_ok());
        assert!(changed(&file) >= since);
    }
}
