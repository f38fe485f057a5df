//! MySQL and MariaDB.
//!
//! In a read-only session, each statement follows `SET SESSION TRANSACTION READ ONLY` or is in a
//! transaction that the server reports as read-only. The server then refuses DML and DDL, also on
//! temporary tables, functions that write, `FOR UPDATE`, and statements prepared or executed from a
//! text. It does not refuse `CALL`, `FLUSH`, `KILL`, `LOCK TABLES … READ`, `ANALYZE TABLE`, `XA`,
//! or effects beyond the session.
//!
//! A session that is rolled back is in an XA transaction, in which the server refuses everything
//! that would commit: `COMMIT`, DDL, `LOCK TABLES`, also within procedures.

use super::lexer::{Kind, Token, each_way};
use super::words::{
    Beginning, Comment, Versioned, anywhere, comment, ends_with, has_word, is_one_of,
};
use super::{Dialect, Mode, Reading, Statement};

/// Statements that read or control transactions. `LOCK` is excluded: it stops the application's
/// writers.
const READ: &str = "\
    BEGIN CHECKSUM COMMIT DESC DESCRIBE DO EXPLAIN GET HELP RELEASE ROLLBACK SAVEPOINT SELECT SET SHOW \
    START TABLE UNLOCK USE VALUES WITH";

/// Statements that the server refuses in a read-only session.
const WRITE: &str = "DELETE INSERT REPLACE UPDATE";

/// Further statements that can be rolled back.
const UNDONE: &str = "CALL LOAD";

/// Statements that commit implicitly.
const COMMITS: &str = "\
    ALTER ANALYZE CACHE CHECK CREATE DROP FLUSH GRANT INSTALL LOCK OPTIMIZE RENAME REPAIR RESET REVOKE \
    START TRUNCATE UNINSTALL XA";

/// Storage engines whose rows belong to other tables or servers, even if the table is temporary.
const OTHERS_ROWS: &str = "CONNECT FEDERATED FEDERATEDX MERGE MRG_MYISAM S3 SPIDER";

/// Words after MariaDB's `ANALYZE` that apply it to tables. Otherwise it applies to a statement.
const OF_TABLES: &str = "LOCAL NO_WRITE_TO_BINLOG TABLE TABLES";

/// Words of `SET` with effects beyond the session, and those that write trace files in a debug
/// build.
const REACHING: [&str; 5] = ["GLOBAL", "PERSIST", "PERSIST_ONLY", "DEBUG", "DEBUG_DBUG"];

/// Prefixes of the character sets in which each byte below 128 is a character of its own.
const WHOLE: [&[u8]; 6] = [b"utf8", b"latin", b"ascii", b"binary", b"cp125", b"koi8"];

/// Checks one statement.
pub(super) fn statement(mode: Mode, reading: Reading, text: &[u8]) -> Result<Statement, String> {
    writes_no_file(reading, text)?;
    if hides_its_beginning(text) {
        return Err("a statement behind version comments".to_owned());
    }
    let executed = Beginning::of(Dialect::MySql, Versioned::Executed, text);
    let statement = begun(mode, reading, &executed, text)?;
    // The server may execute or skip a version comment, so both readings must agree.
    let skipped = Beginning::of(Dialect::MySql, Versioned::Skipped, text);
    if begun(mode, reading, &skipped, text)? != statement && !skipped.is_empty() {
        return Err(executed.title());
    }
    Ok(statement)
}

/// Returns whether more precedes the first word than one version comment: of several the server may
/// execute some, and they may be nested.
fn hides_its_beginning(text: &[u8]) -> bool {
    let mut rest = text;
    loop {
        let is_space = |byte: &&u8| byte.is_ascii_whitespace() || b"(;\x0b".contains(byte);
        rest = &rest[rest.iter().take_while(is_space).count()..];
        match comment(Dialect::MySql, rest) {
            Some(Comment::Plain(after)) => rest = after,
            Some(Comment::Versioned(_)) => {
                return rest.windows(2).filter(|at| *at == b"/*").count() > 1;
            }
            None => return false,
        }
    }
}

