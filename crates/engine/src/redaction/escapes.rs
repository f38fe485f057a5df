//! Escapes text for JSON and HTML, by the options of PHP's functions.

/// Characters that `json_encode()` writes as `\u…` on request, each with its flag.
const HEX: [(char, u8); 5] = [
    ('<', Json::TAG),
    ('>', Json::TAG),
    ('&', Json::AMP),
    ('\'', Json::APOS),
    ('"', Json::QUOT),
];

/// How a text is written inside of a JSON string.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Json {
    /// The `JSON_HEX_*` flags that are set.
    hex: u8,
    /// Writes the digits of those in lower case, as languages other than PHP do.
    lower: bool,
    /// Escapes slashes: without `JSON_UNESCAPED_SLASHES`.
    slashes: bool,
    /// Escapes non-ASCII characters: without `JSON_UNESCAPED_UNICODE`.
    ascii: bool,
}

impl Json {
    const TAG: u8 = 1;
    const AMP: u8 = 2;
    const APOS: u8 = 4;
    const QUOT: u8 = 8;

    /// The usual options.
    pub(super) fn usual() -> [Self; 4] {
        [(false, false), (false, true), (true, false), (true, true)].map(|(slashes, ascii)| Self {
            slashes,
            ascii,
            ..Self::default()
        })
    }

    /// All options with a `JSON_HEX_*` flag that change how `text` is written.
    pub(super) fn all(text: &str) -> impl Iterator<Item = Self> + use<> {
        let flags = HEX.iter().filter(|(own, _)| text.contains(*own));
        let flags = flags.fold(0, |flags, (_, flag)| flags | flag);
        let (has_slash, is_ascii) = (text.contains('/'), text.is_ascii());
        let makes_one = move |own: &Self| (has_slash || !own.slashes) && !(is_ascii && own.ascii);
        let each = move |hex| {
            let usual = Self::usual().into_iter().filter(makes_one);
            usual.flat_map(move |own| [false, true].map(|lower| Self { hex, lower, ..own }))
        };
        (1..=flags)
            .filter(move |hex| hex & !flags == 0)
            .flat_map(each)
    }

    /// With all `JSON_HEX_*` flags, as Symfony's `JsonResponse` sets them.
    pub(super) fn for_html() -> [Self; 4] {
        let hex = Self::TAG | Self::AMP | Self::APOS | Self::QUOT;
        Self::usual().map(|own| Self { hex, ..own })
    }

    pub(super) fn with_plain_slashes(self) -> Self {
        Self {
            slashes: false,
            ..self
        }
    }

    /// The escaped text, without the quotes around it.
    pub(super) fn escaped(self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let unit = |unit: u16| format!("\\u{unit:04x}");
        for c in text.chars() {
            let flag = HEX.iter().find(|(own, _)| *own == c);
            match c {
                _ if flag.is_some_and(|(_, flag)| self.hex & flag != 0) => {
                    let digits = format!("{:04x}", u32::from(c));
                    out.push_str("\\u");
                    out.push_str(&match self.lower {
                        true => digits,
                        false => digits.to_uppercase(),
                    });
                }
                '"' | '\\' => out.extend(['\\', c]),
                '/' if self.slashes => out.push_str("\\/"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\0'..='\u{1f}' => out.push_str(&unit(c as u16)),
                c if !c.is_ascii() && self.ascii => c
                    .encode_utf16(&mut [0; 2])
                    .iter()
                    .for_each(|of| out.push_str(&unit(*of))),
                c => out.push(c),
            }
        }
        out
    }
}

/// How quotes are written in HTML.
#[derive(Debug, Clone, Copy)]
pub(super) struct Html {
    double: &'static str,
    single: &'static str,
}

impl Default for Html {
    /// As `htmlspecialchars()` does.
    fn default() -> Self {
        Self {
            double: "&quot;",
            single: "&#039;",
        }
    }
}

impl Html {
    /// With `ENT_QUOTES`, and with `ENT_COMPAT`.
    pub(super) fn usual() -> [Self; 2] {
        let own = Self::default();
        [own, Self { single: "'", ..own }]
    }

    /// All entities that change how `text` is written, including those of other languages than PHP.
    pub(super) fn all(text: &[u8]) -> impl Iterator<Item = Self> + use<> {
        let singles = ["'", "&#039;", "&#39;", "&apos;", "&#x27;"];
        let doubles = ["\"", "&quot;", "&#34;", "&#034;", "&#x22;"];
        let some = |quote: u8, all: usize| if text.contains(&quote) { all } else { 1 };
        let (single, double) = (some(b'\'', singles.len()), some(b'"', doubles.len()));
        let each = move |double| {
            let singles = singles.into_iter().take(single);
            singles.map(move |single| Self { double, single })
        };
        doubles.into_iter().take(double).flat_map(each)
    }

    /// The escaped text.
    pub(super) fn escaped(self, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len());
        for byte in text {
            match byte {
                b'&' => out.extend_from_slice(b"&amp;"),
                b'<' => out.extend_from_slice(b"&lt;"),
                b'>' => out.extend_from_slice(b"&gt;"),
                b'"' => out.extend_from_slice(self.double.as_bytes()),
                b'\'' => out.extend_from_slice(self.single.as_bytes()),
                other => out.push(*other),
            }
        }
        out
    }
}
