//! Attacks guards and judges the results.

use super::attacks::{Attempt, Plan, Seen};
use super::report::{Attack, SelfTest, Verdict};
use super::trial_runs::{Lab, Setting};

/// Attacks a guard, then repeats the attacks without it.
pub(super) fn self_test(lab: &Lab, plan: &Plan) -> SelfTest {
    let attempts = match (plan.attack)(lab, Setting::Alone(plan.guard)) {
        Ok(attempts) => attempts,
        Err(why) => return not_tried(why),
    };
    match plan.without.map(|attack| attack(lab, Setting::Bare)) {
        None => judge(attempts, &[]),
        Some(Ok(controls)) => judge(attempts, &controls),
        Some(Err(why)) => not_tried(format!("without the guard it could not be tried: {why}")),
    }
}

/// The result of a self-test that was not made.
pub(super) fn not_tried(reason: impl Into<String>) -> SelfTest {
    SelfTest {
        verdict: Verdict::NotTried,
        reason: Some(reason.into()),
        attacks: Vec::new(),
    }
}

/// A stopped attempt counts only if the same attempt gets through without the guard, as far as the
/// guard can be left out. One that got through always counts.
pub(super) fn judge(attempts: Vec<Attempt>, controls: &[Attempt]) -> SelfTest {
    let mut attacks = Vec::new();
    let mut reasons = Vec::new();
    for Attempt { tried, seen } in attempts {
        let control = controls.iter().find(|control| control.tried == tried);
        let (held, seen) = match seen {
            Seen::Stopped(seen) => (true, seen),
            Seen::Through(seen) => (false, seen),
            Seen::Impossible(why) => {
                reasons.push(format!("{tried}: {why}"));
                continue;
            }
        };
        let without = match control.map(|control| &control.seen) {
            Some(Seen::Stopped(seen) | Seen::Impossible(seen)) if held => {
                reasons.push(format!("{tried}: {seen}, without the guard too"));
                continue;
            }
            Some(Seen::Through(seen) | Seen::Stopped(seen) | Seen::Impossible(seen)) => {
                Some(seen.clone())
            }
            None => None,
        };
        attacks.push(Attack {
            tried,
            seen,
            without,
            held,
        });
    }
    SelfTest {
        verdict: match attacks.as_slice() {
            [] => Verdict::NotTried,
            attacks if attacks.iter().all(|attack| attack.held) => Verdict::Passed,
            _ => Verdict::Failed,
        },
        reason: (!reasons.is_empty()).then(|| reasons.join("; ")),
        attacks,
    }
}
