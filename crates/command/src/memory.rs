//! Memory limits as text: `128M`.

use std::fmt;
use std::str::FromStr;

/// The most megabytes that a policy allows.
const MAX_MEGABYTES: u64 = 1024;
/// What a policy allows unless another limit is chosen, in megabytes.
const DEFAULT_MEGABYTES: u64 = 128;

/// A memory limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Memory {
    /// Nobody chose one: 128 MiB. The driver `host` enforces none then.
    #[default]
    Default,
    /// This many megabytes.
    Megabytes(u64),
    /// None at all, which only the command line offers.
    Unlimited,
}

impl Memory {
    /// Bytes; `None` without a limit.
    #[must_use]
    pub fn bytes(self) -> Option<u64> {
        match self {
            Self::Default => Some(DEFAULT_MEGABYTES << 20),
            Self::Megabytes(megabytes) => Some(megabytes << 20),
            Self::Unlimited => None,
        }
    }
}

/// `128M`; `unlimited` without a limit.
impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bytes() {
            Some(bytes) => write!(f, "{}M", bytes >> 20),
            None => f.write_str("unlimited"),
        }
    }
}

/// Why a text is no memory limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// PHP's way to write "no limit".
    #[error("Unbounded memory limit (-1) is not allowed")]
    Unbounded,
    /// Another text.
    #[error("Invalid memory limit format: {0}")]
    Format(String),
}

impl FromStr for Memory {
    type Err = MemoryError;

    /// Reads digits with an optional K, M or G in any case. Bare digits are bytes. The value is
    /// rounded up to whole megabytes, and is at least 1 and at most 1024 of them.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if text == "-1" {
            return Err(MemoryError::Unbounded);
        }
        let invalid = || MemoryError::Format(text.to_owned());
        let (digits, shift) = match text.as_bytes().last().map(u8::to_ascii_uppercase) {
            Some(b'K') => (text.get(..text.len() - 1), 10),
            Some(b'M') => (text.get(..text.len() - 1), 20),
            Some(b'G') => (text.get(..text.len() - 1), 30),
            _ => (Some(text), 0),
        };
        let digits = digits.ok_or_else(invalid)?;
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(invalid());
        }
        // A number that is too large is the largest limit.
        let bytes = digits
            .parse::<u128>()
            .unwrap_or(u128::from(u64::MAX))
            .saturating_mul(1 << shift);
        let megabytes = bytes.div_ceil(1 << 20).clamp(1, MAX_MEGABYTES.into());
        Ok(Self::Megabytes(
            u64::try_from(megabytes).unwrap_or(MAX_MEGABYTES),
        ))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_limit_is_whole_megabytes() {
        for (text, shown) in [
            ("128M", "128M"),
            ("65536K", "64M"),
            ("65537k", "65M"),
            ("1g", "1024M"),
            ("2G", "1024M"),
            (
                "99999999999999999999999999999999999999999999999999G",
                "1024M",
            ),
            ("0", "1M"),
            ("1048577", "2M"),
            (" 16m ", "16M"),
        ] {
            assert_eq!(text.parse::<Memory>().unwrap().to_string(), shown, "{text}");
        }
        assert_eq!(Memory::default().to_string(), "128M");
    }

    #[test]
    fn other_texts_are_refused() {
        assert_eq!("-1".parse::<Memory>(), Err(MemoryError::Unbounded));
        for text in [
            "", " ", "M", "-2", "1.5M", "+1M", "0x10", "1T", "1MB", "M1", "1 M", "abc", "1é", "é",
        ] {
            let error = text.parse::<Memory>().unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("Invalid memory limit format: {}", text.trim())
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_limit_within_bounds_or_an_error(text in any::<String>()) {
            if let Ok(memory) = text.parse::<Memory>() {
                let bytes = memory.bytes().unwrap();
                prop_assert!((1 << 20..=1 << 30).contains(&bytes));
            }
        }
    }
}
