//! What host and child say to each other: packets on a `SOCK_SEQPACKET` socket.
//!
//! The host sends one [`Task`], the child sends [`Message`]s. Each message of the child starts
//! with the run's [`Secret`], which only the two of them know. Whatever else arrives (a snippet
//! can find the descriptor and write to it) is dropped packet by packet and disturbs nothing:
//! that is why the socket keeps packet borders.

use altair_sandbox::bounded::at_most;
use altair_sandbox::{FinalGuards, Limits, Record, Renewal};
use serde::{Deserialize, Serialize};

use crate::encode::EXCEPTION_MAX_BYTES;
use crate::guards::{Insisted, ToldStates};
use crate::queries::News;
use crate::result::{Blocked, Location, Phase};
use crate::sql::Mode;

/// The descriptor under which the child finds its end.
pub const DESCRIPTOR: i32 = 3;

/// Bytes of a packet's content. A packet has to fit a socket buffer of the system's default size
/// (`net.core.wmem_default`, 212992 bytes) several times over.
pub const PACKET_BYTES: usize = 32 * 1024;

/// The longest message that is put together: a boot's record of what it looked at.
pub const MESSAGE_MAX_BYTES: usize = 8 << 20;

/// Entries of a list of guards that are read.
const GUARDS_MAX: usize = 16;
/// Variables that a child tells of at most.
pub const VARIABLES_MAX: usize = 4096;
/// Bytes of variables, names and values, that a child tells of at most.
pub const VARIABLES_MAX_BYTES: usize = 256 << 10;
/// Paths of ini files that a template tells of at most.
pub const INI_MAX: usize = 1000;

/// Bytes of messages by kind, in the order of [`Message`], as far as a host puts them together: what
/// the longest of each takes. A child that is not what it should be could have its host take memory
/// for as many messages as it likes, each of them as long as it likes, and many times as much as it
/// sends for what is in them.
const KIND_MAX_BYTES: [usize; 12] = [
    64,                               // Entered
    16 << 10,                         // Ready
    32 << 10,                         // Stopped: one packet
    EXCEPTION_MAX_BYTES + (64 << 10), // Report: an exception, or less
    16 << 10,                         // Guarded
    64 << 10,                         // Refused: names of functions, statements of SQL
    64 << 10,                         // Outside: a path
    2 * VARIABLES_MAX_BYTES,          // Variables: with the length of each
    MESSAGE_MAX_BYTES,                // Booted
    16 << 10,                         // Unable
    64,                               // SecondThread
    256 << 10,                        // Queries: with the text of each
];

/// Bytes of a [`Secret`].
pub const SECRET_BYTES: usize = 32;

/// What authenticates the child's messages: random, new for each run, never in PHP's reach.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secret([u8; SECRET_BYTES]);

impl Secret {
    /// A new secret from the kernel's random numbers.
    ///
    /// # Errors
    ///
    /// What `getrandom(2)` says.
    pub fn generate() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; SECRET_BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8; SECRET_BYTES] {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The version both ends must share: this crate's, so that an extension and a command of two
/// builds do not misread each other.
pub const PROTOCOL: &str = concat!("altair-eval ", env!("CARGO_PKG_VERSION"));

/// What the child is to do. A fork of a template gets one of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// [`PROTOCOL`] of the host.
    pub protocol: String,
    /// What authenticates the child's messages.
    pub secret: Secret,
    /// The host's process id: a signal of its is the deadline's.
    pub host: i32,
    /// The project root, absolute.
    pub root: Vec<u8>,
    /// The file that returns the container, absolute.
    pub bootstrap: Option<Vec<u8>>,
    /// Whether the kernel caps the process's memory.
    pub capped: bool,
    /// Whether the child is in a private root, where nothing is that is not to be read.
    pub private_root: bool,
    /// What is taken away once boot is over; `None` for an unsafe run, and for the fork of a
    /// template, which finds it done.
    pub restrictions: Option<Restrictions>,
    /// How database sessions are watched, those that boot opens included; `None`: not at all, and for
    /// the fork of a template, which finds it done.
    pub watched: Option<Watched>,
    /// What for.
    pub work: Work,
}

/// What a child is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Work {
    /// One snippet.
    Run(Run),
    /// To boot, and to fork a child for each snippet.
    Template(Model),
}

