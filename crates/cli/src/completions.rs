//! `altair completions`: scripts generated from the definition that also parses.

use clap::CommandFactory;
use clap_complete::{generate, shells};

use crate::args::{Cli, Shell};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

/// Bash splits words at a colon (`COMP_WORDBREAKS`), so a completion function gets `events:tail`
/// as three words. This joins them before the generated function sees them.
const BASH_COLONS: &str = r#"
_altair_joined() {
    local -a words=()
    local word glue= at=0 index=0
    for word in "${COMP_WORDS[@]}"; do
        if [[ ${#words[@]} -gt 0 && ( $glue || $word == : ) ]]; then
            words[-1]+=$word
        else
            words+=("$word")
        fi
        [[ $word == : ]] && glue=1 || glue=
        [[ $index -eq $COMP_CWORD ]] && at=$(( ${#words[@]} - 1 ))
        index=$(( index + 1 ))
    done
    local cur=${words[at]}
    local -a COMP_WORDS=("${words[@]}")
    local COMP_CWORD=$at
    _altair "$1" "$cur" "${words[at > 0 ? at - 1 : 0]}"
    # What stands before the last colon is on the line already: Bash replaces only what follows.
    if [[ $cur == *:* && $COMP_WORDBREAKS == *:* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${cur%"${cur##*:}"}"}")
    fi
}
complete -F _altair_joined -o bashdefault -o default altair
"#;

/// Prints the completion script for `shell`.
///
/// # Errors
///
/// If it cannot be written.
pub fn run(shell: Shell) -> Result<Exit, Failure> {
    let mut command = Cli::command();
    let mut script = Vec::new();
    match shell {
        Shell::Bash => {
            generate(shells::Bash, &mut command, "altair", &mut script);
            script.extend_from_slice(BASH_COLONS.as_bytes());
        }
        Shell::Zsh => generate(shells::Zsh, &mut command, "altair", &mut script),
        Shell::Fish => generate(shells::Fish, &mut command, "altair", &mut script),
    }
    output::print(&script)?;
    Ok(Exit::Clean)
}
