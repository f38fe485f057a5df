//! The types of the table of system calls.

use nix::errno::Errno;
use nix::libc::{self, c_long};

/// One line of the table: a system call and its answer. Calls without a line are refused with
/// `EPERM`.
pub(super) struct Call {
    /// The constant of its number, `SYS_…`.
    pub(super) symbol: &'static str,
    /// Its number on this architecture.
    pub(super) number: c_long,
    pub(super) answer: Answer,
    /// The reason for the answer, for readers of the table; a test requires it.
    #[cfg_attr(not(test), expect(dead_code))]
    pub(super) why: &'static str,
}

/// The answer to a system call.
pub(super) enum Answer {
    /// It is permitted.
    Allow,
    /// It is permitted under a condition.
    AllowIf(When, Refuse),
    /// It is always refused.
    Refuse(Refuse),
}

/// When a call is permitted.
pub(super) enum When {
    /// The policy has the network on.
    Network,
    /// The same, and one of the rules holds for the arguments.
    NetworkAnd(Rules),
    /// One of the rules holds for what the policy permits: the network, TCP to declared services,
    /// declared services with a Unix socket path.
    Sockets {
        internet: Rules,
        tcp: Rules,
        local: Rules,
    },
    /// The policy has the network on, and no declared service with a Unix socket path. Otherwise
    /// the host checks each connection.
    Connecting,
    /// A command has a network of its own; or has that of the host, which then decides, or one of the
    /// rules holds if nobody listens.
    Binding(Rules),
    /// A command has a network of its own; or has that of the host, and one of the rules `shared` holds;
    /// or one of the rules `closed` holds.
    Options { shared: Rules, closed: Rules },
    /// The policy permits changes of metadata.
    Metadata,
    /// The same, and one of the rules holds for the arguments.
    MetadataAnd(Rules),
    /// The policy permits setting extended attributes.
    Attributes,
    /// The policy has the network on, or one of the rules holds for the arguments.
    NetworkOr(Rules),
    /// A command may send signals to any process.
    Signals,
    /// One of the rules holds: of `with` if a command may send signals to any process, otherwise of
    /// `without`.
    BySignals { with: Rules, without: Rules },
    /// One of the rules holds: of `always`, of `signals` if a command may send signals to any process,
    /// of `network` if the policy has the network on.
    Requests {
        always: Rules,
        signals: Rules,
        network: Rules,
    },
    /// A command may use IPC.
    Ipc,
    /// A command may have memory that is not counted.
    UncountedMemory,
    /// The same, or one of the rules holds for the arguments.
    UncountedMemoryOr(Rules),
    /// One of the rules holds for the arguments.
    Args(Rules),
    /// The same. Where the host opens files, it is asked about a call that opens a file as
    /// [`Opening::is_lookup`] tells.
    Opening(&'static Opening, Rules),
    /// The same, and the host, if it listens, finds the process below its thread limit. The tested
    /// arguments must be all that the kernel considers, and none may be a pointer.
    Counted(Rules),
    /// The argument with this index is the process's own id.
    Own(u8),
    /// The argument with this index is the process's own id, or 0, which means the caller.
    OwnOrZero(u8),
    /// The same, and one of the rules holds for the other arguments.
    OwnOrZeroAnd(u8, Rules),
}

/// Rules, one of which must hold; each is a list of tests that must all hold.
pub(super) type Rules = &'static [&'static [Arg]];

/// A test of one argument's lower 32 bits: the kernel ignores the rest for the arguments tested
/// here (`int`, `unsigned int`, and flags of which only lower bits exist). For a pointer, all 64
/// bits are tested.
#[derive(Clone, Copy)]
pub(super) struct Arg {
    /// Its index, from 0.
    pub(super) index: u8,
    pub(super) test: Test,
}

/// A test of a value.
#[derive(Clone, Copy)]
pub(super) enum Test {
    Is(u32),
    IsNot(u32),
    /// A null pointer.
    Null,
    AtMost(u32),
    AtLeast(u32),
    /// The bits of `mask` have the value `value`.
    Masked {
        mask: u32,
        value: u32,
    },
}

impl Test {
    /// Whether it holds for an argument.
    pub(super) fn holds(self, argument: u64) -> bool {
        let low = argument as u32;
        match self {
            Self::Null => argument == 0,
            Self::Is(value) => low == value,
            Self::IsNot(value) => low != value,
            Self::AtMost(value) => low <= value,
            Self::AtLeast(value) => low >= value,
            Self::Masked { mask, value } => low & mask == value,
        }
    }
}

/// The indexes of the arguments of a call that opens a file.
pub(super) struct Opening {
    /// The directory, if the call takes one.
    pub(super) directory: Option<u8>,
    /// The path.
    pub(super) path: u8,
    /// The flags.
    pub(super) flags: u8,
}

