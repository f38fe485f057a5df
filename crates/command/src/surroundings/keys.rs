//! Keys and credentials in a home, by the names that programs give them.

use std::path::{Path, PathBuf};

use altair_sandbox::Place;

/// Directories of toolchains in a home: what is shown of it, under a layer whose changes are thrown
/// away.
pub(crate) const TOOLCHAINS: &[&str] = &[
    ".cargo",
    ".rustup",
    ".npm",
    ".nvm",
    ".cache",
    ".composer",
    ".config/composer",
    ".local/bin",
    ".pyenv",
    ".m2",
];

/// Those that hold programs or sources which are read and not written: what a home without mounts
/// can link to. The others are caches and settings, whose programs stop where they cannot write.
pub(crate) const LINKED: &[&str] = &[".cargo", ".rustup", ".nvm", ".pyenv"];

/// Below a home; `*` in a name stands for any text.
const IN_HOME: &[&str] = &[
    // Keys.
    ".ssh",
    ".gnupg",
    ".pki",
    ".putty",
    ".config/sops",
    ".config/age",
    ".password-store",
    ".local/share/gopass",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".config/op",
    ".config/1Password",
    ".config/Bitwarden*",
    ".config/keepassxc",
    ".vault-token",
    ".local/share/mkcert",
    // Clouds, clusters and registries.
    ".aws",
    ".azure",
    ".kube",
    ".minikube",
    ".docker",
    ".config/containers",
    ".config/gcloud",
    ".boto",
    ".s3cfg",
    ".oci",
    ".bluemix",
    ".config/doctl",
    ".config/hcloud",
    ".config/helm",
    ".config/rclone",
    ".config/filezilla",
    ".lftp",
    ".ncftp",
    ".smbcredentials",
    ".curlrc",
    ".wgetrc",
    ".config/heroku",
    ".local/share/heroku",
    ".config/flyctl",
    ".fly",
    ".config/netlify",
    ".config/vercel",
    ".local/share/com.vercel.cli",
    ".config/stripe",
    ".config/ngrok",
    ".ngrok2",
    ".terraform.d",
    ".terraformrc",
    ".pulumi",
    ".cloudflared",
    ".supabase",
    ".railway",
    ".circleci",
    ".mc",
    ".config/argocd",
    ".sentryclirc",
    // Forges.
    ".config/gh",
    ".config/hub",
    ".config/glab-cli",
    ".config/tea",
    ".subversion/auth",
    ".git-credentials",
    ".config/git/credentials",
    ".cache/git",
    ".netrc",
    ".authinfo*",
    ".env",
    // Package managers.
    ".npmrc",
    ".yarnrc*",
    ".pypirc",
    ".config/configstore",
    ".config/pip",
    ".pip",
    ".config/pypoetry",
    ".gem/credentials",
    ".bundle",
    ".cargo/credentials*",
    ".local/share/uv/credentials",
    ".sbt/.credentials",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".m2/settings*",
    ".gradle/gradle.properties",
    ".nuget",
    ".nvm/versions/node/*/etc/npmrc",
    ".pyenv/versions/*/pip.conf",
    ".config/nix",
    // Databases.
    ".my.cnf",
    ".mylogin.cnf",
    ".pgpass",
    ".config/mycli",
    ".config/pgcli",
    ".local/share/DBeaverData",
    ".dbshell",
    ".databrickscfg",
    ".snowsql",
    ".dbt",
    ".erlang.cookie",
    // What was typed.
    ".*_history",
    ".zhistory",
    ".histfile",
    ".config/nushell/history*",
    ".local/share/atuin",
    ".cache/cliphist",
    ".local/share/fish",
    ".viminfo",
    ".lesshst",
    ".local/state/altair",
    // Agents.
    ".claude*",
    ".config/claude*",
    ".config/Claude*",
    ".codex",
    ".anthropic",
    ".config/anthropic",
    ".openai",
    ".config/io.datasette.llm",
    ".config/goose",
    ".codeium",
    ".copilot",
    ".factory",
    ".qwen",
    ".gemini",
    ".cursor",
    ".config/Cursor",
    ".config/Code*",
    ".vscode-server",
    ".config/JetBrains",
    ".local/share/JetBrains",
    ".config/Postman",
    ".wakatime.cfg",
    ".continue",
    ".kaggle",
    ".huggingface/token",
    ".jupyter",
    ".aider*",
    ".config/github-copilot",
    ".config/opencode",
    ".local/share/opencode",
    ".config/altair",
    ".cache/JetBrains",
    ".cache/github-copilot",
    // Browsers, mail and the desktop.
    ".Xauthority",
    ".vnc",
    ".ICEauthority",
    ".cache/keyring*",
    ".mozilla",
    ".thunderbird",
    ".msmtprc",
    ".mbsyncrc",
    ".fetchmailrc",
    ".config/mozilla",
    ".config/google-chrome*",
    ".config/chromium*",
    ".config/BraveSoftware",
    ".config/microsoft-edge*",
    ".config/opera*",
    ".config/vivaldi*",
    ".config/Slack",
    ".config/Signal",
    ".config/discord",
    ".var/app",
    "snap",
    ".cache/mozilla",
    ".cache/thunderbird",
    ".cache/google-chrome*",
    ".cache/chromium*",
    ".cache/BraveSoftware",
    ".cache/microsoft-edge*",
    ".cache/opera*",
    ".cache/vivaldi*",
    ".cache/ms-playwright/mcp-*",
    ".cache/huggingface/token",
    ".cache/huggingface/stored_tokens",
    ".cache/claude*",
    // Money.
    ".bitcoin",
    ".ethereum",
    ".electrum",
];

