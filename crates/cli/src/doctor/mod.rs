//! `altair doctor`: which guards are available on this machine, and whether they hold.

mod print;
mod progress;
#[cfg(test)]
mod tests;

use altair_engine::doctor::{Doctor, PoolReport, ProfileFormat, Report, container_profile};
use altair_pool::NoAnswer;

use crate::args::{DoctorArgs, Format};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::host::Host;
use crate::human::Theme;
use crate::root::{Root, working_directory};
use crate::{extension, json, output};
use progress::Counter;

/// Examines and prints; the exit code says whether every guard is in force.
///
/// # Errors
///
/// If the result cannot be written, or if the project was not named and is not the caller's own.
pub fn run(args: &DoctorArgs, host: &Host) -> Result<Exit, Failure> {
    if let Some(format) = profile(args) {
        let profile = container_profile(format).map_err(Failure::new)?;
        output::print(json::render(&profile, output::is_terminal())?.as_bytes())?;
        return Ok(Exit::Clean);
    }
    let root = match (Root::of(args.root.clone()), working_directory()) {
        (Ok(root), _) => Some(root),
        // Without a working directory there is a machine to examine all the same.
        (Err(_), Err(_)) => None,
        (Err(failure), Ok(_)) => return Err(failure),
    };
    if let Some(root) = &root {
        root.show();
    }
    let report = examine(args, host, root);
    let text = match args.format {
        Format::Human => print::render(&report, Theme::new(output::takes_color())),
        Format::Json => json::render(&report, output::is_terminal())?,
    };
    // A reader that has closed the pipe does not change the result.
    output::print(text.as_bytes())?;
    Ok(if report.ok {
        Exit::Clean
    } else {
        Exit::NotClean
    })
}

/// The profile to print, instead of an examination.
fn profile(args: &DoctorArgs) -> Option<ProfileFormat> {
    match (args.docker_profile, args.kubernetes_profile) {
        (true, _) => Some(ProfileFormat::Docker),
        (false, true) => Some(ProfileFormat::Kubernetes),
        (false, false) => None,
    }
}

/// Whether a pool serves this process.
fn pool() -> PoolReport {
    match crate::pool::client().state() {
        Ok(state) => PoolReport {
            serves: true,
            pid: Some(state.pid),
            templates: Some(state.templates.len()),
            problem: None,
        },
        Err(why) => PoolReport {
            serves: false,
            pid: None,
            templates: None,
            problem: Some(match why {
                NoAnswer::None => format!("{why}; the second call within ten minutes starts one"),
                why => why.to_string(),
            }),
        },
    }
}

fn examine(args: &DoctorArgs, host: &Host, root: Option<Root>) -> Report {
    // If the variable names no extension, that is reported and the examination continues.
    let (extension, problem) = match extension::find(host) {
        Ok(extension) => (extension, None),
        Err(failure) => (None, Some(failure)),
    };
    // Dropped on return, so the progress line is gone before anything else is printed.
    let mut counter = Counter::on_stderr();
    let mut doctor = Doctor::new(host.php(&args.php), extension);
    if let Some(root) = root {
        doctor = doctor.with_root(root.path);
    }
    let mut report = doctor.examine(&mut |progress| counter.draw(progress));
    report.pool = Some(pool());
    if let Some(failure) = problem {
        report.ok = false;
        report.extension.problem = Some(failure.to_string());
    }
    report
}
