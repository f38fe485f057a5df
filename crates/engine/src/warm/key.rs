//! The inputs that two requests must have in common to share a template.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use altair_sandbox::Inode;

use crate::channel::Watched;
use crate::context::RequestContext;
use crate::guards::Selection;
use crate::launch::{self, StartIni};
use crate::request::{Bootstrap, EvalRequest, Target};
use crate::services::Services;
use crate::settings::{Purpose, Settings};

/// All inputs of a template except the files.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    root: PathBuf,
    /// The directory's inode: another directory has another owner and other files.
    directory: Inode,
    owner: (u32, u32),
    bootstrap: Option<PathBuf>,
    php: PathBuf,
    extension: Option<PathBuf>,
    ini_scan_dir: Option<OsString>,
    /// As [`launch::as_one_text`] has it.
    environment: Vec<u8>,
    allow_writes: bool,
    allow_network: bool,
    watched: Option<Watched>,
    selection: Selection,
    readable: Vec<PathBuf>,
    /// What the user allows to be read, and the most MiB and milliseconds that a request may ask for.
    allowed: (Vec<PathBuf>, i64, i64),
    known_paths: Arc<[PathBuf]>,
    services: Services,
    /// [`Target::named_root`].
    named_root: PathBuf,
    umask: Option<u32>,
    ini: StartIni,
    purpose: Purpose,
}

impl Key {
    /// The application's root.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The same with [`Settings::umask`].
    #[must_use]
    pub(crate) fn with_umask(mut self, umask: u32) -> Self {
        self.umask = Some(umask);
        self
    }

    pub(crate) fn new(context: &RequestContext<'_>) -> Self {
        let RequestContext {
            settings,
            request,
            target,
            php,
            environment: _, // what is given of it counts
            given,
            services,
        } = *context;
        // Every struct is destructured, so a new field must be handled here.
        let Settings {
            php: _, // resolved in the context
            running: _,
            search_path: _,
            own_programs: _,
            extension,
            ini_scan_dir,
            selection,
            known_paths,
            idle: _,               // the first request's counts
            memory_limit_bytes: _, // a fork is told
            expects_more: _,
            actor: _,
            ini,
            purpose,
            umask,
        } = settings;
        let EvalRequest {
            snippet: _,
            project_root: _, // resolved in the target
            // A template has the maximum of these that any request may ask for.
            timeout: _,
            memory_limit: _,
            allow_writes,
            allow_network,
            unconfined: _, // an unsafe run has no template
            bootstrap: _,  // resolved in the target
            services: _,   // resolved in the context
            readable_paths,
            redact: _, // applied by the host, and a fork is told with its snippet
            // Both are reflected in `watched`.
            database: _,
            queries: _,
            // A fork is told of these with its snippet, or the host's affair.
            arguments: _,
            depth: _,
            max_items: _,
            max_string: _,
            diff: _,
            env: _, // reflected in what is given
        } = request;
        let Target {
            root,
            named_root,
            bootstrap,
            allowed,
            readable: _, // looked up again by each template
        } = target;
        Self {
            root: root.path().to_owned(),
            directory: root.inode(),
            owner: (root.owner().uid, root.owner().gid),
            bootstrap: match bootstrap {
                Bootstrap::File(path) => Some(path.clone()),
                Bootstrap::Discover => None,
            },
            php: real_php(php),
            extension: extension.clone(),
            ini_scan_dir: ini_scan_dir.clone(),
            environment: launch::as_one_text(given),
            allow_writes: *allow_writes,
            allow_network: *allow_network,
            watched: request.watched(),
            selection: selection.clone(),
            readable: readable_paths.clone(),
            allowed: (allowed.read.clone(), allowed.most_mb(), allowed.most_ms()),
            known_paths: Arc::clone(known_paths),
            services: services.clone(),
            named_root: named_root.clone(),
            umask: *umask,
            ini: ini.clone(),
            purpose: *purpose,
        }
    }
}

/// The file that a link to PHP leads to. A program that is called by names of others is left as it is
/// named: it may be another PHP by each of them.
fn real_php(php: &Path) -> PathBuf {
    let is_php = |path: &PathBuf| {
        let name = path.file_name().map(OsStrExt::as_bytes);
        name.is_some_and(|name| name.starts_with(b"php"))
    };
    let real = php.canonicalize().ok().filter(is_php);
    real.unwrap_or_else(|| php.to_owned())
}
