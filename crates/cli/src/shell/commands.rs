//! Commands of the shell itself. They begin with a colon, as no PHP does.

/// What can be asked besides PHP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Lists the commands.
    Help,
    /// Boots anew.
    Restart,
    /// Shows what was written.
    Changes,
    /// Shows what was refused.
    Blocked,
    /// Shows the last lines.
    History,
    /// Leaves.
    Quit,
}

impl Command {
    /// All of them, in the order of the help.
    pub const ALL: [Self; 6] = [
        Self::Help,
        Self::Restart,
        Self::Changes,
        Self::Blocked,
        Self::History,
        Self::Quit,
    ];

    /// How it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Help => ":help",
            Self::Restart => ":restart",
            Self::Changes => ":changes",
            Self::Blocked => ":blocked",
            Self::History => ":history",
            Self::Quit => ":quit",
        }
    }

    /// What it does, in a line.
    fn help(self) -> &'static str {
        match self {
            Self::Help => "lists what there is",
            Self::Restart => "boots the application anew; variables are lost",
            Self::Changes => "shows the files that were written so far",
            Self::Blocked => "shows what was refused so far, and what allows it",
            Self::History => "shows the last lines that were typed",
            Self::Quit => "leaves, as exit, quit and Ctrl-D do",
        }
    }

    /// The command of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|command| command.name() == name)
    }
}

/// All commands, a line each, and what else there is to know.
pub fn help() -> String {
    let width = Command::ALL.map(|command| command.name().len());
    let width = width.into_iter().max().unwrap_or_default();
    let mut out = String::new();
    for command in Command::ALL {
        let (name, help) = (command.name(), command.help());
        out.push_str(&format!("  {name:width$}  {help}\n"));
    }
    out.push_str(
        "  Everything else is PHP. container($id) is an entry of the container, $_ the last value,\n  \
         $_e the last exception. Tab completes, Ctrl-C ends a line, Ctrl-R searches.\n",
    );
    out
}

/// An answer to a command that does not exist.
pub fn unknown(name: &str) -> String {
    let names = Command::ALL.map(Command::name).join(", ");
    format!("there is no {name}; there are {names}")
}