/// In each of the toolchains' directories.
const IN_TOOLCHAIN: &[&str] = &[
    "auth.json",
    "credentials*",
    ".npmrc",
    ".netrc",
    ".git-credentials",
    ".pypirc",
    ".yarnrc*",
    ".env*",
];

/// Files of credentials among programs, which have sources like `credentials.py`.
const AMONG_PROGRAMS: &[&str] = &[
    "auth.json",
    "credentials",
    "credentials.json",
    "credentials.toml",
    ".npmrc",
    ".netrc",
    ".git-credentials",
    ".pypirc",
    ".yarnrc*",
    ".env*",
];

/// Git's settings in a home. They are hidden if they hold credentials, too.
const OF_GIT: &[&str] = &[".gitconfig", ".config/git/config"];

/// Bytes of settings that are looked at. Larger ones are hidden.
const SETTINGS_BYTES: u64 = 64 << 10;

/// Whether a file among programs holds credentials, by its name.
pub(super) fn is_credential(name: &str) -> bool {
    AMONG_PROGRAMS.iter().any(|pattern| matches(pattern, name))
}

/// The keys and credentials that there are below a home, without links: as the kernel has them. They
/// are looked up as the calling thread's user.
pub(crate) fn below(home: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for pattern in IN_HOME {
        expand(home, pattern, &mut found);
    }
    for toolchain in TOOLCHAINS {
        for pattern in IN_TOOLCHAIN {
            expand(&home.join(toolchain), pattern, &mut found);
        }
    }
    let settings = OF_GIT.iter().map(|name| home.join(name));
    found.extend(settings.filter(|path| holds_credentials(path)));
    let real = |path: &PathBuf| path.canonicalize().ok();
    found.iter().filter_map(real).collect()
}

