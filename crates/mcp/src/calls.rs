//! Running calls: limits their number, ends them, and waits for their end.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use altair_engine::{
    DEFAULT_MEMORY_MB, EvalError, EvalRequest, EvalResult, Evaluator, MemoryLimit, Observer,
    Timeout, Turns,
};
use altair_sandbox::Stream;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::arguments::Call;
use crate::progress::Doing;

/// The runs of a server.
#[derive(Debug)]
pub struct Calls {
    evaluator: Evaluator,
    root: PathBuf,
    services: Option<Vec<String>>,
    env: Vec<String>,
    turns: Turns,
    /// Limits the number of concurrent calls.
    under_way: Arc<Semaphore>,
    threads: TaskTracker,
    stop: CancellationToken,
}

/// The outcome of a call.
pub enum Outcome {
    /// It ran.
    Ran(Box<EvalResult>),
    /// It could not run, for this reason.
    Failed(String),
    /// It was ended.
    Cancelled,
}

/// Ends the run when dropped, that is when the call waiting for it ends.
struct Ender(Arc<AtomicBool>);

impl Drop for Ender {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Tells a run when its call has ended, and the call what the run writes.
struct Watcher {
    ended: Arc<AtomicBool>,
    /// Who is told of its output.
    doing: Option<Doing>,
}

impl Observer for Watcher {
    fn listens(&self) -> bool {
        self.doing.is_some()
    }

    fn output(&mut self, stream: Stream, chunk: &[u8]) -> ControlFlow<()> {
        if let Some(doing) = &self.doing {
            doing.output(stream, chunk);
        }
        self.tick()
    }

    fn tick(&mut self) -> ControlFlow<()> {
        match self.ended.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

impl Calls {
    /// Runs of `evaluator` in the application at `root`, with these services and variables, until `stop`.
    pub fn new(
        evaluator: Evaluator,
        root: PathBuf,
        services: Option<Vec<String>>,
        env: Vec<String>,
        stop: CancellationToken,
    ) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            evaluator,
            root,
            services,
            env,
            turns: Turns::new(cores),
            under_way: Arc::new(Semaphore::new(Turns::under_way(cores))),
            threads: TaskTracker::new(),
            stop,
        }
    }

    /// The application.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The services that the server was given; `None`: those that the application declares.
    pub fn services(&self) -> Option<&[String]> {
        self.services.as_deref()
    }

    /// What a call asks for, with what the server decides. All of both is named: what is new has to be
    /// placed.
    fn request(&self, call: Call) -> EvalRequest {
        let Call {
            snippet,
            timeout_ms,
            allow_writes,
            allow_network,
            database,
            queries,
            arguments,
            depth,
            max_items,
            max_string,
            diff,
            // How the answer is written.
            verbose: _,
            typed: _,
        } = call;
        EvalRequest {
            snippet: snippet.into_bytes(),
            project_root: self.root.clone(),
            timeout: Timeout::clamped(timeout_ms),
            memory_limit: MemoryLimit::clamped(DEFAULT_MEMORY_MB),
            allow_writes,
            allow_network,
            unconfined: false,
            bootstrap: None,
            services: self.services.clone(),
            readable_paths: Vec::new(),
            redact: true,
            database,
            queries,
            arguments,
            depth,
            max_items,
            max_string,
            diff,
            env: self.env.clone(),
        }
    }

    /// Runs one, as soon as there is room for it. It ends when `cancelled` says so, when the server
    /// stops, and when nobody waits for this any more. `doing` is told of its output.
    pub async fn run(
        &self,
        call: Call,
        doing: Option<Doing>,
        cancelled: CancellationToken,
    ) -> Outcome {
        let permit = tokio::select! {
            biased;
            () = cancelled.cancelled() => return Outcome::Cancelled,
            () = self.stop.cancelled() => return Outcome::Cancelled,
            permit = Arc::clone(&self.under_way).acquire_owned() => permit,
        };
        let Ok(permit) = permit else {
            return Outcome::Cancelled;
        };
        let request = self.request(call);
        let (evaluator, turns) = (self.evaluator.clone(), self.turns.clone());
        let ender = Ender(Arc::default());
        let mut watcher = Watcher {
            ended: Arc::clone(&ender.0),
            doing,
        };
        let mut run = self.threads.spawn_blocking(move || {
            let _permit = permit;
            evaluator
                .prepare(&request)?
                .in_turn(&turns)
                .run(&mut watcher)
        });
        let ran = tokio::select! {
            ran = &mut run => ran,
            () = cancelled.cancelled() => return Outcome::Cancelled,
            () = self.stop.cancelled() => return Outcome::Cancelled,
        };
        match ran {
            Ok(Ok(result)) => Outcome::Ran(Box::new(result)),
            Ok(Err(EvalError::Interrupted)) => Outcome::Cancelled,
            Ok(Err(EvalError::InvalidRequest(why))) => {
                Outcome::Failed(format!("Nothing was run. {why}"))
            }
            Ok(Err(error)) => Outcome::Failed(error.to_string()),
            Err(_) => Outcome::Failed("The evaluation broke off.".into()),
        }
    }

    /// Waits at most `patience` until no run is left. `stop` must have been set to end them.
    pub async fn end(&self, patience: Duration) {
        self.threads.close();
        self.turns.wake();
        let _ = tokio::time::timeout(patience, self.threads.wait()).await;
    }
}
