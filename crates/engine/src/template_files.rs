//! What a template and its forks see of the host's files, and their directories among them.

use std::path::PathBuf;
use std::sync::Arc;

use altair_sandbox::{
    Place, RunAs, Shown, are_first_directories_there, first_directory, shared_directory,
};

use crate::directories::Directories;
use crate::ladder::Level;
use crate::readable_paths::paths_of;

/// What a template and its forks see of the host's files.
#[derive(Debug)]
pub(crate) struct TemplateFiles {
    /// Without a private root: the directory that holds those for temporary files.
    pub level: Level<Place>,
    /// Paths that may be read besides the project.
    pub readable: Vec<Shown>,
    /// As which user the directories are used.
    pub user: Option<RunAs>,
    /// Removed with this and the last fork.
    pub directories: Arc<Directories>,
}

impl TemplateFiles {
    /// The directory that holds those for temporary files, if there is no private root.
    pub(crate) fn temp(&self) -> Option<&Place> {
        match &self.level {
            Level::None(temp) => Some(temp),
            Level::Full | Level::LayerOnDisk(_) | Level::ReadOnly => None,
        }
    }

    /// The template's own directories, if there is no private root.
    fn of_boot(&self) -> Option<[PathBuf; 2]> {
        let parent = self.temp()?.path();
        Some([first_directory(parent), shared_directory(parent)])
    }

    /// Whether they are still there: who clears a machine's directory for temporary files of old
    /// ones may remove them while the template lives.
    pub(crate) fn are_there(&self) -> bool {
        self.temp().is_none_or(are_first_directories_there)
    }

    /// The paths that may be read besides the project.
    pub(crate) fn readable_paths(&self) -> Vec<PathBuf> {
        paths_of(&self.readable)
    }

    /// Paths besides the project for PHP's own file functions, if there is no private root.
    pub(crate) fn shown_to_php(&self) -> Vec<PathBuf> {
        match self.of_boot() {
            Some(of_boot) => self.readable_paths().into_iter().chain(of_boot).collect(),
            None => Vec::new(),
        }
    }

    /// The directories of a fork. It keeps those of its template, as its own is in one of them.
    pub(crate) fn of_fork(&self, fork: Option<i32>) -> Directories {
        match (self.temp(), fork) {
            (Some(temp), Some(fork)) => {
                Directories::of_fork(&self.directories, temp, fork, self.user)
            }
            _ => Directories::default(),
        }
    }
}