/// Whether git's settings hold a password, a header with a token, or an address with either
/// (git-config(1), `http.extraHeader`, `sendemail.smtpPass`, `url.<base>.insteadOf`).
fn holds_credentials(path: &Path) -> bool {
    let Ok(real) = path.canonicalize() else {
        return false;
    };
    let (Some(directory), Some(name)) = (real.parent(), real.file_name()) else {
        return false;
    };
    let read = Place::find(directory).and_then(|of| of.read(Path::new(name), SETTINGS_BYTES));
    let Ok(content) = read else {
        return true;
    };
    let text = String::from_utf8_lossy(&content).to_lowercase();
    let has_user = |address: &str| {
        let end = address.find(['/', '"', '\n']).unwrap_or(address.len());
        address[..end].contains('@')
    };
    let words = [
        "extraheader",
        "authorization",
        "token",
        "password",
        "smtppass",
    ];
    let schemes = ["https://", "http://"];
    words.iter().any(|word| text.contains(word))
        || schemes
            .iter()
            .any(|scheme| text.split(scheme).skip(1).any(has_user))
}

/// Whether a name is what a pattern says.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => name == pattern,
        Some((before, after)) => name
            .strip_prefix(before)
            .is_some_and(|rest| rest.ends_with(after)),
    }
}

/// Adds what matches a pattern below a directory.
fn expand(directory: &Path, pattern: &str, found: &mut Vec<PathBuf>) {
    let (name, rest) = match pattern.split_once('/') {
        Some((name, rest)) => (name, Some(rest)),
        None => (pattern, None),
    };
    let go_on = |path: PathBuf, found: &mut Vec<PathBuf>| match rest {
        Some(rest) => expand(&path, rest, found),
        None => found.push(path),
    };
    if !name.contains('*') {
        return go_on(directory.join(name), found);
    }
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries {
        if matches(name, &entry.file_name().to_string_lossy()) {
            go_on(entry.path(), found);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_git_are_hidden_if_they_hold_credentials() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".gitconfig");
        for (text, hidden) in [
            ("[user]\nname = A\nemail = a@example.invalid\n", false),
            ("[url \"ssh://git@example.invalid/\"]\n", false),
            (
                "[url \"https://example.invalid/\"]\ninsteadOf = a@b:\n",
                false,
            ),
            ("[url \"https://a:b@example.invalid/\"]\n", true),
            ("[url \"https://secret@example.invalid/\"]\n", true),
            ("[http]\nextraHeader = \"A: b\"\n", true),
            ("[sendemail]\nsmtpPass = a\n", true),
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(holds_credentials(&path), hidden, "{text}");
        }
        assert!(!holds_credentials(&dir.path().join("nothing")));
    }

    #[test]
    fn sources_of_programs_are_no_credentials() {
        for name in [
            "credentials",
            "credentials.toml",
            ".env",
            ".env.local",
            ".yarnrc.yml",
        ] {
            assert!(is_credential(name), "{name}");
        }
        for name in ["credentials.py", "credentials.d.ts", "env", "auth.js"] {
            assert!(!is_credential(name), "{name}");
        }
    }

    #[test]
    fn keys_are_found_by_name_and_where_links_lead() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        let path = |name: &str| home.join(name);
        for name in [
            "dotfiles/ssh/id",
            ".cargo/credentials.toml",
            ".cargo/bin/cargo",
            ".nvm/versions/node/v1/etc/npmrc",
            ".m2/settings-security.xml",
            ".psql_history",
            ".composer/auth.json",
            "notes",
        ] {
            std::fs::create_dir_all(path(name).parent().unwrap()).unwrap();
            std::fs::write(path(name), "").unwrap();
        }
        std::os::unix::fs::symlink("dotfiles/ssh", path(".ssh")).unwrap();
        std::os::unix::fs::symlink("nowhere", path(".netrc")).unwrap();
        let mut found = below(&home);
        found.sort();
        found.dedup();
        let mut expected: Vec<PathBuf> = [
            "dotfiles/ssh",
            ".cargo/credentials.toml",
            ".nvm/versions/node/v1/etc/npmrc",
            ".m2/settings-security.xml",
            ".psql_history",
            ".composer/auth.json",
        ]
        .map(path)
        .to_vec();
        expected.sort();
        assert_eq!(found, expected);
    }
}