/// One snippet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The code.
    pub snippet: Vec<u8>,
    /// The guards to take before boot, or by a fork of a template before the snippet.
    pub guards: FinalGuards,
    /// Those of them without which nothing may run.
    pub insist: Vec<Insisted>,
    /// The limits that a fork of a template takes; other children have theirs by then.
    pub limits: Limits,
    /// `memory_limit`, in bytes, once boot is over; `None` for an unsafe run.
    pub memory_limit_bytes: Option<u64>,
    /// Whether statements of databases are told of.
    pub queries: bool,
}

/// What a template is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    /// Descriptors that it may have open at a time. Its first filter comes after the task, as a packet
    /// of its own.
    pub descriptors: Option<u64>,
    /// Whether its forks take Landlock, which it cannot.
    pub landlock: bool,
    /// The last guards of its forks without which nothing may run, boot included.
    pub insist: Vec<Insisted>,
    /// What its forks mount anew.
    pub renewal: Renewal,
    /// Milliseconds without a request after which it ends.
    pub idle_ms: u64,
}

/// What PHP's own switches take away once boot is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restrictions {
    /// ini settings, name and value.
    pub ini: Vec<(String, String)>,
    /// Functions and who may not call them.
    pub functions: Vec<Restricted>,
    /// Paths beside the project that PHP's own file functions may read, where there is no private
    /// root that shows nothing else.
    pub readable: Vec<Vec<u8>>,
}

/// How database sessions are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Watched {
    /// What they may do; `None`: all that the account may.
    pub mode: Option<Mode>,
    /// Whether those of SQLite only read: where what is written to the project is thrown away, they
    /// need not.
    pub keeps_sqlite: bool,
}

/// A function that is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restricted {
    /// Its name, lower case.
    pub name: String,
    /// Whether only code written in the snippet is refused, and not the application's own.
    pub snippet_only: bool,
    /// The flag that allows it.
    pub lift: String,
}

/// What the child says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// The child's own code has begun. The first message of every run.
    Entered {
        /// When, in nanoseconds of `CLOCK_MONOTONIC`, which both processes share.
        at_ns: u64,
    },
    /// Boot is over and the guards are on; the snippet is next.
    Ready {
        /// How long boot took, in microseconds.
        boot_us: u64,
        /// Guard → state, of the guards that the child itself puts on.
        #[serde(deserialize_with = "at_most::<GUARDS_MAX, _, _>")]
        guards: ToldStates,
        /// When the fork of a template began, as in `Entered`, which it does not say besides: all
        /// that it does until it is ready is to take its guards.
        entered_ns: Option<u64>,
    },
    /// The deadline's signal met the code here.
    Stopped {
        /// What was under way.
        phase: Phase,
        /// Where.
        location: Option<Location>,
        /// PHP's real peak, in bytes.
        memory_peak_bytes: u64,
    },
    /// How it ended. The last message.
    Report(Report),
    /// The guards that were taken before boot.
    Guarded {
        /// Guard → state.
        #[serde(deserialize_with = "at_most::<GUARDS_MAX, _, _>")]
        guards: ToldStates,
    },
    /// The child itself has refused something. Said once for each thing, as it happens.
    Refused(Blocked),
    /// One of PHP's own file functions could not open a file outside of what is there to be
    /// opened. Said once for each file, as it happens.
    Outside(Outside),
    /// Variables that boot has left, of those that may hold secrets: name and value.
    Variables(
        #[serde(deserialize_with = "at_most::<VARIABLES_MAX, _, _>")] Vec<(Vec<u8>, Vec<u8>)>,
    ),
    /// A template waits for requests.
    Booted(Booted),
    /// A template, or a fork of one, cannot do its work, and ends.
    Unable {
        /// Why, in words for the user.
        why: String,
    },
    /// There is a second thread, which would stay free of the guards. The child waits for its end.
    SecondThread,
    /// Statements that were sent to databases, and what they have changed.
    Queries(News),
}

/// What a template has to say of its boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Booted {
    /// How long boot took, in microseconds.
    pub boot_us: u64,
    /// What boot looked at; `None` where that cannot be seen, with the reason.
    pub record: Result<Record, String>,
    /// The ini files that PHP has read, and the directories in which it looked for them.
    #[serde(deserialize_with = "at_most::<INI_MAX, _, _>")]
    pub ini: Vec<Vec<u8>>,
}

