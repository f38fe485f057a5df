//! Asks PHP for its version and features.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::report::{Extension, Php};
use crate::command::Command;
use crate::{php_binary, php_versions};

/// Maximum wait for PHP's answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Since PHP 8.4 both cast constants are booleans.
const QUESTION: &str = "echo json_encode(['version' => PHP_VERSION, 'id' => PHP_VERSION_ID, \
    'sapi' => PHP_SAPI, 'zts' => (int) PHP_ZTS, 'debug' => (int) PHP_DEBUG, \
    'loaded' => phpversion('altair_eval') ?: null, 'directory' => ini_get('extension_dir'), \
    'pcntl' => function_exists('pcntl_fork')]);";

/// The answer to [`QUESTION`].
#[derive(Debug, Deserialize)]
struct Answer {
    version: String,
    id: u32,
    sapi: String,
    zts: i32,
    debug: i32,
    loaded: Option<String>,
    directory: String,
    pcntl: bool,
}

/// What is known about PHP.
pub(super) struct Interpreter {
    pub php: Php,
    pub extension: Extension,
    /// Whether it can fork.
    pub has_pcntl: bool,
    /// A warning about something that is not an error.
    pub warning: Option<String>,
}

/// Asks the PHP that `name` resolves to, with `extension` loaded if one is given.
pub(super) fn ask(name: &OsStr, extension: Option<&Path>) -> Interpreter {
    let mut found = Interpreter {
        php: Php::default(),
        extension: Extension {
            path: extension.map(Path::to_owned),
            ..Extension::default()
        },
        has_pcntl: false,
        warning: None,
    };
    let search_path = std::env::var_os("PATH");
    let path = match php_binary::resolve(name, None, search_path.as_deref(), None) {
        Ok(path) => path,
        Err(error) => {
            found.php.problem = Some(error.to_string());
            return found;
        }
    };
    found.php.path = Some(path.clone());
    match answer(&path, extension) {
        Ok(answer) => take(&mut found, answer),
        Err(problem) => found.php.problem = Some(problem),
    }
    found
}

fn answer(path: &Path, extension: Option<&Path>) -> Result<Answer, String> {
    let mut args: Vec<OsString> = ["-d", "display_startup_errors=0", "-d", "log_errors=0"]
        .map(OsString::from)
        .to_vec();
    if let Some(extension) = extension {
        let quoted = [b"extension=\"", extension.as_os_str().as_bytes(), b"\""].concat();
        args.extend(["-d".into(), OsStr::from_bytes(&quoted).to_owned()]);
    }
    args.extend(["-r".into(), QUESTION.into()]);
    let command = Command {
        program: path.into(),
        search_path: None, // it is a path
        args,
        cwd: Some("/".into()),
        env: std::env::vars_os().collect(),
        timeout: PATIENCE,
    };
    let shown = path.display();
    let no_php = |why: String| {
        format!(
            "{shown} is no PHP command line: {why}. Name an executable PHP command line (--php=<path>)."
        )
    };
    let finished = command
        .run(&mut || true)
        .ok_or_else(|| no_php("it was interrupted".into()))?;
    if finished.timed_out {
        return Err(no_php(format!(
            "it did not answer in {} seconds",
            PATIENCE.as_secs()
        )));
    }
    let last = finished.stdout.lines().next_back().unwrap_or_default();
    serde_json::from_str(last).map_err(|_| {
        let said = match finished.stderr.trim() {
            "" => finished.stdout.trim(),
            errors => errors,
        };
        let said = said.lines().next().unwrap_or_default();
        no_php(match said {
            "" => format!("it ended with status {}", finished.exit_code),
            _ => format!(
                "it ended with status {} and said: {said}",
                finished.exit_code
            ),
        })
    })
}

fn take(found: &mut Interpreter, answer: Answer) {
    if !php_versions::is_tried(answer.id) {
        let tried = php_versions::tried();
        // If PHP loads the extension, someone has deliberately built it for this version.
        match &answer.loaded {
            Some(_) => {
                found.warning = Some(format!(
                    "Altair Eval was not tried with PHP {}, but with {tried}: the extension was built for it anyway ({}).",
                    answer.version,
                    php_versions::INSIST
                ))
            }
            None => {
                found.php.problem = Some(format!(
                    "PHP {} cannot be used: {tried} is needed. Name another (--php=<path>).",
                    answer.version
                ))
            }
        }
    }
    found.php.version = Some(answer.version);
    found.php.sapi = Some(answer.sapi);
    found.php.thread_safe = Some(answer.zts == 1);
    found.php.debug = Some(answer.debug == 1);
    found.has_pcntl = answer.pcntl;
    if answer.loaded.is_some() && found.extension.path.is_none() {
        let installed = PathBuf::from(answer.directory).join("altair_eval.so");
        found.extension.path = installed.is_file().then_some(installed);
    }
    if answer.loaded.is_none() {
        found.extension.problem = Some(match &found.extension.path {
            Some(path) => format!(
                "This PHP does not load {}: the extension must be built for it and be readable for this user. `php -d extension={} -v` shows why.",
                path.display(),
                path.display()
            ),
            None => "This PHP does not have the extension altair_eval: `make install` installs it."
                .into(),
        });
    }
    found.extension.version = answer.loaded;
}