/// The kernel's `O_LARGEFILE`, which musl adds (asm/fcntl.h); glibc's is 0.
const LARGE_FILE: i32 = if cfg!(target_arch = "x86_64") {
    0o100_000
} else {
    0o400_000
};

impl Opening {
    /// The flags with which C libraries open the files by which they look up names, and PHP opens
    /// no file.
    pub(super) const FLAGS: [u32; 2] = [
        (libc::O_RDONLY | libc::O_CLOEXEC) as u32,
        (libc::O_RDONLY | libc::O_CLOEXEC | LARGE_FILE) as u32,
    ];

    /// Whether a call reads a file as C libraries do to look up a name.
    pub(super) fn is_lookup(&self, args: &[u64; 6]) -> bool {
        let argument = |index: u8| args.get(usize::from(index)).copied().unwrap_or(0) as u32;
        let is_free = self
            .directory
            .is_none_or(|index| argument(index) == libc::AT_FDCWD as u32);
        is_free && Self::FLAGS.contains(&argument(self.flags))
    }
}

/// How a call is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refuse {
    /// `EPERM`.
    Quietly,
    /// `ENOSYS`: libraries probe for the call and do without it. `EPERM` would be an error to them.
    AsAbsent,
    /// `ENOTTY`: as of something that does not know the request (ioctl(2)), without which programs do.
    AsUnknown,
    /// `EPERM`, and the host learns of it.
    Told(Kind),
    /// `ENOSYS`, and the host learns of it.
    ToldAsAbsent(Kind),
}

impl Refuse {
    /// What the caller gets.
    pub(super) fn errno(self) -> Errno {
        match self {
            Self::Quietly | Self::Told(_) => Errno::EPERM,
            Self::AsAbsent | Self::ToldAsAbsent(_) => Errno::ENOSYS,
            Self::AsUnknown => Errno::ENOTTY,
        }
    }

    /// What the host learns, if anything.
    pub(super) fn told(self) -> Option<Kind> {
        match self {
            Self::Quietly | Self::AsAbsent | Self::AsUnknown => None,
            Self::Told(kind) | Self::ToldAsAbsent(kind) => Some(kind),
        }
    }
}

/// How the host interprets the arguments of a refused call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `socket(family, type, …)`.
    Socket,
    /// `connect(_, address, length)`.
    Connect,
    /// `bind(_, address, length)`.
    Bind,
    /// `listen`, `accept`.
    Listen,
    /// A program's path, in the argument with this index.
    Execute(u8),
    /// A new process.
    Process,
    /// A signal: the indexes of the process and of the signal.
    Signal(u8, u8),
    /// A link.
    Link,
    /// An inspection of another process.
    Inspect,
    /// Another attack on the system.
    Kernel,
}

impl Call {
    /// Its name.
    pub(super) fn name(&self) -> &'static str {
        self.symbol.strip_prefix("SYS_").unwrap_or(self.symbol)
    }

    /// How it is refused, if it can be.
    pub(super) fn refuse(&self) -> Option<Refuse> {
        match self.answer {
            Answer::Allow => None,
            Answer::AllowIf(_, refuse) | Answer::Refuse(refuse) => Some(refuse),
        }
    }
}

pub(super) const fn is(index: u8, value: u32) -> Arg {
    Arg {
        index,
        test: Test::Is(value),
    }
}

pub(super) const fn is_not(index: u8, value: u32) -> Arg {
    Arg {
        index,
        test: Test::IsNot(value),
    }
}

pub(super) const fn null(index: u8) -> Arg {
    Arg {
        index,
        test: Test::Null,
    }
}

pub(super) const fn at_most(index: u8, value: u32) -> Arg {
    Arg {
        index,
        test: Test::AtMost(value),
    }
}

pub(super) const fn at_least(index: u8, value: u32) -> Arg {
    Arg {
        index,
        test: Test::AtLeast(value),
    }
}

/// The bits of `mask` in an argument have the value `value`.
pub(super) const fn bits(index: u8, mask: u32, value: u32) -> Arg {
    Arg {
        index,
        test: Test::Masked { mask, value },
    }
}

/// None of `bits` is set in an argument.
pub(super) const fn without(index: u8, bits: u32) -> Arg {
    Arg {
        index,
        test: Test::Masked {
            mask: bits,
            value: 0,
        },
    }
}

/// Whether one of the rules holds for arguments.
pub(super) fn holds(rules: Rules, args: &[u64; 6]) -> bool {
    rules.iter().any(|tests| {
        tests.iter().all(|arg| {
            let argument = args.get(usize::from(arg.index));
            argument.is_some_and(|argument| arg.test.holds(*argument))
        })
    })
}

/// Lines of the table: `SYS_name: answer, "why";`.
macro_rules! calls {
    ($($number:ident: $answer:expr, $why:literal;)*) => {
        &[$($crate::seccomp::call::Call {
            symbol: stringify!($number),
            number: $number,
            answer: $answer,
            why: $why,
        }),*]
    };
}
pub(super) use calls;