fn begun(
    mode: Mode,
    reading: Reading,
    first: &Beginning,
    text: &[u8],
) -> Result<Statement, String> {
    if first.is_empty() {
        return Ok(Statement::Plain);
    }
    let chain = first.has("CHAIN") && !first.has("NO");
    match first.word(0) {
        "SET" => return set(mode, reading, first, text),
        // Anything else begins a block: `BEGIN NOT ATOMIC`, or any statement in Oracle's mode.
        "BEGIN" if first.is_all && is_one_of_or_none(first.word(1), "WORK") => {
            return Ok(Statement::Begin);
        }
        "BEGIN" => {}
        "START" if first.word(1) == "TRANSACTION" => {
            return match says_write(reading, text) && mode == Mode::ReadOnly {
                true => Err("START TRANSACTION READ WRITE".to_owned()),
                false => Ok(Statement::Begin),
            };
        }
        "START" => {}
        "COMMIT" => return Ok(Statement::Commit { chain }),
        "SAVEPOINT" if mode == Mode::Rollback => return Ok(Statement::Savepoint),
        "ROLLBACK" if !first.has("TO") => return Ok(Statement::Rollback { chain }),
        "ANALYZE" if !is_one_of(first.word(1), OF_TABLES) => return Ok(with_write(text)),
        "WITH" => return Ok(with_write(text)),
        "CREATE" | "DROP" if mode == Mode::Rollback && is_temporary(first) => {
            return match anywhere(text).any(|run| is_any(run, OTHERS_ROWS)) {
                true => Err(first.title()),
                false => Ok(Statement::Writes),
            };
        }
        _ if first.is(READ) => return Ok(Statement::Plain),
        _ if first.is(WRITE) || mode == Mode::Rollback && first.is(UNDONE) => {
            return Ok(Statement::Writes);
        }
        _ => {}
    }
    Err(match mode {
        Mode::Rollback if first.is(COMMITS) => {
            format!("{}, which commits by itself,", first.title())
        }
        _ => first.title(),
    })
}

/// Classifies a statement that may contain another one.
fn with_write(text: &[u8]) -> Statement {
    match anywhere(text).any(|run| is_any(run, WRITE)) {
        true => Statement::Writes,
        false => Statement::Plain,
    }
}

fn is_one_of_or_none(word: &str, words: &str) -> bool {
    word.is_empty() || is_one_of(word, words)
}

/// Returns whether the statement creates or drops a temporary table.
fn is_temporary(first: &Beginning) -> bool {
    let is_replaced = first.word(1) == "OR";
    first.word(if is_replaced { 3 } else { 1 }) == "TEMPORARY"
}

/// Returns whether a `WRITE` occurs outside strings and comments.
fn says_write(reading: Reading, text: &[u8]) -> bool {
    match each_way(reading, text) {
        Some(ways) => ways.iter().flatten().any(|token| token.is_word("WRITE")),
        None => has_word(text, "WRITE"),
    }
}

/// Checks `SET`. An attempt to lift the mode has no effect, as the mode is set again, but is
/// refused.
fn set(mode: Mode, reading: Reading, first: &Beginning, text: &[u8]) -> Result<Statement, String> {
    // These change accounts and the server.
    if is_one_of(first.word(1), "DEFAULT PASSWORD RESOURCE") {
        return Err(first.title());
    }
    let name = |found: &[u8]| {
        format!(
            "SET {}",
            String::from_utf8_lossy(found).to_ascii_lowercase()
        )
    };
    let Some(ways) = each_way(reading, text) else {
        let reaching = REACHING.into_iter().find(|word| has_word(text, word));
        return Err(reaching.map_or_else(|| first.title(), |word| name(word.as_bytes())));
    };
    if first.word(1) == "STATEMENT" {
        let is_sent = ways.iter().all(|way| set_statement(way));
        return match is_sent {
            true => Ok(with_write(text)),
            false => Err("SET STATEMENT".to_owned()),
        };
    }
    if mode == Mode::ReadOnly && first.has("TRANSACTION") && says_write(reading, text) {
        return Err("SET TRANSACTION READ WRITE".to_owned());
    }
    let mut shifts = false;
    for target in ways.iter().flat_map(|way| targets(way)) {
        let assigned = target.iter().position(|token| token.is_mark(b'='));
        let (set, value) = target.split_at(assigned.unwrap_or(target.len()));
        // A user-defined variable.
        if matches!(set, [at, next, ..] if at.is_mark(b'@') && !next.is_mark(b'@')) {
            continue;
        }
        let has = |word: &str| set.iter().any(|token| is_any(token.text, word));
        if let Some(word) = REACHING.into_iter().find(|word| has(word)) {
            return Err(name(word.as_bytes()));
        }
        shifts = shifts || may_shift(set, value);
        if mode == Mode::Rollback {
            continue;
        }
        // The server looks names up with a collation that ignores accents.
        if !set.iter().all(|token| token.text.is_ascii()) {
            return Err(first.title());
        }
        let last = target.last().map_or(&[][..], |token| token.text);
        if let Some(mode) = MODES.split(' ').find(|mode| has(mode))
            && !is_any(last, "1 ON TRUE")
        {
            return Err(name(mode.as_bytes()));
        }
    }
    Ok(match autocommit(text) {
        Some(is_on) if mode == Mode::Rollback => Statement::Autocommit(is_on),
        _ if shifts => Statement::SetsCharset,
        _ => Statement::Sets,
    })
}

