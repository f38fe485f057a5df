//! How the child is started: command line, environment, limits, identity.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use altair_sandbox::Launch;

use crate::channel;
use crate::confinement::Confinement;
use crate::guards::{Guard, Selection};
use crate::profile::SecurityProfile;
use crate::request::EvalRequest;

/// Environment variables that are removed for a confined run: they control a loader, an allocator
/// or an interpreter, or hold cloud keys. A trailing `*` matches any rest.
pub const STRIPPED_VARIABLES: &[&str] = &[
    "LD_*",
    "DYLD_*",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "MALLOC_*",
    "USE_ZEND_ALLOC",
    "USE_TRACKED_ALLOC",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "XDEBUG_*",
    "ALTAIR_MCP_TOKEN",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GCP_*",
    "AZURE_CLIENT_ID",
    "AZURE_CLIENT_SECRET",
    "GEM_HOME",
    "GEM_PATH",
    "RUBY*",
    "NODE_OPTIONS",
    "NPM_*",
    "PYTHON*",
    "PIP_*",
];

/// ini settings that apply from the child's start and override its ini files.
///
/// No opcache, JIT, preloading, Xdebug or pcov: they bypass hooks, share memory or change what is
/// measured. Boot runs without `memory_limit`. `error_log` discards what PHP logs during startup
/// (for example, that an extension is configured twice); the child points it back to standard
/// error.
const START_INI: &[&str] = &[
    "opcache.enable=0",
    "opcache.enable_cli=0",
    "opcache.preload=",
    "xdebug.mode=off",
    "pcov.enabled=0",
    "display_errors=stderr",
    "display_startup_errors=0",
    "html_errors=0",
    "log_errors=0",
    "error_log=/dev/null",
];

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

/// The host's inputs to the launch, besides the request.
pub(crate) struct HostContext<'a> {
    pub php: PathBuf,
    pub extension: Option<&'a Path>,
    pub ini_scan_dir: Option<&'a OsStr>,
    pub environment: Vec<(OsString, OsString)>,
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
        args: arguments(host.extension, temp.is_some()),
        env,
        cwd: confinement.target.root.path().to_owned(),
        channel: Some(channel),
        policy: confinement.policy(),
        template: false,
    }
}

fn arguments(extension: Option<&Path>, own_temp: bool) -> Vec<OsString> {
    let mut settings: Vec<OsString> = START_INI.iter().map(OsString::from).collect();
    if own_temp {
        // A value in the ini files would take precedence over the variable.
        settings.push("sys_temp_dir=".into());
        // The session directory in the ini files does not exist in the run: store sessions as
        // temporary files, too.
        settings.push("session.save_path=".into());
    }
    settings.push("memory_limit=-1".into());
    settings.push(format!("altair_eval.channel={}", channel::DESCRIPTOR).into());
    if let Some(path) = extension {
        let quoted = [b"extension=\"", path.as_os_str().as_bytes(), b"\""].concat();
        settings.push(OsString::from_vec(quoted));
    }
    let mut args: Vec<OsString> = settings
        .into_iter()
        .flat_map(|setting| [OsString::from("-d"), setting])
        .collect();
    args.extend(["-r".into(), UNLOADED.into()]);
    args
}

/// The variable that names the directory for temporary files.
const TEMP_VARIABLE: &str = "TMPDIR";

fn environment(
    host: Vec<(OsString, OsString)>,
    ini_scan_dir: Option<&OsStr>,
    profile: &SecurityProfile,
    strip: bool,
    temp: Option<&Path>,
) -> Vec<(OsString, OsString)> {
    let own = profile.env_vars();
    let mut env: Vec<_> = host
        .into_iter()
        .filter(|(name, _)| !strip || !is_stripped(name))
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

fn strips(selection: &Selection, request: &EvalRequest) -> bool {
    selection.takes(Guard::Environment, request)
}

/// The part of the host's environment that the child of a request gets.
pub(crate) fn passed_on(
    environment: &[(OsString, OsString)],
    selection: &Selection,
    request: &EvalRequest,
) -> Vec<(OsString, OsString)> {
    let strip = strips(selection, request);
    environment
        .iter()
        .filter(|(name, _)| !strip || !is_stripped(name))
        .cloned()
        .collect()
}

/// Whether a variable is one of [`STRIPPED_VARIABLES`].
#[must_use]
pub fn is_stripped(name: &OsStr) -> bool {
    STRIPPED_VARIABLES
        .iter()
        .any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => name.as_bytes().starts_with(prefix.as_bytes()),
            None => name == *pattern,
        })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn environment_of(names: &[&str], unconfined: bool) -> Vec<String> {
        let mut request = EvalRequest::new("1", "/srv");
        request.unconfined = unconfined;
        let host = names
            .iter()
            .map(|name| (OsString::from(name), OsString::from("x")))
            .collect();
        environment(
            host,
            None,
            &SecurityProfile::from(&request),
            !unconfined,
            None,
        )
        .into_iter()
        .map(|(name, value)| format!("{}={}", name.display(), value.display()))
        .collect()
    }

    #[test]
    fn what_steers_a_loader_or_holds_a_key_is_stripped() {
        let env = environment_of(
            &[
                "PATH",
                "LD_PRELOAD",
                "PYTHONPATH",
                "PHPRC",
                "AWS_SECRET_ACCESS_KEY",
                "GCONV_PATHS",
            ],
            false,
        );
        assert_eq!(
            env,
            [
                "PATH=x",
                "GCONV_PATHS=x",
                "ALTAIR_EVAL_ALLOW_WRITES=0",
                "ALTAIR_EVAL_ALLOW_NETWORK=0",
                "ALTAIR_EVAL_UNSAFE=0"
            ]
        );
    }

    #[test]
    fn an_unsafe_run_keeps_the_hosts_environment_and_cannot_be_lied_to() {
        let env = environment_of(&["LD_PRELOAD", "ALTAIR_EVAL_UNSAFE"], true);
        assert_eq!(env[0], "LD_PRELOAD=x");
        assert_eq!(env.last().unwrap(), "ALTAIR_EVAL_UNSAFE=1");
        assert_eq!(env.len(), 4);
    }

    #[test]
    fn the_scan_dir_is_passed_on_only_from_the_hosts_own_start() {
        let request = EvalRequest::new("1", "/srv");
        let host = vec![("PHP_INI_SCAN_DIR".into(), "/put/there/later".into())];
        let dir = OsStr::new("/from/the/start");
        let env = environment(
            host,
            Some(dir),
            &SecurityProfile::from(&request),
            true,
            None,
        );
        assert_eq!(env[0], ("PHP_INI_SCAN_DIR".into(), dir.to_owned()));
    }
}
