//! The forms in which a secret usually appears.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

/// What `urlencode()` leaves as it is.
const FORM: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');
/// What `rawurlencode()` leaves as it is: RFC 3986, section 2.3.
const RAW: &AsciiSet = &FORM.remove(b'~');
/// What JavaScript's `encodeURIComponent()` leaves as it is.
const COMPONENT: &AsciiSet = &RAW
    .remove(b'!')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*');

/// All forms of a value, each once, the value itself first.
pub(super) fn of(value: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = vec![value.to_vec()];
    // As it looks where what is no UTF-8 was replaced.
    forms.push(String::from_utf8_lossy(value).into_owned().into_bytes());
    forms.extend(json(value));
    forms.extend(url(value));
    forms.extend(base64(value));
    forms.extend(literals(value));
    let mut distinct: Vec<Vec<u8>> = Vec::with_capacity(forms.len());
    for form in forms {
        if !distinct.contains(&form) {
            distinct.push(form);
        }
    }
    distinct
}

/// As in a JSON string: with slashes and what is not ASCII escaped, as `json_encode()` does, or not.
fn json(value: &[u8]) -> Vec<Vec<u8>> {
    let text = String::from_utf8_lossy(value);
    let Ok(quoted) = serde_json::to_string(&*text) else {
        return Vec::new();
    };
    let plain = quoted[1..quoted.len() - 1].to_owned();
    let ascii = |text: &str| {
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                c if c.is_ascii() => out.push(c),
                c => c
                    .encode_utf16(&mut [0; 2])
                    .iter()
                    .for_each(|unit| out.push_str(&format!("\\u{unit:04x}"))),
            }
        }
        out
    };
    let slashed = plain.replace('/', "\\/");
    [ascii(&plain), ascii(&slashed), plain, slashed]
        .map(String::into_bytes)
        .into()
}

/// As in PHP's literals, which `var_export()` and `addslashes()` write, and in HTML.
fn literals(value: &[u8]) -> Vec<Vec<u8>> {
    let escaped = |special: &[(u8, &str)]| {
        let mut out = Vec::with_capacity(value.len());
        for byte in value {
            match special.iter().find(|(of, _)| of == byte) {
                Some((_, text)) => out.extend_from_slice(text.as_bytes()),
                None => out.push(*byte),
            }
        }
        out
    };
    let (amp, lt, gt, quot) = (
        (b'&', "&amp;"),
        (b'<', "&lt;"),
        (b'>', "&gt;"),
        (b'"', "&quot;"),
    );
    vec![
        escaped(&[(b'\\', "\\\\"), (b'\'', "\\'")]),
        escaped(&[(b'\\', "\\\\"), (b'\'', "\\'"), (b'"', "\\\"")]),
        escaped(&[amp, lt, gt, quot, (b'\'', "&#039;")]),
        escaped(&[amp, lt, gt, quot]),
    ]
}

/// As in a URL, with digits of either case.
fn url(value: &[u8]) -> Vec<Vec<u8>> {
    let encoded = |set| percent_encode(value, set).to_string();
    let upper = [
        encoded(RAW),
        encoded(FORM).replace("%20", "+"),
        encoded(COMPONENT),
    ];
    upper
        .iter()
        .map(|text| lower_digits(text))
        .chain(upper.iter().cloned())
        .map(String::into_bytes)
        .collect()
}

/// `%2F` as `%2f`.
fn lower_digits(text: &str) -> String {
    let mut digits = 0_u8;
    text.chars()
        .map(|c| {
            if c == '%' {
                digits = 2;
                return c;
            }
            let is_digit = digits > 0;
            digits = digits.saturating_sub(1);
            if is_digit { c.to_ascii_lowercase() } else { c }
        })
        .collect()
}

/// As in base64, by itself or inside of something longer, of which each three bytes are four
/// characters: where in such a group the value begins decides how it looks.
fn base64(value: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    for engine in [STANDARD, URL_SAFE] {
        forms.push(engine.encode(value));
        for before in 0..3_usize {
            let encoded = engine.encode([&vec![0; before][..], value].concat());
            // What the bytes before and after have a part in is not the value's alone.
            let first = (before * 8).div_ceil(6);
            let end = (before + value.len()) * 8 / 6;
            forms.push(encoded[first..end].to_owned());
        }
    }
    let slashed: Vec<String> = forms.iter().map(|text| text.replace('/', "\\/")).collect();
    forms
        .into_iter()
        .chain(slashed)
        .map(String::into_bytes)
        .collect()
}
