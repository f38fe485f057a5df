//! An isolated PHP: boots as a run does, or not at all, and then serves one order after another.

use std::collections::HashMap;

use altair_engine::Phase;
use altair_engine::channel::{
    Code, Ending, EntryOrder, Given, Left, Message, Order, Report, RuntimeTask, SourceFile, Task,
    encode_value, read_given,
};
use altair_engine::exit_codes::BROKEN;
use altair_engine::shell::Judgement;

use super::channel_link::{Link, Voice};
use super::line::Lines;
use super::run::{self, Start};
use super::{begin, completion, deadline, ending, finish, guards, refusals};
use crate::zend::by_value::{self, Objects, Undecodable, Unencodable};
use crate::zend::child::{self as engine, Cut, memory_peak};
use crate::zend::closure::{self, Unit};
use crate::zend::line;
use crate::zend::runtime::{enter, print_uncaught};

/// The exit status of a runtime that its host has ended, or whose host is gone.
const EXIT_CLOSED: i32 = 0;

/// An isolated PHP in a process of its own. Returns the exit status.
pub fn cold(task: &Task, runtime: &RuntimeTask, code: Code, link: Link) -> i32 {
    let voice = begin(task, link);
    if !guards::take_final(task, &runtime.first, voice) {
        return BROKEN;
    }
    serve(task, runtime, voice, Start::Cold(code))
}

/// Gets ready, and serves orders until the host ends it or code has ended it. Returns the exit
/// status.
pub fn serve(task: &Task, runtime: &RuntimeTask, voice: &'static Voice, start: Start) -> i32 {
    let first = &runtime.first;
    refusals::speak_to(runtime.caller);
    let code = match run::get_ready(task, first, voice, start, runtime.caller.boots()) {
        Ok(code) => code,
        Err(ending) => finish(report(ending, Phase::Boot), voice),
    };
    deadline::note_phase(Phase::Snippet);
    if runtime.caller.boots() {
        engine::know_container();
    }
    if !code.snippet.is_empty() {
        let left = match run::run_first(task, &code, voice) {
            Ok(()) => Left::Returned,
            Err(ending) => Left::CutShort(ending),
        };
        refusals::tell_sought(voice);
        voice.send(&Message::Left(left));
    }
    let mut kept = Kept::default();
    let mut lines = None;
    let begin = || Lines::begin(task, first, voice);
    loop {
        let served = match next(voice) {
            Some(Job::Keep(file, source)) => {
                kept.keep(file, &source);
                continue;
            }
            Some(Job::Enter(order, arguments)) => kept.enter(&order, arguments, voice),
            Some(Job::Line(text)) => lines.get_or_insert_with(begin).run(&text),
            Some(Job::Judge(text)) => {
                let _ = lines.get_or_insert_with(begin);
                Ok(Left::Judged(match line::is_whole(&text) {
                    true => Judgement::Whole,
                    false => Judgement::Unfinished,
                }))
            }
            Some(Job::Complete(text)) => Ok(Left::Completed(completion::at_end_of(&text))),
            None => return close(),
        };
        match served {
            Ok(left) => {
                refusals::tell_sought(voice);
                voice.send(&Message::Left(left));
            }
            // PHP does not recover from this one.
            Err(ending) => finish(report(ending, Phase::Snippet), voice),
        }
    }
}

/// The host has closed the channel, or is gone: shutdown functions and destructors of what was made
/// after boot run.
fn close() -> i32 {
    let _ = engine::shut_down();
    EXIT_CLOSED
}

fn report(ending: Ending, phase: Phase) -> Report {
    Report {
        ending,
        phase,
        memory_peak_bytes: memory_peak(),
        snippet_us: None,
        encode_us: None,
        hints: Vec::new(),
    }
}

/// An order with all that belongs to it.
enum Job {
    Keep(SourceFile, Vec<u8>),
    Enter(EntryOrder, Vec<u8>),
    Line(Vec<u8>),
    Judge(Vec<u8>),
    Complete(Vec<u8>),
}

