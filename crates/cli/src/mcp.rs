//! `altair mcp:serve`: from arguments to a server.

use std::sync::Arc;

use altair_engine::audit::Actor;
use altair_engine::{EvalError, EvalRequest, Evaluator, Pool};

use crate::args::{Ask, McpArgs, McpTransport, services};
use crate::exit::Exit;
use crate::extension;
use crate::failure::Failure;
use crate::host::{Host, Server};
use crate::pool;
use crate::root::working_directory;

/// Serves until the server ends.
///
/// # Errors
///
/// Wrong usage, and anything that keeps the server from starting.
pub fn run(args: McpArgs, host: &Host) -> Result<Exit, Failure> {
    let Some(serve) = host.serve else {
        return Err(Failure::new(
            "mcp:serve needs the native command, and this is PHP standing in for it: run `make build` in the clone, or `make install` there",
        ));
    };
    // It does not search: it serves what it was started for.
    let root = match args.root {
        Some(root) => root,
        None => working_directory()?,
    };
    let evaluator = Evaluator::new(host.php(&args.php), Actor::Mcp)
        .with_pool(Arc::new(Pool::new()))
        .with_elsewhere(Arc::new(pool::client()));
    let evaluator = match extension::find(host)? {
        Some(path) => evaluator.with_extension(path),
        None => evaluator,
    };
    let services = services(args.service);
    let mut request = EvalRequest::new("return 1;", &root);
    request.services.clone_from(&services);
    request.env.clone_from(&args.env);
    // Reported now, and not by each call.
    let prepared = evaluator.prepare(&request).map_err(|error| match error {
        EvalError::InvalidRequest(why) | EvalError::Launch(why) => Failure::new(why),
        EvalError::Forbidden(why) => Failure::new(why.to_string()),
        EvalError::Interrupted => Failure::new("the start was interrupted"),
    })?;
    // Project files that a call with real writes changes must not allow later calls more. The user's file
    // is read at each call.
    let evaluator = match services {
        Some(_) => evaluator,
        None => {
            let found = evaluator.services_of(&prepared);
            evaluator.with_services(found.map_err(|error| Failure::new(error.to_string()))?)
        }
    };
    serve(Server {
        http: match args.transport {
            McpTransport::Stdio => None,
            McpTransport::Http => Some((args.host, args.port)),
        },
        has_services: !prepared.services().is_empty(),
        only_databases: prepared
            .services()
            .iter()
            .all(|declared| declared.service.is_read_only_database()),
        evaluator,
        root,
        services,
        env: args.env,
        allow_writes: args.allow_writes,
        allow_rollback: args.allow_rollback,
        allow_network: args.allow_network,
        asks: !args.readonly && matches!(args.ask, Ask::Client),
    })
    .map_err(Failure::new)?;
    Ok(Exit::Clean)
}
