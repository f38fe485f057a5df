//! Where the session comes from: the one place that knows who implements it.

use altair_engine::shell::{ApplicationSession, Session};
use altair_engine::{EvalRequest, Evaluator};

use crate::failure::Failure;

/// A session for `request`, whose snippet is empty. It has not booted yet.
///
/// # Errors
///
/// If the request cannot be carried out.
pub fn session(evaluator: &Evaluator, request: EvalRequest) -> Result<Box<dyn Session>, Failure> {
    Ok(Box::new(ApplicationSession::new(
        evaluator.clone(),
        request,
    )))
}
