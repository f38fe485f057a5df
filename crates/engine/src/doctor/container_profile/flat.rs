//! A profile without conditions, as the runtime specification has it:
//! <https://github.com/opencontainers/runtime-spec/blob/main/config-linux.md#seccomp>.

use serde_json::{Map, Value, json};

/// What a container may do without flags; the rest of Docker's capabilities is in no condition.
const CAPABILITIES: [&str; 1] = ["CAP_SYS_CHROOT"];

/// This processor as Docker's conditions name it, and with its 32-bit modes as libseccomp does.
#[cfg(target_arch = "aarch64")]
const ARCHITECTURES: ([&str; 2], &[&str]) =
    (["arm64", "arm"], &["SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM"]);
#[cfg(not(target_arch = "aarch64"))]
const ARCHITECTURES: ([&str; 2], &[&str]) = (
    ["amd64", "x32"],
    &["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"],
);

/// The rules of `profile` that hold in a container without flags on this processor.
///
/// # Errors
/// If it has no rules.
pub(super) fn profile(profile: &Value) -> Result<Value, String> {
    let rules = profile
        .get("syscalls")
        .and_then(Value::as_array)
        .ok_or("the engine's profile has no rules")?;
    let kept: Vec<Value> = rules.iter().filter(|rule| holds(rule)).map(bare).collect();
    Ok(json!({
        "defaultAction": profile.get("defaultAction"),
        "architectures": ARCHITECTURES.1,
        "syscalls": kept,
    }))
}

/// Whether the conditions of a rule are met. Every kernel with Landlock meets that of a kernel.
fn holds(rule: &Value) -> bool {
    let names = |condition: &str, of: &str| -> Vec<&str> {
        rule.get(condition)
            .and_then(|condition| condition.get(of)?.as_array())
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default()
    };
    let is_here = |name: &&str| ARCHITECTURES.0.contains(name);
    let is_held = |name: &&str| CAPABILITIES.contains(name);
    let wanted = names("includes", "arches");
    (wanted.is_empty() || wanted.iter().any(is_here))
        && names("includes", "caps").iter().all(is_held)
        && !names("excludes", "arches").iter().any(is_here)
        && !names("excludes", "caps").iter().any(is_held)
}

fn bare(rule: &Value) -> Value {
    let fields = ["names", "action", "errnoRet", "args"];
    let kept: Map<String, Value> = fields
        .iter()
        .filter_map(|field| Some(((*field).to_owned(), rule.get(field)?.clone())))
        .filter(|(_, value)| !value.is_null() && value.as_array().is_none_or(|it| !it.is_empty()))
        .collect();
    Value::Object(kept)
}