/// How a run ended, as the child saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The ending itself.
    pub ending: Ending,
    /// What was under way.
    pub phase: Phase,
    /// PHP's real peak, in bytes.
    pub memory_peak_bytes: u64,
    /// How long the snippet took, in microseconds, if it began.
    pub snippet_us: Option<u64>,
    /// How long encoding took, in microseconds, if it began.
    pub encode_us: Option<u64>,
}

/// A file outside of what a run may touch, that it tried to open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outside {
    /// The path, absolute.
    pub path: Vec<u8>,
    /// Whether it was to be written, made or removed.
    pub write: bool,
    /// What the system said; 0 where PHP's own `open_basedir` refused.
    pub errno: i32,
}

/// The ways in which a child can end and still say so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// The snippet returned; the encoded value as JSON text.
    Returned(String),
    /// An exception left it; encoded, as JSON text.
    Threw(String),
    /// `exit` with this status.
    Exited(u8),
    /// A fatal error.
    Fatal {
        /// What PHP said.
        message: String,
        /// Where.
        location: Location,
    },
    /// Memory ran out.
    OutOfMemory {
        /// What PHP said.
        message: String,
        /// Where, if that is known.
        location: Option<Location>,
    },
    /// The application could not be booted.
    BootFailed {
        /// Why.
        message: String,
        /// The exception, encoded as JSON text, if there was one.
        exception: Option<String>,
    },
}

/// The packet is a whole message. One may stand between two packets of a longer message: the
/// deadline's signal handler does not wait for a report to be sent.
const WHOLE: u8 = 0;
/// More packets of the same message follow this one.
const MORE: u8 = 1;
/// This packet ends a message of several.
const LAST: u8 = 2;

/// Splits a task into packets.
///
/// # Errors
///
/// Never for a task of this module's types; the error is `postcard`'s.
pub fn encode_task(task: &Task) -> postcard::Result<Vec<Vec<u8>>> {
    Ok(packets(&[], &postcard::to_allocvec(task)?))
}

/// Splits a message into authenticated packets.
///
/// # Errors
///
/// Never for a message of this module's types; the error is `postcard`'s.
pub fn encode_message(secret: &Secret, message: &Message) -> postcard::Result<Vec<Vec<u8>>> {
    Ok(packets(secret.bytes(), &postcard::to_allocvec(message)?))
}

/// Writes a [`Message::Stopped`] as one packet into `buffer` without allocating, for a signal
/// handler. `None` where it does not fit.
pub fn encode_stopped<'b>(
    secret: &Secret,
    stopped: &StoppedRef<'_>,
    buffer: &'b mut [u8],
) -> Option<&'b [u8]> {
    let header = SECRET_BYTES + 1;
    let (head, body) = buffer.split_at_mut_checked(header)?;
    head[..SECRET_BYTES].copy_from_slice(secret.bytes());
    head[SECRET_BYTES] = WHOLE;
    let used = postcard::to_slice(&MessageRef::Stopped(stopped), body)
        .ok()?
        .len();
    buffer.get(..header + used)
}

/// [`Message::Stopped`] with borrowed texts, field by field the same on the wire.
#[derive(Debug, Serialize)]
pub struct StoppedRef<'a> {
    /// What was under way.
    pub phase: Phase,
    /// Where.
    pub location: Option<LocationRef<'a>>,
    /// PHP's real peak, in bytes.
    pub memory_peak_bytes: u64,
}

/// [`Location`] with borrowed texts, field by field the same on the wire.
#[derive(Debug, Serialize)]
pub struct LocationRef<'a> {
    /// The file.
    pub file: &'a str,
    /// The line.
    pub line: u32,
    /// The frames.
    pub stack_trace: &'a [&'a str],
}

/// [`Message`] as far as a signal handler needs it: the variants stand in the same order.
#[derive(Serialize)]
#[allow(dead_code)] // Entered and Ready hold Stopped's place.
enum MessageRef<'a> {
    Entered,
    Ready,
    Stopped(&'a StoppedRef<'a>),
}

