//! What an examination has found. Plain data; serialises to what `altair doctor --format=json`
//! prints.

use std::path::PathBuf;

use serde::Serialize;

use crate::guards::Guard;

/// What an examination has found.
///
/// As JSON, a stable shape to which keys may be added:
///
/// ```json
/// {
///     "ok": true,
///     "user": {"uid": 0, "name": "root"},
///     "php": {"path": "/usr/bin/php", "version": "8.2.35", "sapi": "cli",
///             "thread_safe": false, "debug": false, "problem": null},
///     "extension": {"path": "/usr/lib/php/altair_eval.so", "version": "0.1.0", "problem": null},
///     "kernel": {"release": "6.18.44", "architecture": "x86_64", "container": "docker"},
///     "problems": [],
///     "warnings": [],
///     "services": [
///         {"service": "db:3306", "from": "DATABASE_URL=mysql://***@db:3306/shop (.env)",
///          "addresses": ["172.18.0.2:3306"], "problem": null}
///     ],
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
/// What is not known is `null`. `guards` has every guard, outermost first. The values of `state`
/// are those of [`State`], the values of `verdict` those of [`Verdict`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Whether every guard is in force and none gave way.
    pub ok: bool,
    /// For whom.
    pub user: User,
    /// The interpreter of children.
    pub php: Php,
    /// The extension in it.
    pub extension: Extension,
    /// The kernel and what it runs in.
    pub kernel: Kernel,
    /// What kept the examination from going on, each in a sentence.
    pub problems: Vec<String>,
    /// What is no fault of the machine's and protects less than it seems to, each in a sentence.
    pub warnings: Vec<String>,
    /// What a run in the project may connect to while the network is off, where a project was named.
    pub services: Vec<ServiceReport>,
    /// Every guard, outermost first.
    pub guards: Vec<GuardReport>,
}

/// A service that a project declares, or that was found in its environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServiceReport {
    /// As it would be declared: `host:port`, or the path of a Unix socket.
    pub service: String,
    /// Where it was found, without passwords.
    pub from: String,
    /// The addresses that its host has now.
    pub addresses: Vec<std::net::SocketAddr>,
    /// Why it is not to be had now, in a sentence.
    pub problem: Option<String>,
}

/// The user that the examination is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct User {
    /// The effective user id.
    pub uid: u32,
    /// The name, where the system knows one.
    pub name: Option<String>,
}

/// A PHP command line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Php {
    /// Where it is, absolute.
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
    /// Its file, where that is known.
    pub path: Option<PathBuf>,
    /// Its version, where PHP loads it.
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
}

/// One guard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GuardReport {
    /// Which.
    pub name: Guard,
    /// What a run gets of it here.
    pub state: State,
    /// What remains of it, or why it is missing; nothing for one that is in force.
    pub detail: Option<String>,
    /// The version of what the kernel has for it, where there are versions.
    pub version: Option<String>,
    /// What stands in its way and what to do about that; empty for one that is in force.
    pub remedies: Vec<Remedy>,
    /// How it fared when it was attacked.
    pub self_test: SelfTest,
}

/// What a run gets of a guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// All that it exists for.
    InForce,
    /// Less than that.
    Degraded,
    /// Nothing.
    Missing,
    /// Not to be found out: there is no child to look at.
    Unknown,
}

/// What stands in a guard's way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remedy {
    /// What it is.
    pub because: String,
    /// The setting, flag or profile that changes it.
    pub how: String,
}

/// How a guard fared when it was attacked with every other guard left out.
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
    /// There was nothing to attack, or no attack that would show anything here.
    NotTried,
}

/// One attack on one guard, judged from outside of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attack {
    /// What was tried, in words.
    pub tried: String,
    /// What came of it.
    pub seen: String,
    /// What came of the same without the guard; nothing where it cannot be left out.
    pub without: Option<String>,
    /// Whether the guard held.
    pub held: bool,
}
