//! A binary search for the number of a system call, in BPF.

use std::collections::BTreeMap;

use seccompiler::{BpfProgram, sock_filter};

/// A piece of a filter. Each piece here returns on every path.
pub(super) type Program = BpfProgram;

// linux/bpf_common.h.
/// `BPF_RET | BPF_K`: returns `k`.
pub(super) const RETURN: u16 = 0x06;
/// `BPF_LD | BPF_W | BPF_ABS`: loads the word at `k` of `struct seccomp_data`.
pub(super) const LOAD: u16 = 0x20;
/// `BPF_JMP | BPF_JGE | BPF_K`: jumps `jt` ahead if the loaded word is at least `k`, else `jf`.
pub(super) const IF_AT_LEAST: u16 = 0x35;
/// `BPF_JMP | BPF_JA`: jumps `k` ahead.
const JUMP: u16 = 0x05;
/// `BPF_JMP | BPF_JEQ | BPF_K`: jumps `jt` ahead if the loaded word is `k`, else `jf`.
pub(super) const IF_EQUAL: u16 = 0x15;
/// The offset of the call's number (linux/seccomp.h, `struct seccomp_data`).
pub(super) const NUMBER: u32 = 0;

/// A program that continues with the line of the called number, or with `otherwise`.
pub(super) fn program(lines: BTreeMap<u32, Program>, otherwise: Program) -> Program {
    let mut result = vec![instruction(LOAD, NUMBER, 0, 0)];
    result.extend(among(&runs(lines, otherwise)));
    result
}

/// A program of the crate for one call, without its `beginning` and the check for the call's
/// number, which the search makes redundant. If the crate's programs ever have another form, the
/// program is kept as it is: correct, but longer.
pub(super) fn without_question(program: Program, beginning: &Program, number: u32) -> Program {
    let question = [
        instruction(LOAD, NUMBER, 0, 0),
        instruction(IF_EQUAL, number, 0, 1),
    ];
    let rest = program
        .strip_prefix(&**beginning)
        .and_then(|rest| rest.strip_prefix(&question))
        .and_then(<[_]>::split_last);
    match rest {
        // The last instruction is where the number check jumps if it fails; all other paths return
        // before it.
        Some((last, rest)) if last.code == RETURN => rest.to_vec(),
        _ => program,
    }
}

/// Numbers with the same program, from `from` up to the next range.
struct NumberRange {
    from: u32,
    program: Program,
}

/// Ranges that cover all numbers from 0.
fn runs(lines: BTreeMap<u32, Program>, otherwise: Program) -> Vec<NumberRange> {
    let mut runs: Vec<NumberRange> = Vec::new();
    let mut add = |from, program: &Program| {
        if runs.last().is_none_or(|run| run.program != *program) {
            let program = program.clone();
            runs.push(NumberRange { from, program });
        }
    };
    let mut next = 0;
    for (number, program) in &lines {
        if *number > next {
            add(next, &otherwise);
        }
        add(*number, program);
        next = number.saturating_add(1);
    }
    add(next, &otherwise);
    runs
}

fn among(runs: &[NumberRange]) -> Program {
    let (lower, upper) = runs.split_at(runs.len() / 2);
    let Some(first) = upper.first() else {
        return Program::new();
    };
    if lower.is_empty() {
        return first.program.clone();
    }
    let (from, lower, upper) = (first.from, among(lower), among(upper));
    let mut result = match u8::try_from(lower.len()) {
        Ok(over) => vec![instruction(IF_AT_LEAST, from, over, 0)],
        // A condition can jump at most 255 ahead.
        Err(_) => vec![
            instruction(IF_AT_LEAST, from, 0, 1),
            instruction(JUMP, over(&lower), 0, 0),
        ],
    };
    result.extend(lower);
    result.extend(upper);
    result
}

/// The length of a program. It has at most 4096 instructions (`BPF_MAXINSNS`); the kernel refuses
/// longer ones.
fn over(program: &Program) -> u32 {
    u32::try_from(program.len()).unwrap_or(u32::MAX)
}

/// An instruction.
pub(super) fn instruction(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}
