//! The forms in which a secret usually appears.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use super::escapes::{Html, Json};

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

/// The usual forms of a value, the value itself first. Some may be the same.
pub(super) fn usual(value: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = vec![value.to_vec()];
    let text = String::from_utf8_lossy(value);
    // With invalid UTF-8 replaced.
    forms.push(text.as_bytes().to_vec());
    forms.extend(Json::usual().map(|json| json.escaped(&text).into_bytes()));
    forms.extend(url(value));
    forms.extend(base64(value));
    forms.extend(literals(value));
    forms.extend(Html::usual().map(|html| html.escaped(value)));
    forms
}

/// Further forms of a value with special characters: in JSON for HTML, in nested JSON, in HTML with
/// other entities. They are many, mostly duplicates.
pub(super) fn rare(value: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let text = String::from_utf8_lossy(value).into_owned();
    let is_plain = |c: char| c.is_ascii_graphic() && !"<>&'\"/\\".contains(c);
    let has_some = !text.chars().all(is_plain);
    let own = text.clone();
    let once = Json::all(&text).map(move |json| json.escaped(&own).into_bytes());
    let own = text.clone();
    let twice = Json::usual().into_iter().chain(Json::for_html());
    let twice = twice.flat_map(move |inner| {
        let text = inner.escaped(&own);
        let outer = [inner, inner.with_plain_slashes()];
        outer.map(|outer| outer.escaped(&text).into_bytes())
    });
    let in_html = Json::usual()
        .into_iter()
        .map(move |json| Html::default().escaped(json.escaped(&text).as_bytes()));
    let html = Html::all(value).map({
        let value = value.to_vec();
        move |html| html.escaped(&value)
    });
    let all = once.chain(twice).chain(in_html).chain(html);
    all.take(if has_some { usize::MAX } else { 0 })
}

/// As a PHP literal, as `var_export()` and `addslashes()` write it.
fn literals(value: &[u8]) -> [Vec<u8>; 2] {
    let escaped = |special: &[u8]| {
        let mut out = Vec::with_capacity(value.len());
        for byte in value {
            if special.contains(byte) {
                out.push(b'\\');
            }
            out.push(*byte);
        }
        out
    };
    [escaped(b"\\'"), escaped(b"\\'\"")]
}

/// Percent-encoded, with hexadecimal digits in either case.
pub(super) fn url(value: &[u8]) -> Vec<Vec<u8>> {
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

/// As base64, alone or inside a longer text. Three bytes become four characters, so the form
/// depends on the value's offset in such a group.
fn base64(value: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    for engine in [STANDARD, URL_SAFE] {
        forms.push(engine.encode(value));
        for before in 0..3_usize {
            let encoded = engine.encode([&vec![0; before][..], value].concat());
            // Leaves out characters that also encode neighbouring bytes.
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
