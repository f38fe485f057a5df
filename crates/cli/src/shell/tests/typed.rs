//! What a person types, in a real terminal.

use std::fs;

use super::terminal::Terminal;

const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const UP: &str = "\x1b[A";

#[test]
fn a_line_is_answered_and_ctrl_d_leaves() {
    let state = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(state.path(), &[]);
    terminal.expect("a session in /srv/shop; what it writes is not kept; :help lists");
    terminal.expect("php> ");
    terminal.line("1 + 1", &["✓ null", "duration=1ms", "ran: 1 + 1"]);
    terminal.enter(CTRL_D);
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn exit_and_quit_leave_and_another_status_is_the_exit_code() {
    let state = tempfile::tempdir().unwrap();
    for (leave, code) in [("exit", 0), ("quit;", 0), (":quit", 0), ("exit(3)", 1)] {
        let mut terminal = Terminal::open(state.path());
        terminal.line("throw", &["ran: throw"]);
        terminal.enter(&format!("{leave}\r"));
        assert_eq!(terminal.end().0, Some(code), "{leave}");
    }
}

#[test]
fn what_is_not_whole_goes_on_in_the_next_line() {
    let state = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::open(state.path());
    terminal.line("if (true) {\rf();\r}", &["ran: if (true) {|f();|}"]);
    // As a terminal passes on what is pasted.
    let pasted = "\x1b[200~class A {\n  use B;\n}\x1b[201~";
    terminal.line(pasted, &["ran: class A {|  use B;|}"]);
}

#[test]
fn what_is_typed_ahead_is_not_lost() {
    let state = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::open(state.path());
    terminal.enter("one()\rtwo()\rif (x) {\r}\r");
    terminal.expect("ran: one()");
    terminal.expect("ran: two()");
    terminal.expect("ran: if (x) {|}");
    terminal.enter("sleep\r");
    terminal.expect("sleeping");
    terminal.enter("if (y) {\r}\rlast");
    terminal.expect("last");
    terminal.interrupt();
    terminal.expect("✗ The line was ended.");
    terminal.line("()", &["ran: if (y) {|}", "ran: last()"]);
}

#[test]
fn tab_completes_what_is_unique_and_lists_what_is_not() {
    let state = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::open(state.path());
    terminal.line("count($or\t)", &["ran: count($orders)"]);
    terminal.enter("array_m\t");
    terminal.expect("array_map()");
    terminal.expect("array_merge()");
    terminal.line("er\t", &["ran: array_merge"]);
    terminal.line(":ch\t", &["var/report.txt"]);
}

#[test]
fn up_brings_back_the_last_line_also_of_the_last_session() {
    let state = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::open(state.path());
    terminal.line("while (x()) {\r}", &["ran: while"]);
    terminal.line(" $hidden = 1", &["ran: $hidden = 1"]);
    terminal.line(UP, &["ran: while (x()) {|}"]);
    terminal.enter(CTRL_D);
    assert_eq!(terminal.end().0, Some(0));

    let mut terminal = Terminal::open(state.path());
    terminal.line(UP, &["ran: while (x()) {|}"]);
    terminal.line(":history", &["  while (x()) {\n  }\n  :history\n"]);
}

#[test]
fn sessions_that_run_at_once_keep_the_lines_of_both() {
    let state = tempfile::tempdir().unwrap();
    let mut one = Terminal::open(state.path());
    let mut other = Terminal::open(state.path());
    one.line("one()", &["ran: one()"]);
    other.line("other()", &["ran: other()"]);
    one.line("again()", &["ran: again()"]);
    let file = state.path().join("altair/shell_history");
    assert_eq!(
        fs::read_to_string(file).unwrap(),
        "one()\nother()\nagain()\n"
    );
}

#[test]
fn that_history_cannot_be_kept_is_said_once() {
    let state = tempfile::tempdir().unwrap();
    let file = state.path().join("file");
    fs::write(&file, "").unwrap();
    let mut terminal = Terminal::start(&file, &[]);
    terminal.expect("lines are not kept: ");
    terminal.expect("php> ");
    terminal.line("one()", &["ran: one()"]);
    terminal.line(UP, &["ran: one()"]);
    terminal.enter(CTRL_D);
    let (code, shown) = terminal.end();
    assert_eq!((code, shown.matches("not kept: ").count()), (Some(0), 1));
}

#[test]
fn ctrl_c_at_the_prompt_forgets_what_was_typed() {
    let state = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::open(state.path());
    terminal.enter("forgotten {\r");
    // The editor draws all of it again, with the prompt, when it begins a further line.
    terminal.expect("php> forgotten {");
    terminal.enter(CTRL_C);
    terminal.expect("php> ");
    terminal.line("kept()", &["ran: kept()"]);
    terminal.enter(CTRL_D);
    let (code, shown) = terminal.end();
    assert_eq!(code, Some(0));
    assert!(!shown.contains("ran: forgotten"), "{shown}");
}

#[test]
fn ctrl_c_ends_the_line_that_runs_and_not_the_session() {
    let state = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::open(state.path());
    for _ in 0..2 {
        terminal.enter("sleep\r");
        terminal.expect("sleeping");
        terminal.enter(CTRL_C);
        terminal.expect("✗ The line was ended.");
        terminal.expect("php> ");
    }
    terminal.line("next()", &["ran: next()"]);
}

#[test]
fn a_terminal_without_editing_has_whole_snippets_and_ctrl_c_too() {
    let state = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(state.path(), &[("TERM", "dumb")]);
    terminal.expect("php> ");
    terminal.enter("forgotten");
    terminal.expect("forgotten");
    terminal.enter(CTRL_C);
    terminal.line("if (x) {\rf();\r}", &["ran: if (x) {|f();|}"]);
    terminal.enter("exit\r");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn commands_are_answered_and_one_that_is_unknown_names_all() {
    let state = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::open(state.path());
    terminal.line(":help", &[":changes ", "shows the files", ":quit", "$_e"]);
    terminal.line(
        ":changes",
        &["written so far, and not kept:", "var/report.txt"],
    );
    terminal.line(
        ":blocked",
        &["refused: connect to 192.0.2.1:80", "--network allows it"],
    );
    terminal.line(":restart", &["booted anew; no variables are left"]);
    terminal.line(":nope", &["there is no :nope; there are :help, :restart, "]);
}

#[test]
fn a_session_that_begins_anew_says_what_is_lost() {
    let state = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::open(state.path());
    let lost = "the session began anew: the process crashed; $orders, $mailer are lost";
    terminal.line("crash", &["Killed by a signal", lost]);
    terminal.line("fatal", &["Fatal"]);
    terminal.line("gone", &["no process could be started"]);
    terminal.line("next()", &["ran: next()"]);
}

#[test]
fn files_that_have_changed_are_named_before_the_next_prompt() {
    let state = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::open(state.path());
    let changed = "changed since the session has loaded it: src/Mailer.php, /lib/x.php; :restart";
    terminal.line("touch", &["ran: touch", changed]);
    terminal.line("next()", &["ran: next()"]);
}

#[test]
fn a_boot_that_fails_is_shown_and_ends_the_shell() {
    let state = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(state.path(), &[("PLAYED_BOOT_FAILS", "1")]);
    terminal.expect("✗ Boot failed.");
    assert_eq!(terminal.end().0, Some(1));
}
