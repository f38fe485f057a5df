//! How many processors this process may use.

use std::sync::OnceLock;

/// How many threads and processes can run at once, as far as is known when it is asked first.
pub(crate) fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}
