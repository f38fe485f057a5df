//! The command line's arguments. Defaults, bounds and names come from the engine.

use std::ffi::OsString;
use std::num::IntErrorKind;
use std::path::PathBuf;

use altair_command::Driver;
use altair_engine::allowed::{MOST_MEMORY_MB, MOST_TIMEOUT_MS};
use altair_engine::encode::{ITERABLE_PREVIEW, MAX_DEPTH, MAX_ENTRIES, STRING_MAX};
use altair_engine::guards::Guard;
use altair_engine::{
    DEFAULT_BOOTSTRAP, DEFAULT_MEMORY_MB, DEFAULT_TIMEOUT_MS, Database, MAX_ITEMS, MAX_MEMORY_MB,
    MAX_STRING, MAX_TIMEOUT_MS, MIN_ITEMS, MIN_MEMORY_MB, MIN_STRING, MIN_TIMEOUT_MS,
};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};

const EXAMPLES: &str = "\
Examples:
  altair eval 'User::count()'
  altair eval --root=/srv/shop --format=json 'return container(Mailer::class);'
  altair shell
  altair events:tail --follow
  altair doctor

Exit codes:
  0  a clean run
  1  an exception, a timeout, or a child that ended with another code than 0;
     doctor: a guard that is not in force
  2  wrong usage, or the child could not be started; one line on standard error says why";

const EVAL_EXAMPLES: &str = "\
Examples:
  altair eval 'User::count()'
  altair eval 'return container(UserRepository::class)->findByEmail(\"a@b.c\");'
  altair eval --file=check.php --timeout-ms=20000
  echo 'return PHP_VERSION;' | altair eval --file=-
  altair eval --service=127.0.0.1:3306 'container(PDO::class)->query(\"SELECT 1\")->fetchAll()'
  altair eval -- '-1 + 2'

In the snippet `container()` is the application's container and `container($id)` is an entry of
it. The result is what `return` gives, or else the value of the last statement if that is an
expression.

Exit codes:
  0  the snippet ran to its end, or called exit(0)
  1  an exception, a timeout, or a child that ended with another code than 0
  2  wrong usage, or the child could not be started; one line on standard error says why";

const SHELL_EXAMPLES: &str = "\
Examples:
  altair shell
  altair shell --root=/srv/shop --service=127.0.0.1:3306
  printf '$ids = [1, 2];\ncount($ids)\n' | altair shell

A line is a snippet as of `altair eval`, and its variables are the next line's. A line that is not
whole goes on in the next one. $_ is the last value, $_e the last exception. A fatal error costs the
line and not the session. `exit`, `quit` and Ctrl-D leave; Ctrl-C ends the line. :help lists what
else there is.

Lines are kept in $XDG_STATE_HOME/altair/shell_history, without what looks like a secret; a line
that begins with a space is not kept.

Without a terminal, snippets are read from standard input, and each has its answer.

Exit codes:
  0  the session was left; without a terminal: the last snippet ran cleanly
  1  the application could not be booted, or exit gave another code than 0; without a terminal: the
     last snippet did not run cleanly
  2  wrong usage, or the session could not be started; one line on standard error says why";

const RUN_EXAMPLES: &str = "\
Examples:
  altair run --layer=. -- composer update
  altair run --write=build --timeout=60 -- make
  altair run --service=127.0.0.1:3306 -- mysql -h 127.0.0.1 -e 'SELECT 1'
  altair run --driver=docker --read=src -- ls /mnt/ro0

Unless options say otherwise, the command reads the system, the working directory and its
repository, writes nothing there, connects to the services of the project that you are in, as
`altair eval` does, has your environment (less what controls loaders and interpreters, cloud keys,
what is of your session, and tokens of agents, forges and registries; --env=NAME passes one of the
last two), and may take as long as it likes. /tmp and the home are its own and gone at the end.
Toolchains are in that home (.cargo, .npm, .composer, .cache, …), keys and credentials are not:
--read shows each by its own path. A policy file is an object with
the keys driver, timeout, idle_timeout, memory, read, write, layer, service, network, env and
inherit_env; its paths are relative to the file.

