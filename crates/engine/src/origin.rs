//! How a child was started: `diagnostics.start`.

/// How a child was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// In a process of its own; with the reason, if a template was requested.
    Cold(Option<String>),
    /// As a fork of a template that was made for this call.
    First,
    /// As a fork of a template.
    Warm,
    /// In a process of its own that boots the application, because no template can; with the
    /// reason.
    Booted(String),
}

impl Origin {
    /// In a process of its own, for this reason.
    pub(crate) fn cold_because(why: impl Into<String>) -> Self {
        Self::Cold(Some(why.into()))
    }

    /// Returns whether it is a fork of a template.
    pub(crate) fn is_fork(&self) -> bool {
        matches!(self, Self::First | Self::Warm)
    }

    /// `diagnostics.start`.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Cold(_) => "cold",
            Self::First => "first",
            Self::Warm => "warm",
            Self::Booted(_) => "booted",
        }
    }

    /// `diagnostics.start_reason`.
    pub(crate) fn reason(self) -> Option<String> {
        match self {
            Self::Cold(reason) => reason,
            Self::Booted(reason) => Some(reason),
            Self::First | Self::Warm => None,
        }
    }
}
