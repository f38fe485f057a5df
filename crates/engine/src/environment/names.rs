//! The lists of variables, by what they are to a run.
//!
//! A trailing `*` matches any rest. Names that steer something or are credentials match in any case, as
//! some programs read them so (npm's `npm_config_…`); what a terminal sets has one spelling.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// What steers a loader, an allocator or an interpreter. No confined run and no command gets these,
/// whoever asks for them: each could make the program another one before its guards are on.
pub const LOADERS: &[&str] = &[
    "LD_*",
    "DYLD_*",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "MALLOC_*",
    "USE_ZEND_ALLOC",
    "USE_TRACKED_ALLOC",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "XDEBUG_*",
    "GEM_HOME",
    "GEM_PATH",
    "RUBY*",
    "NODE_OPTIONS",
    "NPM_*",
    "PYTHON*",
    "PIP_*",
];

/// Keys of clouds, and of this project's own server. They are treated as [`LOADERS`]: whoever has one
/// can do more than a run is ever meant to. An application's own belong into its `.env`.
pub const CLOUD_KEYS: &[&str] = &[
    "ALTAIR_MCP_TOKEN",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GCP_*",
    "AZURE_CLIENT_ID",
    "AZURE_CLIENT_SECRET",
];

/// What names code that libraries load while PHP starts, before its guards, or the files that name such
/// code. A run gets them as its host was started with them, so that nothing can be named at run time
/// (`putenv()`).
///
/// Sources: `openssl-env(7)`, `config(5ossl)`, libsasl2's and ImageMagick's documentation of their
/// variables, GIO's and libvips' documentation of running programs, and that of LLVM's OpenMP.
pub const CODE: &[&str] = &[
    "OPENSSL_*",
    "SASL_*",
    "MAGICK_*",
    "GIO_*",
    "VIPSHOME",
    "OMP_TOOL*",
];

/// What a shell and a terminal set. They differ between two terminals and directories of one user, and
/// no application means them: an evaluation does without, so that they make no difference to it and to
/// what a template is made from. A command is at the terminal and keeps them.
///
/// Sources: bash(1), environ(7), and the terminals' own documentation.
pub const TERMINAL: &[&str] = &[
    // The shell: where it is and how deep.
    "_",
    "SHLVL",
    "PWD",
    "OLDPWD",
    // The terminal and its programs.
    "TERM",
    "TERM_*",
    "TERMINFO",
    "TERMCAP",
    "COLORTERM",
    "COLORFGBG",
    "COLUMNS",
    "LINES",
    "LS_COLORS",
    "GPG_TTY",
    "WINDOWID",
    "VTE_VERSION",
    "KONSOLE_*",
    "KITTY_*",
    "ALACRITTY_*",
    "ITERM_*",
    "WT_SESSION",
    "WT_PROFILE_ID",
    "VSCODE_*",
    "TMUX",
    "TMUX_*",
    "STY",
    "WINDOW",
];

/// What a session, a service manager, make and this project's own launcher set: where their sockets and
/// descriptors are, which a run must not find.
///
/// Sources: ssh(1), ssh-agent(1), gpg-agent(1), sudo(8), `pam_systemd(8)`, systemd.exec(5),
/// `sd_notify(3)`, `sd_listen_fds(3)`, GNU make's manual.
pub const SESSION: &[&str] = &[
    "SSH_*",
    "GPG_AGENT_INFO",
    "GNOME_KEYRING_*",
    "SUDO_*",
    "XDG_SESSION_*",
    "XDG_SEAT",
    "XDG_VTNR",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "DBUS_SESSION_BUS_ADDRESS",
    "DESKTOP_STARTUP_ID",
    "XDG_ACTIVATION_TOKEN",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "SYSTEMD_EXEC_PID",
    "MANAGERPID",
    "NOTIFY_SOCKET",
    "CREDENTIALS_DIRECTORY",
    "LISTEN_PID",
    "LISTEN_FDS",
    "LISTEN_FDNAMES",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
    "MEMORY_PRESSURE_WATCH",
    "MEMORY_PRESSURE_WRITE",
    "MAKEFLAGS",
    "MFLAGS",
    "MAKELEVEL",
    "ALTAIR_LAUNCHER",
    "ALTAIR_EVAL_POOL",
    "ALTAIR_POOL_LOG",
];

