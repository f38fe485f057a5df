//! What evaluations can do here, seen by doing it: a layer, a template, connections.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::report::{Ability, ServiceReport};
use super::scratch_project::{Scratch, literal};
use super::trial_runs::{Lab, Setting, Trial};
use crate::services::Declared;
use crate::warm::Pool;
use crate::{EvalResult, Outcome};

/// Calls until one is warm. Without a reason not to be, the second is.
const CALLS: usize = 2;

/// Tries what the guards make possible, besides confining.
pub(super) fn abilities(lab: &Lab) -> Vec<Ability> {
    [("layer", layer(lab)), ("template", template(lab))]
        .into_iter()
        .map(|(name, tried)| Ability {
            name,
            works: tried.is_ok(),
            problem: tried.err(),
        })
        .collect()
}

/// Connects to each service from a run, on the word of whoever declares it, until `until`.
pub(super) fn connect(
    lab: &Lab,
    declared: &[Declared],
    services: &mut [ServiceReport],
    until: Instant,
) {
    for (declared, service) in declared.iter().zip(services) {
        if service.problem.is_some() || Instant::now() >= until {
            continue;
        }
        let tried = reach(lab, declared);
        service.reached = Some(tried.is_ok());
        service.problem = tried.err();
    }
}

/// Writes to a project, and asks whether that was kept apart.
fn layer(lab: &Lab) -> Result<(), String> {
    let scratch = Scratch::new().map_err(|error| error.to_string())?;
    let snippet = "return @file_put_contents('new', 'x') === 1;";
    let result = finished(lab.run(&Trial::new(Setting::All, &scratch, snippet.into()))?)?;
    let changes = result.diagnostics.file_changes.as_ref();
    let listed = changes.is_some_and(|changes| changes.created.iter().any(|it| it.path == "new"));
    match listed && !scratch.project().join("new").exists() {
        true => Ok(()),
        false => Err("the project is read-only in a run".into()),
    }
}

/// Starts twice from one template.
fn template(lab: &Lab) -> Result<(), String> {
    let scratch = Scratch::new().map_err(|error| error.to_string())?;
    let pooled = Lab {
        evaluator: lab
            .evaluator
            .clone()
            .with_pool(Arc::new(Pool::new()))
            .expecting_more(),
        php: lab.php.clone(),
        has_pcntl: lab.has_pcntl,
    };
    let mut why = String::new();
    for _ in 0..CALLS {
        let trial = Trial::new(Setting::All, &scratch, "return 1;".into());
        let diagnostics = finished(pooled.run(&trial)?)?.diagnostics;
        if diagnostics.start == "warm" {
            return Ok(());
        }
        why = diagnostics
            .start_reason
            .unwrap_or_else(|| format!("the second start was {}", diagnostics.start));
    }
    Err(why)
}

/// Connects to a service as it is declared: by its name, if it has one.
fn reach(lab: &Lab, declared: &Declared) -> Result<(), String> {
    let service = declared.service.to_string();
    let scratch = Scratch::new().map_err(|error| error.to_string())?;
    let scheme = if service.starts_with('/') {
        "unix"
    } else {
        "tcp"
    };
    let address = literal(Path::new(&format!("{scheme}://{service}")));
    let snippet = format!(
        "return @stream_socket_client({address}, $number, $why, 2) ? true : (string) $why;"
    );
    let mut trial = Trial::new(Setting::All, &scratch, snippet);
    trial.services = vec![declared.clone()];
    let value = finished(lab.run(&trial)?)?.result.unwrap_or_default();
    match value.get("value") {
        Some(serde_json::Value::Bool(true)) => Ok(()),
        why => Err(format!(
            "a run cannot connect to it: {}",
            why.and_then(serde_json::Value::as_str)
                .filter(|why| !why.is_empty())
                .unwrap_or("its name has no address there")
        )),
    }
}

fn finished(result: EvalResult) -> Result<EvalResult, String> {
    match result.diagnostics.outcome {
        Outcome::Returned => Ok(result),
        _ => Err(result
            .diagnostics
            .message
            .unwrap_or_else(|| "a run did not finish".to_owned())),
    }
}
