//! What a command may read, write, connect to and use up.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::Memory;

/// Seconds until a command is ended, unless the policy says otherwise.
pub const DEFAULT_TIMEOUT_SECONDS: u64 = 5;
/// The least that a timeout may be, in seconds.
pub const MIN_SECONDS: u64 = 1;
/// Bytes kept of each stream, unless the policy says otherwise.
pub const DEFAULT_OUTPUT_BYTES: u64 = 1_048_576;
/// The least that may be kept of a stream, in bytes.
pub const MIN_OUTPUT_BYTES: u64 = 1024;

/// What a command may read, write, connect to and use up. Plain data: a driver looks at the paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionPolicy {
    /// The directory below which a command's own directory is made.
    pub base_dir: PathBuf,
    /// Seconds until the command is ended; `None`: never.
    pub timeout_seconds: Option<u64>,
    /// Seconds without output until the command is ended; `None`: any.
    pub idle_timeout_seconds: Option<u64>,
    /// Memory of each process.
    pub memory: Memory,
    /// Files and directories that may be read.
    pub readable_paths: Vec<PathBuf>,
    /// Files and directories that may be read and written.
    pub writable_paths: Vec<PathBuf>,
    /// Directories that may be written, whose writes go to a layer.
    pub layers: Vec<PathBuf>,
    /// Addresses that may be connected to while the network is off: `host:port`, or the path of a
    /// Unix socket.
    pub services: Vec<String>,
    /// Variables, each once; they win over inherited ones.
    pub env: Vec<(OsString, OsString)>,
    /// Whether the caller's own variables are passed on.
    pub inherit_env: bool,
    /// Whether the network may be used.
    pub network: bool,
    /// Bytes kept of the end of standard output.
    pub stdout_limit_bytes: u64,
    /// Bytes kept of the end of standard error.
    pub stderr_limit_bytes: u64,
}

impl ExecutionPolicy {
    /// The defaults, with this base directory.
    #[must_use]
    pub fn in_dir(base_dir: impl Into<PathBuf>) -> Self {
        Self {
            base_dir: base_dir.into(),
            timeout_seconds: Some(DEFAULT_TIMEOUT_SECONDS),
            idle_timeout_seconds: None,
            memory: Memory::Default,
            readable_paths: Vec::new(),
            writable_paths: Vec::new(),
            layers: Vec::new(),
            services: Vec::new(),
            env: Vec::new(),
            inherit_env: false,
            network: false,
            stdout_limit_bytes: DEFAULT_OUTPUT_BYTES,
            stderr_limit_bytes: DEFAULT_OUTPUT_BYTES,
        }
    }
}
