//! Where secrets stand in a text: all of them in one pass, however many there are.

use std::ops::Range;

use aho_corasick::AhoCorasick;

use super::forms;

/// Bytes of a secret's beginning that are taken for it where a text is cut: fewer are found at the
/// end of many a text.
const HEAD_MIN: usize = 3;

/// Finds all forms of all secrets at once.
pub(super) struct Finder {
    automaton: AhoCorasick,
    /// Of each form, in the automaton's order: the secret.
    of: Vec<usize>,
    /// All forms, sorted, each with its secret.
    sorted: Vec<(Vec<u8>, usize)>,
    /// Bytes of the longest.
    longest: usize,
}

impl Finder {
    /// A finder for these values; `None` where they are more than it can hold.
    pub(super) fn new<'a>(values: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let mut sorted: Vec<(Vec<u8>, usize)> = values
            .enumerate()
            .flat_map(|(of, value)| forms::of(value).into_iter().map(move |form| (form, of)))
            .collect();
        sorted.sort();
        sorted.dedup_by(|a, b| a.0 == b.0);
        Some(Self {
            automaton: AhoCorasick::new(sorted.iter().map(|(form, _)| form)).ok()?,
            of: sorted.iter().map(|(_, of)| *of).collect(),
            longest: sorted.iter().map(|(form, _)| form.len()).max().unwrap_or(0),
            sorted,
        })
    }

    /// Where secrets are, in order and apart, each with the secret that begins there. In a text that
    /// is cut the beginning of one may stand at its end.
    pub(super) fn spans(&self, text: &[u8], is_cut: bool) -> Vec<(Range<usize>, usize)> {
        let found = self.automaton.find_overlapping_iter(text).map(|found| {
            let of = self.of.get(found.pattern().as_usize()).copied();
            (found.range(), of.unwrap_or(0))
        });
        let tail = is_cut
            .then(|| {
                self.head_at_end(text, HEAD_MIN)
                    .or_else(|| self.head_at_end(without_padding(text), HEAD_MIN))
            })
            .flatten();
        let tail = tail.map(|(start, of)| (start..text.len(), of));
        let mut all: Vec<(Range<usize>, usize)> = found.chain(tail).collect();
        // Of those that begin at one place the longest is it.
        all.sort_by_key(|(span, of)| (span.start, std::cmp::Reverse(span.end), *of));
        let mut apart: Vec<(Range<usize>, usize)> = Vec::new();
        for (span, of) in all {
            match apart.last_mut() {
                Some((last, _)) if span.start < last.end => last.end = last.end.max(span.end),
                _ => apart.push((span, of)),
            }
        }
        apart
    }

    /// Where at the end of a text the beginning of a secret is, of at least so many bytes: the
    /// longest.
    pub(super) fn head_at_end(&self, text: &[u8], least: usize) -> Option<(usize, usize)> {
        let first = text.len().saturating_sub(self.longest.saturating_sub(1));
        let last = (text.len() + 1).checked_sub(least)?;
        (first..last).find_map(|start| {
            let end = &text[start..];
            let at = self
                .sorted
                .partition_point(|(form, _)| form.as_slice() < end);
            let (form, of) = self.sorted.get(at)?;
            (form.starts_with(end) && form.len() > end.len()).then_some((start, *of))
        })
    }
}

/// `text` without what the end of its bytes has made of its last characters, where it is base64.
fn without_padding(text: &[u8]) -> &[u8] {
    match text {
        [whole @ .., _, b'=', b'='] | [whole @ .., _, b'='] => whole,
        whole => whole,
    }
}
