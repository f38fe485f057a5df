//! Why an evaluation could not be started.

/// What stops an evaluation before there is a child to report.
///
/// What goes wrong *inside* the child is never an error: it is an [`EvalResult`](crate::EvalResult).
#[derive(Debug, thiserror::Error)]
pub enum EvalError {
    /// The request cannot be carried out as it stands; the message names the part and the remedy.
    #[error("{0}")]
    InvalidRequest(String),
    /// The child could not be started, or a required guard is not to be had.
    #[error("{0}")]
    Launch(String),
    /// The [`Observer`](crate::Observer) ended the evaluation; the child is gone.
    #[error("the evaluation was interrupted")]
    Interrupted,
}
