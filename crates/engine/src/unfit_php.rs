//! Why a child never reached its own code.

use std::path::Path;

use altair_sandbox::{Ended, Status};

use crate::channel::PROTOCOL;
use crate::child_messages::ChildMessages;

/// Explains why the extension did not take over in the started process.
pub(crate) fn never_entered(
    extension: Option<&Path>,
    php: &Path,
    heard: &ChildMessages,
    ended: &Ended,
) -> String {
    let php = php.display();
    let Some(found) = &heard.unloaded else {
        let said = String::from_utf8_lossy(&ended.stderr.head);
        let said = said.trim();
        let said = if said.is_empty() {
            String::new()
        } else {
            format!(" and said: {}", said.replace('\n', " "))
        };
        return format!(
            "{php} is no PHP command line: it {} before the extension took over{said}. Name a PHP command line (--php=<path>).",
            match ended.status {
                Status::Exited(code) => format!("ended with status {code}"),
                Status::Signalled(signal) => format!("was ended by signal {signal}"),
            }
        );
    };
    let build = format!(
        "PHP {} ({}{}, {})",
        found.version,
        if found.zts == 1 { "ZTS" } else { "NTS" },
        if found.debug == 1 { ", debug" } else { "" },
        found.sapi
    );
    match extension {
        _ if found.loaded => format!(
            "{php} is {build} and loads another version of the extension altair_eval than this one ({PROTOCOL}): build and install both from one version."
        ),
        Some(extension) => format!(
            "{php} is {build} and does not load {}: the extension must be built for this PHP (`make build`) and be readable for the owner of the project. `{php} -d extension={} -v` shows why.",
            extension.display(),
            extension.display()
        ),
        None => format!(
            "{php} is {build} and does not have the extension altair_eval: `make install` installs it."
        ),
    }
}
