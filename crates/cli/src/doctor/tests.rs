//! The reports that people and programs read, case by case.
#![allow(clippy::unwrap_used)]

use altair_engine::doctor::{
    Ability, Attack, Extension, GuardReport, Kernel, Php, PoolReport, Remedy, Report, SelfTest,
    State, User, Verdict,
};
use altair_engine::guards::Guard;
use serde_json::json;

use super::print::render;
use crate::human::Theme;

fn attack(tried: &str, seen: &str, without: Option<&str>, held: bool) -> Attack {
    Attack {
        tried: tried.into(),
        seen: seen.into(),
        without: without.map(Into::into),
        held,
    }
}

fn guard(name: Guard, verdict: Verdict, attacks: Vec<Attack>) -> GuardReport {
    GuardReport {
        name,
        state: State::InForce,
        detail: None,
        version: None,
        remedies: Vec::new(),
        self_test: SelfTest {
            verdict,
            reason: None,
            attacks,
        },
    }
}

fn landlock() -> GuardReport {
    let held = attack("read a file outside", "not read", Some("read"), true);
    GuardReport {
        version: Some("ABI 7".into()),
        ..guard(Guard::Landlock, Verdict::Passed, vec![held])
    }
}

fn deadline() -> GuardReport {
    let held = attack("run on for ever", "ended", None, true);
    guard(Guard::Deadline, Verdict::Passed, vec![held])
}

fn report(ok: bool, guards: Vec<GuardReport>) -> Report {
    Report {
        ok,
        user: User {
            uid: 0,
            name: Some("root".into()),
        },
        php: Php {
            path: Some("/usr/bin/php".into()),
            version: Some("8.2.35".into()),
            sapi: Some("cli".into()),
            thread_safe: Some(false),
            debug: Some(false),
            problem: None,
        },
        extension: Extension {
            path: Some("/usr/lib/php/altair_eval.so".into()),
            version: Some("0.1.0".into()),
            problem: None,
        },
        kernel: Kernel {
            release: Some("6.18.0".into()),
            architecture: "x86_64",
            container: None,
            filtered: Some(false),
            apparmor: None,
        },
        problems: Vec::new(),
        warnings: Vec::new(),
        services: Vec::new(),
        withheld: Vec::new(),
        allowed: Vec::new(),
        abilities: Vec::new(),
        pool: None,
        guards,
    }
}

fn plain(report: &Report) -> String {
    render(report, Theme::new(false))
}

const HEAD: &str = "\
php          8.2.35 (NTS, cli)  /usr/bin/php\n\
extension    0.1.0  /usr/lib/php/altair_eval.so\n\
kernel       6.18.0 x86_64\n\
user         root (0)\n\n";

#[test]
fn guards_that_hold_are_shown_with_what_was_tried() {
    assert_eq!(
        plain(&report(true, vec![landlock(), deadline()])),
        format!(
            "{HEAD}✓ landlock    in force (ABI 7)\n\
            \x20   read a file outside: not read (without it: read)\n\
            ✓ deadline    in force\n\
            \x20   run on for ever: ended\n\n\
            Every guard is in force and held when it was attacked.\n"
        )
    );
}

#[test]
fn what_is_missing_comes_with_what_to_do() {
    let missing = GuardReport {
        state: State::Missing,
        detail: Some("the kernel refuses".into()),
        remedies: vec![Remedy {
            because: "user.max_user_namespaces is 0".into(),
            how: "sysctl -w user.max_user_namespaces=15000".into(),
        }],
        self_test: SelfTest {
            reason: Some("the guard is missing".into()),
            ..guard(Guard::Ini, Verdict::NotTried, Vec::new()).self_test
        },
        ..guard(Guard::Filesystem, Verdict::NotTried, Vec::new())
    };
    let degraded = GuardReport {
        state: State::Degraded,
        detail: Some("ABI 1: truncation is not governed".into()),
        ..landlock()
    };
    assert_eq!(
        plain(&report(false, vec![missing, degraded, deadline()])),
        format!(
            "{HEAD}✗ filesystem  missing: the kernel refuses\n\
            \x20   user.max_user_namespaces is 0\n\
            \x20     → sysctl -w user.max_user_namespaces=15000\n\
            ✗ landlock    degraded (ABI 7) to ABI 1: truncation is not governed\n\
            \x20   read a file outside: not read (without it: read)\n\
            ✓ deadline    in force\n\
            \x20   run on for ever: ended\n\n\
            Not in force: filesystem, landlock.\n"
        )
    );
}

#[test]
fn a_guard_that_gives_way_is_a_hole() {
    let through = attack("connect", "reached", Some("reached"), false);
    assert_eq!(
        plain(&report(
            false,
            vec![guard(Guard::Seccomp, Verdict::Failed, vec![through])]
        )),
        format!(
            "{HEAD}✗ seccomp     gives way\n\
            \x20   ✗ connect: reached (without it: reached)\n\n\
            Gave way: seccomp. That is a hole; please report it.\n"
        )
    );
}