/// The caller's own credentials: of agents, forges, registries and what is deployed with. They are in a
/// shell for its programs, and an application that means one names it in its `.env` files.
///
/// Not here is what applications are commonly configured with (`DATABASE_URL`, `STRIPE_SECRET`,
/// `SENTRY_DSN`, `MAIL_PASSWORD`, …).
///
/// Sources: the documentation of each program.
pub const CREDENTIALS: &[&str] = &[
    // Agents, and the models that they ask.
    "ANTHROPIC_*",
    "CLAUDE_*",
    "OPENAI_*",
    "CODEX_*",
    "AZURE_OPENAI_*",
    "GEMINI_*",
    "GOOGLE_API_KEY",
    "MISTRAL_API_KEY",
    "GROQ_API_KEY",
    "COHERE_API_KEY",
    "DEEPSEEK_API_KEY",
    "XAI_API_KEY",
    "PERPLEXITY_API_KEY",
    "TOGETHER_API_KEY",
    "FIREWORKS_API_KEY",
    "OPENROUTER_API_KEY",
    "REPLICATE_API_TOKEN",
    "LANGCHAIN_API_KEY",
    "LANGSMITH_API_KEY",
    "HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN",
    "HUGGINGFACE_TOKEN",
    "HUGGINGFACEHUB_API_TOKEN",
    "AWS_BEARER_TOKEN_BEDROCK",
    "LINEAR_API_KEY",
    "COPILOT_*",
    "CURSOR_API_KEY",
    // Forges, their pipelines, and what git authenticates with (git(1), git-config(1)).
    "GITHUB_TOKEN",
    "GITHUB_PAT",
    "GITHUB_PERSONAL_ACCESS_TOKEN",
    "GITHUB_ENTERPRISE_TOKEN",
    "GH_TOKEN",
    "GH_ENTERPRISE_TOKEN",
    "GITLAB_TOKEN",
    "GITLAB_ACCESS_TOKEN",
    "GITLAB_PRIVATE_TOKEN",
    "GITLAB_OAUTH_TOKEN",
    "GITEA_TOKEN",
    "FORGEJO_TOKEN",
    "BITBUCKET_TOKEN",
    "BITBUCKET_APP_PASSWORD",
    "CI_JOB_TOKEN",
    "CI_JOB_JWT*",
    "CI_REGISTRY_PASSWORD",
    "CI_DEPLOY_PASSWORD",
    "CI_DEPLOY_TOKEN",
    "CIRCLE_TOKEN",
    "SNYK_TOKEN",
    "SONAR_TOKEN",
    "ACTIONS_RUNTIME_TOKEN",
    "ACTIONS_ID_TOKEN_REQUEST_*",
    "SYSTEM_ACCESSTOKEN",
    "AZURE_DEVOPS_EXT_PAT",
    "GIT_ASKPASS",
    "GIT_SSH*",
    "GIT_CONFIG_*",
    // Registries. NPM_* and PIP_* are above.
    "COMPOSER_AUTH",
    "NODE_AUTH_TOKEN",
    "YARN_NPM_AUTH_*",
    "CARGO_REGISTRY_TOKEN",
    "CARGO_REGISTRIES_*",
    "GEM_HOST_API_KEY",
    "BUNDLE_*",
    "TWINE_*",
    "PYPI_TOKEN",
    "PACKAGIST_TOKEN",
    "JFROG_ACCESS_TOKEN",
    "POETRY_PYPI_TOKEN_*",
    "POETRY_HTTP_BASIC_*",
    "UV_PUBLISH_*",
    "UV_INDEX_*",
    "NUGET_API_KEY",
    "HOMEBREW_GITHUB_API_TOKEN",
    // Machines, containers and clouds.
    "KUBECONFIG",
    "DOCKER_*",
    "CONTAINER_HOST",
    "REGISTRY_AUTH_FILE",
    "AWS_SECURITY_TOKEN",
    "AWS_PROFILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_CONFIG_FILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_*",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN*",
    "CLOUDSDK_*",
    "GOOGLE_CREDENTIALS",
    "AZURE_PASSWORD",
    "AZURE_CLIENT_CERTIFICATE_*",
    "AZURE_FEDERATED_TOKEN_FILE",
    "ARM_CLIENT_SECRET",
    "CLOUDFLARE_API_*",
    "DIGITALOCEAN_ACCESS_TOKEN",
    "DIGITALOCEAN_TOKEN",
    "HCLOUD_TOKEN",
    "LINODE_TOKEN",
    "FASTLY_API_TOKEN",
    "HEROKU_API_KEY",
    "FLY_API_TOKEN",
    "VERCEL_TOKEN",
    "NETLIFY_AUTH_TOKEN",
    "SENTRY_AUTH_TOKEN",
    // Stores of secrets, and what is deployed with.
    "VAULT_TOKEN",
    "CONSUL_HTTP_TOKEN",
    "NOMAD_TOKEN",
    "TF_TOKEN_*",
    "TF_VAR_*",
    "PULUMI_ACCESS_TOKEN",
    "PULUMI_CONFIG_PASSPHRASE",
    "ANSIBLE_VAULT_*",
    "SOPS_*",
    "OP_SERVICE_ACCOUNT_TOKEN",
    "OP_SESSION_*",
    "BW_SESSION",
];

/// What a run of another user than its host's gets of the host's environment: how to find programs, and
/// what texts and times look like; and which environment the application is. None of it is a secret.
/// [`HOME`] it has as that user.
pub const FOR_ANOTHER_USER: &[&str] = &[
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_ADDRESS",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_IDENTIFICATION",
    "LC_MEASUREMENT",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NAME",
    "LC_NUMERIC",
    "LC_PAPER",
    "LC_TELEPHONE",
    "LC_TIME",
    "TZ",
    "APP_ENV",
    "APP_DEBUG",
    "KERNEL_CLASS",
];

/// The variable that names the home directory.
pub const HOME: &str = "HOME";

/// Whether a name is of a list that knows one spelling.
pub(super) fn is_of(list: &[&str], name: &OsStr) -> bool {
    is_of_bytes(list, name.as_bytes())
}

/// The same in any case.
pub(super) fn is_of_in_any_case(list: &[&str], name: &OsStr) -> bool {
    is_of_bytes(list, name.to_ascii_uppercase().as_bytes())
}

fn is_of_bytes(list: &[&str], name: &[u8]) -> bool {
    let first = name.first();
    list.iter()
        .map(|pattern| pattern.as_bytes())
        // Cheap, and leaves few.
        .filter(|pattern| pattern.first() == first)
        .any(|pattern| match pattern.strip_suffix(b"*") {
            Some(prefix) => name.starts_with(prefix),
            None => name == pattern,
        })
}
