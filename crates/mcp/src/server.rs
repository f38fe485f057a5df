//! The server's side of the protocol.

use std::sync::Arc;
use std::time::{Duration, Instant};

use altair_engine::answer::Answer;
use altair_engine::encode::COMPACT_MAX_BYTES;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    Implementation, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
    ProgressToken, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{Peer, RequestContext, RoleServer};
use tokio::task::JoinHandle;

use crate::arguments::Call;
use crate::calls::{Calls, Outcome};
use crate::permits::Permits;
use crate::tool;

/// Interval of progress notifications for a call that has a progress token.
const PROGRESS_EVERY: Duration = Duration::from_millis(500);

const INSTRUCTIONS: &str = "Use framework__eval to check what this PHP application really does before you claim or change something: it runs a few lines in the application's container, confined, and gives the typed result. Prefer one small question a call.";

/// Answers a client. Copies share the runs.
#[derive(Debug, Clone)]
pub struct Server {
    calls: Arc<Calls>,
    permits: Permits,
    tool: Arc<Tool>,
}

impl Server {
    /// Makes a server for these runs.
    pub fn new(calls: Arc<Calls>, permits: Permits) -> Self {
        Self {
            calls,
            permits,
            tool: Arc::new(tool::describe(permits)),
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let name =
            Implementation::new("altair-eval", env!("CARGO_PKG_VERSION")).with_title("Altair Eval");
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(name)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(vec![(*self.tool).clone()]))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        (name == tool::NAME).then(|| (*self.tool).clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name != tool::NAME {
            let message = format!("Unknown tool: {}. There is {}.", request.name, tool::NAME);
            return Err(ErrorData::invalid_params(message, None));
        }
        let arguments = match Call::read(request.arguments, self.permits) {
            Ok(arguments) => arguments,
            Err(why) => return Ok(failed(why)),
        };
        let answer = Answer {
            verbose: arguments.verbose,
            typed: arguments.typed,
            budget: Some(COMPACT_MAX_BYTES),
        };
        let _progress = context
            .meta
            .get_progress_token()
            .map(|token| Progress::tell(context.peer.clone(), token));
        Ok(match self.calls.run(arguments, context.ct.clone()).await {
            Outcome::Ran(result) => {
                let json = answer.of(&result);
                let text = ContentBlock::text(json.to_string());
                let mut answer = CallToolResult::success(vec![text]);
                answer.structured_content = Some(json);
                answer.is_error = Some(!result.ok());
                answer.into()
            }
            Outcome::Failed(why) => failed(why),
            Outcome::Cancelled => failed("The call was cancelled; its run has been ended.".into()),
        })
    }
}

/// An error for the agent to read.
fn failed(why: String) -> CallToolResponse {
    CallToolResult::error(vec![ContentBlock::text(why)]).into()
}

/// Sends progress notifications to a client until this is dropped.
struct Progress(JoinHandle<()>);

impl Progress {
    fn tell(peer: Peer<RoleServer>, token: ProgressToken) -> Self {
        let began = Instant::now();
        Self(tokio::spawn(async move {
            let mut every = tokio::time::interval(PROGRESS_EVERY);
            loop {
                every.tick().await;
                let seconds = began.elapsed().as_secs_f64();
                let told = ProgressNotificationParam::new(token.clone(), seconds)
                    .with_message(format!("running for {seconds:.1} s"));
                // Ignored: a client that does not accept notifications still gets the result.
                if peer.notify_progress(told).await.is_err() {
                    return;
                }
            }
        }))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.abort();
    }
}
