//! What to start, and its prepared form for the child.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;

use nix::libc::c_char;

use crate::before_exec::PreparedGuards;
use crate::{Made, Policy, Pseudoterminal, Spaces, SpawnError, limits, privileges, view};

/// Everything needed to start one process. Plain data.
#[derive(Debug)]
pub struct Launch {
    /// The program: a path, absolute or relative to the host's working directory. `PATH` is not
    /// searched.
    pub program: PathBuf,
    /// The program's own name, its first argument; `None`: `program` as given.
    pub name: Option<OsString>,
    /// The arguments after the name.
    pub args: Vec<OsString>,
    /// The complete environment; nothing is inherited.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory, entered as the process's own user. A relative one is relative to
    /// the host's.
    pub cwd: PathBuf,
    /// The process's end of a channel ([`channel_pair`](crate::channel_pair)); it becomes
    /// descriptor 3.
    pub channel: Option<OwnedFd>,
    /// Its standard streams.
    pub stdio: Stdio,
    /// What the process may do.
    pub policy: Policy,
    /// What it is to its host.
    pub role: Role,
}

/// What a process is to its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A program that does one job. Signals that the host sends go to it alone.
    Program,
    /// A template ([`Template`](crate::Template)). With a view, it gets its own user namespace and
    /// keeps what its forks need to mount theirs.
    Template,
    /// Any command. Signals that the host sends go to its whole process group, as from a terminal.
    Command,
}

/// The standard streams of a process.
#[derive(Debug)]
pub enum Stdio {
    /// Standard output and standard error go to the host. Standard input is the descriptor, or
    /// empty without one.
    Captured {
        /// The descriptor.
        input: Option<OwnedFd>,
    },
    /// All three are a terminal, which becomes the process's controlling terminal. What it writes
    /// there is its standard output.
    Terminal(Pseudoterminal),
}

/// A [`Launch`] prepared for system calls. Made before the clone, as nothing may be allocated
/// after it.
pub(crate) struct PreparedLaunch {
    pub(crate) program: CString,
    pub(crate) cwd: CString,
    /// Owns the strings that `argv` and `envp` point to.
    _strings: Vec<CString>,
    argv: Vec<*const c_char>,
    envp: Vec<*const c_char>,
    pub(crate) limits: limits::PreparedLimits,
    pub(crate) privileges: privileges::PrivilegeSteps,
    pub(crate) view: Option<view::PreparedView>,
    /// As in the policy.
    pub(crate) made: Made,
    /// What the process is to its host.
    pub(crate) role: Role,
    /// Its own namespaces, if any.
    pub(crate) spaces: Option<Spaces>,
    pub(crate) before_exec: Option<PreparedGuards>,
}

impl PreparedLaunch {
    pub(crate) fn new(launch: &Launch) -> Result<Self, SpawnError> {
        let host = |what| move |source| SpawnError::Host { what, source };
        // Resolved here, as the process executes it from its own working directory.
        let program = std::path::absolute(&launch.program)
            .map_err(host("the program's path cannot be resolved"))?;
        let limits = limits::PreparedLimits::new(&launch.policy.limits)
            .map_err(|errno| host("the host's own limits cannot be read")(errno.into()))?;
        let view = launch
            .policy
            .view
            .as_ref()
            .map(|view| {
                let user = privileges::other_user(&launch.policy.privileges);
                view::PreparedView::new(view, user_namespace(launch)?, user)
            })
            .transpose()?;
        let spaces = launch.policy.spaces.filter(|_| view.is_some());
        let before_exec = launch
            .policy
            .before_exec
            .as_ref()
            .map(PreparedGuards::new)
            .transpose()?;
        let in_user_namespace = view
            .as_ref()
            .is_some_and(|view| view.user_namespace.is_some());
        let privileges = privileges::PrivilegeSteps::new(
            &launch.policy.privileges,
            in_user_namespace,
            launch.role == Role::Template,
        );
        let name = launch.name.as_deref();
        let name = name.unwrap_or(launch.program.as_os_str());
        let mut strings = vec![c_string(name, || "the program's name".into())?];
        for (index, arg) in launch.args.iter().enumerate() {
            strings.push(c_string(arg, || format!("argument {}", index + 1))?);
        }
        let arguments = strings.len();
        for (name, value) in &launch.env {
            let mut pair = name.clone();
            pair.push("=");
            pair.push(value);
            strings.push(c_string(&pair, || {
                format!("the variable {}", name.to_string_lossy())
            })?);
        }
        let (argv, envp) = strings.split_at(arguments);
        Ok(Self {
            program: c_string(program.as_os_str(), || "the program's path".into())?,
            cwd: c_string(launch.cwd.as_os_str(), || "the working directory".into())?,
            argv: pointers(argv),
            envp: pointers(envp),
            _strings: strings,
            limits,
            privileges,
            view,
            made: launch.policy.made,
            role: launch.role,
            spaces,
            before_exec,
        })
    }

    /// The program with its arguments and environment, each list ending with a null pointer.
    pub(crate) fn exec(&self) -> (&CStr, &[*const c_char], &[*const c_char]) {
        (&self.program, &self.argv, &self.envp)
    }
}

/// The user namespace in which the view is made. A host that may not mount needs one, and so does
/// a template, which mounts again later and has no rights outside. It contains only the process's
/// own user, so the template's forks get rights over that user's files only. A command that is not
/// root's gets one, too: the kernel counts a user's processes for each user namespace.
fn user_namespace(launch: &Launch) -> Result<Option<view::UserNamespace>, SpawnError> {
    let (uid, gid) = privileges::user(&launch.policy.privileges);
    let spaces = launch.policy.spaces.is_some();
    let needs_one = launch.role == Role::Template || spaces && uid != 0;
    if privileges::may_mount() && !needs_one {
        return Ok(None);
    }
    let is_other = privileges::other_user(&launch.policy.privileges).is_some();
    Ok(Some(view::UserNamespace {
        maps: view::IdMaps::of(uid, gid)?,
        made: match (spaces, is_other) {
            (true, _) => view::Made::WithKeeper,
            (false, true) => view::Made::ByProcessMappedByHost,
            (false, false) => view::Made::ByProcess,
        },
    }))
}

/// A list that ends with a null pointer. Moving a [`CString`] leaves its bytes where they are.
fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings
        .iter()
        .map(|string| string.as_ptr())
        .chain([ptr::null()])
        .collect()
}

fn c_string(text: &OsStr, what: impl FnOnce() -> String) -> Result<CString, SpawnError> {
    CString::new(text.as_bytes()).map_err(|_| SpawnError::NulByte { what: what() })
}

/// Whether `path` exists, as far as the host can see.
pub(crate) fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
