#![allow(clippy::unwrap_used)]

use std::time::Duration;

use super::collected::CollectedQueries;
use super::effect::{self, Effect};
use super::*;
use crate::sql::{Dialect, Reading};

const MS: u64 = 1_000_000;
const READING: Reading = Reading {
    plain_backslash: true,
    whole_ascii: true,
};

fn of(dialect: Dialect, text: &str) -> (Effect, Option<String>) {
    let (effect, shape) = effect::of(dialect, READING, text.as_bytes());
    (effect, shape.map(|shape| String::from_utf8(shape).unwrap()))
}

/// A run with one session, at some time.
#[derive(Default)]
struct Run {
    recorder: Recorder,
    now: u64,
    told: CollectedQueries,
    news: usize,
}

impl Run {
    fn hear(&mut self, news: Option<News>) {
        self.news += usize::from(news.is_some());
        if let Some(news) = news {
            self.told.take(news);
        }
    }

    fn ask(&mut self, text: &str, rows: u64) {
        self.ask_for(text, rows, MS);
    }

    fn ask_for(&mut self, text: &str, rows: u64, ns: u64) {
        let Some(text) = self.recorder.text(Dialect::MySql, READING, text.as_bytes()) else {
            return;
        };
        assert_eq!(Text::of(text.number()), Some(text));
        let news = self
            .recorder
            .begins(text, self.now, || Some("a.php:1".into()));
        self.hear(news);
        self.now += ns;
        let news = self.recorder.answers(1, text, rows, ns, true, self.now);
        self.hear(news);
    }

    fn end(mut self) -> super::collected::QueryReport {
        let news = self.recorder.last_news(self.now);
        self.hear(news);
        self.told.asked(None, Duration::from_secs(60))
    }

    /// Tables with their inserted, updated, deleted rows.
    fn changes(self) -> Vec<(String, u64, u64, u64)> {
        let changes = self.end().changes.into_iter();
        changes
            .map(|(table, rows)| (table, rows.inserted, rows.updated, rows.deleted))
            .collect()
    }
}

#[test]
fn what_a_statement_does_is_told_by_its_words() {
    let (insert, update, delete) = (Effect::Insert, Effect::Update, Effect::Delete);
    let mysql: &[(&str, Effect)] = &[
        ("INSERT INTO users VALUES (1)", insert("users".into())),
        (
            "/* x */ insert ignore users (a) VALUES (1)",
            insert("users".into()),
        ),
        (
            "REPLACE INTO `shop`.`users` VALUES (1)",
            insert("shop.users".into()),
        ),
        (
            "UPDATE LOW_PRIORITY users SET a = 1",
            update("users".into()),
        ),
        (
            "DELETE FROM users WHERE a = 'FROM x'",
            delete("users".into()),
        ),
        ("DELETE u FROM users u JOIN x ON 1", delete("u".into())),
        (
            "LOAD DATA INFILE 'x' INTO TABLE users",
            insert("users".into()),
        ),
        ("START TRANSACTION READ WRITE", Effect::Begin),
        ("COMMIT AND CHAIN", Effect::Begin),
        ("COMMIT AND NO CHAIN", Effect::Commit),
        (
            "ROLLBACK WORK TO SAVEPOINT x",
            Effect::RollbackTo("x".into()),
        ),
        ("ROLLBACK", Effect::Rollback),
        ("SET autocommit=0", Effect::Autocommit(false)),
        ("SET AUTOCOMMIT = 1", Effect::Autocommit(true)),
        ("SELECT 'INSERT INTO x'", Effect::None),
        (
            "INSERT INTO transaction VALUES (1)",
            insert("transaction".into()),
        ),
        // Its content is unknown.
        ("INSERT /*! 'INTO */ x VALUES (1)", Effect::None),
        ("", Effect::None),
    ];
    for (text, expected) in mysql {
        assert_eq!(of(Dialect::MySql, text).0, *expected, "{text}");
    }
    let postgresql: &[(&str, Effect)] = &[
        (
            "WITH a AS (DELETE FROM x RETURNING *) INSERT INTO y SELECT * FROM a",
            insert("y".into()),
        ),
        ("WITH a AS (SELECT 1) SELECT * FROM a", Effect::None),
        (
            "UPDATE ONLY public.\"Users\" SET a = $1",
            update("public.Users".into()),
        ),
        ("COPY users (a) FROM STDIN", insert("users".into())),
        ("COPY users TO STDOUT", Effect::None),
        ("DEALLOCATE pdo_stmt_1", Effect::Deallocate),
        ("END", Effect::Commit),
    ];
    for (text, expected) in postgresql {
        assert_eq!(of(Dialect::PostgreSql, text).0, *expected, "{text}");
    }
}

