//! The PHP versions that this was tried with: `php-versions.txt`, which set-up and `./configure`
//! also read. The build script includes this file.

const TRIED: &str = include_str!("../../../php-versions.txt");

/// If set in the environment, the build accepts a PHP that was not tried.
pub const INSIST: &str = "ALTAIR_EVAL_UNTRIED_PHP";

/// Returns whether the PHP of this `PHP_VERSION_ID` was tried: 80200 means 8.2.0.
#[must_use]
pub fn is_tried(id: u32) -> bool {
    let series = format!("{}.{}", id / 10_000, id / 100 % 100);
    TRIED.split_whitespace().any(|tried| tried == series)
}

/// The versions in words: `8.2 to 8.5`.
#[must_use]
pub fn tried() -> String {
    let mut all = TRIED.split_whitespace();
    let first = all.next().unwrap_or_default();
    match all.next_back() {
        Some(last) => format!("{first} to {last}"),
        None => first.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_outside_of_the_list_are_not_tried() {
        assert!([80200, 80299, 80400, 80599].into_iter().all(is_tried));
        assert!(
            ![0, 70400, 80100, 80199, 80600, 90200]
                .into_iter()
                .any(is_tried)
        );
        assert_eq!(tried(), "8.2 to 8.5");
    }
}
