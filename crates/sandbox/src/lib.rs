//! Confinement and supervision of one process on Linux.
//!
//! A [`Launch`] is plain data: a program, its arguments, its whole environment and a [`Policy`].
//! [`Launch::spawn`] starts it behind the guards that follow from the policy, and
//! [`Child::supervise`] runs it to its end: it keeps the head of each output stream, exchanges
//! packets over an optional channel, enforces a deadline, and returns only when the process *and
//! everything that it started* have ended.
//!
//! Three processes take part. The **host** is the caller. The **keeper** is a small process
//! between the two (`altair-keeper` in `ps`). It has its own session and becomes the parent of all
//! orphans below it, so it can end whatever the process left behind. It does so when the process
//! ends, when the host requests it, and when the host is gone. The **process** is the program
//! itself. The application in the host does not see the keeper: neither `SIGCHLD` nor `waitpid(-1)`
//! reports it. An exception is the keeper of a command ([`Role::Command`]) in namespaces of its own,
//! which becomes a program itself; it looks like any program that the application starts.
//!
//! ```
//! use std::time::Duration;
//! use altair_sandbox::{Launch, Policy, Role, Status, Stdio, run};
//!
//! # fn main() -> Result<(), altair_sandbox::SpawnError> {
//! let launch = Launch {
//!     program: "/bin/echo".into(),
//!     name: None,
//!     args: vec!["hello".into()],
//!     env: vec![],
//!     cwd: "/".into(),
//!     channel: None,
//!     stdio: Stdio::Captured { input: None },
//!     policy: Policy::unconfined(),
//!     role: Role::Program,
//! };
//! let ended = run(launch, Duration::from_secs(10), 1024)?;
//! assert_eq!(ended.status, Status::Exited(0));
//! assert_eq!(ended.stdout.head, b"hello\n");
//! # Ok(())
//! # }
//! ```
//!
//! This crate cannot end work that was handed to another service (a container daemon, `at`) or,
//! with [`Privileges::Keep`], a process that became another user through a set-uid program.
//! A process of the same user as its host can kill the keeper (the process dies with it, but what
//! it started before does not) or stop it again and again; preventing that takes a filter on
//! signals or a pid namespace. A process that runs as another user ([`RunAs`]) cannot do this.
//!
//! Needs Linux 5.4 (`waitid` on a pidfd). Without `close_range` (5.9), it reads `/proc` instead.

mod acting;
mod before_exec;
pub mod bounded;
mod buffer;
mod caught_signals;
mod channel;
mod child;
mod connections;
mod error;
mod exiting;
mod final_guards;
mod fork;
mod guard_state;
mod huge_pages;
mod input;
mod keeper;
mod kill_descendants;
mod landlock;
mod launch;
mod limits;
mod memory_pressure;
mod output;
pub mod peer;
mod place;
mod policy;
mod precise_timers;
mod privileges;
mod process;
mod procfs;
mod pseudoterminal;
mod raw_descriptors;
mod record;
mod refusal;
mod rights;
mod run;
mod seccomp;
mod session;
mod spawn;
mod standing;
mod supervise;
mod syscall_numbers;
mod system_calls;
mod temp_directories;
mod template;
pub mod thread;
mod view;
mod visible_path;
mod who_listens;
mod witness;

pub use acting::{other_user, with_files_of};
pub use caught_signals::CaughtSignals;
pub use channel::{MAX_PACKET_BYTES, Outgoing, Parts, channel_pair};
pub use child::{Child, Status};
pub use connections::{Connections, LocalSocket, PermittedAddress};
pub use error::{SpawnError, Step};
pub use final_guards::{FinalGuards, Taken};
pub use fork::{Behind, Confined, FirstGuard, Fork, Forked, Forking, OwnFiles, look_for_packet};
pub use guard_state::{GuardState, Guards};
pub use input::{Input, input_from_file, input_from_stream, input_pipe, write_quietly};
pub use landlock::{Granted, Landlock, landlock_version};
pub use launch::{Launch, Role, Stdio};
pub use limits::Limits;
pub use output::{Captured, Stream};
pub use place::{Inode, Place};
pub use policy::{Made, Policy, Spaces};
pub use privileges::{Privileges, RunAs, may_become_another_user};
pub use procfs::why_unseen;
pub use pseudoterminal::{Pseudoterminal, resize_like};
pub use raw_descriptors::{begin_program, close_all_on_exec};
pub use record::{Identity, Look, Record, Recorder, Unseen, Way};
pub use refusal::Refusal;
pub use rights::{Credentials, Filtered, Inspected, Rights, Surroundings, own_umask};
pub use run::run;
pub use seccomp::{Command, ROOT_ONLY_CALLS, Seccomp, has_one_thread, may_copy_descriptors};
pub use session::{Served, Session};
pub use standing::Standing;
pub use supervise::{Ended, MadeReady, Observer, Ready, Supervision};
pub use temp_directories::{
    TEMP_PATH, are_first_directories_there, can_be_copied, first_directory, make_first_directory,
    remove_fork_directory, shared_directory,
};
pub use template::{ForkError, Model, Pass, Template};
pub use view::{
    ApplyError, Change, ChangeKind, Changes, Contents, Home, Layer, Layered, LeftOut, Listed, Note,
    Planned, Project, Renewal, Temp, View, What, Writes, remove_directory, remove_place,
    shown_path,
};
pub use visible_path::{Shown, links_on};
pub use who_listens::{Listener, Word, listener_of_path, listeners_of_address};
pub use witness::Witness;
