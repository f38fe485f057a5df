//! The secret that authenticates a child's messages.

use serde::{Deserialize, Serialize};

/// Bytes of a [`Secret`].
pub const SECRET_BYTES: usize = 32;

/// Authenticates the child's messages: random, new for each run, never accessible to PHP.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secret(pub(super) [u8; SECRET_BYTES]);

impl Secret {
    /// Generates a secret from the kernel's random numbers.
    ///
    /// # Errors
    ///
    /// The error of `getrandom(2)`.
    pub fn generate() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; SECRET_BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8; SECRET_BYTES] {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}