Exit codes:
  the command's own; 128 + n if signal n ended it
  124  a timeout
  125  what altair itself could not do; one line on standard error says why
  126  the command cannot be executed
  127  there is no such command";

const EVENTS_EXAMPLES: &str = "\
Examples:
  altair events:tail -n 5
  altair events:tail --follow --format=json | jq .extra.snippet

Every unsafe run leaves two lines in .altair/events.jsonl below the project root: one before it
starts (`partial`) and one when it has ended (`ok` or `fail`), joined by `extra.run`.

Exit codes:
  0  the log was shown, or there is none yet
  2  wrong usage, or a log that cannot be read";

const DOCTOR_EXAMPLES: &str = "\
Examples:
  altair doctor
  altair doctor --php=/usr/bin/php8.4
  altair doctor --format=json | jq '.guards[] | select(.state != \"in_force\") | .remedies'
  altair doctor --docker-profile > altair.json; docker run --security-opt seccomp=altair.json …

Each guard is attacked with every other guard left out, and then the same is done without it, to
show that the attack works. Connections go to loopback only. Files are created only in the directory
for temporary files, and are removed again.

With --format=json an object: ok, user {uid, name}, php {path, version, sapi, thread_safe, debug,
problem}, extension {path, version, problem}, kernel {release, architecture, container, filtered, apparmor}, problems,
warnings, services, withheld, allowed, abilities, pool, guards. Each service: service, from, by (user,
project), listeners, addresses, reached, problem, allow. Each of withheld, which are variables that
runs in the project do not get: name, why, lift. Each of allowed: file, options. Each ability: name
(layer, template), works, problem. Pool: serves, pid, templates, problem. Each guard:
name, state (in_force, degraded, missing, unknown), detail, version, remedies [{because, how}],
self_test {verdict (passed, failed, not_tried), reason, attacks [{tried, seen, without, held}]}.
Unknown values are null.

Exit codes:
  0  every guard is in force and held
  1  a guard is not in force, gave way or could not be examined
  2  wrong usage";

const MCP_EXAMPLES: &str = "\
Examples:
  altair mcp:serve --root=/srv/shop
  altair mcp:serve --transport=http --port=3737
  claude mcp add shop -- altair mcp:serve --root=/srv/shop

One tool, framework__eval: it takes PHP and returns what it gives. Calls run in parallel, one per
core; the rest wait. It cannot make unsafe runs.

Where a call wants writes, the network or databases that write, and the server was started without
--allow-writes, --allow-network or --allow-rollback, the person at the client is asked to allow this
one call, if the client can ask (elicitation); otherwise it is refused. Nobody is asked with
--ask=never or --readonly.

Over HTTP the server is at /mcp, and every request needs `Authorization: Bearer <token>`. The
token is ALTAIR_MCP_TOKEN, at least 16 characters, or one that is generated and printed to standard
error.

Exit codes:
  0  the client disconnected, or a signal (SIGINT, SIGTERM) came
  2  wrong usage, or the server could not be started; one line on standard error says why";

/// The help for `--service`.
const SERVICE: &str =
    "A service that runs may connect to: host:port or a Unix socket's path; repeatable";
const SERVICE_LONG: &str = "\
A service that runs may connect to while the network is off: host:port, or the absolute path of a \
Unix socket; repeatable. It replaces the services that extra.altair-eval.services in composer.json \
declares and that the application's environment names (DATABASE_URL, DB_HOST, REDIS_URL, …); \
--service=none allows none. What only the project declares is not connected to where a program of \
your own user or a daemon of root's listens; this option or `altair allow` is your word for it. \
`altair doctor` shows the services found, and which of them need it.";

/// The help for `--env`.
const ENV: &str =
    "A variable of your environment that the run gets, although it would be withheld; repeatable";

