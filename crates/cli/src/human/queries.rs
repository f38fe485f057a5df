//! Database statements as a table, and the rows they changed.

use altair_engine::{EvalResult, RowChanges};

use super::{Theme, line};
use crate::escape;

/// The most statements shown. The rest are only counted.
const NAMED: usize = 20;
/// The most characters of a statement shown.
const SQL_MAX: usize = 100;
/// The most tables named.
const TABLES: usize = 20;

/// Appends the statements and changes, if they were requested.
pub fn append(out: &mut String, result: &EvalResult, theme: Theme) {
    let Some(queries) = &result.diagnostics.queries else {
        return;
    };
    let more = result.diagnostics.queries_more.unwrap_or_default();
    let sum =
        |of: fn(&altair_engine::Query) -> u64| queries.iter().map(of).fold(0, u64::saturating_add);
    let times = sum(|query| query.times).saturating_add(more.times);
    let ms = queries.iter().map(|query| query.ms).sum::<f64>() + more.ms;
    if times == 0 {
        line(out, 1, &theme.dim("queries: none"));
        return;
    }
    line(
        out,
        1,
        &theme.notice(&format!("queries: {times} in {ms:.1} ms")),
    );
    line(
        out,
        2,
        &theme.dim(&format!("{:>6} {:>7} {:>8}", "times", "rows", "ms")),
    );
    for query in queries.iter().take(NAMED) {
        let figures = format!("{:>6} {:>7} {:>8.1}", query.times, query.rows, query.ms);
        let at = query
            .at
            .as_deref()
            .map(|at| format!("  {}", escape::line(at)));
        let at = theme.dim(&at.unwrap_or_default());
        line(out, 2, &format!("{figures}  {}{at}", in_a_line(&query.sql)));
    }
    let shown = queries.iter().take(NAMED).map(|query| query.times);
    let left = times.saturating_sub(shown.fold(0, u64::saturating_add));
    if left > 0 {
        line(out, 2, &theme.dim(&format!("… and {left} more")));
    }
    changes(out, result, theme);
}

fn changes(out: &mut String, result: &EvalResult, theme: Theme) {
    let changes = &result.diagnostics.database_changes;
    if changes.is_empty() {
        return;
    }
    line(out, 1, &theme.notice("rows changed in databases:"));
    for (table, rows) in changes.iter().take(TABLES) {
        line(
            out,
            2,
            &format!("{}: {}", escape::line(table), described(*rows)),
        );
    }
    if changes.len() > TABLES {
        line(
            out,
            2,
            &theme.dim(&format!("… and {} more tables", changes.len() - TABLES)),
        );
    }
}

fn described(rows: RowChanges) -> String {
    let kinds = [
        (rows.inserted, "inserted"),
        (rows.updated, "updated"),
        (rows.deleted, "deleted"),
    ];
    let kinds = kinds.iter().filter(|(count, _)| *count > 0);
    let kinds: Vec<String> = kinds
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    kinds.join(", ")
}

/// A statement shortened to one line.
fn in_a_line(sql: &str) -> String {
    let words: Vec<&str> = sql.split_whitespace().collect();
    let text = words.join(" ");
    let shown: String = text.chars().take(SQL_MAX).collect();
    let mark = if shown.len() < text.len() { "…" } else { "" };
    escape::line(&format!("{shown}{mark}"))
}
