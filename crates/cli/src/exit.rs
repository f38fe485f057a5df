//! The exit codes of the command.

/// An exit code by its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The command succeeded, and its result was good.
    Clean,
    /// The command succeeded, but its result was not good: a run that was not clean, a guard that
    /// is not in force.
    NotClean,
    /// Wrong usage, or the command could not be started.
    Usage,
    /// The exit code of the command that was run.
    Of(u8),
}

impl Exit {
    /// The number for the shell.
    pub fn code(self) -> u8 {
        match self {
            Self::Clean => 0,
            Self::NotClean => 1,
            Self::Usage => 2,
            Self::Of(code) => code,
        }
    }
}
