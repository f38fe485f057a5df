//! The iterator that `Evaluator::evaluateMany()` returns.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::io;

use altair_engine::encode::{Key, Step};
use altair_engine::{EvalError, EvalResult, Evaluation, Evaluator, Turns};
use ext_php_rs::convert::IntoZval;
use ext_php_rs::prelude::*;
use ext_php_rs::types::{ZendClassObject, Zval};
use ext_php_rs::zend::ce;

use super::eval_request::int;
use super::run_threads::{Crew, Event, lost};
use super::{eval_request, eval_result, exceptions};
use crate::zend::Bailout;
use crate::zend::host::{self, Wants};
use crate::zend::json;
use crate::zend::node::{ZvalNode, entries};

/// Results of several evaluations, each under its request's key, in order of completion.
#[php_class]
#[php(name = "Altair\\Eval\\Evaluations")]
#[php(implements(ce = ce::iterator, stub = "\\Iterator"))]
#[php(flags = ext_php_rs::flags::ClassFlags::Final)]
pub struct Evaluations {
    /// Borrowed while the iteration advances: host code that runs meanwhile (a signal handler, the
    /// requests' own iterator) may try to advance it, too.
    state: RefCell<State>,
}

struct State {
    evaluator: Evaluator,
    requests: Requests,
    concurrency: usize,
    /// Maximum number of runs at a time: starting, in the snippet, or shutting down.
    under_way: usize,
    /// Whether the iteration of requests has begun, and whether it has ended.
    begun: bool,
    exhausted: bool,
    /// Made with the first run, since the threads belong to the process that starts them.
    crew: Option<(Crew<Evaluation>, Turns)>,
    /// The keys of runs that were started and have not completed, by number.
    running: HashMap<usize, Zval>,
    started: usize,
    /// Runs that could not be prepared. Their errors are thrown when it is their turn.
    failed: VecDeque<EvalError>,
    current: Option<(Zval, Zval)>,
}

/// The source of requests. Each is fetched when there is room for another run.
enum Requests {
    Array(VecDeque<(Key, ZvalNode)>),
    Traversable(ZvalNode),
}

impl Requests {
    fn of(requests: &Zval) -> Self {
        match requests.array() {
            Some(array) => Self::Array(entries(array, usize::MAX).into()),
            None => Self::Traversable(ZvalNode::new(requests)),
        }
    }

    /// Whether it is a single one, as far as this is known before they are read.
    fn is_one(&self) -> bool {
        matches!(self, Self::Array(requests) if requests.len() == 1)
    }

    /// The next request and its key.
    fn next(&mut self, first: bool) -> Result<Option<(Zval, ZvalNode)>, Wants> {
        match self {
            Self::Array(requests) => Ok(match requests.pop_front() {
                Some((Key::Int(n), request)) => Some((int(n), request)),
                Some((Key::Bytes(key), request)) => {
                    let key = json::string(&key).map_err(|Bailout| Wants::Bailout)?;
                    Some((key, request))
                }
                None => None,
            }),
            // An exception of the iterator stays pending for the caller.
            Self::Traversable(requests) => match requests.step_of_host(first)? {
                Step::Item(key, request) => Ok(Some((key.value().shallow_clone(), request))),
                Step::Done => Ok(None),
            },
        }
    }
}

/// A key and the outcome of its request.
type Completed = (Zval, Result<EvalResult, EvalError>);

impl Evaluations {
    /// An iterator over the results of `requests`, an array or `Traversable`.
    pub fn over(
        evaluator: Evaluator,
        requests: &Zval,
        concurrency: usize,
    ) -> Result<Zval, Bailout> {
        // One at a time: each request is fetched when the previous one has completed.
        let under_way = match concurrency {
            1 => 1,
            several => Turns::under_way(several),
        };
        let requests = Requests::of(requests);
        let state = State {
            evaluator: match requests.is_one() {
                true => evaluator,
                false => evaluator.expecting_more(),
            },
            requests,
            concurrency,
            under_way,
            begun: false,
            exhausted: false,
            crew: None,
            running: HashMap::new(),
            started: 0,
            failed: VecDeque::new(),
            current: None,
        };
        let this = Self {
            state: RefCell::new(state),
        };
        ZendClassObject::new(this)
            .into_zval(false)
            .map_err(|_| Bailout)
    }

    /// Reads the state, unless the iteration is advancing.
    fn look<R>(&self, at: impl FnOnce(&State) -> R) -> Option<R> {
        self.state.try_borrow().ok().map(|state| at(&state))
    }

