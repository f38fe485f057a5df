//! Facts of the machine that determine which guards are possible. Each may be unknown: `/proc` may
//! be missing, or hidden.

use std::path::Path;

/// Facts of the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Machine {
    /// `uname -r`.
    pub release: Option<String>,
    /// The kind of container.
    pub container: Option<&'static str>,
    /// Whether this process runs as root.
    pub is_root: bool,
    /// Whether this process has `CAP_SYS_ADMIN`.
    pub is_admin: Option<bool>,
    /// Whether this process is under a seccomp filter already.
    pub is_filtered: Option<bool>,
    /// The AppArmor profile that confines this process, if any.
    pub apparmor: Option<String>,
    /// Whether SELinux enforces its policy.
    pub selinux: bool,
    /// `user.max_user_namespaces`.
    pub max_user_namespaces: Option<u64>,
    /// `kernel.unprivileged_userns_clone`: Debian's and Arch's kernels.
    pub unprivileged_userns_clone: Option<u64>,
    /// `kernel.apparmor_restrict_unprivileged_userns`: Ubuntu 23.10 and later.
    pub apparmor_restricts_userns: Option<u64>,
    /// The security modules that the kernel has started.
    pub modules: Option<Vec<String>>,
    /// Whether the kernel supports overlay mounts now.
    pub has_overlay: Option<bool>,
    /// What the kernel's filters can do: `/proc/sys/kernel/seccomp/actions_avail`.
    pub filter_actions: Option<String>,
}

/// `CAP_SYS_ADMIN`, by number: `linux/capability.h`.
const CAP_SYS_ADMIN: u32 = 21;

impl Machine {
    /// Reads the facts of this system.
    pub fn here() -> Self {
        let mut machine = Self::read(Path::new("/"));
        // A pod's containers also show the signs of the engine that runs them.
        if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() {
            machine.container = Some("kubernetes");
        }
        machine
    }

    /// Reads the facts of the system whose root directory is `root`.
    pub fn read(root: &Path) -> Self {
        let text = |path: &str| {
            std::fs::read_to_string(root.join(path))
                .ok()
                .map(|text| text.trim_matches(['\n', '\0', ' ']).to_owned())
                .filter(|text| !text.is_empty())
        };
        let number = |path: &str| text(path)?.parse::<u64>().ok();
        let status = text("proc/self/status").unwrap_or_default();
        let field = |name: &str| {
            status
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
                .map(|value| value.trim().to_owned())
        };
        Self {
            release: text("proc/sys/kernel/osrelease"),
            container: container(root),
            is_root: nix::unistd::geteuid().is_root(),
            is_admin: field("CapEff")
                .and_then(|mask| u64::from_str_radix(&mask, 16).ok())
                .map(|mask| mask & (1 << CAP_SYS_ADMIN) != 0),
            is_filtered: field("Seccomp").map(|mode| mode != "0"),
            // The second is the path of kernels that have only one such module at a time.
            apparmor: ["proc/self/attr/apparmor/current", "proc/self/attr/current"]
                .iter()
                .find_map(|path| text(path))
                // SELinux's labels are in the same file; they contain colons.
                .filter(|label| label != "unconfined" && !label.contains(':')),
            selinux: number("sys/fs/selinux/enforce") == Some(1),
            max_user_namespaces: number("proc/sys/user/max_user_namespaces"),
            unprivileged_userns_clone: number("proc/sys/kernel/unprivileged_userns_clone"),
            apparmor_restricts_userns: number(
                "proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            ),
            modules: text("sys/kernel/security/lsm")
                .map(|list| list.split(',').map(str::to_owned).collect()),
            has_overlay: text("proc/filesystems").map(|list| {
                list.lines()
                    .any(|line| line.split_whitespace().next_back() == Some("overlay"))
            }),
            filter_actions: text("proc/sys/kernel/seccomp/actions_avail"),
        }
    }

    /// The kernel's major and minor version, from its release: `(6, 18)`.
    pub fn version(&self) -> Option<(u32, u32)> {
        let mut parts = self.release.as_deref()?.split(['.', '-']);
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    }

    /// Whether the kernel is older than `version`; false if that is unknown.
    pub fn is_before(&self, version: (u32, u32)) -> bool {
        self.version().is_some_and(|own| own < version)
    }
}

/// The kind of container, by the usual signs.
fn container(root: &Path) -> Option<&'static str> {
    let there = |path: &str| root.join(path).exists();
    if there("var/run/secrets/kubernetes.io") {
        return Some("kubernetes");
    }
    if there("run/.containerenv") {
        return Some("podman");
    }
    if there(".dockerenv") {
        return Some("docker");
    }
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
    // Written by systemd: the variable `container` that the container's manager has set.
    let manager = read("run/systemd/container");
    match manager.trim() {
        "" => {}
        "docker" => return Some("docker"),
        "podman" => return Some("podman"),
        "lxc" | "lxc-libvirt" => return Some("lxc"),
        "systemd-nspawn" => return Some("nspawn"),
        _ => return Some("other"),
    }
    let groups = read("proc/self/cgroup");
    [
        ("kubepods", "kubernetes"),
        ("libpod", "podman"),
        ("docker", "docker"),
        ("/lxc", "lxc"),
        ("containerd", "other"),
    ]
    .iter()
    .find(|(sign, _)| groups.contains(sign))
    .map(|(_, kind)| *kind)
}
