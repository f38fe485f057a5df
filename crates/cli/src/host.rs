//! The process that the command line runs in.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use altair_engine::guards::UnsafeRuns;
use altair_engine::{Evaluator, php_binary};

/// What the process that runs the command line already knows. The program `altair` knows nothing;
/// a PHP with the extension knows its binary and its extension.
#[derive(Debug, Default)]
pub struct Host {
    /// The PHP binary of this process. `php` means this one instead of the first on `PATH`.
    pub php: Option<PathBuf>,
    /// The file of the extension, used if `ALTAIR_EVAL_EXTENSION` names none.
    pub extension: Option<PathBuf>,
    /// Whether this process makes unsafe runs.
    pub unsafe_runs: UnsafeRuns,
    /// Whether this process is the program `altair`, which can be the pool.
    pub is_program: bool,
    /// The Model Context Protocol server, if this process has one.
    pub serve: Option<Serve>,
}

/// Serves until the client disconnects. The error is a sentence for the user.
pub type Serve = fn(Server) -> Result<(), String>;

/// The settings of an MCP server.
#[derive(Debug)]
pub struct Server {
    /// Where to listen; `None` is standard input and output.
    pub http: Option<(String, u16)>,
    /// Evaluates the calls.
    pub evaluator: Evaluator,
    /// The application.
    pub root: PathBuf,
    /// What calls may connect to while the network is off; `None`: what the application declares.
    pub services: Option<Vec<String>>,
    /// Variables of the environment that calls get, although they would be withheld.
    pub env: Vec<String>,
    /// Whether there are any services when it starts.
    pub has_services: bool,
    /// Whether all of these are SQL databases whose sessions are read-only.
    pub only_databases: bool,
    /// Whether calls may ask for real writes.
    pub allow_writes: bool,
    /// Whether calls may ask for database sessions that are rolled back.
    pub allow_rollback: bool,
    /// Whether calls may ask for connections.
    pub allow_network: bool,
    /// Whether a person is asked, through clients that can, for what calls may not ask for.
    pub asks: bool,
}

impl Host {
    /// The interpreter that `--php=<name>` selects.
    pub fn php(&self, name: &OsStr) -> OsString {
        match &self.php {
            Some(running) if name == php_binary::DEFAULT => running.into(),
            _ => name.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn php_is_the_running_binary_and_another_name_is_not() {
        let host = Host {
            php: Some("/running/php".into()),
            ..Host::default()
        };
        assert_eq!(host.php("php".as_ref()), "/running/php");
        assert_eq!(host.php("php8.4".as_ref()), "php8.4");
        assert_eq!(Host::default().php("php".as_ref()), "php");
    }
}
