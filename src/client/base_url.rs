//! The daemon's base URL.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// Most bytes of a base URL.
pub const MAX_URL_BYTES: usize = 2048;

/// Where a daemon is: scheme, host, port and an optional path prefix.
///
/// Cleartext is allowed to loopback only, since everything about a call and
/// its token would be readable, and an answer could be written by anyone on
/// the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl {
    tls: bool,
    host: Host,
    port: u16,
    explicit_port: bool,
    prefix: String,
    loopback_only: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    Name(String),
    Address(IpAddr),
}

/// Why a text is no base URL. The text itself is not repeated: it may hold a
/// password someone put there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BaseUrlError {
    /// White space, a control character or something that is not ASCII.
    #[error("a base URL is plain ASCII without white space")]
    Characters,
    /// Cleartext to a host that is not loopback.
    #[error("cleartext http is allowed to localhost, 127.0.0.0/8 and ::1 only; use https")]
    Cleartext,
    /// A fragment.
    #[error("a base URL has no fragment")]
    Fragment,
    /// No host, or one that is neither a name nor an address.
    #[error("a base URL names a host")]
    Host,
    /// Longer than [`MAX_URL_BYTES`].
    #[error("a base URL has at most {MAX_URL_BYTES} bytes")]
    Length,
    /// A path that cannot stand in a request.
    #[error("the base URL's path is not valid")]
    Path,
    /// A port that is not 1 to 65535.
    #[error("a port is 1 to 65535")]
    Port,
    /// A query.
    #[error("a base URL has no query")]
    Query,
    /// Another scheme than http or https, or none.
    #[error("a base URL starts with http:// or https://")]
    Scheme,
    /// User info.
    #[error("a base URL holds no user name or password")]
    UserInfo,
}

impl BaseUrl {
    /// Reads a base URL. Trailing slashes are dropped, a path prefix is kept.
    ///
    /// # Errors
    /// [`BaseUrlError`].
    pub fn parse(text: &str) -> Result<BaseUrl, BaseUrlError> {
        let mut url = Self::parse_any(text)?;
        if !url.tls {
            if !url.host.is_loopback() {
                return Err(BaseUrlError::Cleartext);
            }
            url.loopback_only = true;
        }
        Ok(url)
    }

    /// As [`BaseUrl::parse`], with cleartext allowed to any host. For networks
    /// whose every machine is trusted.
    ///
    /// # Errors
    /// [`BaseUrlError`], never [`BaseUrlError::Cleartext`].
    pub fn parse_insecure(text: &str) -> Result<BaseUrl, BaseUrlError> {
        Self::parse_any(text)
    }

    fn parse_any(text: &str) -> Result<BaseUrl, BaseUrlError> {
        if text.len() > MAX_URL_BYTES {
            return Err(BaseUrlError::Length);
        }
        if !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(BaseUrlError::Characters);
        }
        let (scheme, rest) = text.split_once("://").ok_or(BaseUrlError::Scheme)?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err(BaseUrlError::Scheme),
        };
        if rest.contains('#') {
            return Err(BaseUrlError::Fragment);
        }
        if rest.contains('?') {
            return Err(BaseUrlError::Query);
        }
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        if authority.contains('@') {
            return Err(BaseUrlError::UserInfo);
        }
        let (host, port) = split_port(authority)?;
        let host = Host::parse(host)?;
        let explicit_port = port.is_some();
        let port = match port {
            Some(port) if port.bytes().all(|b| b.is_ascii_digit()) => match port.parse() {
                Ok(port) if port > 0 => port,
                _ => return Err(BaseUrlError::Port),
            },
            Some(_) => return Err(BaseUrlError::Port),
            None if tls => 443,
            None => 80,
        };
        let prefix = path.trim_end_matches('/').to_owned();
        // `\` is read as `/` by some servers; dot segments are removed by
        // some proxies and not by others.
        let bad = prefix.contains('\\') || prefix.split('/').any(|s| matches!(s, "." | ".."));
        if bad || (!prefix.is_empty() && prefix.parse::<http::uri::PathAndQuery>().is_err()) {
            return Err(BaseUrlError::Path);
        }
        Ok(BaseUrl {
            tls,
            host,
            port,
            explicit_port,
            prefix,
            loopback_only: false,
        })
    }

    /// Whether the connection is encrypted.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.tls
    }

    /// The path prefix, without a trailing slash; often empty.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The port connected to.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    /// Whether only loopback addresses may be connected to: then the name
    /// `localhost` is trusted no further than where it leads.
    pub(crate) fn is_loopback_only(&self) -> bool {
        self.loopback_only
    }

    /// The value of the `Host` header.
    pub(crate) fn authority(&self) -> String {
        if self.explicit_port {
            format!("{}:{}", self.host, self.port)
        } else {
            self.host.to_string()
        }
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.prefix)
    }
}

