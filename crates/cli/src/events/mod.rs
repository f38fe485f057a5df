//! `altair events:tail`: the end of the audit log and the lines added to it.

mod lines;
mod log;
mod print;

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use altair_engine::audit;

use crate::args::EventsArgs;
use crate::exit::Exit;
use crate::failure::{Failure, reason, say};
use crate::human::Theme;
use crate::output::{self, Reader};
use crate::root::Root;
use log::Follower;
use print::Printer;

/// Time between two checks of the log: short for a person, long for a processor.
const INTERVAL: Duration = Duration::from_millis(200);

/// Shows the last events, and follows the log if requested.
///
/// # Errors
///
/// A bad root, or a log that cannot be read.
pub fn run(args: &EventsArgs) -> Result<Exit, Failure> {
    let root = Root::of(args.root.clone())?;
    root.show();
    let root = root.path;
    check(&root)?;
    let path = audit::path(&root);
    let printer = Printer {
        format: args.format,
        theme: Theme::new(output::takes_color()),
        for_terminal: output::is_terminal(),
    };
    let Some(file) = log::open(&path)? else {
        let shown = path.display();
        if !args.follow {
            say(&format!(
                "no audit log at {shown}: nothing was run with --unsafe here yet"
            ));
            return Ok(Exit::Clean);
        }
        say(&format!(
            "no audit log at {shown} yet; waiting for the first run with --unsafe"
        ));
        return follow(Follower::new(path, None), printer);
    };
    let broken = |error| log::unreadable(&path, &error);
    let length = file.metadata().map_err(broken)?.len();
    let end = if args.follow {
        lines::end_of_whole_lines(&file, length).map_err(broken)?
    } else {
        length
    };
    if show_last(&file, end, args.lines, printer).map_err(broken)?? == Reader::Gone || !args.follow
    {
        return Ok(Exit::Clean);
    }
    follow(Follower::new(path, Some((file, end))), printer)
}

fn check(root: &Path) -> Result<(), Failure> {
    let refuse = |why: &str| {
        Failure::new(format!(
            "the project root '{}' cannot be used: {why}",
            root.display()
        ))
    };
    match root.metadata() {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(refuse("it is not a directory")),
        Err(error) => Err(refuse(&reason(&error))),
    }
}

/// Prints the last events. The outer error is from reading, the inner one from writing.
fn show_last(
    file: &File,
    end: u64,
    count: usize,
    printer: Printer,
) -> std::io::Result<Result<Reader, Failure>> {
    let lines = lines::last(file, end, count, Printer::accepts)?;
    let text: Vec<u8> = lines
        .iter()
        .filter_map(|line| printer.print(line))
        .flatten()
        .collect();
    Ok(output::print(&text))
}

/// Prints new events until Ctrl-C or until the reader closes standard output.
fn follow(mut follower: Follower, printer: Printer) -> Result<Exit, Failure> {
    loop {
        let mut text = Vec::new();
        follower.poll(|line| text.extend(printer.print(line).into_iter().flatten()))?;
        if output::print(&text)? == Reader::Gone || output::wait(INTERVAL) == Reader::Gone {
            return Ok(Exit::Clean);
        }
    }
}
