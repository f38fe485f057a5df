//! Why a guard is not fully in force here, and what to do about it.

use super::container_profile::ADDED;
use super::machine::Machine;
use super::report::Remedy;
use crate::guards::Guard;

/// System calls that Landlock and seccomp are taken with. Engines allow them since 2021. Later
/// systemd has a set of them, `@sandbox`, which 252 does not know.
const CALLS_OF_GUARDS: [&str; 5] = [
    "landlock_create_ruleset",
    "landlock_add_rule",
    "landlock_restrict_self",
    "seccomp",
    "prctl",
];

/// The first kernel with `mount_setattr(2)`:
/// <https://man7.org/linux/man-pages/man2/mount_setattr.2.html>.
const KERNEL_OF_THE_VIEW: (u32, u32) = (5, 12);
/// The first kernel with Landlock: <https://docs.kernel.org/userspace-api/landlock.html>.
const KERNEL_OF_LANDLOCK: (u32, u32) = (5, 13);
/// The first kernel whose Landlock (version 4) restricts TCP; earlier versions lack that, or
/// truncation.
const KERNEL_OF_LANDLOCK_TCP: (u32, u32) = (6, 7);
/// The first kernel whose tmpfs has user xattrs: <https://kernelnewbies.org/Linux_6.6>.
const KERNEL_OF_XATTRS: (u32, u32) = (6, 6);

/// Why a guard is degraded or missing; `detail` is the reason in its state.
pub(super) fn of(guard: Guard, detail: &str, machine: &Machine) -> Vec<Remedy> {
    let mut found = match guard {
        Guard::Filesystem => filesystem(detail, machine),
        Guard::Landlock => landlock(detail, machine),
        Guard::Seccomp => seccomp(machine),
        Guard::Deadline | Guard::Limits => vec![processes(detail)],
        _ => Vec::new(),
    };
    if found.is_empty() {
        found.push(remedy(
            "this command knows no cause",
            "see the kernel's log (dmesg, journalctl -k)",
        ));
    }
    found
}

/// Advice for a `/proc` that does not show what a run starts; an unsafe run is refused then.
fn processes(detail: &str) -> Remedy {
    match detail.contains("another pid namespace") && !detail.contains("not mounted") {
        true => remedy(
            "/proc is that of another pid namespace, so it shows the processes of a run by other ids",
            "mount -t proc proc /proc in this namespace: leave out `-v /proc:/proc`, or give `unshare --pid` the option --mount-proc",
        ),
        false => remedy(
            "/proc, which shows the processes of a run and what they hold, is not mounted",
            "mount -t proc proc /proc",
        ),
    }
}

fn remedy(because: impl Into<String>, how: impl Into<String>) -> Remedy {
    Remedy {
        because: because.into(),
        how: how.into(),
    }
}

fn kernel(machine: &Machine, (major, minor): (u32, u32), what: &str) -> Option<Remedy> {
    let release = machine.release.as_deref().unwrap_or_default();
    machine.is_before((major, minor)).then(|| {
        remedy(
            format!("{what} needs Linux {major}.{minor}, this is {release}"),
            format!("run Linux {major}.{minor} or later"),
        )
    })
}

fn filesystem(detail: &str, machine: &Machine) -> Vec<Remedy> {
    let mut found = Vec::new();
    found.extend(kernel(machine, KERNEL_OF_THE_VIEW, "a private root"));
    let is_admin = machine.is_admin.unwrap_or(machine.is_root);
    if !is_admin {
        found.extend(user_namespaces(machine));
    }
    if machine.is_filtered == Some(true) {
        found.push(filter(machine));
    }
    found.extend(modules(machine));
    if machine.has_overlay == Some(false) {
        found.push(remedy(
            "the kernel has not loaded overlayfs",
            "modprobe overlay, and a line `overlay` in /etc/modules-load.d/ to keep it",
        ));
    }
    if detail.contains("read-only") && !is_admin && machine.is_before(KERNEL_OF_XATTRS) {
        found.push(remedy(
            "before Linux 6.6 only root can use a layer in memory",
            "run Linux 6.6 or later, or set TMPDIR to a directory on a disk with user xattrs (ext4, xfs, btrfs)",
        ));
    }
    found
}

/// Settings that deny user namespaces to ordinary users.
fn user_namespaces(machine: &Machine) -> Vec<Remedy> {
    let sysctl = |name: &str, value: &str| {
        format!("sysctl -w {name}={value}, and the same in a file of /etc/sysctl.d/ to keep it")
    };
    let mut found = Vec::new();
    if machine.max_user_namespaces == Some(0) {
        found.push(remedy(
            "user.max_user_namespaces is 0",
            sysctl("user.max_user_namespaces", "15000"),
        ));
    }
    if machine.unprivileged_userns_clone == Some(0) {
        found.push(remedy(
            "kernel.unprivileged_userns_clone is 0",
            sysctl("kernel.unprivileged_userns_clone", "1"),
        ));
    }
    if machine
        .apparmor_restricts_userns
        .is_some_and(|value| value != 0)
    {
        found.push(remedy(
            "kernel.apparmor_restrict_unprivileged_userns is 1: AppArmor lets only programs with a profile create user namespaces",
            format!(
                "a file /etc/apparmor.d/altair with `abi <abi/4.0>, profile altair /usr/{{,local/}}bin/{{altair,php*}} flags=(unconfined) {{ userns, }}`, loaded by apparmor_parser -r, or {}",
                sysctl("kernel.apparmor_restrict_unprivileged_userns", "0")
            ),
        ));
    }
    found
}

