//! Which variables hold secrets.

use percent_encoding::percent_decode;

use super::SHORTEST;
use super::name::is_secret_variable;
use crate::audit::redact::value::url_password;

/// Characters of a variable's name that are shown; a host's environment may hold any bytes.
const NAME_MAX: usize = 128;

/// Names of a DSN's parameters that hold a password, where a variable so named would not.
const PARAMETERS: [&str; 3] = ["pass", "pwd", "auth"];

/// Whether a variable may hold a secret: by its name, or because its value may have one inside.
#[must_use]
pub fn is_secret(name: &[u8], value: &[u8]) -> bool {
    value.len() >= SHORTEST && (is_named_so(name) || !inside(value).is_empty())
}

fn is_named_so(name: &[u8]) -> bool {
    is_secret_variable(&String::from_utf8_lossy(name))
}

/// The secrets in variables, each with the first name that has it.
pub(super) fn secrets<'a>(
    variables: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
) -> Vec<(String, Vec<u8>)> {
    let mut secrets: Vec<(String, Vec<u8>)> = Vec::new();
    for (name, value) in variables {
        let own = is_named_so(name).then(|| value.to_vec());
        for value in own.into_iter().chain(inside(value)) {
            if value.len() >= SHORTEST && secrets.iter().all(|(_, known)| *known != value) {
                secrets.push((shown(name), value));
            }
        }
    }
    secrets
}

/// A name as it stands in an answer.
fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name)
        .chars()
        .take(NAME_MAX)
        .map(|c| {
            if c.is_ascii_graphic() && c != ']' {
                c
            } else {
                '?'
            }
        })
        .collect()
}

/// Passwords of URLs, and values of parameters whose names look secret, in the value of a variable
/// of any name: `DATABASE_URL=mysql://shop:password@db/shop`, `DSN=pgsql:host=db;password=…`.
fn inside(value: &[u8]) -> Vec<Vec<u8>> {
    let Ok(text) = std::str::from_utf8(value) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut add = |secret: &str| {
        found.push(secret.as_bytes().to_vec());
        found.push(percent_decode(secret.as_bytes()).collect());
    };
    for (at, _) in text.match_indices("://") {
        let start = at + "://".len();
        let run = text[start..].split([' ', '\t', '\n', '"', '\'']).next();
        let end = start + run.map_or(0, str::len);
        let last_at = text[start..end].rfind('@').map(|at| start + at);
        if let Some(password) = url_password(text, start..end, last_at) {
            add(&text[password]);
        }
    }
    for pair in text.split([';', '&', '?', ',', ' ', '\t', '\n']) {
        if let Some((name, secret)) = pair.split_once('=')
            && (is_named_so(name.trim().as_bytes()) || PARAMETERS.contains(&name.trim()))
        {
            add(secret.trim_matches(['"', '\'']));
        }
    }
    found
}
