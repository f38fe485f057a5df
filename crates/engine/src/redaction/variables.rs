//! Which variables hold secrets.

use std::collections::HashSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode;
use serde_json::Value;

use super::common_words::{is_known_default, is_weak};
use super::{SHORTEST, Variable, is_secret_variable, url_password};

/// Maximum characters of a variable's name that are shown; a host's environment may hold any bytes.
const NAME_MAX: usize = 128;

/// Maximum bytes of a secret; a longer value is split into several.
const LONGEST: usize = 4096;

/// Minimum bytes of a URL's user to count as a token.
const TOKEN_MIN: usize = 20;

/// Parameter names that mark a password in a DSN, but not as names of variables.
const PARAMETERS: [&str; 3] = ["pass", "pwd", "auth"];

/// Whether a variable may hold a secret: by its name, or because its value may contain one.
#[must_use]
pub fn is_secret(name: &[u8], value: &[u8]) -> bool {
    (is_named_so(name) && counts(value)) || inside(value).iter().any(|part| counts(part))
}

/// Whether a value is searched for at all.
fn counts(value: &[u8]) -> bool {
    value.len() >= SHORTEST || is_known_default(value)
}

/// Whether the parameter `name` of `name=value` holds a password or another secret.
pub(super) fn is_parameter(name: &str) -> bool {
    let name = name.trim();
    is_secret_variable(name) || PARAMETERS.iter().any(|it| name.eq_ignore_ascii_case(it))
}

fn is_named_so(name: &[u8]) -> bool {
    is_secret_variable(&String::from_utf8_lossy(name))
}

/// Maximum number of secrets, and of their bytes: each has a dozen forms.
const SECRETS_MAX: usize = 1000;
const SECRETS_MAX_BYTES: usize = 256 << 10;

/// The secrets in variables, each with the first name that has it; at most [`SECRETS_MAX`]. Single
/// lines of multi-line values come last.
pub(super) fn secrets(variables: &[Variable]) -> Vec<(String, Vec<u8>)> {
    let mut known = HashSet::new();
    let mut secrets = Vec::new();
    let mut room = SECRETS_MAX_BYTES;
    let mut add = |name: &[u8], value: &[u8]| {
        if secrets.len() < SECRETS_MAX && value.len() <= room && known.insert(value.to_vec()) {
            room -= value.len();
            secrets.push((shown(name), value.to_vec()));
        }
        secrets.len() < SECRETS_MAX
    };
    for (name, value) in variables {
        let own = is_named_so(name).then(|| spellings(value));
        for value in own.into_iter().flatten().chain(inside(value)) {
            // Parts bound the comparison at each position of a text.
            if !parts(&value).all(|part| add(name, part)) {
                return secrets;
            }
        }
    }
    for (name, value) in variables.iter().filter(|(name, _)| is_named_so(name)) {
        for value in spellings(value) {
            if !lines(&value).all(|line| add(name, line)) {
                return secrets;
            }
        }
    }
    secrets
}

/// Names of the variables whose value, or a password in it, is weak (see `common_words`).
pub(crate) fn weak(variables: &[Variable]) -> Vec<String> {
    let mut names = Vec::new();
    for (name, value) in variables {
        let own = is_named_so(name).then(|| value.clone());
        let mut values = own.into_iter().chain(inside(value));
        let name = shown(name);
        if values.any(|value| counts(&value) && is_weak(&value)) && !names.contains(&name) {
            names.push(name);
        }
        if names.len() == WEAK_MAX {
            break;
        }
    }
    names
}

/// Maximum number of variables with weak secrets that are reported.
const WEAK_MAX: usize = 20;

/// A value in parts of [`LONGEST`] bytes; nothing if it is too short to be searched for.
fn parts(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = (value.len() < LONGEST + SHORTEST).then_some(value);
    let pieces = value.chunks(LONGEST).filter(move |_| whole.is_none());
    whole.into_iter().chain(pieces).filter(|part| counts(part))
}

