//! What two requests must have in common to share a template.

use std::ffi::OsString;
use std::path::PathBuf;

use altair_sandbox::Inode;

use crate::asked::Asked;
use crate::channel::Watched;
use crate::guards::Selection;
use crate::launch;
use crate::request::Bootstrap;
use crate::services::Services;

/// All that a template is made from, but for the files.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    root: PathBuf,
    /// Which directory that was: another one has another owner, and other files.
    directory: Inode,
    owner: (u32, u32),
    bootstrap: Option<PathBuf>,
    php: PathBuf,
    extension: Option<PathBuf>,
    ini_scan_dir: Option<OsString>,
    environment: Vec<(OsString, OsString)>,
    allow_writes: bool,
    allow_network: bool,
    watched: Option<Watched>,
    selection: Selection,
    readable: Vec<PathBuf>,
    services: Services,
    /// Under which name the project was asked for: paths that were written down under it are
    /// there, too.
    named_root: PathBuf,
}

impl Key {
    pub(super) fn new(asked: &Asked<'_>) -> Self {
        let Asked {
            evaluator,
            request,
            target,
            php,
            environment,
            services,
        } = *asked;
        Self {
            root: target.root.path().to_owned(),
            directory: target.root.inode(),
            owner: (target.root.owner().uid, target.root.owner().gid),
            bootstrap: match &target.bootstrap {
                Bootstrap::File(path) => Some(path.clone()),
                Bootstrap::Discover => None,
            },
            php: php.to_owned(),
            extension: evaluator.extension.clone(),
            ini_scan_dir: evaluator.ini_scan_dir.clone(),
            environment: launch::passed_on(environment, &evaluator.selection, request),
            allow_writes: request.allow_writes,
            allow_network: request.allow_network,
            watched: request.watched(),
            selection: evaluator.selection.clone(),
            readable: request.readable_paths.clone(),
            services: services.clone(),
            named_root: request.project_root.clone(),
        }
    }
}
