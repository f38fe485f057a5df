//! The names that are nearest to one that does not exist.

use super::{NAME_MAX_BYTES, one_line};

/// The number of names to show.
const SHOWN: usize = 3;
/// How much further than the nearest name another one may be.
const SPREAD: usize = 2;
/// From this score on, names only have a part in common.
const LOOSE: usize = 100;
/// The shortest name, in bytes, that is looked for inside of others.
const PART_MIN: usize = 4;

/// The best of the names that were offered. Costs little for each name: most are ruled out by their
/// length and letters, and nothing is kept of them.
#[derive(Debug)]
pub struct Nearest {
    wanted: String,
    letters: u64,
    most: usize,
    loosely: bool,
    best: Vec<(usize, String)>,
}

impl Nearest {
    /// Looks for names like `wanted`.
    #[must_use]
    pub fn to(wanted: &[u8]) -> Self {
        let wanted = match wanted.len() <= NAME_MAX_BYTES {
            true => plain(wanted),
            false => String::new(),
        };
        Self {
            letters: letters(wanted.as_bytes()),
            most: match wanted.len() {
                0..=2 => 0,
                3..=5 => 1,
                6..=8 => 2,
                _ => 3,
            },
            wanted,
            loosely: false,
            best: Vec::new(),
        }
    }

    /// Takes names that contain `wanted` or are contained in it, too, where none is nearer.
    #[must_use]
    pub fn or_a_part(mut self) -> Self {
        self.loosely = true;
        self
    }

    /// Offers a name.
    pub fn offer(&mut self, name: &[u8]) {
        self.offer_as(name, name, 0, usize::MAX);
    }

    /// Offers the name `compared`, shown as `shown`. It may differ in at most `most` edits, and is
    /// `further` steps further away than it looks.
    pub fn offer_as(&mut self, compared: &[u8], shown: &[u8], further: usize, most: usize) {
        if self.wanted.is_empty() || shown.len() > NAME_MAX_BYTES || shown.is_empty() {
            return;
        }
        if let Some(score) = self.score(compared, most) {
            self.keep(score + further, shown);
        }
    }

    fn score(&self, name: &[u8], most: usize) -> Option<usize> {
        let most = self.most.min(most);
        let different = (self.letters ^ letters(name)).count_ones() as usize;
        let marks = name.iter().filter(|byte| is_mark(**byte)).count();
        let apart = (name.len() - marks).abs_diff(self.wanted.len());
        // An edit changes at most two letters, of which one is gone and one is new.
        let may_be_near = apart <= most && different <= 2 * most;
        if !may_be_near && !self.loosely {
            return None;
        }
        let name = plain(name);
        if may_be_near {
            let edits = strsim::osa_distance(&self.wanted, &name);
            if edits <= most {
                return Some(2 * edits);
            }
        }
        let shorter = name.len().min(self.wanted.len());
        let is_part = || name.contains(&self.wanted) || self.wanted.contains(&name);
        (self.loosely && shorter >= PART_MIN && is_part()).then_some(LOOSE + apart)
    }

    fn keep(&mut self, score: usize, shown: &[u8]) {
        let shown = one_line(&String::from_utf8_lossy(shown), NAME_MAX_BYTES);
        let at = match self.best.iter().position(|(_, name)| *name == shown) {
            Some(at) if self.best[at].0 <= score => return,
            Some(at) => at,
            None => {
                self.best.push((score, String::new()));
                self.best.len() - 1
            }
        };
        self.best[at] = (score, shown);
        self.best.sort();
        self.best.truncate(SHOWN);
    }

    /// The nearest names, the nearest first.
    #[must_use]
    pub fn names(self) -> Vec<String> {
        let Some(nearest) = self.best.first().map(|(score, _)| *score) else {
            return Vec::new();
        };
        let far = match nearest < LOOSE {
            true => nearest + SPREAD,
            false => usize::MAX,
        };
        let near = self.best.into_iter().filter(|(score, _)| *score <= far);
        near.map(|(_, name)| name).collect()
    }
}

/// A name without what people mistake most: `createdAt` and `created_at` are the same.
fn plain(name: &[u8]) -> String {
    let kept = name.iter().filter(|byte| !is_mark(**byte));
    let kept: Vec<u8> = kept.map(u8::to_ascii_lowercase).collect();
    String::from_utf8(kept)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn is_mark(byte: u8) -> bool {
    byte == b'_' || byte == b'-'
}

/// The letters of a name as a set, for a first look.
fn letters(name: &[u8]) -> u64 {
    let kept = name.iter().filter(|byte| !is_mark(**byte));
    kept.fold(0, |set, byte| set | 1 << (byte.to_ascii_lowercase() & 63))
}
