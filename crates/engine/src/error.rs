//! Why an evaluation could not be started.

use crate::programs::Forbidden;

/// An error that stops an evaluation before a child can report.
///
/// A failure *inside* the child is never an error: it is an [`EvalResult`](crate::EvalResult).
#[derive(Debug, thiserror::Error)]
pub enum EvalError {
    /// The request cannot be carried out as it is; the message names the part and the remedy.
    #[error("{0}")]
    InvalidRequest(String),
    /// The child could not be started, or a required guard is unavailable.
    #[error("{0}")]
    Launch(String),
    /// The host may start only confined programs.
    #[error("{0}")]
    Forbidden(Forbidden),
    /// The [`Observer`](crate::Observer) ended the evaluation; the child is gone.
    #[error("the evaluation was interrupted")]
    Interrupted,
}

/// An operating-system error as text for users, without Rust's `(os error 2)`.
pub(crate) fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error")
        .next()
        .unwrap_or(&text)
        .to_lowercase()
}
