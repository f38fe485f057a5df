//! The server's side of the protocol.

use std::borrow::Cow;
use std::sync::Arc;

use altair_engine::answer;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestMethod, CallToolRequestParams, CallToolResponse, CallToolResult,
    CompleteRequestMethod, CompleteRequestParams, CompleteResult, ConstString, ContentBlock,
    CustomRequest, CustomResult, ErrorCode, ErrorData, Implementation, InputRequiredResult,
    ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesRequestMethod,
    ListResourceTemplatesResult, ListResourcesRequestMethod, ListResourcesResult,
    ListToolsRequestMethod, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer, ServiceError};

use crate::arguments::Call;
use crate::calls::{Calls, Outcome};
use crate::permits::{self, Permits, Wanted};
use crate::progress::{Doing, Progress};
use crate::question::{self, Answer, Sealed};
use crate::sessions::Sessions;
use crate::tool;

const INSTRUCTIONS: &str = "Use framework__eval to check what this PHP application really does before you claim or change something: it runs a few lines in the application's container, confined, and gives the result. Prefer one small question a call.";

/// Answers a client. Copies share the runs.
#[derive(Debug, Clone)]
pub struct Server {
    calls: Arc<Calls>,
    permits: Permits,
    /// `None`: a person is never asked for what is not permitted.
    questions: Option<Arc<Sealed>>,
    sessions: Sessions,
}

impl Server {
    /// Makes a server for these runs.
    pub fn new(
        calls: Arc<Calls>,
        permits: Permits,
        questions: Option<Arc<Sealed>>,
        sessions: Sessions,
    ) -> Self {
        Self {
            calls,
            permits,
            questions,
            sessions,
        }
    }

    /// The questions, where the client of a request can ask them.
    fn questions(&self, context: &RequestContext<RoleServer>) -> Option<&Sealed> {
        let questions = self.questions.as_deref()?;
        question::can_ask(context.client_capabilities().as_ref()).then_some(questions)
    }

    /// Asks a person whether a call may have what it lacks. `Err`: what the client is answered
    /// instead of a run.
    async fn ask(
        &self,
        request: &CallToolRequestParams,
        wanted: &[Wanted],
        context: &RequestContext<RoleServer>,
        doing: &Doing,
    ) -> Result<(), CallToolResponse> {
        let Some(questions) = self.questions(context) else {
            return Err(failed(permits::refusal(wanted)));
        };
        let given = request.arguments.as_ref();
        let (root, services) = (self.calls.root(), self.calls.services());
        let question = question::ask(root, given, wanted).map_err(failed)?;
        let version = context.protocol_version();
        let answer =
            if version.is_some_and(|it| it.as_str() >= ProtocolVersion::V_2026_07_28.as_str()) {
                let bound = question::bound(given, root, services, wanted);
                match &request.request_state {
                    Some(state) => questions
                        .answer(state, &bound, request.input_responses.as_ref())
                        .map_err(failed)?,
                    None => {
                        let (asked, state) = questions
                            .ask(question, &bound)
                            .map_err(|why| failed(format!("Nothing was run. {why}")))?;
                        return Err(InputRequiredResult::new(Some(asked), Some(state)).into());
                    }
                }
            } else {
                doing.asks(true);
                let asked = context
                    .peer
                    .create_elicitation_with_timeout(question, Some(question::PATIENCE));
                let answer = tokio::select! {
                    answer = asked => answer,
                    () = context.ct.cancelled() => return Err(cancelled()),
                };
                doing.asks(false);
                match answer {
                    Ok(answer) => question::read(&answer),
                    Err(ServiceError::Timeout { .. }) => Answer::None,
                    Err(why) => Answer::Failed(why.to_string()),
                }
            };
        match answer {
            Answer::Allowed => Ok(()),
            other => Err(failed(question::refusal(&other, wanted))),
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
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let asks = self.questions(&context).is_some();
        Ok(ListToolsResult::with_all_items(vec![tool::describe(
            self.permits,
            asks,
        )]))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        (name == tool::NAME).then(|| tool::describe(self.permits, self.questions.is_some()))
    }

    // What is not declared is not there; the SDK would answer with empty lists.

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourcesRequestMethod>())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(ErrorData::method_not_found::<
            ListResourceTemplatesRequestMethod,
        >())
    }

    /// A method that the SDK does not know, or one whose parameters it cannot read.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(match request.method.as_str() {
            CallToolRequestMethod::VALUE => ErrorData::invalid_params(
                format!(
                    "tools/call needs params with a `name`, {}, and `arguments` that are an object",
                    tool::NAME
                ),
                None,
            ),
            ListToolsRequestMethod::VALUE => {
                ErrorData::invalid_params("the params of tools/list cannot be read", None)
            }
            _ => ErrorData::new(
                ErrorCode::METHOD_NOT_FOUND,
                Cow::Owned(request.method),
                None,
            ),
        })
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
        let arguments = match Call::read(request.arguments.clone()) {
            Ok(arguments) => arguments,
            Err(why) => return Ok(failed(why)),
        };
        let shape = answer::Answer {
            verbose: arguments.verbose,
            typed: arguments.typed,
            reader: answer::Reader::Agent,
        };
        let doing = Doing::default();
        let progress = context.meta.get_progress_token();
        let listens = progress.is_some();
        let _progress =
            progress.map(|token| Progress::tell(context.peer.clone(), token, doing.clone()));
        let session = self.sessions.call(&context);
        let lacking = self.permits.lacks(&arguments);
        if !lacking.is_empty() {
            let asked = self.ask(&request, &lacking, &context, &doing);
            let asked = tokio::select! {
                asked = asked => asked,
                () = session.ended.cancelled() => return Ok(cancelled()),
            };
            if let Err(answer) = asked {
                return Ok(answer);
            }
        }
        let run = self
            .calls
            .run(arguments, listens.then_some(doing), context.ct.clone());
        let ran = tokio::select! {
            ran = run => ran,
            () = session.ended.cancelled() => Outcome::Cancelled,
        };
        Ok(match ran {
            Outcome::Ran(result) => {
                let json = shape.of(&result);
                let text = ContentBlock::text(json.to_string());
                let mut answer = CallToolResult::success(vec![text]);
                answer.structured_content = Some(json);
                answer.is_error = Some(!result.ok());
                answer.into()
            }
            Outcome::Failed(why) => failed(why),
            Outcome::Cancelled => cancelled(),
        })
    }
}

/// An error for the agent to read.
fn failed(why: String) -> CallToolResponse {
    CallToolResult::error(vec![ContentBlock::text(why)]).into()
}

fn cancelled() -> CallToolResponse {
    failed("The call was cancelled; its run has been ended.".into())
}
