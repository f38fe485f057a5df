//! What this machine offers this user: PHP, the extension, the kernel, each guard, and whether each
//! guard holds when attacked.
//!
//! [`Doctor::examine`] asks, evaluates and attacks, and returns its findings as a [`Report`], plain
//! data. It never fails: obstacles are part of the report.

mod abilities;
mod advice;
mod attacks;
mod container_profile;
mod examination;
mod guard_versions;
mod interpreter;
mod listeners;
mod machine;
mod project;
mod report;
mod scratch_project;
mod self_test;
#[cfg(test)]
mod tests;
mod trial_runs;

use std::ffi::OsString;
use std::path::PathBuf;

pub use container_profile::{ProfileFormat, container_profile};
pub use report::{
    Ability, AllowedReport, Attack, Extension, GuardReport, Kernel, Php, PoolReport, Remedy,
    Report, SelfTest, ServiceReport, State, User, Verdict, WithheldReport,
};

/// Examines a machine with one PHP.
#[derive(Debug, Clone)]
pub struct Doctor {
    php: OsString,
    extension: Option<PathBuf>,
    root: Option<PathBuf>,
}

/// The progress of an examination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Self-tests that are done.
    pub done: usize,
    /// Self-tests in all.
    pub all: usize,
}

impl Doctor {
    /// An examination of the PHP that `php` resolves to (see
    /// [`php_binary::resolve`](crate::php_binary::resolve)). `extension` is loaded into the child,
    /// for a PHP whose ini files do not load it.
    #[must_use]
    pub fn new(php: impl Into<OsString>, extension: Option<PathBuf>) -> Self {
        Self {
            php: php.into(),
            extension,
            root: None,
        }
    }

    /// Sets the project whose services and secrets are examined.
    #[must_use]
    pub fn with_root(mut self, root: PathBuf) -> Self {
        self.root = Some(root);
        self
    }

    /// Runs the examination. Calls `progress` after each self-test, on this thread.
    ///
    /// Takes about as long as a dozen evaluations, some of them concurrent. Leaves nothing behind.
    pub fn examine(&self, progress: &mut dyn FnMut(Progress)) -> Report {
        let (mut report, lab) =
            examination::examine(&self.php, self.extension.as_deref(), progress);
        if let Some(root) = &self.root
            && let Err(problem) = project::look(root, lab.as_ref(), &mut report)
        {
            report.ok = false;
            report.problems.push(problem);
        }
        report
    }
}
