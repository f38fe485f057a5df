//! The environment of a command.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use altair_engine::environment::{Names, OtherUser, Receiver, Variable, never};

use crate::ExecutionPolicy;

/// The variables of a command: those of the policy and, if it inherits, the rest of its caller's.
///
/// Of its caller's it gets what an evaluation gets, and what tells it of its terminal; no file of a
/// project has a say. `other`: the user that it runs as, if that is another one than the caller.
///
/// Never among them, whatever the policy says: what controls loaders and interpreters or holds
/// cloud keys ([`never()`], in any case), and names that no variable can have (empty, or with an equals
/// sign).
#[must_use]
pub fn environment(
    policy: &ExecutionPolicy,
    caller: &[Variable],
    other: Option<OtherUser>,
) -> Vec<Variable> {
    let receiver = Receiver {
        passed: Vec::new(),
        has_terminal: true,
        other,
    };
    let inherited = match policy.inherit_env {
        true => receiver.filter(caller, &Names::new()).variables,
        false => Vec::new(),
    };
    let own = policy.env.iter().cloned();
    inherited
        .into_iter()
        .filter(|(name, _)| policy.env.iter().all(|(own, _)| own != name))
        .chain(own)
        .filter(|(name, _)| may_have(name))
        .collect()
}

fn may_have(name: &OsStr) -> bool {
    !name.is_empty() && !name.as_bytes().contains(&b'=') && never(name).is_none()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn pairs(variables: &[&str]) -> Vec<(OsString, OsString)> {
        variables
            .iter()
            .map(|variable| {
                let (name, value) = variable.rsplit_once('=').unwrap_or((variable, ""));
                (name.into(), value.into())
            })
            .collect()
    }

    fn of(inherit: bool, own: &[&str], caller: &[&str]) -> Vec<(OsString, OsString)> {
        let mut policy = ExecutionPolicy::in_dir("/tmp");
        policy.env = pairs(own);
        policy.inherit_env = inherit;
        environment(&policy, &pairs(caller), None)
    }

    #[test]
    fn a_policys_variables_win_over_inherited_ones() {
        let caller = ["PATH=/bin", "A=caller"];
        assert_eq!(of(false, &["A=own"], &caller), pairs(&["A=own"]));
        assert_eq!(
            of(true, &["A=own"], &caller),
            pairs(&["PATH=/bin", "A=own"])
        );
        assert_eq!(of(false, &[], &caller), []);
    }

    #[test]
    fn stripped_variables_never_pass_in_any_case() {
        let stripped = [
            "LD_PRELOAD=x",
            "ld_library_path=x",
            "Aws_Secret_Access_Key=x",
            "npm_config_registry=x",
            "PYTHONPATH=x",
            "RUBYOPT=x",
        ];
        let passing = ["ALD_X=1", "GCONV_PATHS=1", "AWS_REGION=1"];
        let all = [stripped.as_slice(), &passing].concat();
        assert_eq!(of(true, &[], &all), pairs(&passing));
        assert_eq!(of(false, &all, &[]), pairs(&passing));
    }

    #[test]
    fn what_cannot_be_a_name_is_none() {
        assert_eq!(of(false, &["=x", "A=B=x", "C=x"], &[]), pairs(&["C=x"]));
    }

    #[test]
    fn the_callers_own_credentials_pass_only_with_a_value_of_the_policys() {
        let caller = ["TERM=xterm", "GITHUB_TOKEN=t", "SSH_AUTH_SOCK=/s", "A=1"];
        assert_eq!(of(true, &[], &caller), pairs(&["TERM=xterm", "A=1"]));
        let own = ["GITHUB_TOKEN=own"];
        assert_eq!(of(false, &own, &caller), pairs(&own));
    }

    #[test]
    fn another_user_gets_none_of_the_callers_own() {
        let mut policy = ExecutionPolicy::in_dir("/tmp");
        policy.inherit_env = true;
        policy.env = pairs(&["OWN=1"]);
        let caller = pairs(&["PATH=/bin", "TERM=xterm", "SOME_SECRET=s", "LC_ALL=C"]);
        let got = environment(&policy, &caller, Some(OtherUser::default()));
        assert_eq!(
            got,
            pairs(&["PATH=/bin", "TERM=xterm", "LC_ALL=C", "OWN=1"])
        );
    }
}
