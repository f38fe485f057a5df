//! Compiles the table to one BPF program.
//!
//! The `seccompiler` crate compiles the conditions of each call. It could also compile the whole
//! table, as a sequence of comparisons; but when a filter is installed, the kernel runs it for
//! every system call number to find the calls that are always permitted, which would take a
//! millisecond. So this crate generates a binary search for the number ([`super::number_search`]).

use std::collections::BTreeMap;
use std::env::consts::ARCH;

use nix::errno::Errno;
use nix::libc;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, sock_filter,
};

use super::call::{Answer, Arg, Call, Kind, Opening, Refuse, Rules, Test, When, is, is_not};
use super::calls;
use super::fork_setup::{self, Passes};
use super::number_search::{self, Program, RETURN};
use super::{Command, Seccomp, handler};

/// Placeholder for "ask" until the program is compiled: the crate has no such action.
/// Nothing else in the filter uses `Trace`.
const ASK: SeccompAction = SeccompAction::Trace(0x0a5c);

/// Who decides about the calls that are reported to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// The listener: it refuses, and counts threads.
    Listener,
    /// The process's own handler of `SIGSYS` ([`super::handler`]), for want of a listener: about
    /// sockets, connections and the files of names alone. The others are refused at once.
    Handler,
    /// Nobody: they are refused at once.
    Nobody,
}

impl Ask {
    /// The kernel's answer to the calls that somebody decides about.
    fn answer(self) -> u32 {
        match self {
            Self::Handler => libc::SECCOMP_RET_TRAP | u32::from(handler::MARK),
            Self::Listener | Self::Nobody => libc::SECCOMP_RET_USER_NOTIF,
        }
    }
}

/// What the filter is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum For {
    /// A process with this fixed id.
    Process(u32),
    /// A template and its forks, whose ids differ: the listener compares them. Callers that know
    /// a pass may make the calls that it is for.
    Template(Passes),
    /// A command's processes, whose ids are not known.
    Command,
}

/// Compiles the filter.
///
/// # Errors
/// If the table cannot be compiled, for this architecture or at all; a test compiles it.
pub(super) fn compile(policy: &Seccomp, whose: For, ask: Ask) -> Result<BpfProgram, BackendError> {
    let arch = ARCH.try_into()?;
    let compiler = Compiler {
        policy,
        whose,
        ask,
        arch,
        beginning: beginning(arch)?,
    };
    let mut lines = BTreeMap::new();
    let table = match whose {
        For::Command => calls::of_commands(),
        For::Process(_) | For::Template(_) => calls::all().collect(),
    };
    for call in table {
        // System call numbers are small.
        let number = u32::try_from(call.number).unwrap_or(u32::MAX);
        lines.insert(number, compiler.line(call, number)?);
    }
    let mut program = compiler.beginning;
    program.extend(number_search::program(lines, returned(eperm())));
    for instruction in &mut program {
        if instruction.code == RETURN && instruction.k == u32::from(ASK) {
            instruction.k = ask.answer();
        }
    }
    Ok(program)
}

fn eperm() -> SeccompAction {
    SeccompAction::Errno(Errno::EPERM as u32)
}

/// The program that returns an action.
fn returned(action: SeccompAction) -> Program {
    vec![sock_filter {
        code: RETURN,
        jt: 0,
        jf: 0,
        k: action.into(),
    }]
}

/// The beginning of every program of the crate: it kills a process that makes a call of another
/// architecture.
fn beginning(arch: TargetArch) -> Result<Program, BackendError> {
    let nothing = SeccompFilter::new(BTreeMap::new(), eperm(), SeccompAction::Allow, arch)?;
    let mut program = Program::try_from(nothing)?;
    // Removes the return for calls without a rule, which here are all.
    program.pop();
    Ok(program)
}

struct Compiler<'a> {
    policy: &'a Seccomp,
    whose: For,
    ask: Ask,
    arch: TargetArch,
    /// [`beginning`] for this architecture.
    beginning: Program,
}

