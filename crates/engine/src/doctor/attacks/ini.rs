//! Guard `ini`: PHP's own switches.

use super::{Attempt, ran, returned};
use crate::doctor::scratch_project::{Scratch, literal};
use crate::doctor::trial_runs::{Lab, Setting, Trial};

pub(super) fn attack(lab: &Lab, setting: Setting) -> Result<Vec<Attempt>, String> {
    let scratch = Scratch::new().map_err(|e| e.to_string())?;
    let ran_program = scratch.outside().join("ran");
    let snippet = format!(
        "foreach (['exec', 'system', 'shell_exec', 'passthru'] as $function) {{
            try {{ $function('exec >' . escapeshellarg({})); }} catch (Error) {{}}
        }}
        try {{ return eval(\"return '{}';\"); }} catch (Error) {{ return null; }}",
        literal(&ran_program),
        scratch.token()
    );
    let result = ran(lab.run(&Trial::new(setting, &scratch, snippet))?)?;
    Ok(vec![
        Attempt::new(
            "start a program with PHP's functions (exec, system, …)",
            ran_program.exists(),
            ("started", "not started"),
        ),
        Attempt::new(
            "run a string as code (eval)",
            returned(&result, scratch.token()),
            ("run", "refused"),
        ),
    ])
}
