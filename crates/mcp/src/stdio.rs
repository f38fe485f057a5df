//! Standard input and output.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rmcp::ServiceExt;
use rmcp::model::ErrorData;
use rmcp::service::{RoleServer, RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::{AsyncRwTransport, DEFAULT_MAX_LINE_LENGTH};
use rmcp::transport::io::stdio_pipes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::server::Server;

/// How long running calls may continue after standard input closes: a client that piped in a
/// request and closed still gets its answer, but a client that is gone does not delay the end.
const GRACE: Duration = Duration::from_secs(1);

/// Serves until standard input closes; then sets `stop` to end what does not end soon.
pub async fn serve(server: Server, stop: CancellationToken) -> Result<(), Error> {
    let (input, output) = stdio_pipes();
    let (told, too_long) = unbounded_channel();
    let input = Watched {
        input,
        stop: Some(stop),
        line: 0,
        told,
    };
    let lines = Lines {
        lines: AsyncRwTransport::new_server(input, output),
        too_long,
    };
    match server.serve(lines).await {
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

/// Messages in lines. The SDK discards a line that is too long and says nothing; here the client
/// gets an error.
struct Lines<R: AsyncRead, W: AsyncWrite> {
    lines: AsyncRwTransport<RoleServer, R, W>,
    too_long: UnboundedReceiver<()>,
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.lines.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            // Both can be dropped at any time without a loss.
            tokio::select! {
                biased;
                Some(()) = self.too_long.recv() => {
                    let why = format!("The message is longer than {} MiB", DEFAULT_MAX_LINE_LENGTH >> 20);
                    let error = ErrorData::invalid_request(why, None);
                    // A task, since this future can be dropped before the error is written. A
                    // client that does not read it is gone.
                    tokio::spawn(self.lines.send(TxJsonRpcMessage::<RoleServer>::error(error, None)));
                }
                message = self.lines.receive() => return message,
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.lines.close().await
    }
}

/// Notices the end of an input, since the SDK waits some seconds for pending answers, and lines
/// that the SDK discards.
struct Watched<R> {
    input: R,
    /// `None` once the end was seen.
    stop: Option<CancellationToken>,
    /// Bytes of the line that is being read.
    line: usize,
    told: UnboundedSender<()>,
}

impl<R> Watched<R> {
    fn read(&mut self, bytes: &[u8]) {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let before = self.line;
            self.line = before.saturating_add(line.len());
            if before <= DEFAULT_MAX_LINE_LENGTH && self.line > DEFAULT_MAX_LINE_LENGTH {
                // Fails once nobody reads any more.
                let _ = self.told.send(());
            }
            if line.ends_with(b"\n") {
                self.line = 0;
            }
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Watched<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.input).poll_read(context, buffer);
        self.read(&buffer.filled()[before..]);
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
