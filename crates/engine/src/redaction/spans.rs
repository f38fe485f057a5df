//! Finds all secrets of a text in one pass, however many there are.
//!
//! An automaton for the forms of a hundred secrets takes milliseconds to build, and as long again
//! for each mebibyte of text. Here each position costs a multiplication and a bit test; only a
//! position that matches the first bytes of a form costs a search among the forms with these bytes.

use std::collections::HashMap;
use std::ops::Range;
use std::time::Instant;

use super::{SHORTEST, forms};

/// Minimum bytes of a secret's beginning that are replaced at the end of a truncated text: fewer
/// occur at the end of many texts.
pub(super) const HEAD_MIN: usize = 3;

/// Binary logarithm of the filter's size in bits: 32 KiB, which fits a processor's fastest cache.
const FILTER_BITS: u32 = 18;

/// Maximum bytes of the rare forms of all secrets, counting [`RARE_COST`] extra for each. A value
/// with every special character has some hundreds of them.
const RARE_MAX: usize = 4 << 20;
const RARE_COST: usize = 128;

/// Positions of a text between two checks of the clock.
const LOOK_AFTER: usize = 4096;

/// Finds all forms of all secrets at once.
pub(super) struct Finder {
    /// Sorted by their text.
    forms: Vec<Form>,
    /// A bit for the first bytes of each form.
    filter: Vec<u64>,
    /// First bytes → the forms that have them.
    beginnings: HashMap<[u8; SHORTEST], Range<usize>>,
    /// Bytes of the longest form.
    longest: usize,
}

struct Form {
    text: Vec<u8>,
    /// The index of the secret.
    of: usize,
    /// The longest other form that is a prefix of this one.
    within: Option<usize>,
}

