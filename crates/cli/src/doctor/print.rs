//! A report as text for people: a pure function of the report.

use altair_engine::doctor::{
    Ability, Extension, GuardReport, Php, PoolReport, Report, SelfTest, ServiceReport, State,
    Verdict, WithheldReport,
};
use altair_engine::services::By;

use crate::escape;
use crate::human::Theme;

/// Width of the names in the first column: `environment`, `filesystem`, `extension`, ….
const NAME_WIDTH: usize = 11;

/// Renders `report`; every line ends with a newline, and no control character is raw.
pub fn render(report: &Report, theme: Theme) -> String {
    let mut out = String::new();
    head(&mut out, report, theme);
    for problem in &report.problems {
        line(
            &mut out,
            0,
            &theme.bad(&format!("✗ {}", escape::line(problem.trim()))),
        );
    }
    for warning in &report.warnings {
        line(
            &mut out,
            0,
            &theme.notice(&format!("! {}", escape::line(warning))),
        );
    }
    line(&mut out, 0, "");
    for guard in &report.guards {
        row(&mut out, guard, theme);
    }
    if !report.abilities.is_empty() {
        line(&mut out, 0, "");
    }
    for tried in &report.abilities {
        ability(&mut out, tried, theme);
    }
    if let Some(found) = &report.pool {
        pool(&mut out, found, theme);
    }
    if !report.services.is_empty() {
        line(&mut out, 0, "");
        line(
            &mut out,
            0,
            "Runs in this project may connect to, while the network is off:",
        );
    }
    for service in &report.services {
        services(&mut out, service, theme);
    }
    withheld(&mut out, &report.withheld);
    for allowed in &report.allowed {
        line(&mut out, 0, "");
        let file = allowed.file.display();
        line(&mut out, 0, &format!("{file} allows runs in this project:"));
        for option in &allowed.options {
            line(&mut out, 2, &crate::escape::line(option));
        }
    }
    line(&mut out, 0, "");
    line(&mut out, 0, &conclusion(report, theme));
    out
}

/// Appends a line, indented by `level` steps of two spaces.
fn line(out: &mut String, level: usize, text: &str) {
    out.push_str(&"  ".repeat(level));
    out.push_str(text);
    out.push('\n');
}

/// The user, PHP, extension and kernel examined.
fn head(out: &mut String, report: &Report, theme: Theme) {
    let mut fact = |name: &str, text: &str, problem: Option<&String>| {
        let name = theme.name(&format!("{name:<NAME_WIDTH$}"));
        line(out, 0, format!("{name}  {}", escape::line(text)).trim_end());
        if let Some(problem) = problem {
            line(out, 1, &theme.bad(&format!("✗ {}", escape::line(problem))));
        }
    };
    fact("php", &php(&report.php), report.php.problem.as_ref());
    let extension = &report.extension;
    fact("extension", &loaded(extension), extension.problem.as_ref());
    let kernel = &report.kernel;
    let release = kernel.release.as_deref().unwrap_or("not known");
    let place = match kernel.container {
        Some("other") => ", in a container".to_owned(),
        Some(kind) => format!(", in a container ({kind})"),
        None => String::new(),
    };
    let filter = match kernel.filtered {
        Some(true) => ", under a seccomp filter",
        Some(false) | None => "",
    };
    let profile = match &kernel.apparmor {
        Some(profile) => format!(", AppArmor profile {profile}"),
        None => String::new(),
    };
    let architecture = kernel.architecture;
    fact(
        "kernel",
        &format!("{release} {architecture}{place}{filter}{profile}"),
        None,
    );
    let user = &report.user;
    let name = user.name.as_deref().unwrap_or("a user without a name");
    fact("user", &format!("{name} ({})", user.uid), None);
}

