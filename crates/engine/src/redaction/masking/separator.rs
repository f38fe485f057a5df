//! What binds a value to a name.

/// What stands between a name and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Separator {
    /// `=`, `=>`, `??=`, `.=`, `==` and their like.
    Assign,
    /// `:`.
    Colon,
    /// `,` after a name in quotes: `define('API_KEY', …)`, `['--token', …]`.
    Comma,
    /// `(` of a call: `setPassword(…)`.
    Call,
    /// Only space: `--token …`, `Bearer …`, SQL's `PASSWORD '…'`.
    Space,
}

/// The separator at `at`, and where it ends. The caller detects [`Separator::Space`].
pub(super) fn at(bytes: &[u8], at: usize) -> Option<(Separator, usize)> {
    let rest = bytes.get(at..)?;
    match rest {
        [b',', ..] => return Some((Separator::Comma, at + 1)),
        [b'(', ..] => return Some((Separator::Call, at + 1)),
        [b':', b':', ..] | [b':', b'/', b'/', ..] => return None,
        [b':', next, ..] if *next != b'=' => return Some((Separator::Colon, at + 1)),
        [b':'] => return Some((Separator::Colon, at + 1)),
        _ => {}
    }
    let lead = rest
        .iter()
        .take(2)
        .take_while(|b| b"?.!:+|".contains(b))
        .count();
    let equals = rest[lead..]
        .iter()
        .take(3)
        .take_while(|b| **b == b'=')
        .count();
    if equals == 0 {
        return None;
    }
    let arrow = usize::from(rest.get(lead + equals) == Some(&b'>'));
    Some((Separator::Assign, at + lead + equals + arrow))
}
