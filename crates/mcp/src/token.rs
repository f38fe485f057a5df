//! The token that every HTTP request must send.

use std::{fmt, io};

/// The environment variable that holds the token.
pub const TOKEN_VARIABLE: &str = "ALTAIR_MCP_TOKEN";
/// The least characters of a token: short ones are easily guessed.
const TOKEN_MIN: usize = 16;
/// Random bytes in a generated token.
pub(crate) const TOKEN_BYTES: usize = 32;

/// What every request must send: other users of the machine can also reach loopback, and so can a
/// run with the network open.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// A token chosen by a person.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn given(token: &str) -> Result<Self, String> {
        if token.len() < TOKEN_MIN {
            return Err(format!("it has fewer than {TOKEN_MIN} characters"));
        }
        // Only characters that a header can hold and does not trim.
        if !token.bytes().all(|byte| (0x20..0x7f).contains(&byte)) || token.trim() != token {
            return Err("it has other characters than printable ASCII, or blanks around it".into());
        }
        Ok(Self(token.to_owned()))
    }

    /// A random token.
    ///
    /// # Errors
    ///
    /// If the system has no random numbers.
    pub fn generate() -> io::Result<Self> {
        let mut bytes = [0; TOKEN_BYTES];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        Ok(Self(
            bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        ))
    }

    /// The token itself.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}