fn php(php: &Php) -> String {
    let flag = |set: Option<bool>, yes: &'static str, no: &'static str| match set {
        Some(true) => yes,
        Some(false) => no,
        None => "",
    };
    let path = php.path.as_ref().map(|path| path.display().to_string());
    match (&php.version, path) {
        (Some(version), path) => format!(
            "{version} ({}{}, {})  {}",
            flag(php.thread_safe, "ZTS", "NTS"),
            flag(php.debug, ", debug", ""),
            php.sapi.as_deref().unwrap_or_default(),
            path.unwrap_or_default()
        ),
        (None, Some(path)) => path,
        (None, None) => "none".into(),
    }
}

fn loaded(extension: &Extension) -> String {
    let path = match &extension.path {
        Some(path) => path.display().to_string(),
        None if extension.version.is_some() => "loaded by PHP's own ini files".into(),
        None => "none".into(),
    };
    match &extension.version {
        Some(version) => format!("{version}  {path}"),
        None => path,
    }
}

/// A guard, what is missing, and the results of its attacks.
fn row(out: &mut String, guard: &GuardReport, theme: Theme) {
    let (mark, state) = match guard.state {
        State::InForce if guard.self_test.verdict == Verdict::Failed => {
            (theme.bad("✗"), theme.bad("gives way"))
        }
        State::InForce => (theme.good("✓"), "in force".to_owned()),
        State::Degraded => (theme.bad("✗"), theme.notice("degraded")),
        State::Missing => (theme.bad("✗"), theme.bad("missing")),
        State::Unknown => (theme.bad("✗"), theme.notice("not known")),
    };
    let name = theme.name(&format!("{:<NAME_WIDTH$}", guard.name));
    let version = guard
        .version
        .as_ref()
        .filter(|_| matches!(guard.state, State::InForce | State::Degraded))
        .map(|version| theme.dim(&format!(" ({})", escape::line(version))))
        .unwrap_or_default();
    let detail = match (&guard.detail, guard.state) {
        (Some(detail), State::Degraded) => format!(" to {}", escape::line(detail)),
        (Some(detail), _) => format!(": {}", escape::line(detail)),
        (None, _) => String::new(),
    };
    line(out, 0, &format!("{mark} {name} {state}{version}{detail}"));
    for remedy in &guard.remedies {
        line(out, 2, &theme.notice(&escape::line(&remedy.because)));
        line(out, 3, &format!("→ {}", escape::line(&remedy.how)));
    }
    // For a missing guard the row says everything.
    if matches!(guard.state, State::InForce | State::Degraded) {
        attacks(out, &guard.self_test, theme);
    }
}

/// What runs can do, and why not.
fn ability(out: &mut String, tried: &Ability, theme: Theme) {
    let what = match tried.name {
        "layer" => "a run writes to the project, and it is thrown away",
        "template" => "the application boots once, and runs fork from it",
        other => other,
    };
    let mark = match tried.works {
        true => theme.good("✓"),
        false => theme.notice("–"),
    };
    let name = theme.name(&format!("{:<NAME_WIDTH$}", tried.name));
    let text = match &tried.problem {
        Some(problem) => format!("not here: {}", escape::line(problem)),
        None => what.to_owned(),
    };
    line(out, 0, &format!("{mark} {name} {text}"));
}

fn pool(out: &mut String, found: &PoolReport, theme: Theme) {
    let name = theme.name(&format!("{:<NAME_WIDTH$}", "pool"));
    let (mark, text) = match (&found.problem, found.pid) {
        (None, Some(pid)) => {
            let templates = found.templates.unwrap_or(0);
            let noun = if templates == 1 {
                "template"
            } else {
                "templates"
            };
            let text = format!("process {pid} keeps applications booted: {templates} {noun}");
            (theme.good("✓"), text)
        }
        (problem, _) => {
            let why = problem.as_deref().unwrap_or("it does not say why");
            (theme.notice("–"), escape::line(why))
        }
    };
    line(out, 0, &format!("{mark} {name} {text}"));
}