const POOL_EXAMPLES: &str = "\
Examples:
  altair pool
  altair pool --format=json | jq '.pool.templates[].root'
  altair pool --stop

The pool is a process that keeps templates: PHPs that have booted an application and fork a child
for each call. The second call within ten minutes starts it (never where CI is set). It ends after
five minutes without a call. ALTAIR_EVAL_POOL=off, or `altair eval --cold`, does without it.

With --format=json an object: pool {pid, age_seconds, served, running, templates}, null if none is
running. Each template: root, state (booting, ready, unforkable, unable), pid, age_seconds,
idle_seconds, uses, memory_bytes.

Exit codes:
  0  the pool was shown or has ended, or there is none
  2  wrong usage, or a pool that does not serve this process; one line on standard error says why";

const ALLOW_EXAMPLES: &str = "\
Examples:
  altair allow --service=/run/mysqld/mysqld.sock --env=STRIPE_KEY
  altair allow --root=/srv/shop --read=/srv/packages/auth --max-timeout-ms=120000
  altair allow --root=/srv/shop/releases/ --service=127.0.0.1:9000
  altair allow --list
  altair allow --root=/srv/shop --remove --env=STRIPE_KEY

What a project may not decide itself is allowed here, for all its runs from now on: in
~/.config/altair/config.toml, which must be yours and writable by nobody else. A root that ends in a
slash means all roots below it, too. /etc/altair/config.toml is the machine's, and root's. Both are
read; neither lifts a guard. The home is that of the user database, not $HOME.

--remove without an item removes all that is allowed for the root. With --format=json --list prints an
object: files [{file, projects [{root, services, env, read, max_timeout_ms, max_memory_mb}]}].

Exit codes:
  0  it is allowed, or no longer, or the list was shown
  2  wrong usage, or a file that cannot be trusted, understood or written; one line on standard error
     says why";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  altair completions bash > ~/.local/share/bash-completion/completions/altair
  altair completions zsh > ~/.zfunc/_altair
  altair completions fish > ~/.config/fish/completions/altair.fish";

/// Evaluate PHP against an application's live container, confined.
#[derive(Debug, Parser)]
#[command(
    name = "altair",
    version,
    propagate_version = true,
    arg_required_else_help = true
)]
#[command(after_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The command to run.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a PHP snippet against the application and show what it returns.
    #[command(display_name = "altair eval", after_help = EVAL_EXAMPLES)]
    Eval(Box<EvalArgs>),
    /// Try PHP against the application line by line, in a session that keeps its variables.
    #[command(display_name = "altair shell", after_help = SHELL_EXAMPLES)]
    #[command(mut_arg("timeout_ms", |timeout| timeout.help(timeout_of_lines())))]
    Shell(Box<ShellArgs>),
    /// Run any command under a policy, and look at what it changed before it is real.
    #[command(display_name = "altair run", after_help = RUN_EXAMPLES)]
    Run(Box<RunArgs>),
    /// Show the audit log: what was run with --unsafe.
    #[command(name = "events:tail", display_name = "altair events:tail")]
    #[command(after_help = EVENTS_EXAMPLES)]
    EventsTail(EventsArgs),
    /// Show the guards of this machine, attack each one, and say how to get what is missing.
    #[command(display_name = "altair doctor", after_help = DOCTOR_EXAMPLES)]
    Doctor(DoctorArgs),
    /// Serve evaluations to agents, over the Model Context Protocol.
    #[command(name = "mcp:serve", display_name = "altair mcp:serve")]
    #[command(after_help = MCP_EXAMPLES)]
    McpServe(McpArgs),
    /// Allow a project what it may not decide itself: services, variables, files elsewhere, longer runs.
    #[command(display_name = "altair allow", after_help = ALLOW_EXAMPLES)]
    Allow(AllowArgs),
    /// Show the pool, which keeps applications booted for all calls of this user.
    #[command(display_name = "altair pool", after_help = POOL_EXAMPLES)]
    Pool(PoolArgs),
    /// Print a completion script for a shell.
    #[command(display_name = "altair completions", after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell to complete in.
        #[arg(value_name = "shell")]
        shell: Shell,
    },
}