fn packets(prefix: &[u8], content: &[u8]) -> Vec<Vec<u8>> {
    let last = content.len().div_ceil(PACKET_BYTES).saturating_sub(1);
    let packet = |(at, chunk): (usize, &[u8])| {
        let flag = match at {
            _ if last == 0 => WHOLE,
            at if at < last => MORE,
            _ => LAST,
        };
        [prefix, &[flag], chunk].concat()
    };
    content
        .chunks(PACKET_BYTES)
        .enumerate()
        .map(packet)
        .collect()
}

/// Whether a host would read a message.
#[must_use]
pub fn fits(message: &Message) -> bool {
    postcard::to_allocvec(message).is_ok_and(|content| {
        content.len() <= most(&content) && postcard::from_bytes::<Message>(&content).is_ok()
    })
}

/// Bytes that a message may have which begins so.
fn most(content: &[u8]) -> usize {
    // The number of the variant, which is one byte.
    let kind = content.first().copied().map(usize::from);
    kind.and_then(|kind| KIND_MAX_BYTES.get(kind).copied())
        .unwrap_or(0)
}

/// Puts the contents of packets together.
#[derive(Debug, Default)]
struct Assembly {
    content: Vec<u8>,
    /// It has become too long: what comes up to its end is nothing.
    is_overlong: bool,
}

impl Assembly {
    /// Takes a packet behind its secret; the content, once it is whole. `Err` for a packet that no
    /// sender of this module makes. `most`: how long what begins so may be.
    fn push(&mut self, packet: &[u8], most: fn(&[u8]) -> usize) -> Result<Option<Vec<u8>>, ()> {
        let (flag, chunk) = packet.split_first().ok_or(())?;
        let begins = match self.content.is_empty() {
            true => chunk,
            false => &self.content,
        };
        let fits = self.content.len() + chunk.len() <= most(begins);
        match *flag {
            WHOLE if chunk.len() <= most(chunk) => return Ok(Some(chunk.to_vec())),
            MORE if self.is_overlong => return Err(()),
            LAST if self.is_overlong => {
                self.is_overlong = false;
                return Err(());
            }
            MORE | LAST if fits => self.content.extend_from_slice(chunk),
            MORE | LAST => {
                self.content = Vec::new();
                self.is_overlong = *flag == MORE;
                return Err(());
            }
            _ => return Err(()),
        }
        Ok((*flag == LAST).then(|| std::mem::take(&mut self.content)))
    }
}

/// Puts a task together from the packets that the child reads.
#[derive(Debug, Default)]
pub struct TaskReader(Assembly);

/// A task that cannot be read: the other end is another build, or no host of this project.
#[derive(Debug, thiserror::Error)]
#[error("the task on the channel cannot be read")]
pub struct UnreadableTask;

impl TaskReader {
    /// Takes the next packet; the task, once it is whole.
    ///
    /// # Errors
    ///
    /// [`UnreadableTask`] for packets that are not of [`encode_task`].
    pub fn push(&mut self, packet: &[u8]) -> Result<Option<Task>, UnreadableTask> {
        match self.0.push(packet, |_| usize::MAX) {
            Ok(Some(content)) => postcard::from_bytes(&content)
                .map(Some)
                .map_err(|_| UnreadableTask),
            Ok(None) => Ok(None),
            Err(()) => Err(UnreadableTask),
        }
    }
}

/// Puts messages together from whatever arrives.
#[derive(Debug)]
pub struct MessageReader {
    secret: Secret,
    assembly: Assembly,
}

impl MessageReader {
    /// A reader for one run.
    #[must_use]
    pub fn new(secret: Secret) -> Self {
        Self {
            secret,
            assembly: Assembly::default(),
        }
    }

