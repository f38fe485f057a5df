//! A run's own record of its statements.

use std::collections::{BTreeMap, HashMap};

use super::effect::{self, Effect};
use super::{Entry, LISTED_MAX, NAME_MAX, News, PLACES, RowChanges, SQL_MAX, TABLES_MAX};
use crate::encode::{TRUNCATED, shorten};
use crate::sql::{Dialect, Reading};

/// The maximum number of texts to remember.
const KNOWN_MAX: usize = 1_000;
/// The maximum number of names of tables and savepoints.
const NAMES_MAX: usize = 1_000;
/// The maximum number of savepoints to track per session.
const MARKS_MAX: usize = 100;
/// Nanoseconds between two news; a new statement is reported at once.
const PAUSE_NS: u64 = 20_000_000;

/// What is known about a statement's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text {
    /// Its place in the list.
    place: u16,
    does: Does,
    /// The number of the name it affects.
    name: u32,
}

/// [`Effect`] without the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    Nothing,
    Insert,
    Update,
    Delete,
    Begin,
    Commit,
    Rollback,
    Savepoint,
    RollbackTo,
    AutocommitOn,
    AutocommitOff,
}

const ALL: [Does; 11] = [
    Does::Nothing,
    Does::Insert,
    Does::Update,
    Does::Delete,
    Does::Begin,
    Does::Commit,
    Does::Rollback,
    Does::Savepoint,
    Does::RollbackTo,
    Does::AutocommitOn,
    Does::AutocommitOff,
];

impl Text {
    /// Encodes it as a number other than 0, for storage elsewhere.
    #[must_use]
    pub fn number(self) -> u64 {
        let does = ALL.iter().position(|it| *it == self.does).unwrap_or(0);
        u64::from(self.name) << 32 | (does as u64) << 16 | (u64::from(self.place) + 1)
    }

    /// Decodes such a number.
    #[must_use]
    pub fn of(number: u64) -> Option<Self> {
        let part = |shift: u32| u16::try_from(number >> shift & 0xffff).unwrap_or(0);
        Some(Self {
            place: part(0).checked_sub(1)?,
            does: *ALL.get(usize::from(part(16)))?,
            name: u32::try_from(number >> 32).ok()?,
        })
    }
}

/// Changes by the number of a table's name.
type Changes = BTreeMap<u32, RowChanges>;

/// What a session has changed.
#[derive(Debug, Default)]
struct Session {
    changes: Changes,
    /// The changes at the beginning of the current transaction.
    before: Option<Changes>,
    /// Every statement outside a transaction begins one (MySQL's `autocommit` is off).
    is_manual: bool,
    /// The changes at each savepoint.
    marks: Vec<(u32, Changes)>,
    /// Something was undone that a server may count nevertheless.
    has_undone: bool,
}

/// A statement in the list.
#[derive(Debug, Default)]
struct Place {
    entry: Entry,
    /// Shown as soon as another text has the same shape.
    shape: Option<Vec<u8>>,
    /// The host knows that the answer is still missing.
    is_told_open: bool,
    is_dirty: bool,
}

/// The record of a run's statements.
#[derive(Debug, Default)]
pub struct Recorder {
    places: Vec<Place>,
    /// By shape, or by the whole text.
    by_shape: HashMap<Vec<u8>, u16>,
    known: HashMap<Vec<u8>, Text>,
    names: Vec<String>,
    by_name: HashMap<String, u32>,
    sessions: HashMap<usize, Session>,
    /// Changes of sessions that have ended.
    ended: Changes,
    told_ns: u64,
}

impl Recorder {
    /// Analyses a text. `None` if it is not a statement of the application.
    pub fn text(&mut self, dialect: Dialect, reading: Reading, text: &[u8]) -> Option<Text> {
        // Longer texts count as equal if they have the same beginning and length.
        let head = &text[..text.len().min(SQL_MAX)];
        let mut key = head.to_vec();
        if text.len() > SQL_MAX {
            key.extend(text.len().to_ne_bytes());
        }
        if let Some(known) = self.known.get(&key) {
            return Some(*known);
        }
        let (effect, shape) = effect::of(dialect, reading, head);
        if effect == Effect::Deallocate {
            return None;
        }
        let text = shown(head, text.len() > SQL_MAX);
        let place = self.place_of(shape.as_ref().unwrap_or(&key), text, shape.as_ref());
        let (does, name) = self.does(effect);
        let known = Text { place, does, name };
        if self.known.len() < KNOWN_MAX {
            self.known.insert(key, known);
        }
        Some(known)
    }