#[test]
fn a_shape_has_no_values() {
    let shape = |text| of(Dialect::PostgreSql, text).1;
    assert_eq!(
        shape("SELECT * FROM t WHERE a = 'O''Brien' AND b IN (1, 2.5) LIMIT 3").as_deref(),
        Some("SELECT * FROM t WHERE a = ? AND b IN (?, ?.?) LIMIT ?")
    );
    assert_eq!(
        shape("SELECT $x$a$x$, E'a' FROM t1").as_deref(),
        Some("SELECT $x$?$x$, E? FROM t1")
    );
    assert_eq!(shape("SELECT a FROM t WHERE b = $1").as_deref(), None);
    // The beginning of a long text.
    assert_eq!(shape("SELECT 1 + 'open").as_deref(), Some("SELECT ? + '?"));
    // A text that cannot be tokenized for certain stays whole.
    assert_eq!(shape("SELECT 1 + 2x").as_deref(), None);
}

#[test]
fn the_same_statement_is_one_entry_and_with_other_values_has_none() {
    let mut run = Run::default();
    for id in [3, 3, 3] {
        run.ask(&format!("SELECT a FROM t WHERE id = {id}"), 1);
    }
    for id in 0..31 {
        run.ask(&format!("SELECT b FROM t WHERE id = {id}"), 2);
    }
    let queries = run.end().queries;
    let told: Vec<_> = queries
        .iter()
        .map(|it| (it.sql.as_str(), it.times, it.rows))
        .collect();
    assert_eq!(
        told,
        [
            ("SELECT a FROM t WHERE id = 3", 3, 3),
            ("SELECT b FROM t WHERE id = ?", 31, 62)
        ]
    );
    assert!((queries[1].ms - 31.0).abs() < 0.01, "{queries:?}");
    assert_eq!(queries[0].at.as_deref(), Some("a.php:1"));
}

#[test]
fn of_more_than_fifty_there_are_counts_and_of_long_ones_the_beginning() {
    let mut run = Run::default();
    for table in 0..60 {
        run.ask(&format!("SELECT a FROM t_{table}_{}", "x".repeat(3000)), 1);
    }
    let asked = run.end();
    assert_eq!(asked.queries.len(), LISTED_MAX);
    assert!(
        asked
            .queries
            .iter()
            .all(|it| it.sql.starts_with("SELECT a FROM t_"))
    );
    assert!(
        asked
            .queries
            .iter()
            .all(|it| it.sql.len() < SQL_MAX + 20 && it.sql.ends_with("...(truncated)"))
    );
    let more = asked.more.unwrap();
    assert_eq!((more.times, more.rows), (10, 10));
}

#[test]
fn changes_are_those_that_were_not_rolled_back() {
    let mut run = Run::default();
    run.ask("INSERT INTO a VALUES (1)", 1);
    run.ask("ROLLBACK", 0); // no transaction is open
    run.ask("BEGIN", 0);
    run.ask("UPDATE a SET x = 1", 5);
    run.ask("SAVEPOINT one", 0);
    run.ask("DELETE FROM b", 7);
    run.ask("SAVEPOINT two", 0);
    run.ask("DELETE FROM c", 7);
    run.ask("ROLLBACK TO one", 0);
    run.ask("INSERT INTO b VALUES (1), (2)", 2);
    run.ask("COMMIT", 0);
    run.ask("START TRANSACTION", 0);
    run.ask("DELETE FROM a", 100);
    run.ask("ROLLBACK", 0);
    let pair = |name: &str, a, b, c| (name.to_owned(), a, b, c);
    assert_eq!(run.changes(), [pair("a", 1, 5, 0), pair("b", 2, 0, 0)]);

    let mut run = Run::default();
    run.ask("SET autocommit = 0", 0);
    run.ask("DELETE FROM a", 1);
    run.ask("COMMIT", 0);
    run.ask("DELETE FROM b", 1);
    run.ask("ROLLBACK", 0);
    run.ask("DELETE FROM c", 1);
    run.recorder.session_ends(1);
    assert_eq!(run.changes(), [pair("a", 0, 0, 1), pair("c", 0, 0, 1)]);
}