/// The arguments of `altair eval`.
#[derive(Debug, Args)]
pub struct EvalArgs {
    /// PHP code; a leading `<?php` is accepted. Quote it, so that it is one argument.
    #[arg(value_name = "snippet")]
    pub snippet: Option<OsString>,

    /// Read the snippet from this file; `-` is standard input.
    #[arg(long, value_name = "path")]
    pub file: Option<PathBuf>,

    #[command(flatten)]
    pub application: Application,

    /// Let database sessions write, and undo all changes at the end.
    #[arg(long, conflicts_with = "database")]
    pub rollback: bool,

    /// What database sessions may do [default: read-only, or write with --writes].
    #[arg(long, value_name = "mode", value_parser = PossibleValuesParser::new(Database::ALL.map(Database::name)))]
    pub database: Option<String>,

    /// Show the database statements of the run, the lines that caused them, and the rows changed;
    /// always with --rollback.
    #[arg(long)]
    pub queries: bool,

    /// A variable of the snippet and its text: --arg id=7 is $id = '7'; repeatable.
    #[arg(long, value_name = "name=text")]
    pub arg: Vec<OsString>,

    /// A variable of the snippet as JSON: --arg-json ids=[1,2]; repeatable.
    #[arg(long, value_name = "name=json")]
    pub arg_json: Vec<String>,

    /// See [`EvalRequest::depth`](altair_engine::EvalRequest::depth).
    #[arg(long, value_name = "n", value_parser = integer, allow_negative_numbers = true)]
    #[arg(help = format!("How deep arrays and objects are shown, {}…{} [default: {MAX_DEPTH}]", altair_engine::MIN_DEPTH, altair_engine::MAX_DEPTH))]
    pub depth: Option<i64>,

    /// See [`EvalRequest::max_items`](altair_engine::EvalRequest::max_items).
    #[arg(long, value_name = "n", value_parser = integer, allow_negative_numbers = true)]
    #[arg(help = format!("How many items of each array, object or iterable are shown, {MIN_ITEMS}…{MAX_ITEMS} [default: {MAX_ENTRIES}, of an iterable {ITERABLE_PREVIEW}]"))]
    pub max_items: Option<i64>,

    /// See [`EvalRequest::max_string`](altair_engine::EvalRequest::max_string).
    #[arg(long, value_name = "n", value_parser = integer, allow_negative_numbers = true)]
    #[arg(help = format!("How many bytes of each string are shown, {MIN_STRING}…{MAX_STRING} [default: {STRING_MAX}]"))]
    pub max_string: Option<i64>,

    /// Show what changed in text files as a diff.
    #[arg(long)]
    pub diff: bool,

    /// Boot the application for this run alone, and do not ask the pool.
    #[arg(long)]
    pub cold: bool,

    /// Run without guards. Such a run is written to the audit log.
    #[arg(long = "unsafe")]
    pub unconfined: bool,

    /// How to print the result; json and compact print it for programs.
    #[arg(long, value_enum, value_name = "format", default_value_t = ResultFormat::Human)]
    pub format: ResultFormat,

    /// Show what is as it should be, too: guards in force, timings, the start. For json and compact.
    #[arg(long)]
    pub verbose: bool,
}

/// The application that PHP is run against, and what confines it.
#[derive(Debug, Args)]
pub struct Application {
    /// See [`EvalRequest::with_timeout_ms`](altair_engine::EvalRequest::with_timeout_ms).
    #[arg(long, value_name = "n", default_value_t = DEFAULT_TIMEOUT_MS, value_parser = integer)]
    #[arg(allow_negative_numbers = true)]
    #[arg(help = format!("Deadline of the whole call, boot included, in milliseconds, {MIN_TIMEOUT_MS}…{MAX_TIMEOUT_MS}"))]
    pub timeout_ms: i64,

