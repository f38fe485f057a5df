//! Seccomp profiles for containers in which every guard is in force: the engine's default profile,
//! and the calls that the private root and its namespaces are made with.
//!
//! The profile is Moby's, see `README.md`. Engines later than that file refuse more, and the C
//! library of later systems calls more: [`LATER_REFUSED`] and [`LATER_ALLOWED`].

mod flat;
#[cfg(test)]
mod tests;

use serde_json::{Value, json};

/// The default profile of Docker Engine 20.10.24.
const DEFAULT: &str = include_str!("moby-20.10.24.json");

/// The calls that are allowed in addition. Without any one of them a guard is missing.
pub(super) const ADDED: [&str; 8] = [
    // The namespaces of a run, and those of a command (`altair run`), whose first process is in them.
    "unshare",
    "clone",
    // The private root: its file systems, the layer, the binds of what may be read.
    "mount",
    "open_tree",
    "move_mount",
    "mount_setattr",
    // Its change to the root, and the end of the old one.
    "pivot_root",
    "umount2",
];

/// What engines refuse from 25.0 on: too large a part of the kernel to leave open.
const LATER_REFUSED: [&str; 3] = ["io_uring_enter", "io_uring_register", "io_uring_setup"];

/// Sockets of virtual machines, which leave a network namespace: refused from 25.0 on.
/// `linux/socket.h`.
const AF_VSOCK: u64 = 40;

/// Later forms of calls that the profile allows. The C library takes a refusal for an error, and
/// only `ENOSYS` for "use the earlier form". Engines do not mind names that they do not know.
const LATER_ALLOWED: [&str; 14] = [
    "cachestat",
    "fchmodat2",
    "futex_requeue",
    "futex_wait",
    "futex_wake",
    "getxattrat",
    "listxattrat",
    "map_shadow_stack",
    "mseal",
    "pkey_alloc",
    "pkey_free",
    "pkey_mprotect",
    "removexattrat",
    "setxattrat",
];

/// Who reads a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProfileFormat {
    /// Docker and Podman, whose profiles depend on a container's capabilities.
    Docker,
    /// Kubernetes' runtimes. They would ignore the conditions of the other form, and allow what it
    /// allows to some containers only.
    Kubernetes,
}

/// The profile for the processor of this program.
///
/// # Errors
/// If the engine's profile is not as it was when this was written; a test excludes that.
pub fn container_profile(format: ProfileFormat) -> Result<Value, String> {
    let mut profile: Value = serde_json::from_str(DEFAULT).map_err(|error| error.to_string())?;
    let rules = profile
        .get_mut("syscalls")
        .and_then(Value::as_array_mut)
        .ok_or("the engine's profile has no rules")?;
    let names = rules
        .first_mut()
        .and_then(|rule| rule.get_mut("names"))
        .and_then(Value::as_array_mut)
        .ok_or("the engine's profile does not begin with what it allows to every container")?;
    let refused = |name: &Value| name == "socket" || LATER_REFUSED.iter().any(|call| name == call);
    names.retain(|name| !refused(name));
    names.extend(LATER_ALLOWED.map(Value::from));
    rules.push(json!({
        "names": ["socket"],
        "action": "SCMP_ACT_ALLOW",
        "args": [{"index": 0, "value": AF_VSOCK, "op": "SCMP_CMP_NE"}],
    }));
    rules.push(json!({
        "names": ADDED,
        "action": "SCMP_ACT_ALLOW",
        "comment": "Altair Eval: a private root in namespaces of its own for each run",
    }));
    match format {
        ProfileFormat::Docker => Ok(profile),
        ProfileFormat::Kubernetes => flat::profile(&profile),
    }
}
