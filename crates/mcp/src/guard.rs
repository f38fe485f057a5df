//! Checks HTTP requests: they need the token, and must come from a page or program that addresses
//! this server.

use std::net::IpAddr;

use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName, ORIGIN};
use hyper::{StatusCode, Uri};
use subtle::ConstantTimeEq;

use crate::token::Token;

/// The server's path.
pub const PATH: &str = "/mcp";

/// Why a request is refused, and what to do about it.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal {
    pub status: StatusCode,
    pub why: String,
}

/// What requests must satisfy.
#[derive(Debug)]
pub struct Guard {
    pub token: Token,
    /// The host as given on the command line.
    pub named: String,
    pub port: u16,
}

impl Guard {
    /// Checks a request that came in at the address `local`.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap, local: IpAddr) -> Result<(), Refusal> {
        let refuse = |status, why: String| Err(Refusal { status, why });
        // With DNS rebinding, a page of another site makes its name resolve to this machine. It
        // still sends its own name.
        let host = match (uri.authority(), single(headers, &HOST)) {
            (Some(authority), _) => Some(authority.as_str().to_owned()),
            (None, host) => host.map(str::to_owned),
        };
        let is_ours = host.as_deref().and_then(split).is_some_and(|(host, port)| {
            self.is_own_name(host, local) && port.is_none_or(|port| port == self.port)
        });
        if !is_ours {
            let shown = host.unwrap_or_default();
            return refuse(
                StatusCode::FORBIDDEN,
                format!(
                    "The Host header names {shown:?}, not this server: use http://{}:{}{PATH}.",
                    self.named, self.port
                ),
            );
        }
        if headers.contains_key(ORIGIN) {
            let origin = single(headers, &ORIGIN).unwrap_or_default();
            let site = origin.split_once("://").and_then(|(_, site)| split(site));
            if !site.is_some_and(|(host, _)| self.is_own_name(host, local)) {
                return refuse(
                    StatusCode::FORBIDDEN,
                    format!(
                        "Pages of {origin:?} may not use this server: only those of this machine may."
                    ),
                );
            }
        }
        if !self.has_token(headers) {
            return refuse(
                StatusCode::UNAUTHORIZED,
                "Send the server's token as `Authorization: Bearer <token>`: the value of ALTAIR_MCP_TOKEN where it was started, or the one that it has printed to standard error.".into(),
            );
        }
        if uri.path() != PATH {
            return refuse(
                StatusCode::NOT_FOUND,
                format!(
                    "There is nothing at {:?}: the server is at {PATH}.",
                    uri.path()
                ),
            );
        }
        Ok(())
    }

    fn is_own_name(&self, host: &str, local: IpAddr) -> bool {
        if host.eq_ignore_ascii_case("localhost") || host.eq_ignore_ascii_case(&self.named) {
            return true;
        }
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        bare.parse::<IpAddr>().is_ok_and(|address| {
            address.to_canonical().is_loopback() || address.to_canonical() == local.to_canonical()
        })
    }

    /// Compares the token in constant time for tokens of the same length.
    fn has_token(&self, headers: &HeaderMap) -> bool {
        let given = single(headers, &AUTHORIZATION).and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        given.is_some_and(|given| bool::from(given.as_bytes().ct_eq(self.token.as_bytes())))
    }
}

/// The value of a header that occurs exactly once.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

/// Splits an authority into host and port.
fn split(authority: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match authority.rsplit_once(':') {
        // Colons in brackets belong to the address.
        Some((host, port)) if !port.ends_with(']') => (host, Some(port.parse().ok()?)),
        _ => (authority, None),
    };
    (!host.is_empty() && !host.contains(['@', '/'])).then_some((host, port))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const LOCAL: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn guard() -> Guard {
        Guard {
            token: Token::given("a token of some length").unwrap(),
            named: "127.0.0.1".into(),
            port: 3737,
        }
    }

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    fn status(path: &str, lines: &[(&'static str, &str)]) -> u16 {
        let checked = guard().check(&path.parse().unwrap(), &headers(lines), LOCAL);
        checked.map_or_else(|refusal| refusal.status.as_u16(), |()| 200)
    }

    const HELD: (&str, &str) = ("authorization", "Bearer a token of some length");

    #[test]
    fn who_has_the_token_and_means_this_server_is_served() {
        for host in [
            "127.0.0.1:3737",
            "localhost:3737",
            "LOCALHOST:3737",
            "[::1]:3737",
            "localhost",
            "127.0.0.2:3737",
        ] {
            assert_eq!(status("/mcp", &[("host", host), HELD]), 200, "{host}");
        }
        let page = ("origin", "http://localhost:6274");
        assert_eq!(
            status("/mcp", &[("host", "localhost:3737"), page, HELD]),
            200
        );
        let scheme = ("authorization", "bearer   a token of some length");
        assert_eq!(status("/mcp", &[("host", "localhost:3737"), scheme]), 200);
    }

    #[test]
    fn another_host_is_refused() {
        for host in [
            "evil.example:3737",
            "localhost:80",
            "localhost.evil.example:3737",
            "",
            "10.0.0.1:3737",
            "a@localhost:3737",
            "localhost:x",
        ] {
            assert_eq!(status("/mcp", &[("host", host), HELD]), 403, "{host}");
        }
        assert_eq!(status("/mcp", &[HELD]), 403);
        let two = [("host", "localhost:3737"), ("host", "evil.example"), HELD];
        assert_eq!(status("/mcp", &two), 403);
        assert_eq!(
            status(
                "http://evil.example/mcp",
                &[("host", "localhost:3737"), HELD]
            ),
            403
        );
    }

    #[test]
    fn another_origin_is_refused() {
        for origin in [
            "https://evil.example",
            "null",
            "http://localhost.evil.example",
            "http://evil.example:3737",
            "file://",
            "",
        ] {
            let lines = [("host", "localhost:3737"), ("origin", origin), HELD];
            assert_eq!(status("/mcp", &lines), 403, "{origin}");
        }
    }

    #[test]
    fn without_the_token_nothing_is_served() {
        for value in [
            "Bearer",
            "Bearer ",
            "Bearer a token of some lengt",
            "Bearer a token of some length!",
            "Basic a token of some length",
            "a token of some length",
        ] {
            let lines = [("host", "localhost:3737"), ("authorization", value)];
            assert_eq!(status("/mcp", &lines), 401, "{value}");
            assert_eq!(status("/other", &lines), 401, "{value}");
        }
        assert_eq!(status("/mcp", &[("host", "localhost:3737")]), 401);
        let twice = [("host", "localhost:3737"), HELD, HELD];
        assert_eq!(status("/mcp", &twice), 401);
    }

    #[test]
    fn there_is_nothing_elsewhere() {
        for path in ["/", "/mcp/", "/sse", "/mcp2"] {
            assert_eq!(
                status(path, &[("host", "localhost:3737"), HELD]),
                404,
                "{path}"
            );
        }
    }
}
