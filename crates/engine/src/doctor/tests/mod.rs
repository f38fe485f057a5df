//! How the examination judges its findings.
#![allow(clippy::unwrap_used)]

mod advice;
mod judge;
mod machine;

use super::attacks::PLANS;
use crate::guards::Guard;

#[test]
fn every_guard_is_attacked() {
    let attacked: Vec<_> = PLANS.iter().map(|plan| plan.guard).collect();
    assert_eq!(attacked, Guard::ALL);
}

#[test]
fn no_byte_of_a_path_ends_its_php_literal() {
    use super::scratch_project::literal;
    assert_eq!(
        literal("/tmp/it's \"$x\\\n".as_ref()),
        "\"/tmp/it\\x27s\\x20\\x22\\x24x\\x5c\\x0a\""
    );
}