    /// See [`EvalRequest::with_memory_limit_mb`](altair_engine::EvalRequest::with_memory_limit_mb).
    #[arg(long, value_name = "n", default_value_t = DEFAULT_MEMORY_MB, value_parser = integer)]
    #[arg(allow_negative_numbers = true)]
    #[arg(help = format!("PHP's memory limit in MiB, {MIN_MEMORY_MB}…{MAX_MEMORY_MB}"))]
    pub memory_mb: i64,

    /// Make writes to the project real and let database sessions write.
    #[arg(long)]
    pub writes: bool,

    /// Open outbound connections.
    #[arg(long)]
    pub network: bool,

    /// See [`EvalRequest::bootstrap`](altair_engine::EvalRequest::bootstrap).
    #[arg(long, value_name = "path")]
    #[arg(help = format!("The file below the project root that returns the container; {DEFAULT_BOOTSTRAP} if there is one"))]
    pub bootstrap: Option<PathBuf>,

    /// The project: the directory that holds vendor/autoload.php; searched upwards [default: the working directory].
    #[arg(long, value_name = "dir")]
    pub root: Option<PathBuf>,

    /// The PHP interpreter of the child.
    #[arg(long, value_name = "path", default_value = "php")]
    pub php: OsString,

    /// A file or directory that may be read beside the project; repeatable.
    #[arg(long, value_name = "path")]
    pub read: Vec<PathBuf>,

    /// See [`EvalRequest::services`](altair_engine::EvalRequest::services).
    #[arg(long, value_name = "address", help = SERVICE, long_help = SERVICE_LONG)]
    pub service: Vec<String>,

    /// See [`EvalRequest::env`](altair_engine::EvalRequest::env).
    #[arg(long, value_name = "name", help = ENV)]
    pub env: Vec<String>,

    /// Show the values of variables whose names look secret instead of `[redacted:NAME]`.
    #[arg(long)]
    pub no_redact: bool,

    /// Refuse to run if this guard is unavailable; repeatable.
    #[arg(long, value_name = "guard", value_parser = PossibleValuesParser::new(Guard::names()).try_map(|name| name.parse::<Guard>()))]
    pub require: Vec<Guard>,
}

/// The arguments of `altair shell`.
#[derive(Debug, Args)]
pub struct ShellArgs {
    #[command(flatten)]
    pub application: Application,
}

/// The arguments of `altair run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The program and its arguments, after --.
    #[arg(value_name = "command", required = true, trailing_var_arg = true)]
    pub command: Vec<OsString>,

    /// What enforces the policy.
    #[arg(long, value_name = "driver", value_parser = PossibleValuesParser::new(Driver::ALL.map(Driver::name)))]
    #[arg(help = "What enforces the policy [default: native]")]
    pub driver: Option<String>,

    /// Seconds until the command is ended [default: none].
    #[arg(long, value_name = "seconds", value_parser = seconds)]
    pub timeout: Option<u64>,

    /// Seconds without output until the command is ended [default: none].
    #[arg(long, value_name = "seconds", value_parser = seconds)]
    pub idle_timeout: Option<u64>,

    /// Memory of each process: 64M, 1G, at most 1024M [default: no limit].
    #[arg(long, value_name = "size")]
    pub memory: Option<String>,

    /// A file or directory that may be read besides what is by default; repeatable. Keys and
    /// credentials in it stay hidden unless their own path is named.
    #[arg(long, value_name = "path")]
    pub read: Vec<PathBuf>,

    /// A file or directory that may be written; repeatable.
    #[arg(long, value_name = "path")]
    pub write: Vec<PathBuf>,

    /// A directory that may be written, whose changes are shown at the end and made real only if
    /// you say so; repeatable.
    #[arg(long, value_name = "dir")]
    pub layer: Vec<PathBuf>,

    /// Whether the changes in a layer are made real.
    #[arg(long, value_enum, value_name = "when", default_value_t = Apply::Ask)]
    pub apply: Apply,

    /// Show what changed in text files as a diff.
    #[arg(long)]
    pub diff: bool,

    /// See [`ExecutionPolicy::services`](altair_command::ExecutionPolicy::services).
    #[arg(long, value_name = "address", help = SERVICE, long_help = SERVICE_LONG)]
    pub service: Vec<String>,

    /// Let the command use the network.
    #[arg(long)]
    pub network: bool,

    /// A variable for the command, besides your own; its name alone passes on one of yours that is
    /// withheld; repeatable.
    #[arg(long, value_name = "name[=value]")]
    pub env: Vec<OsString>,

    /// A file with a policy as JSON; options win over it, and lists are joined.
    #[arg(long, value_name = "file.json")]
    pub policy: Option<PathBuf>,

    /// How to show the result: as the command prints it, or as one JSON object when it has ended.
    #[arg(long, value_enum, value_name = "format", default_value_t = Format::Human)]
    pub format: Format,
}

