//! Streamable HTTP.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::guard::{Guard, Refusal};
use crate::server::Server;
use crate::sessions::Sessions;
use crate::token::Token;

/// The same as for a message on standard input (`rmcp`'s `DEFAULT_MAX_LINE_LENGTH`).
const REQUEST_MAX_BYTES: usize = 16 * 1024 * 1024;

/// How long connections may take to end when the server ends.
const PATIENCE: Duration = Duration::from_secs(2);

type Body = BoxBody<Bytes, Infallible>;
type Mcp = StreamableHttpService<Server, LocalSessionManager>;

/// Serves at `address` until `ended` completes or `stop` is set.
pub async fn serve(
    server: Server,
    sessions: Sessions,
    (host, port): (&str, u16),
    token: Token,
    stop: CancellationToken,
    ended: impl Future<Output = ()>,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), Error> {
    let listener = listen(host, port).await?;
    let local = listener.local_addr()?;
    let guard = Arc::new(Guard {
        token,
        named: host.to_owned(),
        port: local.port(),
    });
    let config = StreamableHttpServerConfig::default()
        .with_cancellation_token(stop.child_token())
        .with_max_request_body_bytes(REQUEST_MAX_BYTES)
        // The guard has checked both.
        .disable_allowed_hosts()
        .disable_allowed_origins();
    let mcp = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    ready(local);
    let connections = GracefulShutdown::new();
    tokio::pin!(ended);
    loop {
        let accepted = tokio::select! {
            () = &mut ended => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => connect(stream, &mcp, &sessions, &guard, &connections),
            // No descriptor left, or the client disconnected. The next accept may succeed.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
    stop.cancel();
    let _ = tokio::time::timeout(PATIENCE, connections.shutdown()).await;
    Ok(())
}

async fn listen(host: &str, port: u16) -> Result<TcpListener, Error> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    TcpListener::bind((bare, port)).await.map_err(|error| {
        let why = match error.kind() {
            io::ErrorKind::AddrInUse => {
                "it is in use; name another one with --port, or stop what listens there".to_owned()
            }
            io::ErrorKind::PermissionDenied => {
                "ports below 1024 are not for this user; name another one with --port".to_owned()
            }
            io::ErrorKind::AddrNotAvailable => {
                "that is no address of this machine; name one with --host".to_owned()
            }
            _ => error.to_string(),
        };
        Error::Listen {
            host: host.to_owned(),
            port,
            why,
        }
    })
}

fn connect(
    stream: TcpStream,
    mcp: &Mcp,
    sessions: &Sessions,
    guard: &Arc<Guard>,
    connections: &GracefulShutdown,
) {
    let Ok(local) = stream.local_addr() else {
        return;
    };
    // Answers are small and latency matters.
    let _ = stream.set_nodelay(true);
    let (mcp, sessions, guard) = (mcp.clone(), sessions.clone(), Arc::clone(guard));
    let service = service_fn(move |request| {
        let (mcp, sessions, guard) = (mcp.clone(), sessions.clone(), Arc::clone(&guard));
        async move { Ok::<_, Infallible>(answer(request, &mcp, &sessions, &guard, local.ip()).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service);
    let connection = connections.watch(connection);
    tokio::spawn(async move {
        // The client decides how a connection ends.
        let _ = connection.await;
    });
}

async fn answer(
    request: Request<Incoming>,
    mcp: &Mcp,
    sessions: &Sessions,
    guard: &Guard,
    local: IpAddr,
) -> Response<Body> {
    match guard.check(request.uri(), request.headers(), local) {
        Ok(()) => {
            if request.method() == Method::DELETE {
                sessions.end(request.headers());
            }
            mcp.handle(request).await
        }
        Err(refusal) => refuse(refusal),
    }
}

/// A refusal in the protocol's form: an error without an id (JSON-RPC 2.0, 5).
fn refuse(Refusal { status, why }: Refusal) -> Response<Body> {
    let body = serde_json::json!({
        "jsonrpc": "2.0",
        "id": null,
        // From the range reserved for servers.
        "error": {"code": -32001, "message": why}
    });
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())).boxed());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if status == StatusCode::UNAUTHORIZED {
        let challenge = HeaderValue::from_static("Bearer realm=\"altair\"");
        headers.insert(WWW_AUTHENTICATE, challenge);
    }
    response
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::token::TOKEN_BYTES;

    #[test]
    fn generated_tokens_differ_and_are_long() {
        let [one, other] = [Token::generate().unwrap(), Token::generate().unwrap()];
        assert_ne!(one, other);
        assert_eq!(one.reveal().len(), 2 * TOKEN_BYTES);
        assert_eq!(Token::given(one.reveal()), Ok(one));
    }

    #[test]
    fn a_token_that_is_short_or_cannot_be_sent_is_refused() {
        for token in [
            "",
            "secret",
            "fifteen letters",
            " sixteen letters and blanks ",
            "sixteen letters\nin two lines",
            "sechzehn Zeichen für sich",
        ] {
            assert!(Token::given(token).is_err(), "{token:?}");
        }
        assert!(Token::given("sixteen letters!").is_ok());
    }

    #[test]
    fn a_token_is_not_in_what_is_printed_of_it() {
        let token = Token::given("a token of some length").unwrap();
        assert!(!format!("{token:?}").contains("length"));
    }
}
