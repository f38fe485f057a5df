//! The sessions of clients over HTTP, so that the end of one ends its runs at once: the SDK first
//! waits some seconds for their answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::common::http_header::HEADER_SESSION_ID;
use tokio_util::sync::CancellationToken;

/// The sessions that have calls.
#[derive(Debug, Clone, Default)]
pub struct Sessions(Arc<Mutex<HashMap<String, Session>>>);

#[derive(Debug, Default)]
struct Session {
    ended: CancellationToken,
    calls: usize,
}

/// A call of a session.
#[derive(Debug)]
pub struct Call {
    /// Set when the session ends.
    pub ended: CancellationToken,
    session: Option<(Sessions, String)>,
}

impl Sessions {
    /// Notes a call. One that belongs to no session ends with its request alone.
    pub fn call(&self, context: &RequestContext<RoleServer>) -> Call {
        let parts = context.extensions.get::<http::request::Parts>();
        let id = parts.and_then(|parts| id(&parts.headers));
        let Some(id) = id else {
            return Call {
                ended: CancellationToken::new(),
                session: None,
            };
        };
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let session = sessions.entry(id.to_owned()).or_default();
        session.calls += 1;
        Call {
            ended: session.ended.clone(),
            session: Some((self.clone(), id.to_owned())),
        }
    }

    /// Ends the calls of the session that a request names.
    pub fn end(&self, headers: &http::HeaderMap) {
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = id(headers).and_then(|id| sessions.get(id)) {
            session.ended.cancel();
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some((sessions, id)) = self.session.take() {
            let mut sessions = sessions.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(session) = sessions.get_mut(&id) {
                session.calls -= 1;
                if session.calls == 0 {
                    sessions.remove(&id);
                }
            }
        }
    }
}

fn id(headers: &http::HeaderMap) -> Option<&str> {
    headers.get(HEADER_SESSION_ID)?.to_str().ok()
}
