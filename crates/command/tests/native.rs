//! The driver `native` against real commands.
#![allow(clippy::unwrap_used, missing_docs)]

use std::ffi::OsString;

use altair_command::{Command, Driver, ExecutionPolicy, Outcome, Sandbox, Stdin, WorksIn};
use altair_engine::Silent;

fn run(policy: ExecutionPolicy, argv: &[&str]) -> Outcome {
    let command = Command {
        sandbox: Sandbox {
            driver: Driver::Native,
            binary: None,
            image: None,
        },
        policy,
        works_in: WorksIn::Own,
        argv: argv.iter().map(OsString::from).collect(),
        stdin: Stdin::Empty,
        terminal: None,
        environment: Vec::new(),
        diff: true,
    };
    command.prepare().unwrap().run(&mut Silent, None).unwrap()
}

#[test]
fn it_runs() {
    let policy = || ExecutionPolicy::in_dir("/tmp");
    for argv in [
        &["/bin/true"][..],
        &[
            "sh",
            "-c",
            "id; pwd; ls -la / /dev /work; ps aux; cat /proc/self/status | grep -i -E 'cap|seccomp|nonew'; ip addr; ls /proc | head; echo $$; echo <(true)",
        ],
        &["bash", "-c", "cat <(echo hi); kill -9 $$"],
        &[
            "sh",
            "-c",
            "echo x > f; cat f; ls -la; echo > /usr/x; mount -t tmpfs x /tmp; unshare -U true; python3 -c 'import socket; s=socket.socket(); s.connect((\"10.0.0.1\",80))'; sleep 1 & exit 3",
        ],
        &[
            "sh",
            "-c",
            "python3 -c 'import socket; s=socket.socket(); s.bind((\"127.0.0.1\",8080)); s.listen(1); c=socket.create_connection((\"127.0.0.1\",8080)); print(c)'; cat /etc/shadow; ls /root /work/main /home; ",
        ],
        &["nothing"],
        &["/etc/passwd"],
        &["sleep", "10"],
    ] {
        let mut p = policy();
        p.timeout_seconds = Some(2);
        let o = run(p, argv);
        println!(
            "{argv:?}: {} {:?} {:?}\n{}{}\n{:?}\n{:?}",
            o.exit_code,
            o.duration,
            o.timeout,
            String::from_utf8_lossy(&o.stdout),
            String::from_utf8_lossy(&o.stderr),
            o.blocked,
            o.guards
        );
    }
}
