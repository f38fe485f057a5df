//! Weak secrets: common words, which many texts contain with another meaning.

use percent_encoding::percent_decode;

/// Maximum characters of a value of letters that counts as a word, and of a number that counts as
/// weak. Generated values are longer: a Google app password has sixteen letters.
const LETTERS_MAX: usize = 12;
const DIGITS_MAX: usize = 8;

/// Maximum bytes of digits and signs around a known default that leave it weak: `secret123`,
/// `!ChangeMe!`.
const AROUND_MAX: usize = 4;

/// Default and example values, in lower case.
const DEFAULTS: [&str; 39] = [
    "1234",
    "12345",
    "1q2w3e4r",
    "admin",
    "administrator",
    "app",
    "change-me",
    "change_me",
    "changeme",
    "demo",
    "dev",
    "development",
    "forge",
    "guest",
    "homestead",
    "laravel",
    "letmein",
    "local",
    "mysql",
    "p@ssw0rd",
    "p4ssw0rd",
    "pass",
    "passw0rd",
    "password",
    "pgsql",
    "postgres",
    "qwerty",
    "root",
    "s3cr3t",
    "s3cret",
    "sail",
    "secret",
    "symfony",
    "test",
    "toor",
    "user",
    "vagrant",
    "welcome",
    "your-password",
];

/// Whether a value is a word, a short number or a known default. Such a value protects nothing; it
/// is replaced only where it stands as a password.
pub(super) fn is_weak(value: &[u8]) -> bool {
    let decoded: Vec<u8> = percent_decode(value.trim_ascii()).collect();
    let Ok(text) = std::str::from_utf8(&decoded) else {
        return false;
    };
    is_word(text) || is_number(text) || is_default(text)
}

/// Whether a value is a known default, which may be shorter than `SHORTEST`.
pub(super) fn is_known_default(value: &[u8]) -> bool {
    std::str::from_utf8(value.trim_ascii()).is_ok_and(is_default)
}

/// Letters, in one case or with a capital first.
fn is_word(text: &str) -> bool {
    let is_of_one_case =
        text.chars().skip(1).all(|c| !c.is_uppercase()) || text.chars().all(|c| !c.is_lowercase());
    text.chars().count() <= LETTERS_MAX && text.chars().all(char::is_alphabetic) && is_of_one_case
}

fn is_number(text: &str) -> bool {
    text.len() <= DIGITS_MAX && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_default(text: &str) -> bool {
    let lower = text.to_lowercase();
    let word = lower.trim_matches(|c: char| !c.is_alphabetic());
    DEFAULTS.contains(&lower.as_str())
        || (lower.len() - word.len() <= AROUND_MAX && DEFAULTS.contains(&word))
}
