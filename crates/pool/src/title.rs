//! What the process list shows of a pool.

use std::fs::OpenOptions;
use std::io::{self, Seek, SeekFrom, Write};

/// An argument that leaves room for the title ([`show`]).
pub(crate) const ROOM: &str = "--title=................................";

/// Shows how many templates there are: `altair pool (3 templates)`.
pub(crate) fn show(templates: usize) {
    let noun = if templates == 1 {
        "template"
    } else {
        "templates"
    };
    // Only for people who look: without it the arguments stay there.
    let _ = write(&format!("altair pool ({templates} {noun})"));
}

/// Overwrites the process's arguments (`/proc/<pid>/cmdline`), which are part of its memory, with a
/// text.
fn write(title: &str) -> io::Result<()> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // `arg_start` and `arg_end`, fields 48 and 49 (proc_pid_stat(5)); the name before may hold
    // anything.
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let mut fields = after_name.split_ascii_whitespace().skip(48 - 3);
    let mut field = || fields.next().and_then(|field| field.parse::<u64>().ok());
    let (Some(start), Some(end)) = (field(), field()) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let room = usize::try_from(end.saturating_sub(start)).unwrap_or(0);
    let mut text = title.as_bytes().to_vec();
    if start == 0 || room <= text.len() {
        return Err(io::ErrorKind::StorageFull.into());
    }
    // The kernel takes the arguments to end with a NUL byte.
    text.resize(room, 0);
    let mut memory = OpenOptions::new().write(true).open("/proc/self/mem")?;
    memory.seek(SeekFrom::Start(start))?;
    memory.write_all(&text)
}
