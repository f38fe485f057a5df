//! How the child is started: command line, environment, limits, identity.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use altair_sandbox::{Launch, Role, Stdio};

use crate::channel;
use crate::confinement::Confinement;
use crate::environment::Variable;
use crate::guards::{Guard, Selection};
use crate::profile::SecurityProfile;
use crate::request::EvalRequest;

/// ini settings that apply from any child's start and override its ini files. No opcache, JIT,
/// preloading, Xdebug or pcov, and no APCu, which PHP's command line has only where an ini file says so:
/// they bypass hooks, share memory or change what is measured. Boot runs without `memory_limit`. An
/// isolated PHP's own settings override them.
const START_INI: &[&str] = &[
    "opcache.enable=0",
    "opcache.enable_cli=0",
    "opcache.preload=",
    "xdebug.mode=off",
    "pcov.enabled=0",
    "apc.enable_cli=0",
    "memory_limit=-1",
];

/// ini settings of an evaluation: what PHP has to say goes to standard error. `error_log` discards
/// what PHP logs during startup (for example, that an extension is configured twice); the child
/// points it back to standard error. No backtrace of a fatal error, which PHP 8.5 prints: that of an endless
/// recursion has some 100,000 frames, and takes longer than a deadline.
const EVALUATION_INI: &[&str] = &[
    "display_errors=stderr",
    "fatal_error_backtraces=0",
    "display_startup_errors=0",
    "html_errors=0",
    "log_errors=0",
    "error_log=/dev/null",
];

/// ini settings of a child that has a directory of its own for temporary files. A value in the ini
/// files would take precedence over the variable. The session directory in the ini files does not
/// exist there: sessions are stored as temporary files, too.
const OWN_TEMP_INI: [&str; 2] = ["sys_temp_dir=", "session.save_path="];

/// The code passed to `php -r`. The extension takes over before it is compiled. Without the
/// extension the code reports on the channel, which is the host's only way to know which PHP this
/// is. Both cast constants are booleans since PHP 8.4.
const UNLOADED: &str = "file_put_contents('php://fd/3', json_encode(['version' => PHP_VERSION, \
    'sapi' => PHP_SAPI, 'zts' => (int) PHP_ZTS, 'debug' => (int) PHP_DEBUG, \
    'loaded' => extension_loaded('altair_eval')]));";

/// The report of [`UNLOADED`].
#[derive(Debug, serde::Deserialize)]
pub(crate) struct Unloaded {
    pub version: String,
    pub sapi: String,
    pub zts: i32,
    pub debug: i32,
    pub loaded: bool,
}

/// The settings that keep the start of a PHP quiet whose ini files may already load the extension.
/// The child restores the log.
const QUIET_INI: &[&str] = &["display_startup_errors=0", "error_log=/dev/null"];

/// The ini settings that a child starts with.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum StartIni {
    /// Those of an evaluation.
    OfEvaluation,
    /// Its host's, and some of its own.
    Own(OwnIni),
}

/// The ini settings of an isolated PHP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct OwnIni {
    /// The ini files.
    pub files: IniFiles,
    /// What the host's own switches say, as the text of an ini file.
    pub switches: Vec<u8>,
    /// Settings of its own, name and value. No value holds a NUL byte.
    pub settings: Vec<(String, Vec<u8>)>,
    /// Whether these files or switches load the extension.
    pub loads_extension: bool,
}

/// Which ini files a PHP reads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub enum IniFiles {
    /// Those that it finds.
    #[default]
    Found,
    /// None (`-n`).
    None,
    /// This one, or those in this directory (`-c`).
    At(PathBuf),
}

/// The host's inputs to the launch, besides the request.
pub(crate) struct HostContext<'a> {
    pub php: PathBuf,
    pub extension: Option<&'a Path>,
    pub ini_scan_dir: Option<&'a OsStr>,
    /// The variables that the child gets of its host's.
    pub environment: Vec<Variable>,
    pub ini: &'a StartIni,
}

/// Everything needed to start the child of one evaluation.
pub(crate) fn plan(
    confinement: &Confinement<'_>,
    host: HostContext<'_>,
    channel: OwnedFd,
) -> Launch {
    let request = confinement.request;
    let temp = (!request.unconfined).then(|| confinement.temp());
    let strip = strips(confinement.selection, request);
    let env = environment(
        host.environment,
        host.ini_scan_dir,
        &SecurityProfile::from(request),
        strip,
        temp,
    );
    Launch {
        program: host.php,
        name: None,
        args: arguments(host.ini, host.extension, temp.is_some()),
        env,
        cwd: confinement.target.root.path().to_owned(),
        channel: Some(channel),
        policy: confinement.policy(),
        stdio: Stdio::Captured { input: None },
        role: Role::Program,
    }
}

