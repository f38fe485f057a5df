//! Dates, time zones, intervals, and identifiers: one line each.

use super::{Content, Reach, View, lazy, made};
use crate::encode::node::{BuiltIn, Node, Shape};

/// A date, and the name of its zone if that says more than the offset.
pub(super) fn date<N: Node>(node: &N, alone: bool, reach: Reach) -> Option<View<N>> {
    let zone = made(node, BuiltIn::DateZone);
    Some(View {
        display: made(node, BuiltIn::Date),
        zone: zone.filter(|zone| !zone.starts_with(['+', '-'])),
        ..own(node, alone, reach)
    })
}

/// An interval as ISO 8601 writes it.
pub(super) fn interval<N: Node>(node: &N, alone: bool, reach: Reach) -> Option<View<N>> {
    Some(View {
        display: made(node, BuiltIn::Interval).and_then(|fields| iso(&fields)),
        ..own(node, alone, reach)
    })
}

fn own<N: Node>(node: &N, alone: bool, reach: Reach) -> View<N> {
    match alone {
        true => View::of(Content::Fields(Vec::new())),
        false => lazy::without(node, &[], reach.entries),
    }
}

/// `+ 1 0 2 3 0 0 500000`, the sign and every field, as `P1Y2DT3H0.5S`.
fn iso(fields: &str) -> Option<String> {
    let mut fields = fields.split(' ');
    let sign = fields.next()?;
    let numbers: Vec<i64> = fields.map_while(|field| field.parse().ok()).collect();
    let [years, months, days, hours, minutes, seconds, micros] = numbers.try_into().ok()?;
    let mut text = String::new();
    let part = |text: &mut String, number: i64, unit: char| {
        if number != 0 {
            text.push_str(&format!("{number}{unit}"));
        }
    };
    part(&mut text, years, 'Y');
    part(&mut text, months, 'M');
    part(&mut text, days, 'D');
    let mut time = String::new();
    part(&mut time, hours, 'H');
    part(&mut time, minutes, 'M');
    if micros != 0 {
        let fraction = format!("{micros:06}");
        time.push_str(&format!("{seconds}.{}S", fraction.trim_end_matches('0')));
    } else {
        part(&mut time, seconds, 'S');
    }
    if text.is_empty() && time.is_empty() {
        time.push_str("0S");
    }
    let time = match time.is_empty() {
        true => String::new(),
        false => format!("T{time}"),
    };
    let sign = if sign == "-" { "-" } else { "" };
    Some(format!("{sign}P{text}{time}"))
}

/// A UUID of Ramsey's, from the sixteen bytes of its fields.
pub(super) fn ramsey<N: Node>(node: &N) -> Option<String> {
    let fields = node.property("", "fields")?;
    // A GUID's bytes are in another order.
    if fields.is_a("Ramsey\\Uuid\\Guid\\Fields") {
        return None;
    }
    let bytes = fields.property("", "bytes")?;
    let Shape::Bytes(bytes) = bytes.shape() else {
        return None;
    };
    if bytes.len() != 16 {
        return None;
    }
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    ))
}

#[cfg(test)]
mod tests {
    use super::iso;

    #[test]
    fn an_interval_is_written_as_iso_8601_writes_it() {
        for (fields, shown) in [
            ("+ 0 0 0 0 0 0 0", "PT0S"),
            ("+ 1 2 3 4 5 6 0", "P1Y2M3DT4H5M6S"),
            ("- 0 0 2 0 0 0 0", "-P2D"),
            ("+ 0 0 0 0 0 0 500000", "PT0.5S"),
            ("+ 0 0 0 0 0 7 20", "PT7.00002S"),
        ] {
            assert_eq!(iso(fields).as_deref(), Some(shown));
        }
        assert_eq!(iso("+ 1 2"), None);
        assert_eq!(iso(""), None);
    }
}