fn split_port(authority: &str) -> Result<(&str, Option<&str>), BaseUrlError> {
    // The colons of an IPv6 address stand inside brackets.
    let after_host = authority.rfind(']').map_or(0, |at| at + 1);
    match authority[after_host..].find(':') {
        Some(at) => {
            let (host, port) = authority.split_at(after_host + at);
            Ok((host, Some(&port[1..])))
        }
        None => Ok((authority, None)),
    }
}

impl Host {
    fn parse(text: &str) -> Result<Host, BaseUrlError> {
        if let Some(inner) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
            let address: Ipv6Addr = inner.parse().map_err(|_| BaseUrlError::Host)?;
            return Ok(Host::Address(address.into()));
        }
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Ok(Host::Address(address.into()));
        }
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
        let label = |l: &str| (1..=63).contains(&l.len()) && l.bytes().all(allowed);
        let name = text.strip_suffix('.').unwrap_or(text);
        if text.len() > 254 || !name.split('.').all(label) {
            return Err(BaseUrlError::Host);
        }
        // `127.1`, `0x7f.1` and the like are addresses to some resolvers and
        // names to others; a name never ends in a number.
        let last = name.rsplit('.').next().unwrap_or_default();
        if last.bytes().all(|b| b.is_ascii_digit()) || last.to_ascii_lowercase().starts_with("0x") {
            return Err(BaseUrlError::Host);
        }
        Ok(Host::Name(text.to_ascii_lowercase()))
    }

    fn is_loopback(&self) -> bool {
        match self {
            Host::Name(name) => name == "localhost",
            Host::Address(address) => address.is_loopback(),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept() {
        for (text, shown) in [
            ("http://127.0.0.1:1/x/", "http://127.0.0.1:1/x"),
            ("HTTP://LocalHost:8080//", "http://localhost:8080"),
            ("http://[::1]:9", "http://[::1]:9"),
            ("http://127.255.3.4", "http://127.255.3.4"),
            ("https://Example.com", "https://example.com"),
            ("https://h:443/a/b", "https://h:443/a/b"),
        ] {
            assert_eq!(BaseUrl::parse(text).unwrap().to_string(), shown, "{text}");
        }
        let url = BaseUrl::parse("http://127.0.0.1:1/x/").unwrap();
        assert_eq!((url.prefix(), url.port(), url.is_https()), ("/x", 1, false));
    }

    #[test]
    fn refused() {
        use BaseUrlError as E;
        for (text, error) in [
            ("", E::Scheme),
            ("127.0.0.1:1", E::Scheme),
            ("ftp://h", E::Scheme),
            ("http://127.evil.example", E::Cleartext),
            ("http://example.com", E::Cleartext),
            ("http://localhost.example", E::Cleartext),
            ("http://0.0.0.0", E::Cleartext),
            ("http://[::ffff:127.0.0.1]", E::Cleartext),
            ("http://127.1", E::Host),
            ("http://2130706433", E::Host),
            ("http://0x7f000001", E::Host),
            ("https://u:p@h", E::UserInfo),
            ("https://u@h", E::UserInfo),
            ("https://h?x", E::Query),
            ("https://h#", E::Fragment),
            (" https://h", E::Characters),
            ("https://h ", E::Characters),
            ("https://h\n", E::Characters),
            ("https://é", E::Characters),
            ("https://", E::Host),
            ("https:///x", E::Host),
            ("https://:1", E::Host),
            ("https://[::1", E::Host),
            ("https://[x]", E::Host),
            ("https://h:0", E::Port),
            ("https://h:65536", E::Port),
            ("https://h:+1", E::Port),
            ("https://h:", E::Port),
            ("https://h/a/../b", E::Path),
            ("https://h/a\\b", E::Path),
        ] {
            assert_eq!(BaseUrl::parse(text), Err(error), "{text:?}");
        }
        assert_eq!(
            BaseUrl::parse(&format!("https://h/{}", "a".repeat(3000))),
            Err(E::Length)
        );
        assert!(BaseUrl::parse_insecure("http://example.com").is_ok());
    }
}
