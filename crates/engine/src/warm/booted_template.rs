//! A booted template: what it was made from, and what it shares.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use altair_sandbox::{
    Pass, Ready, Template, Way, can_be_copied, other_user, thread, with_files_of,
};

use super::spares::Spares;
use super::{Boot, shared_state};
use crate::channel::BootReport;
use crate::child_messages::ChildMessages;
use crate::file_changes;
use crate::freshness::{self, Freshness, Started};
use crate::guards::GuardStates;
use crate::template_files::TemplateFiles;

/// A booted template.
#[derive(Debug)]
pub(super) struct BootedTemplate {
    pub template: Template,
    pub boot: Arc<Boot>,
    pub guards: GuardStates,
    /// What it and its forks see of the host's files.
    pub files: Arc<TemplateFiles>,
    /// `None`: some of its inputs have changed meanwhile, or may have; only the call that made it
    /// can use it.
    pub freshness: Option<Freshness>,
    /// Why it may not fork.
    pub obstacle: Option<String>,
    /// Its forks that wait for a task.
    pub spares: Arc<Spares>,
}

impl Drop for BootedTemplate {
    fn drop(&mut self) {
        self.spares.close();
        // The kernel takes up to 20 ms to close what watches files (inotify(7)).
        if let Some(freshness) = self.freshness.take() {
            let _ = thread::start("altair-collect", move || drop(freshness));
        }
    }
}

/// What the host knows about a template's inputs.
pub(super) struct MadeFrom {
    pub root: PathBuf,
    pub files: Arc<TemplateFiles>,
    pub private: Vec<PathBuf>,
    pub launched_ns: i64,
    pub named: Vec<PathBuf>,
    /// Whether making a fork names something below the project.
    pub names_project: bool,
}

/// How long a template may take to give up its mounts.
const SETTLE_PATIENCE: Duration = Duration::from_secs(5);

/// How long looking at a template in `/proc` may take.
const LOOK_PATIENCE: Duration = Duration::from_secs(5);

/// How long the search for changes made by boot may take.
const CHANGES_PATIENCE: Duration = Duration::from_secs(2);

/// Inspects a template that has become ready.
///
/// # Errors
/// If `/proc` cannot be read.
pub(super) fn look(
    ready: Ready,
    booted: BootReport,
    heard: ChildMessages,
    guards: GuardStates,
    from: MadeFrom,
    pass: Pass,
) -> io::Result<BootedTemplate> {
    // The booted code may report anything; the host itself knows which process this is.
    let pid = ready.template.pid().ok_or(io::ErrorKind::NotFound)?;
    let (record, unseen) = match booted.record {
        Ok(record) => (record, None),
        Err(why) => (altair_sandbox::Record::default(), Some(why)),
    };
    let mut obstacle = seen_as(&from.files, {
        let (root, unseen) = (from.root.clone(), record.unseen.clone());
        let has_temp = from.files.temp().is_some();
        move || shared_state::find(pid, &root, &unseen, has_temp)
    })?;
    if let Some(why) = unseen
        && obstacle.is_none()
    {
        obstacle = Some(format!("what boot reads cannot be observed here: {why}"));
    }
    let made_from = freshness::MadeFrom {
        looks: record.looks,
        written: record.written,
        started: seen_as(&from.files, move || {
            read_at_start(pid, &booted.ini, &from.named)
        })?,
        launched_ns: from.launched_ns,
        visible: from
            .files
            .readable_paths()
            .iter()
            .chain([&from.root])
            .map(|path| bytes(path))
            .collect(),
        names_elsewhere: from.files.temp().is_some(),
        private: from.private.iter().map(|path| bytes(path)).collect(),
    };
    if let (Some(temp), None) = (from.files.temp(), &obstacle)
        && !can_be_copied(temp, from.files.user)?
    {
        obstacle = Some("boot leaves too much in the directory for temporary files".into());
    }
    let freshness = Freshness::stand(&made_from).ok();
    if obstacle.is_none() {
        let settled = ready
            .template
            .settle(pass, Instant::now() + SETTLE_PATIENCE);
        settled.map_err(io::Error::other)?;
        ready.template.use_huge_pages();
    }
    let layer = ready.layer.as_ref();
    let until = Instant::now() + CHANGES_PATIENCE;
    Ok(BootedTemplate {
        spares: Spares::of(ready.template.clone(), !from.names_project),
        template: ready.template,
        boot: Arc::new(Boot {
            stdout: ready.stdout,
            stderr: ready.stderr,
            changes: layer.and_then(|layer| file_changes::list(layer, until)),
            refused: heard.refused,
            entered_ns: heard.entered_ns,
            boot_us: booted.boot_us,
            variables: heard.variables,
        }),
        guards,
        files: from.files,
        freshness,
        obstacle,
    })
}

/// Looks at a template in `/proc` as its user, if it has no private root: a host with another user
/// may lack the capability (CAP_SYS_PTRACE) to do so as itself, as in a container.
fn seen_as<T: Send + 'static>(
    files: &TemplateFiles,
    look: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    match (files.temp(), other_user(files.user)) {
        (Some(_), Some(user)) => with_files_of(Some(user), LOOK_PATIENCE, look)?,
        _ => look(),
    }
}

/// The files that PHP read before recording could begin (its binary, all libraries, ini files), and
/// those that the host itself relied on.
fn read_at_start(pid: i32, ini: &[Vec<u8>], named: &[PathBuf]) -> io::Result<Vec<Started>> {
    let maps = shared_state::maps(&Path::new("/proc").join(pid.to_string()))?;
    let mut paths: Vec<Vec<u8>> = maps
        .split(|byte| *byte == b'\n')
        .filter_map(|line| {
            let at = line.iter().position(|byte| *byte == b'/')?;
            line.get(at..).map(<[u8]>::to_vec)
        })
        .chain(ini.iter().cloned())
        .collect();
    paths.extend(named.iter().map(|path| bytes(path)));
    paths.sort_unstable();
    paths.dedup();
    Ok(paths
        .into_iter()
        .map(|path| {
            let is_directory = Path::new(OsStr::from_bytes(&path)).is_dir();
            Started {
                path,
                way: if is_directory { Way::Listed } else { Way::Read },
            }
        })
        .collect())
}

fn bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}