impl Finder {
    /// Builds a finder for these values. Each has at least [`SHORTEST`] bytes, and comes with the
    /// index of its secret.
    pub(super) fn new<'a>(values: impl Iterator<Item = (usize, &'a [u8])>) -> Self {
        let mut sorted: Vec<(Vec<u8>, usize)> = Vec::new();
        let mut room = RARE_MAX;
        for (of, value) in values {
            let mut forms = forms::usual(value);
            for form in forms::rare(value) {
                let cost = form.len() + RARE_COST;
                if cost > room {
                    break;
                }
                if !forms.contains(&form) {
                    room -= cost;
                    forms.push(form);
                }
            }
            sorted.extend(forms.into_iter().map(|form| (form, of)));
        }
        sorted.sort();
        sorted.dedup_by(|later, first| later.0 == first.0);
        let longest = sorted.iter().map(|(text, _)| text.len()).max().unwrap_or(0);
        let mut filter = vec![0; 1 << (FILTER_BITS - 6)];
        let mut beginnings: HashMap<[u8; SHORTEST], Range<usize>> = HashMap::new();
        let mut forms: Vec<Form> = Vec::with_capacity(sorted.len());
        for (text, of) in sorted {
            let first = first_bytes(&text);
            let (word, bit) = place(first);
            filter[word] |= bit;
            let at = forms.len();
            beginnings.entry(first).or_insert(at..at).end = at + 1;
            // A prefix of a form sorts before it, and all forms between the two share this prefix.
            let mut within = forms.len().checked_sub(1);
            while let Some(at) = within
                && !text.starts_with(&forms[at].text)
            {
                within = forms[at].within;
            }
            forms.push(Form { text, of, within });
        }
        Self {
            forms,
            filter,
            beginnings,
            longest,
        }
    }

    /// The secrets in `text`: sorted, without overlaps, each with the secret that begins there. A
    /// truncated text (`is_cut`) may end with the beginning of one. `None` if `until` passed first.
    pub(super) fn spans(
        &self,
        text: &[u8],
        is_cut: bool,
        until: Option<Instant>,
    ) -> Option<Vec<(Range<usize>, usize)>> {
        let is_over = || until.is_some_and(|until| Instant::now() >= until);
        if is_over() {
            return None;
        }
        if self.forms.is_empty() {
            return Some(Vec::new());
        }
        let mut apart: Vec<(Range<usize>, usize)> = Vec::new();
        let mut add = |span: Range<usize>, of| match apart.last_mut() {
            Some((last, _)) if span.start < last.end => last.end = last.end.max(span.end),
            _ => apart.push((span, of)),
        };
        let head = is_cut.then(|| self.head_of_cut(text)).flatten();
        for start in 0..(text.len() + 1).saturating_sub(SHORTEST) {
            if start % LOOK_AFTER == LOOK_AFTER - 1 && is_over() {
                return None;
            }
            let first = first_bytes(&text[start..]);
            let (word, bit) = place(first);
            if self.filter[word] & bit != 0
                && let Some(form) = self.longest_at(first, &text[start..])
            {
                // The truncated secret at the end may begin before this one.
                if let Some((head, of)) = head.filter(|(head, _)| *head <= start) {
                    add(head..text.len(), of);
                }
                add(start..start + form.text.len(), form.of);
            }
        }
        if let Some((head, of)) = head {
            add(head..text.len(), of);
        }
        Some(apart)
    }

    /// Bytes of each form.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> impl Iterator<Item = usize> {
        self.forms.iter().map(|form| form.text.len())
    }

    /// The longest form that `text` begins with.
    fn longest_at(&self, first: [u8; SHORTEST], text: &[u8]) -> Option<&Form> {
        let range = self.beginnings.get(&first)?;
        let forms = &self.forms[range.clone()];
        let before = forms.partition_point(|form| form.text.as_slice() <= text);
        // Every form that is a prefix of `text` is the last form sorted before it, or a prefix of
        // that form.
        let mut at = range.start + before.checked_sub(1)?;
        loop {
            let form = &self.forms[at];
            if text.starts_with(&form.text) {
                return Some(form);
            }
            at = form.within?;
        }
    }

    /// The beginning of a secret at the end of a truncated text.
    fn head_of_cut(&self, text: &[u8]) -> Option<(usize, usize)> {
        self.head_at_end(text, HEAD_MIN)
            .or_else(|| self.head_at_end(without_padding(text), HEAD_MIN))
    }

    /// The position and the secret of the longest beginning of a secret, of at least `least` bytes,
    /// at the end of `text`.
    pub(super) fn head_at_end(&self, text: &[u8], least: usize) -> Option<(usize, usize)> {
        let first = text.len().saturating_sub(self.longest.saturating_sub(1));
        let last = (text.len() + 1).checked_sub(least)?;
        (first..last).find_map(|start| {
            let end = &text[start..];
            // A form equal to `end` is complete; only a longer one can continue.
            let at = self
                .forms
                .partition_point(|form| form.text.as_slice() <= end);
            let form = self.forms.get(at)?;
            form.text.starts_with(end).then_some((start, form.of))
        })
    }
}

/// The first [`SHORTEST`] bytes of a text, which has at least that many.
fn first_bytes(text: &[u8]) -> [u8; SHORTEST] {
    let mut first = [0; SHORTEST];
    first.copy_from_slice(&text[..SHORTEST]);
    first
}

/// The word and the bit of the filter for these first bytes.
fn place(first: [u8; SHORTEST]) -> (usize, u64) {
    let mut key = [0; 8];
    key[..SHORTEST].copy_from_slice(&first);
    // Knuth's multiplicative hashing: the highest bits depend on all of the key.
    let hash = u64::from_le_bytes(key).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - FILTER_BITS);
    ((hash >> 6) as usize, 1 << (hash & 63))
}

/// Padded base64 without its padding and its last character, which depends on where the data ends.
fn without_padding(text: &[u8]) -> &[u8] {
    match text {
        [whole @ .., _, b'=', b'='] | [whole @ .., _, b'='] => whole,
        whole => whole,
    }
}