fn services(out: &mut String, service: &ServiceReport, theme: Theme) {
    let named = escape::line(&service.service);
    let addresses: Vec<String> = service
        .addresses
        .iter()
        .map(ToString::to_string)
        .filter(|address| *address != service.service)
        .collect();
    let is = match addresses.is_empty() {
        true => String::new(),
        false => format!(" is {}", addresses.join(", ")),
    };
    let by = match service.by {
        By::User => "yours",
        By::Project => "the project's",
    };
    let from = theme.dim(&format!("from {}, {by}", escape::line(&service.from)));
    let mark = match service.reached {
        Some(true) => format!("{} ", theme.good("✓")),
        Some(false) | None => String::new(),
    };
    line(out, 1, &format!("{mark}{}{is}  {from}", theme.name(&named)));
    if !service.listeners.is_empty() {
        let who = service.listeners.join(", ");
        line(
            out,
            2,
            &theme.dim(&format!("listening: {}", escape::line(&who))),
        );
    }
    if let Some(problem) = &service.problem {
        line(out, 2, &theme.notice(&escape::line(problem)));
    }
    if let Some(allow) = &service.allow {
        line(out, 2, &format!("Allow it: {}", escape::line(allow)));
    }
}

/// The variables that runs do not get, by reason.
fn withheld(out: &mut String, all: &[WithheldReport]) {
    if all.is_empty() {
        return;
    }
    line(out, 0, "");
    line(
        out,
        0,
        "Variables of this environment that runs in this project do not get (--env=NAME passes one):",
    );
    let mut reasons: Vec<&str> = Vec::new();
    for one in all {
        if !reasons.contains(&one.why) {
            reasons.push(one.why);
        }
    }
    for reason in reasons {
        let of_it: Vec<_> = all.iter().filter(|one| one.why == reason).collect();
        let never = match of_it.iter().all(|one| one.lift.is_none()) {
            true => "; never passed",
            false => "",
        };
        let mut names: Vec<&str> = of_it.iter().map(|one| one.name.as_str()).collect();
        names.sort_unstable();
        let names = escape::line(&names.join(", "));
        line(out, 1, &format!("{names}  ({reason}{never})"));
    }
}

fn attacks(out: &mut String, test: &SelfTest, theme: Theme) {
    for attack in &test.attacks {
        let without = attack
            .without
            .as_ref()
            .map(|seen| format!(" (without it: {})", escape::line(seen)))
            .unwrap_or_default();
        let text = format!(
            "{}: {}",
            escape::line(&attack.tried),
            escape::line(&attack.seen)
        );
        let shown = if attack.held {
            format!("{}{}", theme.dim(&text), theme.dim(&without))
        } else {
            format!("{}{}", theme.bad(&format!("✗ {text}")), theme.dim(&without))
        };
        line(out, 2, &shown);
    }
    if let Some(reason) = &test.reason {
        line(
            out,
            2,
            &theme.dim(&format!("not tried: {}", escape::line(reason))),
        );
    }
}

fn conclusion(report: &Report, theme: Theme) -> String {
    let names = |wanted: &dyn Fn(&GuardReport) -> bool| {
        let names: Vec<_> = report
            .guards
            .iter()
            .filter(|guard| wanted(guard))
            .map(|guard| guard.name.name())
            .collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    if report.ok {
        return match names(&|guard| guard.self_test.verdict == Verdict::NotTried) {
            Some(names) => theme.good(&format!("Every guard is in force. Not attacked: {names}.")),
            None => theme.good("Every guard is in force and held when it was attacked."),
        };
    }
    let parts = [
        names(&|guard| matches!(guard.state, State::Degraded | State::Missing))
            .map(|names| format!("Not in force: {names}.")),
        names(&|guard| guard.state == State::Unknown)
            .map(|_| "Nothing could be tried, for the reasons above.".to_owned()),
        // A guard that is only partly in force does not claim to hold.
        names(&|guard| guard.state == State::InForce && guard.self_test.verdict == Verdict::Failed)
            .map(|names| format!("Gave way: {names}. That is a hole; please report it.")),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    theme.bad(&if parts.is_empty() {
        "Something is wrong; see above.".to_owned()
    } else {
        parts.join(" ")
    })
}