    fn place_of(&mut self, key: &[u8], text: String, shape: Option<&Vec<u8>>) -> u16 {
        if let Some(place) = self.by_shape.get(key) {
            // This text differs from the first one, otherwise it would be known.
            if let Some(known) = self.places.get_mut(usize::from(*place))
                && let Some(shape) = known.shape.take()
            {
                known.entry.sql = shown(&shape, false);
                known.is_dirty = true;
            }
            return *place;
        }
        let at = self.places.len().min(LISTED_MAX);
        let place = u16::try_from(at).unwrap_or(u16::MAX);
        if self.places.len() == PLACES {
            return place;
        }
        let is_listed = at < LISTED_MAX;
        if is_listed {
            self.by_shape.insert(key.to_vec(), place);
        }
        self.places.push(Place {
            entry: Entry {
                place,
                sql: if is_listed { text } else { String::new() },
                ..Entry::default()
            },
            shape: shape.cloned().filter(|_| is_listed),
            ..Place::default()
        });
        place
    }

    fn does(&mut self, effect: Effect) -> (Does, u32) {
        let (does, name) = match effect {
            Effect::None | Effect::Deallocate => (Does::Nothing, None),
            Effect::Insert(table) => (Does::Insert, Some(table)),
            Effect::Update(table) => (Does::Update, Some(table)),
            Effect::Delete(table) => (Does::Delete, Some(table)),
            Effect::Begin => (Does::Begin, None),
            Effect::Commit => (Does::Commit, None),
            Effect::Rollback => (Does::Rollback, None),
            Effect::Savepoint(name) => (Does::Savepoint, Some(name)),
            Effect::RollbackTo(name) => (Does::RollbackTo, Some(name)),
            Effect::Autocommit(true) => (Does::AutocommitOn, None),
            Effect::Autocommit(false) => (Does::AutocommitOff, None),
        };
        match name.map(|name| self.number_of(&name)) {
            None => (does, 0),
            Some(Some(number)) => (does, number),
            Some(None) => (Does::Nothing, 0),
        }
    }

    fn number_of(&mut self, name: &str) -> Option<u32> {
        let name = shorten(name, NAME_MAX);
        if let Some(number) = self.by_name.get(&name) {
            return Some(*number);
        }
        let number = u32::try_from(self.names.len()).ok()?;
        if self.names.len() == NAMES_MAX {
            return None;
        }
        self.names.push(name.clone());
        self.by_name.insert(name, number);
        Some(number)
    }

    /// Records that a statement is sent. `at` finds the line that sends it, which may be unknown.
    /// Returns news if the host should get them now.
    pub fn begins(
        &mut self,
        text: Text,
        now_ns: u64,
        at: impl FnOnce() -> Option<String>,
    ) -> Option<News> {
        let place = self.places.get_mut(usize::from(text.place))?;
        let is_first = place.entry.times == 0;
        if is_first && usize::from(text.place) < LISTED_MAX {
            place.entry.at = at().map(|at| shorten(&at, NAME_MAX)).unwrap_or_default();
        }
        place.entry.times += 1;
        place.entry.since_ns = Some(now_ns);
        place.is_dirty = true;
        if !is_first && now_ns.saturating_sub(self.told_ns) < PAUSE_NS {
            return None;
        }
        place.is_told_open = true;
        self.news(now_ns)
    }

    /// Records an answer or a part of it: its number of rows and its nanoseconds. Transaction
    /// control takes effect with the first part.
    pub fn answers(
        &mut self,
        session: usize,
        text: Text,
        rows: u64,
        ns: u64,
        is_first: bool,
        now_ns: u64,
    ) -> Option<News> {
        let place = self.places.get_mut(usize::from(text.place))?;
        place.entry.rows = place.entry.rows.saturating_add(rows);
        if text.does != Does::Nothing {
            self.done(session, text, rows, is_first);
        }
        self.ends(text, ns, now_ns)
    }

    /// Records that a statement has failed.
    pub fn fails(&mut self, session: usize, text: Text, ns: u64, now_ns: u64) -> Option<News> {
        self.sessions.entry(session).or_default().has_undone = true;
        self.ends(text, ns, now_ns)
    }

    /// The server reports that a transaction was rolled back. It also reports this as the
    /// answer to the `COMMIT` of a failed transaction. Called before that answer is recorded.
    pub fn undoes(&mut self, session: usize, text: Text) {
        if matches!(text.does, Does::Commit | Does::Begin) {
            self.sessions.entry(session).or_default().roll_back();
        }
    }

