//! How the command ends.

/// An exit code, by what it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It did what was asked, and what it looked at was well.
    Clean,
    /// It did what was asked, and that was not well: a run that was not clean, a guard that is not
    /// in force.
    NotClean,
    /// Wrong usage, or what was asked could not be started.
    Usage,
}

impl Exit {
    /// The number that the shell sees.
    pub fn code(self) -> u8 {
        match self {
            Self::Clean => 0,
            Self::NotClean => 1,
            Self::Usage => 2,
        }
    }
}
