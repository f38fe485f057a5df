//! What is PHP, and what is for the shell.

use super::super::commands::{Command, help};
use super::super::entry::Entry;

#[test]
fn commands_begin_with_a_colon_and_all_of_them_are_in_the_help() {
    for command in Command::ALL {
        let entry = Entry::of(format!(" {} \n", command.name()).as_bytes());
        match command {
            Command::Quit => assert_eq!(entry, Entry::Leave),
            _ => assert_eq!(entry, Entry::Command(command)),
        }
        let line = format!("  {} ", command.name());
        assert!(help().lines().any(|text| text.starts_with(&line)), "{line}");
    }
    assert_eq!(Entry::of(b":helps"), Entry::Unknown(":helps".into()));
    assert_eq!(Entry::of(b"::help"), Entry::Unknown("::help".into()));
}

#[test]
fn only_the_bare_words_leave() {
    for leave in ["exit", "exit;", "EXIT ;", " quit", "quit;\n"] {
        assert_eq!(Entry::of(leave.as_bytes()), Entry::Leave, "{leave}");
    }
    for snippet in [
        "exit(3);", "exit();", "$exit", "quit()", "exits", "1", "\\exit",
    ] {
        assert_eq!(Entry::of(snippet.as_bytes()), Entry::Snippet, "{snippet}");
    }
    assert_eq!(Entry::of(b" \n\t"), Entry::Blank);
}