impl Compiler<'_> {
    /// The program that decides about one call.
    fn line(&self, call: &Call, number: u32) -> Result<Program, BackendError> {
        let (mut rules, otherwise) = match &call.answer {
            Answer::Allow => return Ok(returned(SeccompAction::Allow)),
            Answer::Refuse(refuse) => (Vec::new(), self.refused(*refuse)),
            Answer::AllowIf(when, refuse) => match self.resolve(when)? {
                Resolved::Always => return Ok(returned(SeccompAction::Allow)),
                Resolved::Never => (Vec::new(), self.refused(*refuse)),
                Resolved::If(rules) => (rules, self.refused(*refuse)),
                Resolved::IfElseAsk(rules) => (rules, ASK),
            },
        };
        if let For::Template(passes) = self.whose {
            if fork_setup::is_free(call.number) {
                return Ok(returned(SeccompAction::Allow));
            }
            rules.extend(fork_setup::rules(call.number, passes)?);
        }
        match rules.is_empty() {
            true => Ok(returned(otherwise)),
            false => {
                let rules = BTreeMap::from([(call.number, rules)]);
                let filter = SeccompFilter::new(rules, otherwise, SeccompAction::Allow, self.arch)?;
                let program = Program::try_from(filter)?;
                Ok(number_search::without_question(
                    program,
                    &self.beginning,
                    number,
                ))
            }
        }
    }

    fn command(&self) -> Command {
        self.policy.command.clone().unwrap_or_default()
    }

    /// Whether the listener counts processes or threads.
    fn counts(&self) -> bool {
        let counted = match self.whose {
            For::Process(_) | For::Template(_) => true,
            For::Command => self.command().processes.is_some(),
        };
        counted && self.ask == Ask::Listener
    }

    /// Whether the host opens files in place of the process.
    fn opens(&self) -> bool {
        self.policy.files_by_host && self.ask != Ask::Nobody
    }

    /// Whether the host connects sockets, or looks at connections.
    fn host_connects(&self) -> bool {
        self.policy.host_connects()
    }

    /// Whether the host makes sockets in place of the process.
    fn makes_sockets(&self) -> bool {
        let policy = self.policy.sockets_by_host && self.host_connects();
        policy && !self.command().own_network && self.ask == Ask::Listener
    }

    fn refused(&self, refuse: Refuse) -> SeccompAction {
        match self.ask {
            Ask::Listener if refuse.told().is_some() => ASK,
            Ask::Handler if matches!(refuse.told(), Some(Kind::Connect | Kind::Socket)) => ASK,
            Ask::Listener | Ask::Handler | Ask::Nobody => {
                SeccompAction::Errno(refuse.errno() as u32)
            }
        }
    }

    fn resolve(&self, when: &When) -> Result<Resolved, BackendError> {
        let switch = |on| {
            if on {
                Resolved::Always
            } else {
                Resolved::Never
            }
        };
        Ok(match *when {
            When::Network => switch(self.policy.network),
            When::Opening(opening, rules) if self.opens() => {
                Resolved::IfElseAsk(no_lookup(opening, rules)?)
            }
            // The listener has those made that are permitted.
            When::Sockets { .. } if self.makes_sockets() => Resolved::Never,
            When::Binding(_) | When::Options { .. } if self.command().own_network => {
                Resolved::Always
            }
            When::Binding(_) if !self.policy.network => Resolved::Never,
            // The listener has it made.
            When::Binding(_) if self.ask == Ask::Listener => Resolved::Never,
            // Where the host connects sockets, it closes its copies (`SO_LINGER`).
            When::Options { shared, closed } => {
                Resolved::If(compiled(match self.policy.network && !self.policy.local {
                    true => shared,
                    false => closed,
                })?)
            }
            When::Metadata => switch(self.policy.metadata),
            When::Attributes => switch(self.policy.metadata && self.policy.attributes),
            When::Connecting => switch(!self.host_connects()),
            When::Sockets {
                internet,
                tcp,
                local,
            } => self.sockets(internet, tcp, local)?,
            When::NetworkAnd(_) if !self.policy.network => Resolved::Never,
            When::MetadataAnd(_) if !self.policy.metadata => Resolved::Never,
            // The listener permits what matches, and refuses the rest.
            When::Counted(_) if self.counts() => Resolved::Never,
            // Where the host connects sockets, it closes its copies (`SO_LINGER`).
            When::NetworkOr(_) if self.policy.network && !self.policy.local => Resolved::Always,
            When::Signals => switch(self.command().signals),
            When::BySignals { with, without } => {
                Resolved::If(compiled(match self.command().signals {
                    true => with,
                    false => without,
                })?)
            }
            When::Requests {
                always,
                signals,
                network,
            } => {
                let mut rules = compiled(always)?;
                for (more, _) in [
                    (signals, self.command().signals),
                    (network, self.policy.network),
                ]
                .into_iter()
                .filter(|(_, is)| *is)
                {
                    rules.extend(compiled(more)?);
                }
                Resolved::If(rules)
            }
            When::Ipc => switch(self.command().ipc),
            When::UncountedMemory => switch(self.command().uncounted_memory),
            When::UncountedMemoryOr(_) if self.command().uncounted_memory => Resolved::Always,
            // A call without arguments.
            When::Counted([[]]) => Resolved::Always,
            When::Binding(rules)
            | When::NetworkAnd(rules)
            | When::MetadataAnd(rules)
            | When::NetworkOr(rules)
            | When::UncountedMemoryOr(rules)
            | When::Args(rules)
            | When::Opening(_, rules)
            | When::Counted(rules) => Resolved::If(compiled(rules)?),
            When::Own(index) => match self.whose {
                For::Process(own) => Resolved::If(vec![rule(&[is(index, own)])?]),
                For::Template(_) => Resolved::IfElseAsk(Vec::new()),
                For::Command => Resolved::Never,
            },
            When::OwnOrZero(index) => self.own_or_zero(index, &[&[]])?,
            When::OwnOrZeroAnd(index, rules) => self.own_or_zero(index, rules)?,
        })
    }

    fn own_or_zero(&self, index: u8, rules: Rules) -> Result<Resolved, BackendError> {
        let with = |id| {
            let rules = rules.iter().map(move |tests| {
                let mut all = vec![is(index, id)];
                all.extend_from_slice(tests);
                rule(&all)
            });
            rules.collect::<Result<Vec<SeccompRule>, BackendError>>()
        };
        let mut rules = with(0)?;
        Ok(match self.whose {
            For::Process(own) => {
                rules.extend(with(own)?);
                Resolved::If(rules)
            }
            For::Template(_) => Resolved::IfElseAsk(rules),
            // Programs mean themselves by 0.
            For::Command => Resolved::If(rules),
        })
    }

    fn sockets(&self, internet: Rules, tcp: Rules, local: Rules) -> Result<Resolved, BackendError> {
        let permitted = [
            (internet, self.policy.network),
            (tcp, self.policy.tcp && !self.policy.network),
            (local, self.policy.local),
        ];
        let mut rules = Vec::new();
        for (permitted, _) in permitted.into_iter().filter(|(_, is)| *is) {
            rules.extend(compiled(permitted)?);
        }
        Ok(match rules.is_empty() {
            true => Resolved::Never,
            false => Resolved::If(rules),
        })
    }
}