/// Whether the changes in a layer are made real.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Apply {
    /// Ask on a terminal; elsewhere, as `no`.
    Ask,
    /// Make them real if the command succeeded.
    Yes,
    /// Only show them.
    No,
}

/// A whole number of seconds, at least one.
fn seconds(text: &str) -> Result<u64, String> {
    match text.parse::<u64>() {
        Ok(seconds) if seconds >= altair_command::MIN_SECONDS => Ok(seconds),
        _ => Err("a whole number of seconds, at least 1, is needed".to_owned()),
    }
}

/// The arguments of `altair events:tail`.
#[derive(Debug, Args)]
pub struct EventsArgs {
    /// How many of the last events to show.
    #[arg(short = 'n', value_name = "n", default_value_t = 20, value_parser = count)]
    #[arg(allow_negative_numbers = true)]
    pub lines: usize,

    /// Keep showing new events until Ctrl-C.
    #[arg(long)]
    pub follow: bool,

    /// How to print events; json prints the lines of the log unchanged.
    #[arg(long, value_enum, value_name = "format", default_value_t = Format::Human)]
    pub format: Format,

    /// The project whose log it is; searched upwards [default: the working directory].
    #[arg(long, value_name = "dir")]
    pub root: Option<PathBuf>,
}

/// The arguments of `altair allow`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).multiple(true).args(["service", "env", "read", "max_timeout_ms", "max_memory_mb", "list", "remove"]))]
pub struct AllowArgs {
    /// The project; one that ends in a slash means all below it, too [default: as for eval; of a list: all].
    #[arg(long, value_name = "dir")]
    pub root: Option<PathBuf>,

    /// A service that the project may name: host:port or a Unix socket's path; repeatable.
    #[arg(long, value_name = "address")]
    pub service: Vec<String>,

    /// A variable of your environment that runs get, by its name; repeatable.
    #[arg(long, value_name = "name")]
    pub env: Vec<String>,

    /// A file or directory that runs may read beside the project; absolute; repeatable.
    #[arg(long, value_name = "path")]
    pub read: Vec<String>,

    /// See [`Allowed::max_timeout_ms`](altair_engine::allowed::Allowed::max_timeout_ms).
    #[arg(long, value_name = "n")]
    #[arg(help = format!("The longest deadline that a run may ask for, in milliseconds, {MAX_TIMEOUT_MS}…{MOST_TIMEOUT_MS}"))]
    pub max_timeout_ms: Option<u64>,

    /// See [`Allowed::max_memory_mb`](altair_engine::allowed::Allowed::max_memory_mb).
    #[arg(long, value_name = "n")]
    #[arg(help = format!("The largest memory limit that a run may ask for, in MiB, {MAX_MEMORY_MB}…{MOST_MEMORY_MB}"))]
    pub max_memory_mb: Option<u64>,

    /// Show what is allowed.
    #[arg(long, conflicts_with_all = ["service", "env", "read", "max_timeout_ms", "max_memory_mb", "remove"])]
    pub list: bool,

    /// Allow what is named no longer; without anything named, all of the project.
    #[arg(long)]
    pub remove: bool,