    /// Takes a packet; a message, once one is whole. A packet without the secret, and a message
    /// that cannot be read or is too long, is dropped.
    pub fn push(&mut self, packet: &[u8]) -> Option<Message> {
        let packet = packet.strip_prefix(self.secret.bytes().as_slice())?;
        let content = self.assembly.push(packet, most).ok().flatten()?;
        postcard::from_bytes(&content).ok()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::guards::{Guard, GuardState};
    use crate::queries::TABLES_MAX;
    use proptest::prelude::*;

    fn task(snippet: Vec<u8>) -> Task {
        Task {
            protocol: PROTOCOL.into(),
            secret: Secret([7; SECRET_BYTES]),
            host: 1,
            root: b"/srv/shop".to_vec(),
            bootstrap: None,
            capped: false,
            private_root: false,
            restrictions: None,
            watched: None,
            work: Work::Run(Run {
                snippet,
                guards: FinalGuards::default(),
                insist: Vec::new(),
                limits: Limits::default(),
                memory_limit_bytes: None,
                queries: false,
            }),
        }
    }

    fn report(text: String) -> Message {
        Message::Report(Report {
            ending: Ending::Returned(text),
            phase: Phase::Snippet,
            memory_peak_bytes: 1,
            snippet_us: Some(2),
            encode_us: None,
        })
    }

    /// One of each kind, in their order.
    fn one_of_each() -> Vec<Message> {
        vec![
            Message::Entered { at_ns: u64::MAX },
            Message::Ready {
                boot_us: u64::MAX,
                guards: vec![(Guard::Ini, GuardState::InForce)],
                entered_ns: Some(u64::MAX),
            },
            Message::Stopped {
                phase: Phase::Snippet,
                location: None,
                memory_peak_bytes: 1,
            },
            report("1".into()),
            Message::Guarded { guards: Vec::new() },
            Message::Refused(Blocked {
                what: "shell_exec()".into(),
                guard: Guard::Ini,
                lift: None,
            }),
            Message::Outside(Outside {
                path: b"/etc/shadow".to_vec(),
                write: false,
                errno: 2,
            }),
            Message::Variables(vec![(b"APP_KEY".to_vec(), b"x".to_vec())]),
            Message::Booted(Booted {
                boot_us: 1,
                record: Ok(Record::default()),
                ini: Vec::new(),
            }),
            Message::Unable { why: "why".into() },
            Message::SecondThread,
            Message::Queries(News::default()),
        ]
    }

    #[test]
    fn each_kind_has_its_own_bound_and_arrives() {
        let kinds = one_of_each();
        assert_eq!(kinds.len(), KIND_MAX_BYTES.len());
        let secret = Secret::generate().unwrap();
        for (kind, message) in kinds.into_iter().enumerate() {
            let content = postcard::to_allocvec(&message).unwrap();
            assert_eq!(usize::from(content[0]), kind);
            assert!(fits(&message), "{message:?}");
            let mut reader = MessageReader::new(secret.clone());
            let packets = encode_message(&secret, &message).unwrap();
            assert_eq!(reader.push(&packets[0]), Some(message));
        }
    }

    #[test]
    fn nothing_of_a_message_that_is_too_long_is_read_as_another() {
        let secret = Secret::generate().unwrap();
        // Each packet of it begins as a message does.
        let inner = postcard::to_allocvec(&Message::Unable {
            why: "forged".into(),
        })
        .unwrap();
        let mut text = inner.clone();
        text.resize(PACKET_BYTES, b' ');
        let long = text.repeat(EXCEPTION_MAX_BYTES / PACKET_BYTES + 20);
        let long = report(String::from_utf8(long).unwrap());
        let genuine = report("1".into());
        let mut reader = MessageReader::new(secret.clone());
        let mut read = Vec::new();
        for message in [&long, &genuine] {
            for packet in encode_message(&secret, message).unwrap() {
                read.extend(reader.push(&packet));
            }
        }
        assert_eq!(read, [genuine]);
    }

    #[test]
    fn what_is_longer_than_its_kind_or_has_more_entries_is_not_read() {
        let location = |frames| Location {
            file: String::new(),
            line: 0,
            stack_trace: vec![String::new(); frames],
        };
        let fatal = |frames| {
            Message::Report(Report {
                ending: Ending::Fatal {
                    message: String::new(),
                    location: location(frames),
                },
                phase: Phase::Snippet,
                memory_peak_bytes: 0,
                snippet_us: None,
                encode_us: None,
            })
        };
        assert!(fits(&fatal(60)));
        let too_much = [
            fatal(61),
            Message::Guarded {
                guards: vec![(Guard::Ini, GuardState::InForce); GUARDS_MAX + 1],
            },
            Message::Variables(vec![Default::default(); VARIABLES_MAX + 1]),
            Message::Queries(News {
                changes: vec![Default::default(); TABLES_MAX + 1],
                ..News::default()
            }),
            Message::Unable {
                why: "x".repeat(16 << 10),
            },
            Message::Outside(Outside {
                path: vec![b'x'; 64 << 10],
                write: false,
                errno: 0,
            }),
            report("x".repeat(EXCEPTION_MAX_BYTES + (64 << 10))),
        ];
        let secret = Secret::generate().unwrap();
        for message in too_much {
            assert!(!fits(&message));
            let mut reader = MessageReader::new(secret.clone());
            for packet in encode_message(&secret, &message).unwrap() {
                assert_eq!(reader.push(&packet), None);
            }
        }
    }

    fn stopped(secret: &Secret) -> Vec<u8> {
        let mut buffer = [0; 1024];
        let trace = ["sleep (snippet:3)"];
        let location = Some(LocationRef {
            file: "snippet",
            line: 3,
            stack_trace: &trace,
        });
        let stopped = StoppedRef {
            phase: Phase::Encode,
            location,
            memory_peak_bytes: 9,
        };
        encode_stopped(secret, &stopped, &mut buffer)
            .unwrap()
            .to_vec()
    }

    #[test]
    fn what_the_signal_handler_writes_reads_as_a_message() {
        let secret = Secret::generate().unwrap();
        let message = MessageReader::new(secret.clone())
            .push(&stopped(&secret))
            .unwrap();
        let location = Location {
            file: "snippet".into(),
            line: 3,
            stack_trace: vec!["sleep (snippet:3)".into()],
        };
        assert_eq!(
            message,
            Message::Stopped {
                phase: Phase::Encode,
                location: Some(location),
                memory_peak_bytes: 9
            }
        );
    }

    #[test]
    fn a_place_that_does_not_fit_the_handlers_buffer_is_left_out() {
        let secret = Secret::generate().unwrap();
        let stopped = StoppedRef {
            phase: Phase::Boot,
            location: None,
            memory_peak_bytes: 9,
        };
        assert!(encode_stopped(&secret, &stopped, &mut [0; SECRET_BYTES]).is_none());
    }

    proptest! {
        #[test]
        fn a_task_of_any_size_arrives_as_it_was(snippet in prop::collection::vec(any::<u8>(), 0..3 * PACKET_BYTES)) {
            let task = task(snippet);
            let mut reader = TaskReader::default();
            let mut read = None;
            for packet in encode_task(&task).unwrap() {
                prop_assert!(packet.len() <= PACKET_BYTES + 1);
                read = reader.push(&packet).unwrap();
            }
            prop_assert_eq!(read, Some(task));
        }

        #[test]
        fn a_message_arrives_whatever_is_thrown_in_between(
            length in 0..3 * PACKET_BYTES,
            noise in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 0..10),
            interrupt in any::<bool>(),
        ) {
            let secret = Secret::generate().unwrap();
            let message = report("x".repeat(length));
            let mut reader = MessageReader::new(secret.clone());
            let mut read = Vec::new();
            for packet in encode_message(&secret, &message).unwrap() {
                for garbage in &noise {
                    prop_assert_eq!(reader.push(garbage), None);
                }
                if interrupt {
                    let stopped_message = reader.push(&stopped(&secret));
                    let is_stopped = matches!(stopped_message, Some(Message::Stopped { .. }));
                    prop_assert!(is_stopped);
                }
                read.extend(reader.push(&packet));
            }
            prop_assert_eq!(read, vec![message]);
        }

        #[test]
        fn a_message_under_another_secret_is_dropped(flip in 0..SECRET_BYTES, bit in 0..8_u32) {
            let secret = Secret::generate().unwrap();
            let mut reader = MessageReader::new(secret.clone());
            for mut packet in encode_message(&secret, &report("forged".into())).unwrap() {
                packet[flip] ^= 1_u8 << bit;
                prop_assert_eq!(reader.push(&packet), None);
            }
        }

        #[test]
        fn arbitrary_bytes_behind_the_secret_never_panic(
            packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..20),
        ) {
            let secret = Secret([1; SECRET_BYTES]);
            let mut messages = MessageReader::new(secret.clone());
            let mut tasks = TaskReader::default();
            for packet in packets {
                let _ = tasks.push(&packet);
                messages.push(&[secret.bytes().as_slice(), &packet].concat());
            }
        }
    }
}
