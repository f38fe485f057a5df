//! The names that are nearest to one that does not exist.

use super::{NAME_MAX_BYTES, one_line};

/// The number of names to show.
const SHOWN: usize = 3;
/// How much further than the nearest name another one may be.
const SPREAD: usize = 2;
/// From this score on, names only have a part in common.
const LOOSE: usize = 100;
/// How many names are compared letter by letter. Keys of data may all look alike.
const DISTANCES_MAX: usize = 500;
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
    distances_left: usize,
    best: Vec<(usize, String)>,
    /// The name that is looked at, plain.
    name: Vec<u8>,
}

impl Nearest {
    /// Looks for names like `wanted`.
    #[must_use]
    pub fn to(wanted: &[u8]) -> Self {
        let mut name = Vec::with_capacity(NAME_MAX_BYTES);
        let letters = match wanted.len() <= NAME_MAX_BYTES {
            true => plain(wanted, &mut name),
            false => 0,
        };
        Self {
            letters,
            most: match name.len() {
                0..=2 => 0,
                3..=5 => 1,
                6..=8 => 2,
                _ => 3,
            },
            wanted: String::from_utf8_lossy(&name).into_owned(),
            loosely: false,
            distances_left: DISTANCES_MAX,
            best: Vec::new(),
            name,
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
        self.offer_as(name, name, 0);
    }

    /// Offers the name `compared`, shown as `shown`, which is `further` steps further away than it looks.
    pub fn offer_as(&mut self, compared: &[u8], shown: &[u8], further: usize) {
        if self.wanted.is_empty() || shown.len() > NAME_MAX_BYTES || shown.is_empty() {
            return;
        }
        if let Some(score) = self.score(compared) {
            self.keep(score + further, shown);
        }
    }

    fn score(&mut self, name: &[u8]) -> Option<usize> {
        let most = self.most;
        let letters = plain(name, &mut self.name);
        let apart = self.name.len().abs_diff(self.wanted.len());
        let different = (self.letters ^ letters).count_ones() as usize;
        // An edit changes at most two letters, of which one is gone and one is new.
        if apart <= most && different <= 2 * most {
            if self.name == self.wanted.as_bytes() {
                return Some(0);
            }
            if most > 0 && self.distances_left > 0 {
                self.distances_left -= 1;
                let name = String::from_utf8_lossy(&self.name);
                let edits = strsim::osa_distance(&self.wanted, &name);
                if edits <= most {
                    return Some(2 * edits);
                }
            }
        }
        let has_near = self.best.first().is_some_and(|(score, _)| *score < LOOSE);
        (self.loosely && !has_near && self.is_part(letters)).then_some(LOOSE + apart)
    }

    /// Whether one is a part of the other.
    fn is_part(&self, letters: u64) -> bool {
        let (name, wanted) = (self.name.as_slice(), self.wanted.as_bytes());
        let (part, of_part, whole, of_whole) = match name.len() < wanted.len() {
            true => (name, letters, wanted, self.letters),
            false => (wanted, self.letters, name, letters),
        };
        part.len() >= PART_MIN
            && of_part & !of_whole == 0
            && whole.windows(part.len()).any(|window| window == part)
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

/// Writes a name to `plain` without what people mistake most: `createdAt` and `created_at` are the same.
/// Gives its letters as a set, for a first look.
fn plain(name: &[u8], plain: &mut Vec<u8>) -> u64 {
    plain.clear();
    let mut letters = 0;
    for byte in name {
        if !matches!(byte, b'_' | b'-') {
            let byte = byte.to_ascii_lowercase();
            plain.push(byte);
            letters |= 1 << (byte & 63);
        }
    }
    letters
}