    /// How to print the list.
    #[arg(long, value_enum, value_name = "format", default_value_t = Format::Human)]
    pub format: Format,
}

/// The arguments of `altair pool`.
#[derive(Debug, Args)]
pub struct PoolArgs {
    /// End the pool, and with it the runs under way.
    #[arg(long)]
    pub stop: bool,

    /// How to print what is there.
    #[arg(long, value_enum, value_name = "format", default_value_t = Format::Human)]
    pub format: Format,

    /// Start a pool whose socket is in this directory.
    #[arg(long, value_name = "dir", hide = true)]
    pub start: Option<PathBuf>,

    /// Be the pool whose socket is in this directory.
    #[arg(long, value_name = "dir", hide = true)]
    pub serve: Option<PathBuf>,

    /// Room for what the process list shows.
    #[arg(long, hide = true)]
    pub title: Option<String>,
}

/// The arguments of `altair doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// How to print what was found.
    #[arg(long, value_enum, value_name = "format", default_value_t = Format::Human)]
    pub format: Format,

    /// The PHP interpreter of the child.
    #[arg(long, value_name = "path", default_value = "php")]
    pub php: OsString,

    /// The project whose services are shown; searched upwards [default: the working directory].
    #[arg(long, value_name = "dir")]
    pub root: Option<PathBuf>,

    /// Only print a seccomp profile for Docker and Podman: the engine's default, and what the guards need.
    #[arg(long, conflicts_with_all = ["format", "php", "root"])]
    pub docker_profile: bool,

    /// The same for Kubernetes, where profiles have no conditions.
    #[arg(long, conflicts_with_all = ["format", "php", "root", "docker_profile"])]
    pub kubernetes_profile: bool,
}

/// The arguments of `altair mcp:serve`.
#[derive(Debug, Args)]
pub struct McpArgs {
    /// How clients reach the server.
    #[arg(long, value_enum, value_name = "transport", default_value_t = McpTransport::Stdio)]
    pub transport: McpTransport,

    /// Where to listen, with --transport=http.
    #[arg(long, value_name = "host", default_value = "127.0.0.1")]
    pub host: String,

    /// The port to listen on, with --transport=http; 0 chooses a free port.
    #[arg(long, value_name = "port", default_value_t = 3737)]
    pub port: u16,

    /// Let calls ask for real writes to the project and its databases.
    #[arg(long)]
    pub allow_writes: bool,

    /// Let calls ask for database sessions that write and are rolled back.
    #[arg(long)]
    pub allow_rollback: bool,

    /// Let calls ask for outbound connections.
    #[arg(long)]
    pub allow_network: bool,

    /// Let calls ask for none of these, and ask nobody.
    #[arg(long, conflicts_with_all = ["allow_writes", "allow_rollback", "allow_network"])]
    pub readonly: bool,

    /// Who is asked for what calls may not ask for: the person at the client, for each call, where
    /// the client can ask.
    #[arg(long, value_enum, value_name = "whom", default_value_t = Ask::Client)]
    pub ask: Ask,

    /// See [`EvalRequest::services`](altair_engine::EvalRequest::services).
    #[arg(long, value_name = "address", help = SERVICE, long_help = SERVICE_LONG)]
    pub service: Vec<String>,

    /// See [`EvalRequest::env`](altair_engine::EvalRequest::env).
    #[arg(long, value_name = "name", help = ENV)]
    pub env: Vec<String>,

    /// The project: the directory that holds vendor/autoload.php [default: the working directory].
    #[arg(long, value_name = "dir")]
    pub root: Option<PathBuf>,

    /// The PHP interpreter of the children.
    #[arg(long, value_name = "path", default_value = "php")]
    pub php: OsString,
}

/// Who is asked for what a server does not permit by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Ask {
    /// The person at the client.
    Client,
    /// Nobody: it is refused.
    Never,
}

/// How clients reach an MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum McpTransport {
    /// Standard input and output, for clients that start the server themselves.
    Stdio,
    /// Streamable HTTP.
    Http,
}

