//! The log's bytes as lines, read from either end.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Longest line that is read, in bytes. An event holds at most 4096 bytes of snippet; a longer line
/// is garbage, and must not be kept in memory.
pub const MAX_LINE: usize = 1 << 20;

/// Bytes read at a time.
const BLOCK: u64 = 64 * 1024;

/// Joins pieces of bytes into whole lines.
#[derive(Debug, Default)]
pub struct Lines {
    pending: Vec<u8>,
}

impl Lines {
    /// Takes a piece and calls `line` with every line that it completes, without the line feed.
    pub fn push(&mut self, piece: &[u8], mut line: impl FnMut(&[u8])) {
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            match part.strip_suffix(b"\n") {
                Some(end) => {
                    self.pending.extend_from_slice(end);
                    if self.pending.len() <= MAX_LINE {
                        line(&self.pending);
                    }
                    self.pending.clear();
                }
                None => {
                    self.pending.extend_from_slice(part);
                    forget_excess(&mut self.pending);
                }
            }
        }
    }
}

/// Cuts a line that is too long to just over the limit, so that it stays recognizable as such.
fn forget_excess(line: &mut Vec<u8>) {
    line.truncate(MAX_LINE + 1);
}

/// The last `count` lines of the first `end` bytes of `file` that `wanted` accepts, in order.
///
/// Reads backwards, so the cost depends on what is shown, not on the size of the log.
///
/// # Errors
///
/// If the file cannot be read.
pub fn last(
    file: &File,
    end: u64,
    count: usize,
    wanted: impl Fn(&[u8]) -> bool,
) -> io::Result<VecDeque<Vec<u8>>> {
    let mut found = VecDeque::new();
    let mut take = |line: Vec<u8>| {
        if line.len() <= MAX_LINE && wanted(&line) {
            found.push_front(line);
        }
        found.len() >= count
    };
    let mut pending = Vec::new();
    let mut position = end;
    let mut done = count == 0;
    while position > 0 && !done {
        let start = position.saturating_sub(BLOCK);
        let mut block = read_between(file, start, position)?;
        block.append(&mut pending);
        while let Some(feed) = block.iter().rposition(|byte| *byte == b'\n') {
            let line = block.split_off(feed + 1);
            block.pop();
            if take(line) {
                done = true;
                break;
            }
        }
        pending = block;
        forget_excess(&mut pending);
        position = start;
    }
    if !done {
        take(pending);
    }
    Ok(found)
}

/// The offset after the last line feed in the first `end` bytes of `file`: an incomplete line is
/// left to be read later.
///
/// # Errors
///
/// If the file cannot be read.
pub fn end_of_whole_lines(file: &File, end: u64) -> io::Result<u64> {
    let mut position = end;
    while position > 0 {
        let start = position.saturating_sub(BLOCK);
        let block = read_between(file, start, position)?;
        if let Some(feed) = block.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start
                .saturating_add(u64::try_from(feed).unwrap_or(u64::MAX))
                .saturating_add(1));
        }
        position = start;
    }
    Ok(0)
}

/// The bytes between two offsets at most [`BLOCK`] apart; fewer if the file shrank.
fn read_between(file: &File, start: u64, end: u64) -> io::Result<Vec<u8>> {
    let mut block = vec![0; usize::try_from(end - start).unwrap_or(0)];
    let mut filled = 0;
    let mut offset = start;
    while filled < block.len() {
        match file.read_at(&mut block[filled..], offset) {
            Ok(0) => break,
            Ok(read) => {
                filled += read;
                offset += u64::try_from(read).unwrap_or(0);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    block.truncate(filled);
    Ok(block)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    fn tail(bytes: &[u8], count: usize) -> Vec<Vec<u8>> {
        let end = bytes.len().try_into().unwrap();
        last(&file(bytes), end, count, |line| !line.is_empty())
            .unwrap()
            .into()
    }

    #[test]
    fn the_last_lines_come_in_order_and_an_unfinished_one_counts() {
        assert_eq!(tail(b"a\nb\nc\n", 2), [b"b", b"c"]);
        assert_eq!(tail(b"a\nb\nc", 2), [b"b", b"c"]);
        assert_eq!(tail(b"a", 5), [b"a"]);
        assert!(tail(b"", 5).is_empty());
        assert!(tail(b"a\n", 0).is_empty());
    }

    #[test]
    fn a_line_beyond_the_limit_is_skipped_whole_from_either_end() {
        let mut bytes = b"first\n".to_vec();
        bytes.resize(bytes.len() + 2 * MAX_LINE, b'x');
        bytes.extend_from_slice(b"\nlast\n");
        assert_eq!(tail(&bytes, 5), [b"first".to_vec(), b"last".to_vec()]);

        let mut found = Vec::new();
        let mut lines = Lines::default();
        for piece in bytes.chunks(1000) {
            lines.push(piece, |line| found.push(line.to_vec()));
        }
        assert_eq!(found, [b"first".to_vec(), b"last".to_vec()]);
    }

    #[test]
    fn an_unfinished_line_is_left_for_later() {
        assert_eq!(end_of_whole_lines(&file(b"a\nbc"), 4).unwrap(), 2);
        assert_eq!(end_of_whole_lines(&file(b"bc"), 2).unwrap(), 0);
        let mut long = b"a\n".to_vec();
        long.resize(200_000, b'x');
        assert_eq!(end_of_whole_lines(&file(&long), 200_000).unwrap(), 2);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn reading_backwards_and_forwards_see_the_same(
            lines in proptest::collection::vec("[a-z]{1,3000}", 0..120),
            count in 0_usize..130,
        ) {
            let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
            let skipped = lines.len().saturating_sub(count);
            let expected: Vec<Vec<u8>> =
                lines.iter().skip(skipped).map(|line| line.clone().into_bytes()).collect();
            prop_assert_eq!(tail(text.as_bytes(), count), expected);
        }
    }
}
