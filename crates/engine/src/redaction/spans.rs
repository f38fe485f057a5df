//! Where secrets stand in a text: all of them in one pass, however many there are.
//!
//! An automaton for the forms of a hundred secrets takes some milliseconds to make, and as many for
//! a mebibyte of text. Here each place of the text costs a multiplication and a bit, and only where
//! a form's first bytes stand a search of those that begin with them.

use std::collections::HashMap;
use std::ops::Range;
use std::time::Instant;

use super::{SHORTEST, forms};

/// Bytes of a secret's beginning that are taken for it where a text is cut: fewer are found at the
/// end of many a text.
pub(super) const HEAD_MIN: usize = 3;

/// The filter has two to the power of this bits: 32 KiB, which a processor's fastest cache holds.
const FILTER_BITS: u32 = 18;

/// Bytes that rare forms of all secrets may have, with [`RARE_COST`] for each: there are some hundreds of
/// a value with every special character.
const RARE_MAX: usize = 4 << 20;
const RARE_COST: usize = 128;

/// Places of a text after which the clock is looked at.
const LOOK_AFTER: usize = 4096;

/// Finds all forms of all secrets at once.
pub(super) struct Finder {
    /// Sorted by their text.
    forms: Vec<Form>,
    /// A bit for the first bytes of each form.
    filter: Vec<u64>,
    /// First bytes → the forms that have them.
    beginnings: HashMap<[u8; SHORTEST], Range<usize>>,
    /// Bytes of the longest.
    longest: usize,
}

struct Form {
    text: Vec<u8>,
    /// The secret.
    of: usize,
    /// The longest other form that this one begins with.
    within: Option<usize>,
}

impl Finder {
    /// A finder for these values, each with its secret, and of [`SHORTEST`] bytes at least.
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
            // What a form begins with stands before it, and nothing else between the two.
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

    /// Where secrets are, in order and apart, each with the secret that begins there. In a text that
    /// is cut the beginning of one may stand at its end. `None` where that was not all `until` then.
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
                // The beginning of a longer one may stand before.
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

    /// The longest form that a text begins with.
    fn longest_at(&self, first: [u8; SHORTEST], text: &[u8]) -> Option<&Form> {
        let range = self.beginnings.get(&first)?;
        let forms = &self.forms[range.clone()];
        let before = forms.partition_point(|form| form.text.as_slice() <= text);
        // All that the text begins with is what the last one before it begins with.
        let mut at = range.start + before.checked_sub(1)?;
        loop {
            let form = &self.forms[at];
            if text.starts_with(&form.text) {
                return Some(form);
            }
            at = form.within?;
        }
    }

    /// The beginning of a secret at the end of a text that is cut there.
    fn head_of_cut(&self, text: &[u8]) -> Option<(usize, usize)> {
        self.head_at_end(text, HEAD_MIN)
            .or_else(|| self.head_at_end(without_padding(text), HEAD_MIN))
    }

    /// Where at the end of a text the beginning of a secret is, of at least so many bytes: the
    /// longest.
    pub(super) fn head_at_end(&self, text: &[u8], least: usize) -> Option<(usize, usize)> {
        let first = text.len().saturating_sub(self.longest.saturating_sub(1));
        let last = (text.len() + 1).checked_sub(least)?;
        (first..last).find_map(|start| {
            let end = &text[start..];
            // One that is all of it is no beginning; a longer one follows.
            let at = self
                .forms
                .partition_point(|form| form.text.as_slice() <= end);
            let form = self.forms.get(at)?;
            form.text.starts_with(end).then_some((start, form.of))
        })
    }
}

/// The first bytes of a text, which has so many at least.
fn first_bytes(text: &[u8]) -> [u8; SHORTEST] {
    let mut first = [0; SHORTEST];
    first.copy_from_slice(&text[..SHORTEST]);
    first
}

/// The place in the filter of what begins with these bytes.
fn place(first: [u8; SHORTEST]) -> (usize, u64) {
    let mut key = [0; 8];
    key[..SHORTEST].copy_from_slice(&first);
    // Knuth's multiplicative hashing: the highest bits depend on all of the key.
    let hash = u64::from_le_bytes(key).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - FILTER_BITS);
    ((hash >> 6) as usize, 1 << (hash & 63))
}

/// `text` without what the end of its bytes has made of its last characters, where it is base64.
fn without_padding(text: &[u8]) -> &[u8] {
    match text {
        [whole @ .., _, b'=', b'='] | [whole @ .., _, b'='] => whole,
        whole => whole,
    }
}
