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

/// How long calls that are under way may go on when standard input closes: who has piped a question
/// in and closed it is still to be answered, and who has gone is not to be waited for.
const GRACE: Duration = Duration::from_secs(1);

/// Serves until standard input closes, and ends with `stop` what has not ended soon after.
pub async fn serve(server: Server, stop: CancellationToken) -> Result<(), Error> {
    let (input, output) = stdio_pipes();
    let input = Ending {
        input,
        stop: Some(stop),
    };
    match server.serve((input, output)).await {
        Ok(running) => {
            // A client that has gone, in whatever way, is no error of the server's.
            let _ = running.waiting().await;
            Ok(())
        }
        Err(ServerInitializeError::TransportError { error, .. }) => {
            Err(Error::System(io::Error::other(error.to_string())))
        }
        // It went, or said something else than hello, and has been told so.
        Err(_) => Ok(()),
    }
}

/// An input whose end is noted. The SDK waits some seconds for answers that are still to come.
struct Ending<R> {
    input: R,
    /// Until the end was seen.
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
