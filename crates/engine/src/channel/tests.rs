#![allow(clippy::unwrap_used)]

use super::message::{GUARDS_MAX, KIND_MAX_BYTES};
use super::*;
use crate::arguments::{Arguments, Datum};
use crate::encode::EXCEPTION_MAX_BYTES;
use crate::encode::{self, Key};
use crate::guards::{Guard, GuardState};
use crate::queries::News;
use crate::queries::TABLES_MAX;
use crate::result::{Blocked, Location, Phase};
use altair_sandbox::{FinalGuards, Limits, Record};
use proptest::prelude::*;
use std::time::Duration;

fn task() -> Task {
    Task {
        protocol: PROTOCOL.into(),
        secret: Secret([7; SECRET_BYTES]),
        host: 1,
        root: b"/srv/shop".to_vec(),
        bootstrap: None,
        capped: false,
        private_root: false,
        unsafe_runs: true,
        caches: None,
        restrictions: None,
        watched: None,
        work: Work::Snippet(SnippetTask {
            guards: FinalGuards::default(),
            insist: Vec::new(),
            limits: Limits::default(),
            memory_limit_bytes: None,
            queries: true,
            shown: encode::Limits::default(),
            redact: true,
            casters: Some(Ok("casters.php".into())),
        }),
    }
}

fn code(snippet: Vec<u8>) -> Code {
    let list = Datum::Array(vec![(Key::Int(-1), Datum::Float(-0.0))]);
    Code {
        snippet,
        arguments: Arguments::new(vec![("a".into(), list)]).unwrap(),
    }
}

fn report(text: String) -> Message {
    Message::Report(Report {
        ending: Ending::Returned(text),
        phase: Phase::Snippet,
        memory_peak_bytes: 1,
        snippet_us: Some(2),
        encode_us: None,
        hints: vec!["did you mean b?".into()],
    })
}

/// The longest names that are told of.
fn longest() -> (String, String) {
    let name = "x".repeat(RESOLVED_MAX_BYTES);
    (name.clone(), name)
}

/// One message of each kind, in order.
fn one_of_each() -> Vec<Message> {
    vec![
        Message::Entered { at_ns: u64::MAX },
        Message::Ready {
            boot_us: u64::MAX,
            guards: vec![(Guard::Ini, GuardState::InForce)],
            entered_ns: Some(u64::MAX),
            boot_ended: Duration::from_nanos(1),
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
        Message::Booted(BootReport {
            boot_us: 1,
            record: Ok(Record::default()),
            ini: Vec::new(),
        }),
        Message::Unable { why: "why".into() },
        Message::SecondThread,
        Message::Queries(News::default()),
        Message::Resolved(vec![longest(); RESOLVED_MAX]),
        Message::Left(Left::Refused("why".into())),
        Message::Loaded(vec![b"/a.php".to_vec()]),
        Message::Sought(vec![vec![b'x'; SOUGHT_NAME_MAX_BYTES]]),
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
    // Each of its packets begins like a message.
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
            hints: Vec::new(),
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
    fn code_of_any_size_arrives_as_it_was_after_its_task(
        snippet in prop::collection::vec(any::<u8>(), 0..3 * PACKET_BYTES),
    ) {
        let (task, code) = (task(), code(snippet));
        let mut reader = TaskReader::default();
        let [packet] = &encode_task(&task).unwrap()[..] else {
            panic!("a short task of several packets");
        };
        prop_assert_eq!(reader.push(packet).unwrap(), Some(task));
        let mut read = None;
        for packet in encode_code(&code).unwrap() {
            prop_assert!(packet.len() <= PACKET_BYTES + 1);
            read = reader.push(&packet).unwrap();
        }
        prop_assert_eq!(read, Some(code));
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
            let _ = tasks.push::<Task>(&packet);
            messages.push(&[secret.bytes().as_slice(), &packet].concat());
        }
    }
}
