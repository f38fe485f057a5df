use std::path::Path;

use tempfile::TempDir;

use crate::doctor::machine::Machine;

/// A root directory with these files.
fn root(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let file = dir.path().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }
    dir
}

fn read(files: &[(&str, &str)]) -> Machine {
    Machine::read(root(files).path())
}

#[test]
fn without_proc_nothing_is_known_and_nothing_fails() {
    let machine = Machine::read(Path::new("/nowhere"));
    assert_eq!(
        machine,
        Machine {
            is_root: machine.is_root,
            container: machine.container,
            ..Machine::default()
        }
    );
    assert!(!machine.is_before((99, 0)));
}

#[test]
fn facts_are_read_as_the_kernel_writes_them() {
    let machine = read(&[
        ("proc/sys/kernel/osrelease", "5.15.0-91-generic\n"),
        (
            "proc/self/status",
            "Name:\tx\nCapEff:\t00000000a80425fb\nSeccomp:\t2\nSeccomp_filters:\t1\n",
        ),
        ("proc/self/attr/current", "docker-default (enforce)\n"),
        ("sys/fs/selinux/enforce", "1"),
        ("proc/sys/user/max_user_namespaces", "0\n"),
        ("sys/kernel/security/lsm", "capability,yama,apparmor"),
        ("proc/filesystems", "nodev\tsysfs\n\text4\nnodev\toverlay\n"),
    ]);
    assert_eq!(machine.version(), Some((5, 15)));
    assert!(machine.is_before((5, 16)) && !machine.is_before((5, 15)));
    assert_eq!(machine.is_admin, Some(false));
    assert_eq!(machine.is_filtered, Some(true));
    assert_eq!(
        machine.apparmor.as_deref(),
        Some("docker-default (enforce)")
    );
    assert!(machine.selinux);
    assert_eq!(machine.max_user_namespaces, Some(0));
    assert_eq!(machine.unprivileged_userns_clone, None);
    assert_eq!(machine.modules.unwrap(), ["capability", "yama", "apparmor"]);
    assert_eq!(machine.has_overlay, Some(true));
}

#[test]
fn a_label_that_confines_nothing_is_no_profile() {
    for label in ["unconfined\n", "system_u:system_r:container_t:s0:c1,c2\0"] {
        assert_eq!(read(&[("proc/self/attr/current", label)]).apparmor, None);
    }
}

#[test]
fn a_container_is_known_by_its_signs() {
    let kind = |path: &str, content: &str| read(&[(path, content)]).container;
    assert_eq!(kind(".dockerenv", ""), Some("docker"));
    assert_eq!(kind("run/.containerenv", ""), Some("podman"));
    assert_eq!(
        kind("run/systemd/container", "systemd-nspawn\n"),
        Some("nspawn")
    );
    assert_eq!(kind("run/systemd/container", "lxc"), Some("lxc"));
    assert_eq!(
        kind("proc/self/cgroup", "0::/kubepods.slice/pod1"),
        Some("kubernetes")
    );
    assert_eq!(
        kind("var/run/secrets/kubernetes.io/serviceaccount/token", "x"),
        Some("kubernetes")
    );
    assert_eq!(kind("proc/self/cgroup", "0::/user.slice"), None);
}