fn arguments(ini: &StartIni, extension: Option<&Path>, own_temp: bool) -> Vec<OsString> {
    let mut args = Vec::new();
    let mut settings: Vec<OsString> = START_INI.iter().map(OsString::from).collect();
    if own_temp {
        settings.extend(OWN_TEMP_INI.map(OsString::from));
    }
    match ini {
        StartIni::OfEvaluation => {
            settings.extend(EVALUATION_INI.iter().map(OsString::from));
            settings.extend(extension.map(loading));
        }
        StartIni::Own(own) => {
            match &own.files {
                IniFiles::Found => {}
                IniFiles::None => args.push("-n".into()),
                IniFiles::At(path) => args.extend(["-c".into(), path.into()]),
            }
            if !own.switches.is_empty() {
                // PHP takes the text as it is, since the value of its first line is a word.
                let text = [b"html_errors=0\n", own.switches.as_slice()].concat();
                settings.push(OsString::from_vec(text));
            }
            let own_settings = own.settings.iter();
            settings.extend(own_settings.map(|(name, value)| quoted(name, value)));
            if !own.loads_extension {
                settings.extend(QUIET_INI.iter().map(OsString::from));
                settings.extend(extension.map(loading));
            }
        }
    }
    settings.push(format!("altair_eval.channel={}", channel::DESCRIPTOR).into());
    args.extend(
        settings
            .into_iter()
            .flat_map(|setting| [OsString::from("-d"), setting]),
    );
    args.extend(["-r".into(), UNLOADED.into()]);
    args
}

/// The setting that loads the extension.
fn loading(extension: &Path) -> OsString {
    let quoted = [b"extension=\"", extension.as_os_str().as_bytes(), b"\""].concat();
    OsString::from_vec(quoted)
}

/// A setting whose value an ini file reads as these bytes.
fn quoted(name: &str, value: &[u8]) -> OsString {
    let mut text = [name.as_bytes(), b"=\""].concat();
    for byte in value {
        match byte {
            b'\\' => text.extend(b"\\\\"),
            // No escape stands for it everywhere: after `\\`, the scanner takes `\"` for the end of the
            // string (Zend/zend_ini_scanner.l). Two adjacent strings are one, and between single quotes
            // it is itself.
            b'"' => text.extend(b"\"'\"'\""),
            // `${` names a variable, and no escape prevents it; two adjacent strings are one.
            b'$' => text.extend(b"$\"\""),
            byte => text.push(*byte),
        }
    }
    text.push(b'"');
    OsString::from_vec(text)
}

/// The variable that names the directory for temporary files.
const TEMP_VARIABLE: &str = "TMPDIR";

fn environment(
    given: Vec<Variable>,
    ini_scan_dir: Option<&OsStr>,
    profile: &SecurityProfile,
    strip: bool,
    temp: Option<&Path>,
) -> Vec<Variable> {
    let own = profile.env_vars();
    let mut env: Vec<_> = given
        .into_iter()
        .filter(|(name, _)| own.iter().all(|(own, _)| name != own))
        .filter(|(name, _)| temp.is_none() || name != TEMP_VARIABLE)
        .collect();
    if let Some(dir) = ini_scan_dir
        && strip
    {
        env.push(("PHP_INI_SCAN_DIR".into(), dir.to_owned()));
    }
    if let Some(temp) = temp {
        env.push((TEMP_VARIABLE.into(), temp.into()));
    }
    env.extend(own.map(|(name, value)| (name.into(), value.into())));
    env
}

/// Whether the child of a request goes without part of its host's environment.
pub(crate) fn strips(selection: &Selection, request: &EvalRequest) -> bool {
    selection.takes(Guard::Environment, request)
}

/// The variables that a child gets of its host's, as one text, which is the same whatever the order.
pub(crate) fn as_one_text(given: &[Variable]) -> Vec<u8> {
    let mut passed: Vec<_> = given.iter().collect();
    // Two hosts may have set the same variables one after another.
    passed.sort_unstable();
    let texts = passed.iter().flat_map(|(name, value)| [name, value]);
    let mut text = Vec::with_capacity(texts.clone().map(|part| part.len() + LENGTH_BYTES).sum());
    for part in texts {
        text.extend(part.len().to_ne_bytes());
        text.extend(part.as_bytes());
    }
    text
}

/// Each part of [`as_one_text`] has its length in front.
const LENGTH_BYTES: usize = size_of::<usize>();

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn environment_of(names: &[&str], unconfined: bool) -> Vec<String> {
        let mut request = EvalRequest::new("1", "/srv");
        request.unconfined = unconfined;
        let given = names
            .iter()
            .map(|name| (OsString::from(name), OsString::from("x")))
            .collect();
        let profile = SecurityProfile::from(&request);
        environment(given, None, &profile, !unconfined, None)
            .into_iter()
            .map(|(name, value)| format!("{}={}", name.display(), value.display()))
            .collect()
    }

    #[test]
    fn no_run_can_be_lied_to_about_what_it_is_allowed() {
        let env = environment_of(&["PATH", "ALTAIR_EVAL_UNSAFE"], true);
        assert_eq!(env[0], "PATH=x");
        assert_eq!(env.last().unwrap(), "ALTAIR_EVAL_UNSAFE=1");
        assert_eq!(env.len(), 4);
        let env = environment_of(&["ALTAIR_EVAL_UNSAFE"], false);
        assert_eq!(env.last().unwrap(), "ALTAIR_EVAL_UNSAFE=0");
        assert_eq!(env.len(), 3);
    }

    #[test]
    fn the_scan_dir_is_passed_on_only_from_the_hosts_own_start() {
        let request = EvalRequest::new("1", "/srv");
        let dir = OsStr::new("/from/the/start");
        let profile = SecurityProfile::from(&request);
        let env = environment(Vec::new(), Some(dir), &profile, true, None);
        assert_eq!(env[0], ("PHP_INI_SCAN_DIR".into(), dir.to_owned()));
    }
}
