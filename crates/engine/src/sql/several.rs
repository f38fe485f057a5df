//! Several statements in one text, between which nobody can look.

use super::Dialect;
use super::statement::{Effect, opened};
use super::tokens::Token;

/// What calls nothing in the server, where there is no parenthesis in it.
const QUIET: &str =
    "ABORT CLOSE COMMIT DEALLOCATE END RELEASE RESET ROLLBACK SAVEPOINT SET SHOW USE";

/// What ends a transaction, so that the next one begins in the mode that the session has then.
const ENDS: &str = "ABORT COMMIT END ROLLBACK";

/// Looks at statements, each of which may be sent alone, with what each does.
pub(super) fn vet(dialect: Dialect, text: &[u8], all: &[(&[Token], Effect)]) -> Result<(), String> {
    let has = |wanted| all.iter().any(|(_, effect)| *effect == wanted);
    // A function that the first calls may lift the mode before the second writes.
    if has(Effect::Writes) {
        return Err("several statements in one, not all of which read".to_owned());
    }
    // The server reads a statement when the one before it is done, here as `sql_mode` and the
    // character set are by then; the readings take a text to be read in one way from end to end.
    let is_ambiguous = text.iter().any(|byte| *byte == b'\\' || !byte.is_ascii());
    if has(Effect::Sets) && is_ambiguous {
        return Err("SET beside statements that it may give another meaning".to_owned());
    }
    // And a second function may write.
    let has_code = matches!(dialect, Dialect::MySql | Dialect::PostgreSql);
    if has_code && begins_anew(dialect, all) {
        return Err("several statements in one, of which two may call functions".to_owned());
    }
    Ok(())
}

/// Whether a transaction begins after a statement that may have called a function of the
/// application's, in this text or in the transaction that it ends, and may call another or be left
/// open: by itself in MySQL, where each statement is one.
fn begins_anew(dialect: Dialect, all: &[(&[Token], Effect)]) -> bool {
    let (mut has_called, mut has_ended) = (false, false);
    for (tokens, _) in all {
        let tokens = opened(tokens);
        let is = |words| tokens.first().is_some_and(|first| first.is_any(words));
        let is_quiet = is(QUIET) && !tokens.iter().any(|token| token.is_mark(b'('));
        if (has_ended || has_called && dialect == Dialect::MySql) && !is_quiet {
            return true;
        }
        // What begins a transaction calls nothing.
        has_called |= !is_quiet && !is("BEGIN START");
        has_ended |= is(ENDS) || dialect == Dialect::MySql && is("SHOW");
    }
    false
}
