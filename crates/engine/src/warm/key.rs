//! What two requests must have in common to share a template.

use std::ffi::OsString;
use std::path::PathBuf;

use altair_sandbox::Inode;

use crate::channel::Watched;
use crate::context::RequestContext;
use crate::guards::Selection;
use crate::launch;
use crate::request::{Bootstrap, EvalRequest, Target};
use crate::services::Services;
use crate::settings::Settings;

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
    pub(super) fn new(context: &RequestContext<'_>) -> Self {
        let RequestContext {
            settings,
            request,
            target,
            php,
            environment,
            services,
        } = *context;
        // All of each is taken apart here: what is new has to be placed.
        let Settings {
            php: _, // what it means is in the context
            running: _,
            extension,
            ini_scan_dir,
            selection,
            // The same as long as this process lives, and a pool is one process's.
            known_paths: _,
            idle: _, // the first request's
            actor: _,
        } = settings;
        let EvalRequest {
            snippet: _,
            project_root,
            // A template has as much of these as any request may ask for.
            timeout: _,
            memory_limit: _,
            allow_writes,
            allow_network,
            unconfined: _, // an unsafe run has no template
            bootstrap: _,  // what it means is in the target
            services: _,   // resolved in the context
            readable_paths,
            redact: _, // the host's affair
            // Both are in how sessions are watched.
            database: _,
            queries: _,
            // A fork is told of these with its snippet, or the host's affair.
            arguments: _,
            depth: _,
            max_items: _,
            max_string: _,
            diff: _,
        } = request;
        let Target {
            root,
            bootstrap,
            readable: _, // found anew by each template
        } = target;
        Self {
            root: root.path().to_owned(),
            directory: root.inode(),
            owner: (root.owner().uid, root.owner().gid),
            bootstrap: match bootstrap {
                Bootstrap::File(path) => Some(path.clone()),
                Bootstrap::Discover => None,
            },
            php: php.to_owned(),
            extension: extension.clone(),
            ini_scan_dir: ini_scan_dir.clone(),
            environment: launch::passed_on(environment, selection, request),
            allow_writes: *allow_writes,
            allow_network: *allow_network,
            watched: request.watched(),
            selection: selection.clone(),
            readable: readable_paths.clone(),
            services: services.clone(),
            named_root: project_root.clone(),
        }
    }
}
