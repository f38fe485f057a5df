//! Passwords in URLs.

use std::ops::Range;

/// The password of the URL whose authority begins at `run.start`: the text between the first `:`
/// and `last_at`, the last `@` of the run. An unescaped `@` or `/` belongs to the password; a port
/// followed by a path with an `@` is not a password.
pub(crate) fn url_password(
    text: &str,
    run: Range<usize>,
    last_at: Option<usize>,
) -> Option<Range<usize>> {
    let last_at = last_at.filter(|at| *at >= run.start)?;
    let before = &text[run.start..last_at];
    let colon = before.find(':')?;
    if before[..colon].contains(['/', '?', '#']) {
        return None; // this `:` belongs to the path
    }
    let password = &before[colon + 1..];
    let first = password
        .split(['/', '?', '#', '@'])
        .next()
        .unwrap_or(password);
    let is_port = !first.is_empty()
        && first.bytes().all(|b| b.is_ascii_digit())
        && password[first.len()..].starts_with(['/', '?', '#']);
    (!is_port && !password.is_empty()).then_some(run.start + colon + 1..last_at)
}