    /// Advances the iteration.
    fn advance(&self) {
        let Ok(mut state) = self.state.try_borrow_mut() else {
            exceptions::throw_error("The iterator over evaluations is already running");
            return;
        };
        let ended = state.advance();
        drop(state);
        host::send_on(ended);
    }
}

impl State {
    fn start(&mut self, number: usize, prepared: Evaluation) -> io::Result<()> {
        let (crew, turns) = match &mut self.crew {
            Some(crew) => crew,
            none => none.insert((
                Crew::new(self.under_way, false)?,
                Turns::new(self.concurrency),
            )),
        };
        crew.start(number, prepared.in_turn(turns))
    }

    /// Starts runs up to the maximum number.
    fn fill(&mut self) -> Result<(), Wants> {
        while !self.exhausted && self.failed.is_empty() && self.running.len() < self.under_way {
            let first = !self.begun;
            self.begun = true;
            let Some((key, request)) = self.requests.next(first)? else {
                self.exhausted = true;
                break;
            };
            let request = match eval_request::from_value(request.value()) {
                Ok(Some(request)) => request,
                Ok(None) => {
                    return Err(Wants::Throw);
                }
                Err(Bailout) => return Err(Wants::Bailout),
            };
            let number = self.started;
            let started = self.evaluator.prepare(&request).and_then(|prepared| {
                self.start(number, prepared)
                    .map_err(|e| EvalError::Launch(format!("No thread could be started: {e}.")))
            });
            match started {
                Ok(()) => {
                    self.started += 1;
                    self.running.insert(number, key);
                }
                Err(error) => self.failed.push_back(error),
            }
        }
        Ok(())
    }

    /// Waits for the next run to complete; `None` if there are no more.
    fn turn(&mut self) -> Result<Option<Completed>, Wants> {
        self.fill()?;
        while let Some((crew, _)) = self.crew.as_mut().filter(|_| !self.running.is_empty()) {
            match crew.next()? {
                Some((number, Event::Done(result))) => {
                    if let Some(key) = self.running.remove(&number) {
                        return Ok(Some((key, *result)));
                    }
                }
                Some((_, Event::Output(..))) => {}
                None => return Ok(Some((Zval::null(), Err(lost())))),
            }
        }
        Ok(self
            .failed
            .pop_front()
            .map(|error| (Zval::null(), Err(error))))
    }

    fn advance(&mut self) -> Result<(), Bailout> {
        self.current = None;
        match self.turn() {
            Ok(None) => {}
            Ok(Some((key, Ok(result)))) => self.current = Some((key, eval_result::write(&result)?)),
            Ok(Some((_, Err(error)))) => {
                self.stop();
                exceptions::throw(&error);
            }
            Err(wants) => {
                self.stop();
                if wants == Wants::Bailout {
                    return Err(Bailout);
                }
            }
        }
        Ok(())
    }

    fn shown(&self, part: impl FnOnce(&(Zval, Zval)) -> &Zval) -> Zval {
        let current = self.current.as_ref();
        current.map_or_else(Zval::null, |current| part(current).shallow_clone())
    }

    /// Ends the remaining runs.
    fn stop(&mut self) {
        self.exhausted = true;
        if let Some((crew, turns)) = &mut self.crew {
            crew.cancel();
            // Runs that wait for their turn notice this immediately.
            turns.wake();
            crew.end();
        }
        self.running.clear();
        self.failed.clear();
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.stop();
    }
}

#[php_impl]
impl Evaluations {
    /// Only `Evaluator::evaluateMany()` creates one.
    #[php(vis = "private")]
    pub fn __construct() -> PhpResult<Self> {
        Err("Only Evaluator::evaluateMany() creates this iterator".into())
    }

    /// The current result.
    pub fn current(&self) -> Zval {
        self.look(|state| state.shown(|(_, result)| result))
            .unwrap_or_else(Zval::null)
    }

    /// The key of its request.
    pub fn key(&self) -> Zval {
        self.look(|state| state.shown(|(key, _)| key))
            .unwrap_or_else(Zval::null)
    }

    /// Waits for the next result.
    pub fn next(&self) {
        self.advance();
    }

    /// Waits for the first result. A second iteration is not possible.
    pub fn rewind(&self) -> PhpResult<()> {
        match self.look(|state| (state.begun, state.current.is_some())) {
            Some((true, false)) => Err("The results can be iterated only once".into()),
            Some((true, true)) => Ok(()),
            _ => {
                self.advance();
                Ok(())
            }
        }
    }

    /// Returns whether there is a result.
    pub fn valid(&self) -> bool {
        self.look(|state| state.current.is_some())
            .unwrap_or_default()
    }
}