#[test]
fn what_could_not_be_attacked_is_told() {
    let mut untried = guard(Guard::Seccomp, Verdict::NotTried, Vec::new());
    untried.self_test.reason = Some("connect: no loopback".into());
    let text = plain(&report(true, vec![untried]));
    assert!(
        text.ends_with(
            "✓ seccomp     in force\n    not tried: connect: no loopback\n\n\
            Every guard is in force. Not attacked: seccomp.\n"
        ),
        "{text}"
    );
}

#[test]
fn without_php_there_is_a_line_that_says_so() {
    let unknown = GuardReport {
        state: State::Unknown,
        ..guard(Guard::Process, Verdict::NotTried, Vec::new())
    };
    let report = Report {
        user: User {
            uid: 12345,
            name: None,
        },
        php: Php {
            problem: Some("There is no executable `php` on PATH.".into()),
            ..Php::default()
        },
        extension: Extension::default(),
        kernel: Kernel {
            release: None,
            architecture: "aarch64",
            container: Some("docker"),
            filtered: Some(true),
            apparmor: Some("docker-default (enforce)".into()),
        },
        problems: vec!["Nothing\u{1b}[2J works.".into()],
        ..report(false, vec![unknown])
    };
    assert_eq!(
        plain(&report),
        "php          none\n\
        \x20 ✗ There is no executable `php` on PATH.\n\
        extension    none\n\
        kernel       not known aarch64, in a container (docker), under a seccomp filter, AppArmor profile docker-default (enforce)\n\
        user         a user without a name (12345)\n\
        ✗ Nothing\\x1b[2J works.\n\n\
        ✗ process     not known\n\n\
        Nothing could be tried, for the reasons above.\n"
    );
}

#[test]
fn what_runs_can_do_is_shown_as_it_was_tried() {
    let mut report = report(true, vec![deadline()]);
    let ability = |name, problem: Option<&str>| Ability {
        name,
        works: problem.is_none(),
        problem: problem.map(Into::into),
    };
    report.abilities = vec![
        ability("layer", None),
        ability("template", Some("no private root\u{1b}[2J")),
    ];
    let text = plain(&report);
    assert!(
        text.contains(
            "ended\n\n✓ layer       a run writes to the project, and it is thrown away\n\
            – template    not here: no private root\\x1b[2J\n\n"
        ),
        "{text}"
    );
}

fn pool() -> PoolReport {
    PoolReport {
        serves: true,
        pid: Some(7),
        templates: Some(1),
        problem: None,
    }
}

#[test]
fn a_pool_is_a_line_and_none_is_no_fault() {
    let mut report = report(true, Vec::new());
    report.pool = Some(pool());
    assert!(
        plain(&report).contains("✓ pool        process 7 keeps applications booted: 1 template\n")
    );
    report.pool = Some(PoolReport {
        serves: false,
        pid: None,
        templates: None,
        problem: Some("none\u{1b}[2J".into()),
    });
    let text = plain(&report);
    assert!(text.contains("– pool        none\\x1b[2J\n"), "{text}");
    assert!(text.ends_with("Every guard is in force and held when it was attacked.\n"));
}

#[test]
fn a_warning_is_a_line_and_no_fault() {
    let mut report = report(true, Vec::new());
    report.warnings = vec!["The secret in A\u{1b}[2J protects nothing.".into()];
    let text = plain(&report);
    assert!(
        text.contains("\n! The secret in A\\x1b[2J protects nothing.\n"),
        "{text}"
    );
    assert!(text.ends_with("Every guard is in force and held when it was attacked.\n"));
}

#[test]
fn colour_is_there_only_when_asked_for() {
    let report = report(true, vec![landlock()]);
    assert!(!plain(&report).contains('\u{1b}'));
    assert!(render(&report, Theme::new(true)).contains("\u{1b}[32;1m✓\u{1b}[0m"));
}

#[test]
fn the_shape_for_programs_is_stable() {
    let mut report = report(true, vec![landlock(), deadline()]);
    report.pool = Some(pool());
    let value = serde_json::to_value(report).unwrap();
    assert_eq!(
        value,
        json!({
            "ok": true,
            "user": {"uid": 0, "name": "root"},
            "php": {"path": "/usr/bin/php", "version": "8.2.35", "sapi": "cli",
                    "thread_safe": false, "debug": false, "problem": null},
            "extension": {"path": "/usr/lib/php/altair_eval.so", "version": "0.1.0", "problem": null},
            "kernel": {"release": "6.18.0", "architecture": "x86_64", "container": null,
                       "filtered": false, "apparmor": null},
            "problems": [],
            "warnings": [],
            "services": [],
            "withheld": [],
            "allowed": [],
            "abilities": [],
            "pool": {"serves": true, "pid": 7, "templates": 1, "problem": null},
            "guards": [
                {"name": "landlock", "state": "in_force", "detail": null, "version": "ABI 7",
                 "remedies": [],
                 "self_test": {"verdict": "passed", "reason": null, "attacks": [
                    {"tried": "read a file outside", "seen": "not read", "without": "read", "held": true}
                 ]}},
                {"name": "deadline", "state": "in_force", "detail": null, "version": null,
                 "remedies": [],
                 "self_test": {"verdict": "passed", "reason": null, "attacks": [
                    {"tried": "run on for ever", "seen": "ended", "without": null, "held": true}
                 ]}},
            ],
        })
    );
}