/// A condition for one policy and one process.
enum Resolved {
    Always,
    Never,
    If(Vec<SeccompRule>),
    /// The listener decides about the others.
    IfElseAsk(Vec<SeccompRule>),
}

fn compiled(rules: Rules) -> Result<Vec<SeccompRule>, BackendError> {
    rules.iter().map(|tests| rule(tests)).collect()
}

/// The same rules for calls that are no [lookup](Opening::is_lookup).
fn no_lookup(opening: &Opening, rules: Rules) -> Result<Vec<SeccompRule>, BackendError> {
    let other_flags: Vec<Arg> = Opening::FLAGS
        .iter()
        .map(|flags| is_not(opening.flags, *flags))
        .collect();
    let other_directory = opening
        .directory
        .map(|index| vec![is_not(index, libc::AT_FDCWD as u32)]);
    let mut all = Vec::new();
    for others in [other_flags].into_iter().chain(other_directory) {
        for tests in rules {
            all.push(rule(&[tests, others.as_slice()].concat())?);
        }
    }
    Ok(all)
}

fn rule(tests: &[Arg]) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions(tests)?)
}

pub(super) fn conditions(tests: &[Arg]) -> Result<Vec<SeccompCondition>, BackendError> {
    tests
        .iter()
        .map(|arg| {
            let (operator, value) = match arg.test {
                Test::Null => {
                    let whole = SeccompCmpArgLen::Qword;
                    return SeccompCondition::new(arg.index, whole, SeccompCmpOp::Eq, 0);
                }
                Test::Is(value) => (SeccompCmpOp::Eq, value),
                Test::IsNot(value) => (SeccompCmpOp::Ne, value),
                Test::AtMost(value) => (SeccompCmpOp::Le, value),
                Test::AtLeast(value) => (SeccompCmpOp::Ge, value),
                Test::Masked { mask, value } => (SeccompCmpOp::MaskedEq(mask.into()), value),
            };
            SeccompCondition::new(arg.index, SeccompCmpArgLen::Dword, operator, value.into())
        })
        .collect()
}

#[cfg(test)]
mod tests;
