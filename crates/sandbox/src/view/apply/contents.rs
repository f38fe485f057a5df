//! Contents of files: copying and comparing them.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::unistd::{Whence, ftruncate, lseek};

use super::progress::Progress;

/// Bytes compared at a time.
const COMPARED_BYTES: usize = 128 * 1024;
/// Bytes copied before looking whether to go on.
const COPIED_BYTES: u64 = 64 << 20;

/// Another descriptor of a file, with the same position.
fn file(of: BorrowedFd<'_>) -> io::Result<File> {
    Ok(File::from(of.try_clone_to_owned()?))
}

fn offset(number: u64) -> io::Result<i64> {
    i64::try_from(number).map_err(|_| Errno::EFBIG.into())
}

/// The next range of a file that has data, from `at` on; `None` if there is only a hole left.
fn data(of: &File, at: u64) -> io::Result<Option<(u64, u64)>> {
    let found = |whence, at| lseek(of, at, whence).map(i64::unsigned_abs);
    match found(Whence::SeekData, offset(at)?) {
        Ok(start) => {
            let end = found(Whence::SeekHole, offset(start)?)?;
            Ok(Some((start, end)))
        }
        Err(Errno::ENXIO) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Copies a file into an empty one. Holes stay holes.
pub(super) fn copy(
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    progress: &Progress,
) -> io::Result<()> {
    let (mut from, mut to) = (file(from)?, file(to)?);
    let mut at = 0;
    while let Some((start, end)) = data(&from, at)? {
        copy_range(&mut from, &mut to, start, end, progress)?;
        at = end;
    }
    let length = from.seek(SeekFrom::End(0))?;
    Ok(ftruncate(to.as_fd(), offset(length)?)?)
}

/// Copies a file over another one, whose other names then have the same content. A hole takes no
/// space where the other one had nothing, either.
pub(super) fn overwrite(
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    progress: &Progress,
) -> io::Result<()> {
    let (mut from, mut to) = (file(from)?, file(to)?);
    let length = from.seek(SeekFrom::End(0))?;
    let before = to.seek(SeekFrom::End(0))?;
    let mut at = 0;
    while at < length {
        let (start, end) = data(&from, at)?.unwrap_or((length, length));
        copy_range(&mut from, &mut to, at, start.min(before), progress)?;
        copy_range(&mut from, &mut to, start, end, progress)?;
        at = end;
    }
    Ok(ftruncate(to.as_fd(), offset(length)?)?)
}

fn copy_range(
    from: &mut File,
    to: &mut File,
    mut start: u64,
    end: u64,
    progress: &Progress,
) -> io::Result<()> {
    from.seek(SeekFrom::Start(start))?;
    to.seek(SeekFrom::Start(start))?;
    while start < end {
        progress.go_on().map_err(|_| Errno::ECANCELED)?;
        let next = (end - start).min(COPIED_BYTES);
        // Within the kernel, if the file systems can do that.
        match io::copy(&mut Read::by_ref(from).take(next), to)? {
            // It is shorter by now.
            0 => break,
            copied => start += copied,
        }
    }
    Ok(())
}

/// Whether two files have the same content.
pub(super) fn same(
    one: BorrowedFd<'_>,
    other: BorrowedFd<'_>,
    progress: &Progress,
) -> io::Result<bool> {
    let (mut one, mut other) = (file(one)?, file(other)?);
    let (mut left, mut right) = (vec![0; COMPARED_BYTES], vec![0; COMPARED_BYTES]);
    loop {
        progress.go_on().map_err(|_| Errno::ECANCELED)?;
        let (a, b) = (fill(&mut one, &mut left)?, fill(&mut other, &mut right)?);
        if left.get(..a) != right.get(..b) {
            return Ok(false);
        }
        if a == 0 {
            return Ok(true);
        }
    }
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read(rest) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::{FileExt, MetadataExt};

    #[test]
    fn a_file_with_holes_overwrites_what_was_there() {
        let (mut from, mut to) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        to.write_all(&[b'x'; 300_000]).unwrap();
        from.write_all_at(b"begin", 0).unwrap();
        from.write_all_at(b"end", 1 << 30).unwrap();
        from.set_len(1 << 31).unwrap();
        overwrite(from.as_fd(), to.as_fd(), &Progress::default()).unwrap();
        let meta = to.metadata().unwrap();
        assert_eq!(meta.len(), 1 << 31);
        assert!(meta.blocks() * 512 < 1 << 20, "{}", meta.blocks());
        let mut read = vec![0; 300_000];
        to.read_exact_at(&mut read, 0).unwrap();
        assert!(read.starts_with(b"begin\0") && read.ends_with(&[0; 290_000]));
        let mut end = [0; 3];
        to.read_exact_at(&mut end, 1 << 30).unwrap();
        assert_eq!(&end, b"end");
        // Shorter than before.
        from.set_len(3).unwrap();
        overwrite(from.as_fd(), to.as_fd(), &Progress::default()).unwrap();
        assert_eq!(to.metadata().unwrap().len(), 3);
        from.rewind().unwrap();
        to.rewind().unwrap();
        assert!(same(from.as_fd(), to.as_fd(), &Progress::default()).unwrap());
    }
}
