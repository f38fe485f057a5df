//! Evaluations for agents: a Model Context Protocol server with one tool, on standard input and
//! output or over streamable HTTP.
//!
//! The server is the host of its evaluations: it keeps templates, and no PHP process stands between
//! it and a child. The official SDK, `rmcp`, implements the protocol. This crate has the tool, its
//! permits, and what ends a run.

mod arguments;
mod calls;
mod guard;
mod http;
mod permits;
mod progress;
mod question;
mod server;
mod sessions;
mod stdio;
mod token;
mod tool;
#[cfg(test)]
mod unanswered;
mod visible;

/// Private functions exported for fuzz targets.
#[cfg(fuzzing)]
pub mod fuzzing {
    /// Reads the arguments of a call with all permits; returns whether they can be read.
    #[must_use]
    pub fn arguments(given: rmcp::model::JsonObject) -> bool {
        crate::arguments::Call::read(Some(given)).is_ok()
    }
}

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use altair_engine::Evaluator;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use calls::Calls;
pub use permits::{Permits, Services};
use question::Sealed;
use server::Server;
use sessions::Sessions;
pub use token::{TOKEN_VARIABLE, Token};

/// The transport of the server.
#[derive(Debug)]
pub enum Transport {
    /// Standard input and output. The server ends when its input closes.
    Stdio,
    /// Streamable HTTP, at `/mcp`. The server ends by a signal.
    Http {
        /// The address to listen on as given: a host name or an address.
        host: String,
        /// The port; 0 chooses a free one.
        port: u16,
        /// The token that every request must send.
        token: Token,
    },
}

/// The settings of a server.
#[derive(Debug)]
pub struct Options {
    /// How clients reach it.
    pub transport: Transport,
    /// Evaluates the calls.
    pub evaluator: Evaluator,
    /// The application.
    pub root: PathBuf,
    /// What calls may connect to while the network is off; `None`: what the application declares.
    pub services: Option<Vec<String>>,
    /// Variables of the server's environment that calls get, although they would be withheld.
    pub env: Vec<String>,
    /// What calls may ask for.
    pub permits: Permits,
    /// Whether a person is asked, through clients that can, for what is not permitted.
    pub asks: bool,
}

/// Why a server could not be started or ended early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It could not listen on the address.
    #[error("cannot listen on {host}, port {port}: {why}")]
    Listen {
        /// The host as given.
        host: String,
        /// The port.
        port: u16,
        /// The reason, and what to do about it.
        why: String,
    },
    /// The system refused something that the server needs.
    #[error("the server could not be started: {0}")]
    System(#[from] std::io::Error),
}

/// How long runs may take to end once they are told to: the engine needs a tenth of a second to
/// notice, and some more if something delays it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Serves until the client disconnects or a signal (`SIGINT`, `SIGTERM`) comes. When this returns,
/// no run is left. `ready` is called with the address once clients can connect to it.
///
/// # Errors
///
/// [`Error`].
pub fn serve(options: Options, ready: impl FnOnce(SocketAddr)) -> Result<(), Error> {
    // Runs have threads of their own. What is left to do is little, and waits for them.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_name("altair-mcp")
        .build()?;
    let served = runtime.block_on(async {
        let stop = CancellationToken::new();
        let calls = Arc::new(Calls::new(
            options.evaluator,
            options.root,
            options.services,
            options.env,
            stop.clone(),
        ));
        let questions = match options.asks {
            true => Some(Arc::new(Sealed::new()?)),
            false => None,
        };
        let sessions = Sessions::default();
        let server = Server::new(
            Arc::clone(&calls),
            options.permits,
            questions,
            sessions.clone(),
        );
        let ended = {
            let stop = stop.clone();
            let mut interrupted = signal(SignalKind::interrupt())?;
            let mut terminated = signal(SignalKind::terminate())?;
            async move {
                tokio::select! {
                    _ = interrupted.recv() => {}
                    _ = terminated.recv() => {}
                    () = stop.cancelled() => {}
                }
            }
        };
        let served = match options.transport {
            Transport::Stdio => tokio::select! {
                served = stdio::serve(server, stop.clone()) => served,
                () = ended => Ok(()),
            },
            Transport::Http { host, port, token } => {
                http::serve(
                    server,
                    sessions,
                    (&host, port),
                    token,
                    stop.clone(),
                    ended,
                    ready,
                )
                .await
            }
        };
        stop.cancel();
        calls.end(PATIENCE).await;
        served
    });
    // A pending read of standard input must not keep the process alive.
    runtime.shutdown_background();
    served
}