/// Waits for the next order. `None` once the host has closed the channel.
fn next(voice: &Voice) -> Option<Job> {
    let order = voice.receive(|packet| match read_given(packet) {
        Ok(Given::Order(order)) => Some(order),
        Ok(Given::Part(_)) | Err(_) => None,
    })?;
    Some(match order {
        Order::Keep(file) => {
            let source = following(voice, file.bytes)?;
            Job::Keep(file, source)
        }
        Order::Enter(order) => {
            let arguments = following(voice, order.bytes)?;
            Job::Enter(order, arguments)
        }
        Order::Line(bytes) => Job::Line(following(voice, bytes)?),
        Order::Judge(bytes) => Job::Judge(following(voice, bytes)?),
        Order::Complete(bytes) => Job::Complete(following(voice, bytes)?),
    })
}

/// The bytes that follow an order.
fn following(voice: &Voice, count: u64) -> Option<Vec<u8>> {
    let count = usize::try_from(count).ok()?;
    let mut bytes = Vec::with_capacity(count);
    while bytes.len() < count {
        voice.receive(|packet| match read_given(packet) {
            Ok(Given::Part(part)) => {
                bytes.extend_from_slice(part);
                Some(())
            }
            Ok(Given::Order(_)) | Err(_) => None,
        })?;
    }
    Some(bytes)
}

/// The files that closures are made from.
#[derive(Default)]
struct Kept {
    /// Compiled, or why they cannot be.
    units: HashMap<u32, Result<Unit, String>>,
}

impl Kept {
    fn keep(&mut self, file: SourceFile, source: &[u8]) {
        let unit = closure::compile(&file.name, source, file.short_tags);
        self.units.insert(file.id, unit);
    }

    /// Enters a closure. `Err`: PHP cannot go on.
    fn enter(&self, order: &EntryOrder, arguments: Vec<u8>, voice: &Voice) -> Result<Left, Ending> {
        let limit = order.memory_limit_bytes;
        if !engine::set_memory_limit(limit) {
            return Ok(Left::Refused(format!(
                "it uses {} MiB already, more than the memory limit of {} MiB",
                engine::memory_usage().div_ceil(1 << 20),
                limit >> 20
            )));
        }
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let decoded = by_value::decode_arguments(&arguments, most);
        drop(arguments);
        let arguments = match decoded {
            Ok(arguments) => arguments,
            Err(Undecodable::Memory) => {
                return Ok(Left::Refused(
                    "its arguments need more than the memory limit".into(),
                ));
            }
            Err(Undecodable::Malformed(why)) => return Ok(Left::Refused(why.to_string())),
            Err(Undecodable::Bailout) => return Err(ending::of(Cut::Bailout)),
        };
        let made = match self.units.get(&order.source) {
            Some(Ok(unit)) => closure::make(unit, order.number, order.lines),
            Some(Err(why)) => Err(why.clone()),
            None => Err("its file was not sent".into()),
        };
        let made = match made {
            Ok(made) => made,
            Err(why) => return Ok(Left::Refused(why)),
        };
        let most = usize::try_from(order.value_max_bytes).unwrap_or(usize::MAX);
        let entered = enter(made, arguments, |value| {
            by_value::encode(value, Objects::True, most)
        });
        let left = match entered {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(why)) => Err(Left::Refused(unencodable(why).into())),
            Err(cut) => Err(Left::CutShort(cut_short(cut)?)),
        };
        // What the closure has buffered appears when it ends.
        let flushed = engine::flush_output();
        match (left, flushed) {
            (Ok(value), Ok(())) => {
                for packet in encode_value(voice.secret(), &value) {
                    voice.send_packet(&packet);
                }
                Ok(Left::Returned)
            }
            (Ok(_), Err(cut)) => Ok(Left::CutShort(cut_short(cut)?)),
            (Err(left), _) => Ok(left),
        }
    }
}

/// The ending that a cut means; PHP prints its message. `Err` if PHP cannot go on.
fn cut_short(cut: Cut) -> Result<Ending, Ending> {
    if let Cut::Threw(thrown) = &cut {
        // Its own text may run code, which can be cut short, too.
        let _ = print_uncaught(thrown);
        let _ = ending::fatal();
    }
    match ending::of(cut) {
        ending @ Ending::OutOfMemory { .. } => Err(ending),
        ending => Ok(ending),
    }
}

fn unencodable(why: Unencodable) -> &'static str {
    match why {
        Unencodable::TooDeep => "its value contains itself, or is nested too deeply",
        Unencodable::TooLarge => {
            "its value is larger than the memory limits of the entry and the caller allow"
        }
        Unencodable::Object => "its value holds an object",
        Unencodable::Resource => "its value holds a resource",
    }
}
