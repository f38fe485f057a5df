//! The findings of an examination. Plain data; serialises to what `altair doctor --format=json`
//! prints.

use std::path::PathBuf;

use serde::Serialize;

use crate::guards::Guard;
use crate::services::By;

/// What an examination has found.
///
/// As JSON, a stable shape; keys may be added:
///
/// ```json
/// {
///     "ok": true,
///     "user": {"uid": 0, "name": "root"},
///     "php": {"path": "/usr/bin/php", "version": "8.2.35", "sapi": "cli",
///             "thread_safe": false, "debug": false, "problem": null},
///     "extension": {"path": "/usr/lib/php/altair_eval.so", "version": "0.1.0", "problem": null},
///     "kernel": {"release": "6.18.44", "architecture": "x86_64", "container": "docker",
///                "filtered": true, "apparmor": null},
///     "problems": [],
///     "warnings": [],
///     "services": [
///         {"service": "db:3306", "from": "DATABASE_URL=mysql://***@db:3306/shop (.env)",
///          "addresses": ["172.18.0.2:3306"], "reached": true, "problem": null}
///     ],
///     "withheld": [
///         {"name": "GITHUB_TOKEN", "why": "a credential of …", "lift": "--env=GITHUB_TOKEN"}
///     ],
///     "allowed": [{"file": "/home/me/.config/altair/config.toml", "options": ["--env=STRIPE_KEY"]}],
///     "abilities": [{"name": "layer", "works": true, "problem": null}],
///     "pool": {"serves": true, "pid": 4711, "templates": 3, "problem": null},
///     "guards": [
///         {
///             "name": "landlock", "state": "in_force", "detail": null, "version": "ABI 7",
///             "remedies": [],
///             "self_test": {
///                 "verdict": "passed", "reason": null,
///                 "attacks": [{"tried": "read a file outside of the project",
///                              "seen": "not read", "without": "read", "held": true}]
///             }
///         }
///     ]
/// }
/// ```
///
/// Unknown values are `null`. `guards` has every guard, outermost first. The values of `state` are
/// those of [`State`], the values of `verdict` those of [`Verdict`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Whether every guard is in force and none gave way.
    pub ok: bool,
    /// The user that was examined.
    pub user: User,
    /// The interpreter of children.
    pub php: Php,
    /// The extension in it.
    pub extension: Extension,
    /// The kernel and what it runs in.
    pub kernel: Kernel,
    /// What kept the examination from continuing, each in a sentence.
    pub problems: Vec<String>,
    /// What is not the machine's fault, but protects less than it seems to, each in a sentence.
    pub warnings: Vec<String>,
    /// Services that a run in the project may connect to while the network is off, if a project was
    /// named.
    pub services: Vec<ServiceReport>,
    /// Variables of this environment that a run in the project does not get, if a project was named.
    pub withheld: Vec<WithheldReport>,
    /// What the user allows the project, if one was named.
    pub allowed: Vec<AllowedReport>,
    /// What runs can do here besides, each tried.
    pub abilities: Vec<Ability>,
    /// The pool, which keeps templates for all calls of this user; `None` if nobody has looked.
    pub pool: Option<PoolReport>,
    /// Every guard, outermost first.
    pub guards: Vec<GuardReport>,
}

/// What a file of the user's, or of the machine's, allows the project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AllowedReport {
    /// The file.
    pub file: std::path::PathBuf,
    /// The options of `altair allow` that have allowed it.
    pub options: Vec<String>,
}

/// The pool of this user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PoolReport {
    /// Whether one serves this process.
    pub serves: bool,
    /// Its process id, if it does.
    pub pid: Option<u32>,
    /// How many templates it holds, if it does.
    pub templates: Option<usize>,
    /// Why none does.
    pub problem: Option<String>,
}

