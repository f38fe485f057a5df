use crate::doctor::advice;
use crate::doctor::machine::Machine;
use crate::guards::Guard;

/// All advice for a guard as text.
fn of(guard: Guard, detail: &str, machine: &Machine) -> String {
    advice::of(guard, detail, machine)
        .iter()
        .map(|remedy| format!("{} => {}\n", remedy.because, remedy.how))
        .collect()
}

fn user() -> Machine {
    Machine {
        release: Some("6.18.0".into()),
        is_admin: Some(false),
        has_overlay: Some(true),
        ..Machine::default()
    }
}

#[test]
fn settings_that_close_user_namespaces_are_named_as_they_are_set() {
    let machine = Machine {
        max_user_namespaces: Some(0),
        unprivileged_userns_clone: Some(0),
        apparmor_restricts_userns: Some(1),
        ..user()
    };
    let text = of(Guard::Filesystem, "", &machine);
    for setting in [
        "sysctl -w user.max_user_namespaces=15000",
        "sysctl -w kernel.unprivileged_userns_clone=1",
        "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
    ] {
        assert!(text.contains(setting), "{setting} in {text}");
    }
    // Root with CAP_SYS_ADMIN needs no user namespace.
    let root = Machine {
        is_admin: Some(true),
        ..machine
    };
    assert!(!of(Guard::Filesystem, "", &root).contains("sysctl"));
}

#[test]
fn an_engine_that_filters_gets_its_own_flag() {
    let inside = |container| Machine {
        container: Some(container),
        is_filtered: Some(true),
        is_root: true,
        apparmor: Some("docker-default (enforce)".into()),
        ..user()
    };
    let docker = of(Guard::Filesystem, "", &inside("docker"));
    assert!(docker.contains("altair doctor --docker-profile > altair.json"));
    assert!(docker.contains("docker run --security-opt seccomp=altair.json"));
    assert!(docker.contains("security_opt: [\"seccomp=altair.json\"]"));
    // It takes more away from the container's border than it gives: the profile is enough.
    assert!(!docker.contains("SYS_ADMIN"));
    assert!(docker.contains("docker run --security-opt apparmor=unconfined"));
    let kubernetes = of(Guard::Filesystem, "", &inside("kubernetes"));
    assert!(kubernetes.contains("seccompProfile: {type: Localhost"));
    assert!(kubernetes.contains("altair doctor --kubernetes-profile"));
    assert!(kubernetes.contains("appArmorProfile: {type: Unconfined}"));
    assert!(of(Guard::Landlock, "", &inside("docker")).contains("--docker-profile"));
    assert!(of(Guard::Landlock, "", &inside("lxc")).contains("landlock_create_ruleset"));
    let unit = Machine {
        is_filtered: Some(true),
        ..user()
    };
    assert!(
        of(Guard::Filesystem, "", &unit)
            .contains("SystemCallFilter=@mount @process landlock_create_ruleset ")
    );
}

#[test]
fn an_old_kernel_is_told_from_one_that_was_told_not_to() {
    let old = Machine {
        release: Some("5.4.0-1".into()),
        ..user()
    };
    assert!(of(Guard::Landlock, "", &old).contains("Landlock needs Linux 5.13, this is 5.4.0-1"));
    let middle = Machine {
        release: Some("6.1.0".into()),
        is_filtered: Some(true),
        ..user()
    };
    let text = of(Guard::Landlock, "version 2 of Landlock: …", &middle);
    assert!(text.contains("run Linux 6.7 or later"), "{text}");
    assert!(!text.contains("filter"), "{text}");
    let off = Machine {
        modules: Some(vec!["capability".into(), "yama".into()]),
        ..user()
    };
    assert!(of(Guard::Landlock, "", &off).contains("lsm=landlock,capability,yama"));
    let old = Machine {
        release: Some("6.1.0".into()),
        ..user()
    };
    assert!(of(Guard::Filesystem, "a read-only project: …", &old).contains("TMPDIR"));
    assert!(!of(Guard::Filesystem, "no namespace", &old).contains("TMPDIR"));
}

#[test]
fn a_foreign_proc_is_told_from_a_missing_one() {
    let foreign = of(
        Guard::Deadline,
        "…: /proc is that of another pid namespace",
        &user(),
    );
    assert!(foreign.contains("--mount-proc"), "{foreign}");
    let missing = of(Guard::Deadline, "…: /proc is not mounted, or is …", &user());
    assert!(
        missing.ends_with("=> mount -t proc proc /proc\n"),
        "{missing}"
    );
}

#[test]
fn there_is_always_something_to_go_on_with() {
    for guard in Guard::ALL {
        let advice = advice::of(guard, "", &Machine::default());
        assert!(!advice.is_empty(), "{guard}");
        assert!(
            advice
                .iter()
                .all(|one| !one.because.is_empty() && !one.how.is_empty())
        );
    }
}