/// How something is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[value(help = None::<&str>)]
    Human,
    /// For programs.
    #[value(help = None::<&str>)]
    Json,
}

/// How a result is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ResultFormat {
    /// For people.
    #[value(help = None::<&str>)]
    Human,
    /// For programs, with its value in the typed encoding.
    #[value(help = None::<&str>)]
    Json,
    /// For agents, with its value in the compact encoding.
    #[value(help = None::<&str>)]
    Compact,
}

/// A shell for which there are completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// GNU Bash.
    #[value(help = None::<&str>)]
    Bash,
    /// Zsh.
    #[value(help = None::<&str>)]
    Zsh,
    /// fish.
    #[value(help = None::<&str>)]
    Fish,
}

/// What `--timeout-ms` means for a session.
fn timeout_of_lines() -> String {
    format!(
        "Deadline of the boot and of each line, in milliseconds, {MIN_TIMEOUT_MS}…{MAX_TIMEOUT_MS}"
    )
}

/// Turns the values of `--service` into those of a request.
#[must_use]
pub fn services(named: Vec<String>) -> Option<Vec<String>> {
    match named.as_slice() {
        [] => None,
        [none] if none == "none" => Some(Vec::new()),
        _ => Some(named),
    }
}

/// Parses `arguments`, including the program's name in front.
///
/// # Errors
///
/// `clap`'s error, also for `--help` and `--version`.
pub fn parse(arguments: &[OsString]) -> Result<Command, clap::Error> {
    // To describe all commands takes longer than a pool's answer to one.
    if arguments.get(1).is_some_and(|command| command == "eval")
        && let Ok(OnlyEval {
            command: Eval::Eval(args),
        }) = OnlyEval::try_parse_from(arguments)
    {
        return Ok(Command::Eval(args));
    }
    Cli::try_parse_from(arguments).map(|cli| cli.command)
}

/// As [`Cli`], but with one command. What this does not take, help among it, is for [`Cli`].
#[derive(Debug, Parser)]
#[command(version, propagate_version = true)]
struct OnlyEval {
    #[command(subcommand)]
    command: Eval,
}

#[derive(Debug, Subcommand)]
enum Eval {
    Eval(Box<EvalArgs>),
}

/// Parses a whole number of any size. The engine clamps, so one that overflows counts as the
/// largest.
fn integer(text: &str) -> Result<i64, String> {
    text.parse::<i64>().or_else(|error| match error.kind() {
        IntErrorKind::PosOverflow => Ok(i64::MAX),
        IntErrorKind::NegOverflow => Ok(i64::MIN),
        _ => Err("a whole number is needed".to_owned()),
    })
}

/// A number of lines, 0 or more.
fn count(text: &str) -> Result<usize, String> {
    text.parse::<usize>().or_else(|error| match error.kind() {
        IntErrorKind::PosOverflow => Ok(usize::MAX),
        _ => Err("a whole number, 0 or more, is needed".to_owned()),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use super::Cli;

    /// Arguments of `eval` that are none of the request's, or another way to say one.
    const OF_THE_COMMAND: [&str; 10] = [
        "cold", "file", "format", "help", "php", "require", "rollback", "version", "arg-json",
        "verbose",
    ];

    #[test]
    fn each_field_of_a_request_has_its_flag_and_each_flag_its_field() {
        let table: serde_json::Value =
            serde_json::from_str(include_str!("../../engine/options.json")).unwrap();
        let rows = table.as_array().unwrap().iter();
        let mut expected: BTreeSet<&str> = rows.filter_map(|row| row["flag"].as_str()).collect();
        expected.extend(OF_THE_COMMAND);
        let mut command = Cli::command();
        command.build();
        let eval = command.find_subcommand("eval").unwrap();
        let flags = eval.get_arguments().filter_map(clap::Arg::get_long);
        assert_eq!(flags.collect::<BTreeSet<_>>(), expected);
    }
}
