//! The format from both sides, and what is refused.

#![allow(clippy::unwrap_used)]

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::value::{Builder, OwnedKey, Value};
use super::*;

fn bytes(value: &Value) -> Vec<u8> {
    value.bytes().unwrap()
}

fn parsed(bytes: &[u8]) -> Result<Value, Malformed> {
    let mut builder = Builder::default();
    read(bytes, usize::MAX, &mut builder)?;
    Ok(builder.take().unwrap())
}

fn refusal(bytes: &[u8]) -> Malformed {
    parsed(bytes).unwrap_err()
}

fn list(items: impl IntoIterator<Item = Value>) -> Value {
    Value::List(items.into_iter().collect())
}

fn map(keys: impl IntoIterator<Item = OwnedKey>) -> Value {
    Value::Map(keys.into_iter().map(|key| (key, Value::Null)).collect())
}

fn scalars() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        (-70_i64..70).prop_map(Value::Int),
        any::<u64>().prop_map(|bits| Value::Float(f64::from_bits(bits))),
        vec(any::<u8>(), 0..200).prop_map(Value::String),
    ]
}

fn keys() -> impl Strategy<Value = OwnedKey> {
    prop_oneof![
        any::<i64>().prop_map(OwnedKey::Int),
        vec(any::<u8>(), 0..9).prop_map(OwnedKey::String),
    ]
}

