//! Which names have secret values.

/// Parts that make a name secret, wherever they stand in it, without `_` and `-`.
const PARTS: [&str; 24] = [
    "password",
    "passwd",
    "passphrase",
    "passwort",
    "secret",
    "token",
    "credential",
    "authorization",
    "bearer",
    "cookie",
    "jwt",
    "apikey",
    "appkey",
    "accesskey",
    "accountkey",
    "authkey",
    "encryptkey",
    "encryptionkey",
    "masterkey",
    "privatekey",
    "sharedkey",
    "signingkey",
    "sshkey",
    "storagekey",
];

/// Ends that make a name secret: `db_pass`, `MYSQL_PWD`, `REDISCLI_AUTH`.
const ENDS: [&str; 4] = ["pass", "pwd", "pw", "auth"];

/// Ends that make a name harmless all the same: `InvalidTokenException: the text of it`.
const HARMLESS_ENDS: [&str; 2] = ["exception", "error"];

/// Headers whose whole line is the value.
const HEADERS: [&str; 4] = ["authorization", "proxyauthorization", "cookie", "setcookie"];

/// Words between `Authorization:` and the secret: the registered schemes that are in use.
const SCHEMES: [&str; 6] = ["bearer", "basic", "digest", "token", "apikey", "negotiate"];

/// Whether the value of something called `name` is to be masked.
pub(super) fn is_secret_name(name: &str) -> bool {
    let plain = plain(name);
    let any = |list: &[&str], test: fn(&str, &str) -> bool| list.iter().any(|p| test(&plain, p));
    (any(&PARTS, |name, part| name.contains(part)) || any(&ENDS, |name, end| name.ends_with(end)))
        && !any(&HARMLESS_ENDS, |name, end| name.ends_with(end))
}

/// Whether `name` is that of a header whose value is the rest of its line.
pub(super) fn is_header_name(name: &str) -> bool {
    HEADERS.contains(&plain(name).as_str())
}

/// Whether `word` is the scheme before the credentials of an `Authorization` header.
pub(super) fn is_scheme(word: &str) -> bool {
    SCHEMES.contains(&plain(word).as_str())
}

/// A name without what its spellings differ in.
fn plain(name: &str) -> String {
    name.bytes()
        .filter(|b| !matches!(b, b'_' | b'-'))
        .map(|b| char::from(b.to_ascii_lowercase()))
        .collect()
}
