//! `altair shell`: a session in an application, line by line. The engine keeps the session; here it is talked to, by a
//! person at a terminal (`interactive.rs`) or by a program through standard input (`batch.rs`).

mod batch;
mod commands;
mod completion;
mod editor;
mod entry;
mod history;
mod interactive;
mod lines;
mod open;
#[cfg(test)]
mod tests;
mod told;

use std::cell::RefCell;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use altair_engine::shell::Session;

use crate::args::ShellArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::host::Host;
use crate::human::Theme;
use crate::root::Root;
use crate::{application, output};

/// A session that lines run in, and that completes and judges them between two lines.
type Shared = Rc<RefCell<Box<dyn Session>>>;

/// What a session is told to be.
struct Setting {
    /// The project.
    root: PathBuf,
    /// The deadline of the boot and of each line.
    deadline: Duration,
    /// Whether writes to the project are real.
    writes: bool,
    /// Colours, if any.
    theme: Theme,
}

/// Opens a session and talks until it is left.
///
/// # Errors
///
/// Wrong usage, and what keeps the session from starting.
pub fn run(args: ShellArgs, host: &Host) -> Result<Exit, Failure> {
    let ShellArgs { application } = args;
    let root = Root::of(application.root.clone())?;
    root.check_to_run()?;
    let mut evaluator = application::evaluator(&application, host)?;
    if root.is_found {
        evaluator = evaluator.with_sockets_of_project_only();
    }
    let request = application::request(application, Vec::new(), &root)?;
    let setting = Setting {
        root: std::path::absolute(&root.path).unwrap_or_else(|_| root.path.clone()),
        deadline: Duration::from_millis(request.timeout_ms().into()),
        writes: request.allow_writes,
        theme: Theme::new(output::takes_color()),
    };
    let session = open::session(&evaluator, request)?;
    root.show();
    talk(session, &setting)
}

/// Talks with a person if one is there, else with a program.
fn talk(session: Box<dyn Session>, setting: &Setting) -> Result<Exit, Failure> {
    let session = Rc::new(RefCell::new(session));
    let stdin = io::stdin();
    if stdin.is_terminal() {
        interactive::run(&session, setting)
    } else {
        batch::run(&session, setting, stdin.lock(), &mut output::print)
    }
}
