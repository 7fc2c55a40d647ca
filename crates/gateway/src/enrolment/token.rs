//! The token that an operator passes from the hub to a site.

use relay::{PrivateKey, PublicKey};
use std::fmt;
use std::str::FromStr;

/// First part of a token, with the version of its layout.
const PREFIX: &str = "bp1.";

/// A token: its owner can register a key for the site, once and until it expires. Its text is
/// `bp1.NAME.HUB.KEY`, the two keys in base64 without padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Name of the site at the hub.
    pub name: String,
    /// The hub's public key.
    pub hub: PublicKey,
    /// The private enrolment key. The hub stores only the public one.
    pub private: PrivateKey,
}

/// A text that is not a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a token: it begins with {PREFIX} and has 4 parts; copy all that `site add` printed")]
pub struct TokenError;

/// Returns whether `name` can be the name of a site with a token and a file: 1 to 64 letters, digits,
/// `-`, `_` and `.`, not beginning with a dot.
pub(super) fn is_site_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=64).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(fits)
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hub, private) = (self.hub.to_string(), self.private.to_text());
        let [hub, private] = [&hub, &private].map(|key| key.trim_end_matches('='));
        write!(f, "{PREFIX}{}.{hub}.{private}", self.name)
    }
}

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let rest = text.trim().strip_prefix(PREFIX).ok_or(TokenError)?;
        let (rest, private) = rest.rsplit_once('.').ok_or(TokenError)?;
        let (name, hub) = rest.rsplit_once('.').ok_or(TokenError)?;
        if !is_site_name(name) {
            return Err(TokenError);
        }
        let hub = format!("{hub}=").parse().map_err(|_| TokenError)?;
        let private = format!("{private}=").parse().map_err(|_| TokenError)?;
        Ok(Self { name: name.to_owned(), hub, private })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemEntropy;

    #[test]
    fn a_token_round_trips_and_a_truncated_one_is_refused() {
        let key = || PrivateKey::generate(&mut SystemEntropy);
        let token = Token { name: "boat-1.north".into(), hub: key().public(), private: key() };
        let text = token.to_string();
        assert!(text.starts_with("bp1.boat-1.north."), "{text}");
        assert_eq!(text.parse(), Ok(token.clone()));
        assert_eq!(format!(" {text}\n").parse(), Ok(token.clone()));
        for cut in 0..text.len() {
            assert_eq!(text[..cut].parse::<Token>(), Err(TokenError), "{}", &text[..cut]);
        }
        assert!(!format!("{token:?}").contains(&token.private.to_text()));
        for wrong in ["", "a b", ".hidden", "a/b", &"a".repeat(65)] {
            assert!(!is_site_name(wrong), "{wrong}");
        }
    }
}
