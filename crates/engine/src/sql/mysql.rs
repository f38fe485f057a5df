//! MySQL and MariaDB, in sessions after `SET SESSION TRANSACTION READ ONLY`.
//!
//! The server refuses DML and DDL then, of temporary tables, too. It does not refuse `LOCK TABLES …
//! READ`, `FLUSH`, `ANALYZE TABLE` or `KILL`, and `START TRANSACTION READ WRITE` as little as any
//! form of `SET`.

use super::statement::{
    Effect, after, begins, has, has_any, is_on, opened, outside, shown, title, vet_access,
};
use super::tokens::Token;

/// What reads, or is about transactions. `LOCK` is not here: it stops the application's writers.
const READ: &str = "\
    CHECKSUM COMMIT DESC DESCRIBE DO EXPLAIN HELP RELEASE ROLLBACK SAVEPOINT SELECT SHOW TABLE \
    UNLOCK USE VALUES WITH";

/// What the server refuses.
const WRITE: &str = "DELETE INSERT REPLACE UPDATE";

/// What MariaDB's `ANALYZE` is followed by where it executes a statement; otherwise it is about a
/// table, and writes.
const ANALYZED: &str = "DELETE INSERT REPLACE SELECT UPDATE VALUES WITH";

/// What `SET` is followed by where it is no assignment.
const SPECIAL: &str = "CHAR CHARACTER CHARSET NAMES ROLE";

/// Scopes beyond the session.
const GLOBAL: &str = "global persist persist_only";

/// Beginnings of variables of a session that reach beyond it: into the binary log, replication, or
/// the files that a debug build traces to.
const REACHING: &str = "binlog_ debug gtid_ pseudo_ rbr_ sql_log_ wsrep_";

/// Looks at one statement.
pub(super) fn vet(tokens: &[Token]) -> Result<Effect, String> {
    if has(tokens, "INTO OUTFILE") || has(tokens, "INTO DUMPFILE") {
        return Err("INTO OUTFILE".to_owned());
    }
    let mut tokens = opened(tokens);
    while begins(tokens, "SET STATEMENT") {
        tokens = opened(set_statement(tokens)?);
    }
    let Some(first) = tokens.first() else {
        return Ok(Effect::Reads);
    };
    vet_access(first, tokens)?;
    if first.is_word("SET") {
        return set(after(tokens, 1)).map(|()| Effect::Sets);
    }
    if !may_be_sent(first, after(tokens, 1)) {
        return Err(title(tokens));
    }
    // A query may be part of what writes: `WITH … DELETE`, `EXPLAIN ANALYZE UPDATE`.
    let is_query = first.is_any("SELECT SHOW");
    Ok(if !is_query && has_any(tokens, WRITE) {
        Effect::Writes
    } else {
        Effect::Reads
    })
}

fn may_be_sent(first: &Token, next: &[Token]) -> bool {
    if first.is_word("START") {
        begins(next, "TRANSACTION")
    } else if first.is_word("BEGIN") {
        // Anything else begins a block: `BEGIN NOT ATOMIC`, or any statement in Oracle's mode.
        next.is_empty() || (next.len() == 1 && begins(next, "WORK"))
    } else if first.is_word("ANALYZE") {
        let is_format = begins(next, "FORMAT");
        let analyzed = opened(after(next, if is_format { 3 } else { 0 }));
        analyzed.first().is_some_and(|it| it.is_any(ANALYZED))
    } else if first.is_any(WRITE) {
        !begins(next, "DELAYED")
    } else {
        first.is_any(READ)
    }
}

/// Looks at the settings of MariaDB's `SET STATEMENT … FOR …`, and gives what is after `FOR`.
fn set_statement<'s, 'a>(tokens: &'s [Token<'a>]) -> Result<&'s [Token<'a>], String> {
    let settings = after(tokens, 2);
    let Some(end) = outside(settings, |token| token.is_word("FOR")) else {
        return Err(title(tokens));
    };
    assignments(&settings[..end])?;
    Ok(&settings[end + 1..])
}

/// Looks at what follows `SET`.
fn set(tokens: &[Token]) -> Result<(), String> {
    let is_of_session = tokens.first().is_some_and(|it| it.is_any("SESSION LOCAL"));
    let is_list = tokens.iter().any(|token| token.is_mark(b'='));
    if begins(after(tokens, usize::from(is_of_session)), "TRANSACTION") && !is_list {
        return Ok(());
    }
    assignments(tokens)
}

fn assignments(tokens: &[Token]) -> Result<(), String> {
    let mut tokens = tokens;
    loop {
        let end = outside(tokens, |token| token.is_mark(b','));
        assignment(&tokens[..end.unwrap_or(tokens.len())])?;
        let Some(end) = end else { return Ok(()) };
        tokens = &tokens[end + 1..];
    }
}

/// Looks at one of a list. A variable of the user's own may be anything.
fn assignment(tokens: &[Token]) -> Result<(), String> {
    let Some(equals) = tokens.iter().position(|token| token.is_mark(b'=')) else {
        return match tokens.first() {
            Some(first) if first.is_any(SPECIAL) => Ok(()),
            _ => Err(format!("SET {}", title(tokens))),
        };
    };
    let (left, value) = (&tokens[..equals], &tokens[equals + 1..]);
    match left {
        [at, next, ..] if at.is_mark(b'@') && !next.is_mark(b'@') => return Ok(()),
        [password, ..] if password.is_word("PASSWORD") => return Err("SET PASSWORD".to_owned()),
        _ => {}
    }
    left.iter()
        .filter(|token| token.is_name())
        .try_for_each(|name| assigned(&name.lower(), value))
}

fn assigned(name: &str, value: &[Token]) -> Result<(), String> {
    let is_refused = GLOBAL.split(' ').any(|scope| name == scope)
        || REACHING.split(' ').any(|begin| name.starts_with(begin))
        || (name.contains("read_only") && !is_on(value));
    if is_refused {
        return Err(format!("SET {}", shown(name)));
    }
    // A name is found by a collation for which accents make no difference.
    if !name.is_ascii() {
        return Err("SET of a name that is not ASCII".to_owned());
    }
    Ok(())
}
