//! Which names have secret values.

/// Parts that make a name secret wherever they occur; `_` and `-` are ignored.
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

/// Ends that make a name harmless: `InvalidTokenException: the text of it`.
const HARMLESS_ENDS: [&str; 2] = ["exception", "error"];

/// Headers whose whole line is the value.
const HEADERS: [&str; 4] = ["authorization", "proxyauthorization", "cookie", "setcookie"];

/// Words between `Authorization:` and the secret: the registered schemes that are in use.
const SCHEMES: [&str; 6] = ["bearer", "basic", "digest", "token", "apikey", "negotiate"];

/// Further ends that make a variable's name secret: `STRIPE_KEY`, but not `MONKEY`; `DB_PWD`, but
/// not the working directory's `PWD` and `OLDPWD`; `GITHUB_PAT`, a personal access token.
const VARIABLE_ENDS: [&str; 8] = [
    "_key", "_keys", "_salt", "_pwd", "_pw", "_auth", "_pat", "pass",
];

/// A part that makes a variable's name secret: anyone who has the address may call it.
const VARIABLE_PART: &str = "webhook";

/// Variable names that end like those of secret keys, but belong to databases and routers.
const OTHER_KEYS: [&str; 7] = [
    "foreign_key",
    "hash_key",
    "partition_key",
    "primary_key",
    "range_key",
    "route_key",
    "sort_key",
];

/// Ends of variable names that describe a secret, or where it is.
const ABOUT: [&str; 26] = [
    "_file",
    "_path",
    "_dir",
    "_name",
    "_ttl",
    "_lifetime",
    "_expiry",
    "_length",
    "_algorithm",
    "_algo",
    "_issuer",
    "_hasher",
    "_tokens",
    "public_key",
    "_cookie",
    "_timeout",
    "_domain",
    "_endpoint",
    "_token_url",
    "_token_uri",
    "_driver",
    "_provider",
    "_prefix",
    "_header",
    "_table",
    "_broker",
];

/// Whether the value of something called `name` must be masked.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let plain = plain(name);
    (has_secret_part(&plain) || ENDS.iter().any(|end| plain.ends_with(end)))
        && !HARMLESS_ENDS.iter().any(|end| plain.ends_with(end))
}

/// Whether a variable of the environment, or a parameter in one, holds a secret by its name.
pub(crate) fn is_secret_variable(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let ends = |list: &[&str]| list.iter().any(|end| lower.ends_with(end));
    let is_so = has_secret_part(&plain(name)) || ends(&VARIABLE_ENDS);
    (is_so || lower.contains(VARIABLE_PART))
        && !ends(&ABOUT)
        && !OTHER_KEYS.contains(&lower.as_str())
}

fn has_secret_part(plain: &str) -> bool {
    PARTS.iter().any(|part| plain.contains(part))
}

/// Whether `name` is that of a header whose value is the rest of its line.
pub(crate) fn is_header_name(name: &str) -> bool {
    HEADERS.contains(&plain(name).as_str())
}

/// Whether `word` is the scheme before the credentials of an `Authorization` header.
pub(crate) fn is_scheme(word: &str) -> bool {
    SCHEMES.contains(&plain(word).as_str())
}

/// A name in lower case, without `_` and `-`.
fn plain(name: &str) -> String {
    name.bytes()
        .filter(|b| !matches!(b, b'_' | b'-'))
        .map(|b| char::from(b.to_ascii_lowercase()))
        .collect()
}