/// A service that a project declares, or that was found in its environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServiceReport {
    /// As it would be declared: `host:port`, or the path of a Unix socket.
    pub service: String,
    /// Where it was found, without passwords.
    pub from: String,
    /// Who declares it.
    pub by: By,
    /// Who listens there now, on this machine.
    pub listeners: Vec<String>,
    /// The addresses that its host has now.
    pub addresses: Vec<std::net::SocketAddr>,
    /// Whether a run connected to it; `None` if that was not tried.
    pub reached: Option<bool>,
    /// Why it is unavailable now, in a sentence.
    pub problem: Option<String>,
    /// The command line by which the user allows it, if it needs that.
    pub allow: Option<String>,
}

/// A variable of the host's that a run does not get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WithheldReport {
    /// Its name.
    pub name: String,
    /// Why.
    pub why: &'static str,
    /// The option that passes it all the same; `None`: no run gets it.
    pub lift: Option<String>,
}

/// What a run can do where enough guards are in force, seen by doing it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ability {
    /// `layer`: what a run writes to the project succeeds and is thrown away. `template`: the second
    /// start is a fork.
    pub name: &'static str,
    /// Whether it worked.
    pub works: bool,
    /// Why it did not.
    pub problem: Option<String>,
}

/// The user for whom the machine was examined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct User {
    /// The effective user id.
    pub uid: u32,
    /// The name, if the system knows one.
    pub name: Option<String>,
}

/// A PHP command line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Php {
    /// Its absolute path.
    pub path: Option<PathBuf>,
    /// `PHP_VERSION`.
    pub version: Option<String>,
    /// `PHP_SAPI`.
    pub sapi: Option<String>,
    /// Whether it is a thread-safe build.
    pub thread_safe: Option<bool>,
    /// Whether it is a debug build.
    pub debug: Option<bool>,
    /// What is wrong with it, in a sentence.
    pub problem: Option<String>,
}

/// The extension as a child loads it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Extension {
    /// Its file, if known.
    pub path: Option<PathBuf>,
    /// Its version, if PHP loads it.
    pub version: Option<String>,
    /// What is wrong with it, in a sentence.
    pub problem: Option<String>,
}

/// The kernel and what it runs in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Kernel {
    /// Its release: `uname -r`.
    pub release: Option<String>,
    /// The processor architecture of this program.
    pub architecture: &'static str,
    /// The kind of container that this process is in, if there are signs of one: `docker`,
    /// `podman`, `kubernetes`, `lxc`, `nspawn`, or `other`.
    pub container: Option<&'static str>,
    /// Whether this process is under a seccomp filter already, a container engine's for one.
    pub filtered: Option<bool>,
    /// The AppArmor profile that confines this process.
    pub apparmor: Option<String>,
}

/// One guard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GuardReport {
    /// The guard.
    pub name: Guard,
    /// Its state in a run here.
    pub state: State,
    /// What remains of it, or why it is missing; `None` if it is in force.
    pub detail: Option<String>,
    /// The version of the kernel's support for it, if it has versions.
    pub version: Option<String>,
    /// Why it is not in force, and what to do about that; empty if it is in force.
    pub remedies: Vec<Remedy>,
    /// The result of attacking it.
    pub self_test: SelfTest,
}

/// The state of a guard in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It does everything that it exists for.
    InForce,
    /// It does less than that.
    Degraded,
    /// It does nothing.
    Missing,
    /// Unknown: there is no child to examine.
    Unknown,
}

/// Why a guard is not in force, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remedy {
    /// The cause.
    pub because: String,
    /// The setting, flag or profile that changes it.
    pub how: String,
}

/// The result of attacking a guard with every other guard left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SelfTest {
    /// The result.
    pub verdict: Verdict,
    /// Why it was not tried.
    pub reason: Option<String>,
    /// What was tried.
    pub attacks: Vec<Attack>,
}

/// The result of a self-test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every attack was stopped.
    Passed,
    /// An attack got through.
    Failed,
    /// There was nothing to attack, or no attack would prove anything here.
    NotTried,
}

/// One attack on one guard, judged from outside of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attack {
    /// What was tried, in words.
    pub tried: String,
    /// The result.
    pub seen: String,
    /// The result without the guard; `None` if the guard cannot be left out.
    pub without: Option<String>,
    /// Whether the guard held.
    pub held: bool,
}