/// Returns whether this sets the character set of statements, possibly to one in which ASCII bytes
/// are part of other characters.
fn may_shift(set: &[Token], value: &[Token]) -> bool {
    let is_client = |token: &Token| is_any(token.text, "CHARACTER_SET_CLIENT");
    let charset = match set {
        [names, rest @ ..] if names.is_word("NAMES") || names.is_word("CHARSET") => rest.first(),
        // The server accepts `CHAR` for `CHARACTER`.
        [character, set, rest @ ..]
            if is_any(character.text, "CHAR CHARACTER") && set.is_word("SET") =>
        {
            rest.first()
        }
        _ if set.iter().any(is_client) => value.get(1).filter(|_| value.len() == 2),
        // The server looks names up with a collation that ignores accents.
        _ => return !set.iter().all(|token| token.text.is_ascii()),
    };
    !charset.is_some_and(|token| {
        let text = token.text.to_ascii_lowercase();
        token.kind != Kind::Mark && WHOLE.iter().any(|start| text.starts_with(start))
    })
}

/// The assignments of a `SET`, which are separated by commas.
fn targets<'a, 'b>(tokens: &'b [Token<'a>]) -> Vec<&'b [Token<'a>]> {
    let mut depth = 0_usize;
    let start = tokens.iter().position(|token| token.is_word("SET"));
    let parts = tokens[start.map_or(0, |at| at + 1)..].split(|token| {
        if token.is_mark(b'(') {
            depth += 1;
        } else if token.is_mark(b')') {
            depth = depth.saturating_sub(1);
        }
        depth == 0 && token.is_mark(b',')
    });
    parts.collect()
}

/// The variables of the read-only mode.
const MODES: &str = "TX_READ_ONLY TRANSACTION_READ_ONLY";

/// Returns whether MariaDB's `SET STATEMENT … FOR …` may be sent: its settings apply to the
/// statement after `FOR`.
fn set_statement(tokens: &[Token]) -> bool {
    let Some(end) = tokens.iter().position(|token| token.is_word("FOR")) else {
        return false;
    };
    let (sets, statement) = (&tokens[..end], &tokens[end + 1..]);
    // The server looks names up with a collation that ignores accents.
    let is_plain = |token: &Token| {
        token.kind == Kind::Text || token.text.is_ascii() && !is_any(token.text, MODES)
    };
    // Otherwise `FOR` may be part of an expression.
    let is_expression = sets.iter().any(|token| token.is_mark(b'('));
    let verb = statement.iter().find(|token| !token.is_mark(b'('));
    let verb = verb.map_or_else(String::new, |token| {
        String::from_utf8_lossy(token.text).to_ascii_uppercase()
    });
    let is_sent = is_one_of(&verb, READ) && verb != "SET" || is_one_of(&verb, WRITE);
    is_sent && !is_expression && sets.iter().all(is_plain)
}

/// Returns whether a run of letters is one of these words.
fn is_any(run: &[u8], words: &str) -> bool {
    words
        .split(' ')
        .any(|word| run.eq_ignore_ascii_case(word.as_bytes()))
}

/// The value that a `SET` of `autocommit` alone assigns.
fn autocommit(text: &[u8]) -> Option<bool> {
    let mut runs = anywhere(text)
        .skip(1)
        .skip_while(|run| is_any(run, "SESSION LOCAL"));
    let is_it = is_any(runs.next()?, "AUTOCOMMIT");
    let value = runs.next()?;
    (is_it && runs.next().is_none()).then_some(!is_any(value, "0 OFF FALSE"))
}

/// Refuses `INTO OUTFILE` and `INTO DUMPFILE`, which write files on the server.
fn writes_no_file(reading: Reading, text: &[u8]) -> Result<(), String> {
    let names = ["OUTFILE", "DUMPFILE"];
    if !anywhere(text).any(|run| names.iter().any(|name| ends_with(run, name))) {
        return Ok(());
    }
    let is_into = each_way(reading, text).is_none_or(|ways| {
        ways.into_iter().any(|mut way| {
            // Non-ASCII bytes may be white space.
            way.retain(|token| token.kind != Kind::Mark || token.text.is_ascii());
            way.windows(2).enumerate().any(|(at, pair)| {
                pair[0].is_word("INTO")
                    && pair[1].kind == Kind::Word
                    && names.iter().any(|name| pair[1].is_word(name))
                    // The file name is a string.
                    && way.get(at + 2).is_none_or(|next| next.kind != Kind::Mark)
            })
        })
    });
    match is_into {
        true => Err("INTO OUTFILE".to_owned()),
        false => Ok(()),
    }
}
