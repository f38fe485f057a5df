//! The MCP server. It is part of the program and not of the library, so that it does not enlarge
//! what a child loads.

use altair_cli::{Server, say};
use altair_mcp::{Options, Permits, Services, TOKEN_VARIABLE, Token, Transport};

/// Serves until the server ends. Reports on standard error what it serves and where.
pub fn serve(server: Server) -> Result<(), String> {
    let Server {
        http,
        evaluator,
        root,
        services,
        env,
        has_services,
        only_databases,
        allow_writes,
        allow_rollback,
        allow_network,
        asks,
    } = server;
    let mut generated = None;
    let transport = match http {
        None => Transport::Stdio,
        Some((host, port)) => Transport::Http {
            host,
            port,
            token: match std::env::var_os(TOKEN_VARIABLE) {
                Some(token) if !token.is_empty() => token
                    .to_str()
                    .ok_or_else(|| "it is not text".to_owned())
                    .and_then(Token::given)
                    .map_err(|why| {
                        format!("the token in {TOKEN_VARIABLE} cannot be used: {why}")
                    })?,
                _ => {
                    let token = Token::generate()
                        .map_err(|error| format!("no token could be generated: {error}"))?;
                    generated.insert(token).clone()
                }
            },
        },
    };
    let may = |what, is| {
        let answer = match (is, asks) {
            (true, _) => "may be asked for",
            (false, true) => "a person is asked",
            (false, false) => "refused",
        };
        format!("{what}: {answer}")
    };
    let serving = format!(
        "serving framework__eval for {}; {}, {}, {}",
        root.display(),
        may("writes", allow_writes),
        may("rollback", allow_rollback),
        may("network", allow_network),
    );
    if let Transport::Stdio = transport {
        say(&format!("{serving}; on standard input and output"));
    }
    let options = Options {
        transport,
        evaluator,
        root,
        services,
        env,
        permits: Permits {
            writes: allow_writes,
            rollback: allow_rollback,
            network: allow_network,
            services: match (has_services, only_databases) {
                (false, _) => Services::None,
                (true, true) => Services::Databases,
                (true, false) => Services::Others,
            },
        },
        asks,
    };
    altair_mcp::serve(options, |address| {
        say(&format!("{serving}; on http://{address}/mcp"));
        if let Some(token) = &generated {
            say(&format!("token: {}", token.reveal()));
        }
    })
    .map_err(|error| error.to_string())
}