#[test]
fn what_the_server_counts_is_taken_where_nothing_was_undone() {
    let counted = RowChanges {
        inserted: 3,
        ..RowChanges::default()
    };
    let mut run = Run::default();
    run.ask("SELECT f()", 1);
    run.recorder.counted(1, true, "log", counted);
    assert_eq!(run.changes(), [("log".to_owned(), 3, 0, 0)]);

    let mut run = Run::default();
    run.ask("INSERT INTO log VALUES (1)", 1);
    let failed = run
        .recorder
        .text(Dialect::MySql, READING, b"INSERT INTO log VALUES (2)");
    let _ = run.recorder.fails(1, failed.unwrap(), MS, run.now);
    run.recorder.counted(1, true, "log", counted);
    assert_eq!(run.changes(), [("log".to_owned(), 1, 0, 0)]);
}

#[test]
fn a_host_hears_of_what_is_new_at_once_and_of_the_rest_now_and_then() {
    let mut run = Run::default();
    for _ in 0..1000 {
        run.ask_for("SELECT 1", 1, 10_000);
    }
    // 10 ms in all: news when it began and when it had ended for the first time.
    assert_eq!(run.news, 2);
    run.ask_for("SELECT 1", 1, 30 * MS);
    assert_eq!(run.news, 3);
    assert_eq!(run.end().queries[0].times, 1001);
}

#[test]
fn one_that_waits_for_its_answer_has_the_time_that_it_has_waited() {
    let mut run = Run {
        now: 5 * MS,
        ..Run::default()
    };
    let text = run
        .recorder
        .text(Dialect::MySql, READING, b"SELECT SLEEP(9)")
        .unwrap();
    let news = run.recorder.begins(text, run.now, || None);
    run.hear(news);
    let asked = run.told.asked(Some(105 * MS), Duration::from_secs(1));
    assert!((asked.queries[0].ms - 100.0).abs() < 0.01);
}

#[test]
fn a_host_takes_no_more_than_it_shows() {
    let mut told = CollectedQueries::default();
    let entry = |place| Entry {
        place,
        sql: "x".repeat(10_000),
        at: "y".repeat(10_000),
        times: u64::MAX,
        rows: u64::MAX,
        us: u64::MAX,
        since_ns: Some(0),
    };
    told.take(News {
        entries: (0..2000).map(entry).collect(),
        changes: (0..2000)
            .map(|n| {
                (
                    n.to_string(),
                    RowChanges::default().plus(RowChanges {
                        inserted: 1,
                        ..RowChanges::default()
                    }),
                )
            })
            .collect(),
    });
    let asked = told.asked(Some(u64::MAX), Duration::from_millis(7));
    assert_eq!(
        (asked.queries.len(), asked.changes.len()),
        (LISTED_MAX, TABLES_MAX)
    );
    assert!(
        asked
            .queries
            .iter()
            .all(|it| it.sql.len() < 2100 && it.ms <= 7.0)
    );
    assert!(
        asked
            .queries
            .iter()
            .all(|it| it.at.as_ref().unwrap().len() < 600)
    );
    assert!(asked.more.is_some());
}

#[test]
fn the_longest_news_fit_a_message() {
    let long = |place| Entry {
        place,
        sql: "\u{fffd}".repeat(SQL_MAX / 3) + "...(truncated)",
        at: "y".repeat(NAME_MAX + 20),
        times: u64::MAX,
        rows: u64::MAX,
        us: u64::MAX,
        since_ns: Some(u64::MAX),
    };
    let rows = RowChanges {
        inserted: u64::MAX,
        updated: u64::MAX,
        deleted: u64::MAX,
    };
    let places = u16::try_from(PLACES).unwrap();
    let news = News {
        entries: (0..places).map(long).collect(),
        changes: vec![("z".repeat(NAME_MAX + 20), rows); TABLES_MAX],
    };
    assert!(crate::channel::fits(&crate::channel::Message::Queries(
        news
    )));
}

#[test]
fn memory_is_bounded_whatever_is_asked() {
    let mut run = Run::default();
    for n in 0..20_000 {
        run.ask_for(&format!("INSERT INTO t{n} VALUES ({n})"), 1, 1);
    }
    let asked = run.end();
    assert_eq!(asked.queries.len(), LISTED_MAX);
    assert_eq!(asked.changes.len(), TABLES_MAX);
    assert_eq!(asked.more.unwrap().times, 20_000 - 50);
}
