//! Why a command was not run.

use altair_engine::programs::Forbidden;

/// Why a command was not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// The policy, the driver or the command is wrong: a sentence for the user.
    #[error("{0}")]
    Invalid(String),
    /// The command could not be started: a sentence for the user.
    #[error("{0}")]
    Start(String),
    /// The caller may not start the driver's program.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// The caller ended it.
    #[error("The command was interrupted.")]
    Interrupted,
    /// A layer could not be applied: a sentence for the user.
    #[error("{0}")]
    Apply(String),
}
