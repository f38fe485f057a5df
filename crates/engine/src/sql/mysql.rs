//! MySQL and MariaDB.
//!
//! In a session that only reads, each statement comes after `SET SESSION TRANSACTION READ ONLY` or is in
//! a transaction that the server calls read-only. The server refuses DML and DDL then, of temporary
//! tables, too, functions that write, `FOR UPDATE`, and what is prepared or executed from a text. It does
//! not refuse `CALL`, `FLUSH`, `KILL`, `LOCK TABLES … READ`, `ANALYZE TABLE`, `XA`, or what reaches beyond
//! the session.
//!
//! One that is rolled back is in an XA transaction, in which the server refuses whatever would commit:
//! `COMMIT`, DDL, `LOCK TABLES`, also within procedures.

use super::lexer::{Kind, Token, each_way};
use super::words::{
    Beginning, Comment, Versioned, anywhere, comment, ends_with, has_word, is_one_of,
};
use super::{Dialect, Mode, Reading, Statement};

/// What reads, or is about transactions. `LOCK` is not here: it stops the application's writers.
const READ: &str = "\
    BEGIN CHECKSUM COMMIT DESC DESCRIBE DO EXPLAIN GET HELP RELEASE ROLLBACK SAVEPOINT SELECT SET SHOW \
    START TABLE UNLOCK USE VALUES WITH";

/// What the server refuses in a session that only reads.
const WRITE: &str = "DELETE INSERT REPLACE UPDATE";

/// What can be rolled back beside these.
const UNDONE: &str = "CALL LOAD";

/// What commits by itself.
const COMMITS: &str = "\
    ALTER ANALYZE CACHE CHECK CREATE DROP FLUSH GRANT INSTALL LOCK OPTIMIZE RENAME REPAIR RESET REVOKE \
    START TRUNCATE UNINSTALL XA";

/// Engines of tables whose rows are other tables' or other servers', also where the table is temporary.
const OTHERS_ROWS: &str = "CONNECT FEDERATED FEDERATEDX MERGE MRG_MYISAM S3 SPIDER";

/// What MariaDB's `ANALYZE` is followed by where it is about a table. Otherwise it is about a statement.
const OF_TABLES: &str = "LOCAL NO_WRITE_TO_BINLOG TABLE TABLES";

/// Words of `SET` that reach beyond the session, and what writes the files that a debug build traces to.
const REACHING: [&str; 5] = ["GLOBAL", "PERSIST", "PERSIST_ONLY", "DEBUG", "DEBUG_DBUG"];

/// What names of character sets begin with in which each byte below 128 is a character of its own.
const WHOLE: [&[u8]; 6] = [b"utf8", b"latin", b"ascii", b"binary", b"cp125", b"koi8"];

/// Looks at one statement.
pub(super) fn statement(mode: Mode, reading: Reading, text: &[u8]) -> Result<Statement, String> {
    writes_no_file(reading, text)?;
    if hides_its_beginning(text) {
        return Err("a statement behind comments for versions".to_owned());
    }
    let executed = Beginning::of(Dialect::MySql, Versioned::Executed, text);
    let statement = begun(mode, reading, &executed, text)?;
    // The server executes a comment for its version, or it does not.
    let skipped = Beginning::of(Dialect::MySql, Versioned::Skipped, text);
    if begun(mode, reading, &skipped, text)? != statement && !skipped.is_empty() {
        return Err(executed.title());
    }
    Ok(statement)
}

/// Whether there is more before the first word than one comment that the server executes or not: of several
/// it may execute some, and they may be in each other.
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

/// What a statement is that may have another one in it.
fn with_write(text: &[u8]) -> Statement {
    match anywhere(text).any(|run| is_any(run, WRITE)) {
        true => Statement::Writes,
        false => Statement::Plain,
    }
}

fn is_one_of_or_none(word: &str, words: &str) -> bool {
    word.is_empty() || is_one_of(word, words)
}

/// Whether what is made or dropped is a temporary table.
fn is_temporary(first: &Beginning) -> bool {
    let is_replaced = first.word(1) == "OR";
    first.word(if is_replaced { 3 } else { 1 }) == "TEMPORARY"
}

/// Whether there is a `WRITE` that is no part of a string or a comment.
fn says_write(reading: Reading, text: &[u8]) -> bool {
    match each_way(reading, text) {
        Some(ways) => ways.iter().flatten().any(|piece| piece.is_word("WRITE")),
        None => has_word(text, "WRITE"),
    }
}