/// The lines of a multi-line value that are secrets by themselves: those of a key, without its
/// header and footer.
fn lines(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let has_several = value.trim_ascii().contains(&b'\n');
    // `spellings` already covers the strings in JSON.
    let is_json = matches!(value.trim_ascii_start().first(), Some(b'{' | b'['));
    let lines = value.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    lines
        .filter(move |_| has_several && !is_json)
        .filter(|line| line.len() >= SHORTEST && !line.starts_with(b"-----"))
        .filter(|line| !line.iter().any(u8::is_ascii_whitespace) && !is_weak(line))
        .flat_map(parts)
}

/// A value as its variable holds it, and as applications use it.
fn spellings(value: &[u8]) -> Vec<Vec<u8>> {
    let mut spellings = vec![value.to_vec(), value.trim_ascii().to_vec()];
    let Ok(text) = std::str::from_utf8(value) else {
        return spellings;
    };
    let mut add = |text: String| spellings.push(text.into_bytes());
    // A key with escaped or CRLF line ends.
    if text.contains("\\n") {
        add(text.replace("\\n", "\n"));
    }
    if text.contains("\r\n") {
        add(text.replace("\r\n", "\n"));
    }
    if let Ok(json) = serde_json::from_str(text) {
        strings(json).into_iter().for_each(&mut add);
    }
    // Laravel's keys.
    if let Some(encoded) = text.strip_prefix("base64:") {
        add(encoded.to_owned());
        spellings.extend(STANDARD.decode(encoded));
    }
    spellings
}

/// The strings in a JSON array or object; none for a plain string.
fn strings(json: Value) -> Vec<String> {
    match json {
        Value::Array(items) => items.into_iter().flat_map(leaves).collect(),
        Value::Object(map) => map.into_iter().flat_map(|(_, item)| leaves(item)).collect(),
        _ => Vec::new(),
    }
}

fn leaves(json: Value) -> Vec<String> {
    match json {
        Value::String(text) => vec![text],
        other => strings(other),
    }
}

/// A name as answers show it.
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

/// Maximum number of URLs examined in one value, and of bytes in each.
const URLS_MAX: usize = 100;
const URL_MAX: usize = 2 * LONGEST;

/// Passwords of URLs, and values of secret-looking parameters, in the value of any variable:
/// `DATABASE_URL=mysql://shop:password@db/shop`, `DSN=pgsql:host=db;password=…`.
fn inside(value: &[u8]) -> Vec<Vec<u8>> {
    let Ok(text) = std::str::from_utf8(value) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut add = |secret: &str| {
        found.push(secret.as_bytes().to_vec());
        found.push(percent_decode(secret.as_bytes()).collect());
    };
    for (at, _) in text.match_indices("://").take(URLS_MAX) {
        let start = at + "://".len();
        let rest = &text[start..];
        let rest = &rest[..rest.floor_char_boundary(URL_MAX)];
        // Ends with the text, or where the next URL of a list begins.
        let run = rest
            .split([' ', '\t', '\n', '"', '\''])
            .next()
            .unwrap_or(rest);
        let run = match run.find("://") {
            Some(next) => run[..next]
                .rsplit_once([',', ';'])
                .map_or(run, |(run, _)| run),
            None => run,
        };
        // Both the password and the part after the authority may contain an `@`.
        let authority = run.split(['/', '?', '#']).next().unwrap_or(run);
        for part in [authority, run] {
            let last_at = part.rfind('@').map(|at| start + at);
            if let Some(password) = url_password(text, start..start + part.len(), last_at) {
                add(&text[password]);
            }
        }
        // A token as the user (GitHub), or a password without a user (Redis).
        let is_redis = ["redis", "rediss"]
            .iter()
            .any(|it| text[..at].ends_with(it));
        if let Some((user, _)) = authority.rsplit_once('@')
            && !user.contains(':')
            && (user.len() >= TOKEN_MIN || is_redis)
        {
            add(user);
        }
    }
    for pair in text.split([';', '&', '?', ',', ' ', '\t', '\n']) {
        if let Some((name, secret)) = pair.split_once('=')
            && is_parameter(name)
        {
            add(secret.trim_matches(['"', '\'']));
        }
    }
    found
}