/// Advice for a process that is already under a seccomp filter. The profiles are
/// [`container_profile`](super::container_profile())'s.
fn filter(machine: &Machine) -> Remedy {
    let (whose, how) = match machine.container {
        Some("docker") => (
            ", Docker's",
            "altair doctor --docker-profile > altair.json, then docker run --security-opt seccomp=altair.json, or in a Compose file security_opt: [\"seccomp=altair.json\"]".to_owned(),
        ),
        Some("podman") => (
            ", Podman's",
            "altair doctor --docker-profile > altair.json, then podman run --security-opt seccomp=altair.json".to_owned(),
        ),
        Some("kubernetes") => (
            ", the pod's",
            "altair doctor --kubernetes-profile > altair.json, that file in /var/lib/kubelet/seccomp of each node, and securityContext: {seccompProfile: {type: Localhost, localhostProfile: altair.json}}; no capabilities are needed".to_owned(),
        ),
        Some("nspawn") => (
            ", systemd-nspawn's",
            format!(
                "systemd-nspawn --system-call-filter=\"@mount {}\"",
                CALLS_OF_GUARDS.join(" ")
            ),
        ),
        Some("lxc") => (
            ", the container's",
            format!("lxc.seccomp.profile with a profile that allows {}", needed()),
        ),
        Some(_) => (
            ", the container's",
            format!(
                "a profile that allows {}; `altair doctor --docker-profile` prints one for Docker and Podman, --kubernetes-profile one for other runtimes",
                needed()
            ),
        ),
        None => (
            "",
            format!(
                "allow {} in what starts this process. For a systemd unit: a further line SystemCallFilter=@mount @process {} and RestrictNamespaces=no",
                needed(),
                CALLS_OF_GUARDS.join(" "),
            ),
        ),
    };
    remedy(
        format!("this process is under a seccomp filter already{whose}"),
        how,
    )
}

/// The calls that a filter has to allow, those of Landlock and seccomp included.
fn needed() -> String {
    let mut calls = ADDED.to_vec();
    calls.extend(CALLS_OF_GUARDS);
    calls.join(", ")
}

/// Security modules that refuse mounts.
fn modules(machine: &Machine) -> Vec<Remedy> {
    let mut found = Vec::new();
    if let Some(profile) = &machine.apparmor {
        found.push(remedy(
            format!("the AppArmor profile {profile} confines this process"),
            match machine.container {
                Some("docker") => "docker run --security-opt apparmor=unconfined, or a profile with the rules `mount,`, `umount,` and `pivot_root,`".to_owned(),
                Some("podman") => "podman run --security-opt apparmor=unconfined, or a profile with the rules `mount,`, `umount,` and `pivot_root,`".to_owned(),
                Some("kubernetes") => "securityContext: {appArmorProfile: {type: Unconfined}}, or a profile with the rules `mount,`, `umount,` and `pivot_root,`".to_owned(),
                _ => "the rules `userns,`, `mount,`, `umount,` and `pivot_root,` in that profile".to_owned(),
            },
        ));
    }
    if machine.selinux && machine.container.is_some() {
        found.push(remedy(
            "SELinux enforces its policy on this container",
            match machine.container {
                Some("kubernetes") => "securityContext: {seLinuxOptions: {type: spc_t}}",
                Some("podman") => "podman run --security-opt label=disable",
                _ => "docker run --security-opt label=disable",
            },
        ));
    }
    found
}

fn landlock(detail: &str, machine: &Machine) -> Vec<Remedy> {
    // The detail of a degraded Landlock begins with the version that the kernel has.
    if detail.starts_with("version") {
        return kernel(machine, KERNEL_OF_LANDLOCK_TCP, "full Landlock coverage")
            .into_iter()
            .collect();
    }
    let mut found: Vec<_> = kernel(machine, KERNEL_OF_LANDLOCK, "Landlock")
        .into_iter()
        .collect();
    if let Some(started) = &machine.modules
        && !started.iter().any(|module| module == "landlock")
    {
        found.push(remedy(
            "Landlock is not among the security modules that this kernel has started",
            format!(
                "lsm=landlock,{} on the kernel's command line (CONFIG_SECURITY_LANDLOCK=y)",
                started.join(",")
            ),
        ));
    }
    if machine.is_filtered == Some(true) {
        found.push(filter(machine));
    }
    found
}

fn seccomp(machine: &Machine) -> Vec<Remedy> {
    let mut found = Vec::new();
    if machine.filter_actions.is_none() && machine.release.is_some() {
        found.push(remedy(
            "this kernel does not report seccomp filters",
            "run a kernel with CONFIG_SECCOMP_FILTER=y",
        ));
    }
    if machine.is_filtered == Some(true) {
        found.push(filter(machine));
    }
    found
}