/// Looks at `SET`. What lifts the mode has no effect, as it is set again, but is meant to have one.
fn set(mode: Mode, reading: Reading, first: &Beginning, text: &[u8]) -> Result<Statement, String> {
    // They change accounts and the server.
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
        let assigned = target.iter().position(|piece| piece.is_mark(b'='));
        let (set, value) = target.split_at(assigned.unwrap_or(target.len()));
        // A variable of the session's user.
        if matches!(set, [at, next, ..] if at.is_mark(b'@') && !next.is_mark(b'@')) {
            continue;
        }
        let has = |word: &str| set.iter().any(|piece| is_any(piece.text, word));
        if let Some(word) = REACHING.into_iter().find(|word| has(word)) {
            return Err(name(word.as_bytes()));
        }
        shifts = shifts || may_shift(set, value);
        if mode == Mode::Rollback {
            continue;
        }
        // Names are found by a collation for which accents make no difference.
        if !set.iter().all(|piece| piece.text.is_ascii()) {
            return Err(first.title());
        }
        let last = target.last().map_or(&[][..], |piece| piece.text);
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

/// Whether what is set is the character set of statements, and may be one in which ASCII is a part of other
/// characters.
fn may_shift(set: &[Token], value: &[Token]) -> bool {
    let is_client = |piece: &Token| is_any(piece.text, "CHARACTER_SET_CLIENT");
    let charset = match set {
        [names, rest @ ..] if names.is_word("NAMES") || names.is_word("CHARSET") => rest.first(),
        // The server takes `CHAR` for `CHARACTER`.
        [character, set, rest @ ..]
            if is_any(character.text, "CHAR CHARACTER") && set.is_word("SET") =>
        {
            rest.first()
        }
        _ if set.iter().any(is_client) => value.get(1).filter(|_| value.len() == 2),
        // Names are found by a collation for which accents make no difference.
        _ => return !set.iter().all(|piece| piece.text.is_ascii()),
    };
    !charset.is_some_and(|piece| {
        let text = piece.text.to_ascii_lowercase();
        piece.kind != Kind::Mark && WHOLE.iter().any(|start| text.starts_with(start))
    })
}

/// What a `SET` sets: between it and the commas, each with what it is set to.
fn targets<'a, 'b>(pieces: &'b [Token<'a>]) -> Vec<&'b [Token<'a>]> {
    let mut depth = 0_usize;
    let start = pieces.iter().position(|piece| piece.is_word("SET"));
    let parts = pieces[start.map_or(0, |at| at + 1)..].split(|piece| {
        if piece.is_mark(b'(') {
            depth += 1;
        } else if piece.is_mark(b')') {
            depth = depth.saturating_sub(1);
        }
        depth == 0 && piece.is_mark(b',')
    });
    parts.collect()
}

/// The mode's names.
const MODES: &str = "TX_READ_ONLY TRANSACTION_READ_ONLY";

/// Whether MariaDB's `SET STATEMENT … FOR …` may be sent: what it sets holds for the statement after `FOR`.
fn set_statement(pieces: &[Token]) -> bool {
    let Some(end) = pieces.iter().position(|piece| piece.is_word("FOR")) else {
        return false;
    };
    let (sets, statement) = (&pieces[..end], &pieces[end + 1..]);
    // Names are found by a collation for which accents make no difference.
    let is_plain = |piece: &Token| {
        piece.kind == Kind::Text || piece.text.is_ascii() && !is_any(piece.text, MODES)
    };
    // Else `FOR` may be a part of an expression.
    let is_expression = sets.iter().any(|piece| piece.is_mark(b'('));
    let verb = statement.iter().find(|piece| !piece.is_mark(b'('));
    let verb = verb.map_or_else(String::new, |piece| {
        String::from_utf8_lossy(piece.text).to_ascii_uppercase()
    });
    let is_sent = is_one_of(&verb, READ) && verb != "SET" || is_one_of(&verb, WRITE);
    is_sent && !is_expression && sets.iter().all(is_plain)
}

/// Whether a run is one of these words.
fn is_any(run: &[u8], words: &str) -> bool {
    words
        .split(' ')
        .any(|word| run.eq_ignore_ascii_case(word.as_bytes()))
}

/// What a `SET` of nothing but `autocommit` sets it to.
fn autocommit(text: &[u8]) -> Option<bool> {
    let mut runs = anywhere(text)
        .skip(1)
        .skip_while(|run| is_any(run, "SESSION LOCAL"));
    let is_it = is_any(runs.next()?, "AUTOCOMMIT");
    let value = runs.next()?;
    (is_it && runs.next().is_none()).then_some(!is_any(value, "0 OFF FALSE"))
}

/// Refuses `INTO OUTFILE` and `INTO DUMPFILE`, which write files of the server's.
fn writes_no_file(reading: Reading, text: &[u8]) -> Result<(), String> {
    let names = ["OUTFILE", "DUMPFILE"];
    if !anywhere(text).any(|run| names.iter().any(|name| ends_with(run, name))) {
        return Ok(());
    }
    let is_into = each_way(reading, text).is_none_or(|ways| {
        ways.into_iter().any(|mut way| {
            // It may be white space.
            way.retain(|piece| piece.kind != Kind::Mark || piece.text.is_ascii());
            way.windows(2).enumerate().any(|(at, pair)| {
                pair[0].is_word("INTO")
                    && pair[1].kind == Kind::Word
                    && names.iter().any(|name| pair[1].is_word(name))
                    // The name of the file is a string.
                    && way.get(at + 2).is_none_or(|next| next.kind != Kind::Mark)
            })
        })
    });
    match is_into {
        true => Err("INTO OUTFILE".to_owned()),
        false => Ok(()),
    }
}
