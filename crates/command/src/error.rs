//! Why a command was not run.

/// Why a command was not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// The policy, the driver or the command is wrong: a sentence for the user.
    #[error("{0}")]
    Invalid(String),
    /// The command could not be started: a sentence for the user.
    #[error("{0}")]
    Start(String),
    /// The caller ended it.
    #[error("The command was interrupted.")]
    Interrupted,
    /// A layer could not be applied: a sentence for the user.
    #[error("{0}")]
    Apply(String),
}
