//! Standard input and output.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::io::stdio_pipes;
use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::server::Server;

/// How long running calls may continue after standard input closes: a client that piped in a
/// request and closed still gets its answer, but a client that is gone does not delay the end.
const GRACE: Duration = Duration::from_secs(1);

/// Serves until standard input closes; then sets `stop` to end what does not end soon.
pub async fn serve(server: Server, stop: CancellationToken) -> Result<(), Error> {
    let (input, output) = stdio_pipes();
    let input = Ending {
        input,
        stop: Some(stop),
    };
    match server.serve((input, output)).await {
        Ok(running) => {
            // However the client disconnects, it is no error of the server.
            let _ = running.waiting().await;
            Ok(())
        }
        Err(ServerInitializeError::TransportError { error, .. }) => {
            Err(Error::System(io::Error::other(error.to_string())))
        }
        // The client disconnected or sent no initialization, and was told so.
        Err(_) => Ok(()),
    }
}

/// Notices the end of an input. The SDK waits some seconds for pending answers.
struct Ending<R> {
    input: R,
    /// `None` once the end was seen.
    stop: Option<CancellationToken>,
}

impl<R: AsyncRead + Unpin> AsyncRead for Ending<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.input).poll_read(context, buffer);
        let has_ended = match &read {
            Poll::Ready(Ok(())) => buffer.filled().len() == before && buffer.capacity() > before,
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        };
        if has_ended && let Some(stop) = self.stop.take() {
            tokio::spawn(async move {
                tokio::time::sleep(GRACE).await;
                stop.cancel();
            });
        }
        read
    }
}
