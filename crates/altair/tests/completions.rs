//! Shells accept the completion scripts, and the scripts complete commands and options.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::process::Command;

use support::{run, text};

fn script(shell: &str) -> String {
    let output = run(&["completions", shell]);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_shell_gets_a_script_that_knows_commands_and_options() {
    for shell in ["bash", "zsh", "fish"] {
        let script = script(shell);
        for word in ["eval", "events", "timeout-ms", "follow"] {
            assert!(script.contains(word), "{shell} lacks {word}");
        }
    }
}

/// Bash's completions of a line that it has split into `words`; the last word is completed.
fn bash_completes(words: &[&str]) -> Option<Vec<String>> {
    let ask = r#"eval "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 ))
        prev=${COMP_WORDS[COMP_CWORD - 1]}; cur=${COMP_WORDS[COMP_CWORD]}
        [[ $(complete -p altair) == *" -F _altair_joined "* ]] || exit 9
        _altair_joined altair "$cur" "$prev"; printf '%s\n' "${COMPREPLY[@]}""#;
    let output = Command::new("bash")
        .args(["--norc", "-c", ask, "bash", &script("bash")])
        .args(words)
        .output()
        .ok()?;
    assert!(output.status.success(), "{output:?}");
    assert_eq!(text(&output.stderr), "");
    Some(text(&output.stdout).lines().map(str::to_owned).collect())
}

#[test]
fn bash_completes_commands_options_and_values() {
    // Without Bash there is nothing to test.
    let Some(commands) = bash_completes(&["altair", "ev"]) else {
        return;
    };
    assert_eq!(commands, ["eval", "events:tail"]);
    assert_eq!(
        bash_completes(&["altair", "eval", "--ti"]).unwrap(),
        ["--timeout-ms"]
    );
    assert_eq!(
        bash_completes(&["altair", "completions", "b"]).unwrap(),
        ["bash"]
    );
}

#[test]
fn bash_completes_across_the_colon_at_which_it_splits_words() {
    let Some(options) = bash_completes(&["altair", "events", ":", "tail", "--fol"]) else {
        return;
    };
    assert_eq!(options, ["--follow"]);
    assert_eq!(
        bash_completes(&["altair", "events", ":", "ta"]).unwrap(),
        ["tail"]
    );
}
