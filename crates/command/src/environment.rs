//! The environment of a command.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use altair_engine::launch::is_stripped;

use crate::ExecutionPolicy;

/// The variables of a command: those of the policy and, if it inherits, the rest of its caller's.
///
/// Never among them, whatever the policy says: what controls loaders and interpreters or holds
/// cloud keys ([`STRIPPED_VARIABLES`](altair_engine::launch::STRIPPED_VARIABLES), in any case), and
/// names that no variable can have (empty, or with an equals sign).
#[must_use]
pub fn environment(
    policy: &ExecutionPolicy,
    caller: &[(OsString, OsString)],
) -> Vec<(OsString, OsString)> {
    let inherited = caller
        .iter()
        .filter(|_| policy.inherit_env)
        .filter(|(name, _)| policy.env.iter().all(|(own, _)| own != name));
    inherited
        .chain(&policy.env)
        .filter(|(name, _)| may_have(name))
        .cloned()
        .collect()
}

fn may_have(name: &OsStr) -> bool {
    !name.is_empty() && !name.as_bytes().contains(&b'=') && !is_stripped(&name.to_ascii_uppercase())
}

#[cfg(test)]
mod tests {
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
        environment(&policy, &pairs(caller))
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
}