fn values() -> impl Strategy<Value = Value> {
    scalars().prop_recursive(6, 300, 20, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..20).prop_map(Value::List),
            btree_map(keys(), inner, 0..20)
                .prop_map(|entries| Value::Map(entries.into_iter().rev().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read(value in values()) {
        prop_assert_eq!(parsed(&bytes(&value)), Ok(value));
    }

    #[test]
    fn a_part_of_a_value_is_none(value in values(), share in 0.0..1.0) {
        let whole = bytes(&value);
        #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]
        let part = (whole.len() as f64 * share) as usize;
        prop_assert_eq!(parsed(&whole[..part]), Err(Malformed::Truncated));
    }

    #[test]
    fn a_value_with_something_behind_it_is_none(value in values(), more in any::<u8>()) {
        let mut whole = bytes(&value);
        whole.push(more);
        prop_assert_eq!(parsed(&whole), Err(Malformed::Trailing));
    }

    #[test]
    fn a_writer_takes_as_many_bytes_as_it_may(value in values()) {
        let len = bytes(&value).len();
        prop_assert_eq!(value.write(&mut Writer::new(len)), Ok(()));
        prop_assert_eq!(value.write(&mut Writer::new(len - 1)), Err(Full));
    }

    #[test]
    fn no_bytes_announce_more_than_there_are(mut hostile in vec(0_u8..12, 0..60)) {
        hostile.insert(0, tag::LIST);
        let mut builder = Builder::default();
        let _ = read(&hostile, usize::MAX, &mut builder);
        prop_assert!(builder.announced <= hostile.len());
    }
}

#[test]
fn each_value_has_the_form_that_is_described() {
    for (value, expected) in [
        (Value::Null, &[0][..]),
        (Value::Bool(false), &[1]),
        (Value::Bool(true), &[2]),
        (Value::Int(0), &[3, 0]),
        (Value::Int(-1), &[3, 1]),
        (Value::Int(64), &[3, 0x80, 1]),
        (
            Value::Int(i64::MIN),
            &[3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1],
        ),
        (Value::Float(-0.0), &[4, 0, 0, 0, 0, 0, 0, 0, 0x80]),
        (Value::String(b"a\0".to_vec()), &[5, 2, b'a', 0]),
        (list([]), &[6, 0]),
        (list([Value::Null, Value::Bool(true)]), &[6, 2, 0, 2]),
        (
            map([OwnedKey::Int(1), OwnedKey::String(b"1".to_vec())]),
            &[7, 2, 3, 2, 0, 5, 1, b'1', 0],
        ),
    ] {
        assert_eq!(bytes(&value), expected, "{value:?}");
        assert_eq!(parsed(expected), Ok(value));
    }
}

#[test]
fn a_float_keeps_its_bits() {
    for bits in [0x7ff8_0000_0000_1234, 0xfff0_0000_0000_0001, 1, 1 << 63] {
        let value = Value::Float(f64::from_bits(bits));
        assert_eq!(parsed(&bytes(&value)), Ok(value));
    }
}

#[test]
fn arrays_are_nested_as_deep_as_they_may_be_and_no_deeper() {
    let nested = |depth| bytes(&Value::nested(depth));
    let built = |mut reader: Reader<'_>| {
        let mut builder = Builder::default();
        reader.read(&mut builder)?;
        Ok(builder.take().map(|value| bytes(&value)))
    };

    let deepest = nested(DEPTH_MAX);
    let deeper = nested(DEPTH_MAX + 1);
    let too_deep = nested(DEPTH_MAX + 2);

    assert_eq!(
        built(Reader::new(&deepest, usize::MAX)),
        Ok(Some(deepest.clone()))
    );
    assert_eq!(
        built(Reader::new(&deeper, usize::MAX)),
        Err(Malformed::TooDeep)
    );
    assert_eq!(
        built(Reader::of_several(&deeper, usize::MAX)),
        Ok(Some(deeper.clone()))
    );
    assert_eq!(
        built(Reader::of_several(&too_deep, usize::MAX)),
        Err(Malformed::TooDeep)
    );
}

#[test]
fn what_no_writer_writes_is_refused() {
    for (bytes, refused) in [
        (&[][..], Malformed::Truncated),
        (&[8], Malformed::Tag(8)),
        (&[255], Malformed::Tag(255)),
        (&[0, 0], Malformed::Trailing),
        (&[3], Malformed::Truncated),
        (&[3, 0x80], Malformed::Truncated),
        (&[4, 0, 0, 0, 0, 0, 0, 0], Malformed::Truncated),
        (&[5, 1], Malformed::Truncated),
        (&[6, 1], Malformed::Truncated),
        (&[7, 1, 3, 0], Malformed::Truncated),
        (&[7, 1, 5, 1, 0], Malformed::Truncated),
        (&[7, 1, 4, 0, 0], Malformed::KeyTag(4)),
        // Numbers of more bytes than they need, or than there are in 64 bits.
        (&[3, 0x80, 0], Malformed::Number),
        (
            &[3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2],
            Malformed::Number,
        ),
        (
            &[3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1],
            Malformed::Number,
        ),
        (&[7, 2, 3, 2, 0, 3, 2, 0], Malformed::DuplicateKey),
        (
            &[7, 2, 5, 1, b'a', 0, 5, 1, b'a', 0],
            Malformed::DuplicateKey,
        ),
    ] {
        assert_eq!(refusal(bytes), refused, "{bytes:?}");
    }
}

#[test]
fn a_length_that_overflows_is_too_long() {
    let longest = [255, 255, 255, 255, 255, 255, 255, 255, 255, 1];
    for tag in [tag::STRING, tag::LIST, tag::MAP] {
        let mut bytes = vec![tag];
        bytes.extend(longest);
        bytes.extend([0; 100]);
        assert_eq!(refusal(&bytes), Malformed::Truncated, "tag {tag}");
    }
}

#[test]
fn an_array_gets_no_bytes_that_those_around_it_need() {
    // Each list claims all that follows it: only the outermost can have that.
    let mut bytes = Vec::new();
    for left in (1..=40).rev() {
        bytes.extend([tag::LIST, left * 2]);
    }
    bytes.extend([0, 0]);
    let mut builder = Builder::default();
    assert_eq!(
        read(&bytes, usize::MAX, &mut builder),
        Err(Malformed::Truncated)
    );
    assert_eq!(builder.announced, 80);

    // The string claims the byte that the second value of the list needs.
    assert_eq!(refusal(&[6, 2, 5, 2, b'a', 0]), Malformed::Truncated);
}

#[test]
fn memory_is_counted_before_it_is_needed() {
    for value in [
        list((0..1000).map(Value::Int)),
        map((0..1000).map(OwnedKey::Int)),
        map((0..1000).map(|n| OwnedKey::String(vec![b'k'; n + 2]))),
        Value::String(vec![b'a'; 100_000]),
        list((0..100).map(|_| Value::String(vec![b'a'; 100]))),
        list((0..100).map(|_| list([Value::Null]))),
    ] {
        let bytes = bytes(&value);
        let enough = (0..=63)
            .map(|n| 1_usize << n)
            .find(|most| read(&bytes, *most, &mut Builder::default()).is_ok())
            .unwrap();
        assert!((8192..8_388_608).contains(&enough), "{enough}");
        assert_eq!(
            read(&bytes, enough / 2, &mut Builder::default()),
            Err(Malformed::Memory)
        );
    }
}

#[test]
fn a_large_array_that_is_refused_is_never_announced() {
    let bytes = bytes(&list((0..100_000).map(|_| Value::Null)));
    let mut builder = Builder::default();
    assert_eq!(
        read(&bytes, 1_000_000, &mut builder),
        Err(Malformed::Memory)
    );
    assert_eq!(builder.announced, 0);
}

#[test]
fn what_php_has_once_needs_no_memory() {
    for value in [
        Value::Null,
        Value::Int(1),
        list([]),
        Value::String(b"a".to_vec()),
    ] {
        assert_eq!(read(&bytes(&value), 0, &mut Builder::default()), Ok(()));
    }
}

#[test]
fn a_writer_without_room_writes_nothing() {
    let mut writer = Writer::new(9);
    assert_eq!(writer.float(1.0), Ok(()));
    assert_eq!(writer.null(), Err(Full));
    assert_eq!(writer.finish().len(), 9);
    assert_eq!(Writer::new(0).null(), Err(Full));
    assert_eq!(Writer::new(5).string(b"abcd"), Err(Full));
}