    fn ends(&mut self, text: Text, ns: u64, now_ns: u64) -> Option<News> {
        let place = self.places.get_mut(usize::from(text.place))?;
        place.entry.us = place.entry.us.saturating_add(ns / 1000);
        place.entry.since_ns = None;
        place.is_dirty = true;
        let is_told_open = std::mem::take(&mut place.is_told_open);
        if !is_told_open && now_ns.saturating_sub(self.told_ns) < PAUSE_NS {
            return None;
        }
        self.news(now_ns)
    }

    fn done(&mut self, session: usize, text: Text, rows: u64, is_first: bool) {
        let session = self.sessions.entry(session).or_default();
        let one = |kind: Does| if text.does == kind { rows } else { 0 };
        match text.does {
            Does::Insert | Does::Update | Does::Delete if rows > 0 => {
                let changes = session.changes.entry(text.name).or_default();
                *changes = changes.plus(RowChanges {
                    inserted: one(Does::Insert),
                    updated: one(Does::Update),
                    deleted: one(Does::Delete),
                });
            }
            _ if !is_first => {}
            Does::Nothing | Does::Insert | Does::Update | Does::Delete => {}
            Does::Begin => session.begin(),
            Does::Commit => session.commit(),
            Does::Rollback => session.roll_back(),
            Does::Savepoint => {
                session.marks.retain(|(name, _)| *name != text.name);
                if session.marks.len() < MARKS_MAX {
                    session.marks.push((text.name, session.changes.clone()));
                }
            }
            Does::RollbackTo => session.roll_back_to(text.name),
            Does::AutocommitOn => {
                session.is_manual = false;
                session.commit();
            }
            Does::AutocommitOff => {
                session.is_manual = true;
                session.before = Some(session.changes.clone());
            }
        }
    }

    /// Replaces a session's known changes of its tables by the server's own counts, which include
    /// triggers and functions. Ignored once something was undone, because a server counts that,
    /// too.
    pub fn counted(&mut self, session: usize, is_first: bool, table: &str, rows: RowChanges) {
        let number = self.number_of(table);
        let session = self.sessions.entry(session).or_default();
        if session.has_undone {
            return;
        }
        if is_first {
            session.changes.clear();
        }
        session.changes.extend(number.map(|number| (number, rows)));
    }

    /// Records that a session has ended.
    pub fn session_ends(&mut self, session: usize) {
        if let Some(session) = self.sessions.remove(&session) {
            merge(&mut self.ended, &session.changes);
        }
    }

    /// Returns the remaining news at the end of the run.
    pub fn last_news(&mut self, now_ns: u64) -> Option<News> {
        self.news(now_ns)
    }

    fn news(&mut self, now_ns: u64) -> Option<News> {
        self.told_ns = now_ns;
        let dirty = self.places.iter_mut().filter(|place| place.is_dirty);
        let entries = dirty.filter(|place| place.entry.times > 0).map(|place| {
            place.is_dirty = false;
            place.entry.clone()
        });
        let entries: Vec<Entry> = entries.collect();
        let mut all = self.ended.clone();
        for session in self.sessions.values() {
            merge(&mut all, &session.changes);
        }
        let named = all.into_iter().filter_map(|(name, rows)| {
            let name = self.names.get(usize::try_from(name).ok()?)?;
            Some((name.clone(), rows))
        });
        Some(News {
            entries,
            changes: named.take(TABLES_MAX).collect(),
        })
    }
}

impl Session {
    fn begin(&mut self) {
        self.before = Some(self.changes.clone());
        self.marks.clear();
    }

    fn commit(&mut self) {
        self.before = self.is_manual.then(|| self.changes.clone());
        self.marks.clear();
    }

    fn roll_back(&mut self) {
        if let Some(before) = self.before.take() {
            self.changes = before;
        }
        self.has_undone = true;
        self.commit();
    }

    fn roll_back_to(&mut self, name: u32) {
        if let Some(at) = self.marks.iter().position(|(own, _)| *own == name) {
            self.marks.truncate(at + 1);
            self.changes = self.marks[at].1.clone();
        }
        self.has_undone = true;
    }
}

fn merge(into: &mut Changes, changes: &Changes) {
    for (table, rows) in changes {
        let all = into.entry(*table).or_default();
        *all = all.plus(*rows);
    }
}

fn shown(text: &[u8], is_cut: bool) -> String {
    let text = String::from_utf8_lossy(text);
    match is_cut && text.len() <= SQL_MAX {
        true => format!("{text}{TRUNCATED}"),
        false => shorten(&text, SQL_MAX),
    }
}
