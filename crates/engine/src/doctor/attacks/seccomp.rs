//! Guard `seccomp`: connections and processes.

use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use super::{Attempt, ran};
use crate::doctor::scratch_project::{Scratch, literal};
use crate::doctor::trial_runs::{Lab, Setting, Trial};

pub(super) fn attack(lab: &Lab, setting: Setting) -> Result<Vec<Attempt>, String> {
    let mut attempts = vec![connect(lab, setting)?];
    attempts.extend(processes(lab, setting)?);
    Ok(attempts)
}

fn connect(lab: &Lab, setting: Setting) -> Result<Attempt, String> {
    let tried = "connect to a listener of this command on loopback";
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
    let (listener, address) = match listener.and_then(|one| Ok((one.local_addr()?, one))) {
        Ok((address, listener)) => (listener, address),
        Err(error) => return Ok(Attempt::impossible(tried, error.to_string())),
    };
    let scratch = Scratch::new().map_err(|e| e.to_string())?;
    let snippet = format!(
        "$to = @stream_socket_client('tcp://{address}', $code, $why, 1);
        if ($to) {{ fwrite($to, '{}'); fclose($to); }}
        return 1;",
        scratch.token()
    );
    ran(lab.run(&Trial::new(setting, &scratch, snippet))?)?;
    Ok(Attempt::new(
        tried,
        is_reached(&listener, scratch.token()),
        ("reached", "not reached"),
    ))
}

/// Whether a connection delivered the token. The run is over, so nothing more arrives.
fn is_reached(listener: &TcpListener, token: &str) -> bool {
    while let Ok((mut stream, _)) = listener.accept() {
        let mut bytes = vec![0; token.len()];
        let ready = stream
            .set_nonblocking(false)
            .and_then(|()| stream.set_read_timeout(Some(Duration::from_secs(1))));
        if ready.and_then(|()| stream.read_exact(&mut bytes)).is_ok() && bytes == token.as_bytes() {
            return true;
        }
    }
    false
}

fn processes(lab: &Lab, setting: Setting) -> Result<Vec<Attempt>, String> {
    let scratch = Scratch::new().map_err(|e| e.to_string())?;
    let program = scratch.project().join("program");
    let fork = scratch.project().join("fork");
    let mut snippet = format!(
        "@exec('exec >' . escapeshellarg({program}));
        $process = @proc_open('exec >' . escapeshellarg({program}), [], $pipes);
        if ($process) {{ proc_close($process); }}\n",
        program = literal(&program)
    );
    if lab.has_pcntl {
        snippet.push_str(&format!(
            "$pid = @pcntl_fork();
            if ($pid === 0) {{ touch({}); exit; }}
            if ($pid > 0) {{ pcntl_waitpid($pid, $status); }}\n",
            literal(&fork)
        ));
    }
    snippet.push_str("return 1;");
    ran(lab.run(&Trial::new(setting, &scratch, snippet))?)?;
    let words = ("started", "not started");
    let mut attempts = vec![Attempt::new(
        "start a program (exec, proc_open)",
        program.exists(),
        words,
    )];
    if lab.has_pcntl {
        attempts.push(Attempt::new(
            "start a process (pcntl_fork)",
            fork.exists(),
            words,
        ));
    }
    Ok(attempts)
}
