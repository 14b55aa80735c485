//! The content types of the service, and which protocol each one means.

use http::{HeaderMap, HeaderValue, header::CONTENT_TYPE};

/// `Accept-Post` of a 415 answer: every content type of the service.
pub(crate) const ACCEPT_POST: &str = "application/grpc, application/grpc+json, \
application/grpc+json; charset=utf-8, application/grpc+proto, application/grpc-web, \
application/grpc-web+json, application/grpc-web+json; charset=utf-8, \
application/grpc-web+proto, application/json, application/json; charset=utf-8, \
application/proto";

/// RPC protocol of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// Connect unary: the bare message is the body.
    Connect,
    /// gRPC: one frame, status in trailers.
    Grpc,
    /// gRPC-Web: one frame, status in the last frame of the body.
    GrpcWeb,
}

/// A content type of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) protocol: Protocol,
    /// The message is JSON, otherwise binary.
    pub(crate) json: bool,
    /// The one spelling the RPC library is shown.
    pub(crate) canonical: &'static str,
}

const fn content(protocol: Protocol, json: bool, canonical: &'static str) -> Content {
    Content {
        protocol,
        json,
        canonical,
    }
}

const TABLE: [Content; 8] = [
    content(Protocol::Connect, true, "application/json"),
    content(Protocol::Connect, false, "application/proto"),
    content(Protocol::Grpc, false, "application/grpc"),
    content(Protocol::Grpc, false, "application/grpc+proto"),
    content(Protocol::Grpc, true, "application/grpc+json"),
    content(Protocol::GrpcWeb, false, "application/grpc-web"),
    content(Protocol::GrpcWeb, false, "application/grpc-web+proto"),
    content(Protocol::GrpcWeb, true, "application/grpc-web+json"),
];

impl Content {
    /// The content type of a request; `None` when it has none, more than one,
    /// or one the service does not serve. Media type and charset compare
    /// without case; the only parameter is `charset=utf-8` on the JSON types.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Content> {
        let mut values = headers.get_all(CONTENT_TYPE).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return None;
        };
        let value = value.to_str().ok()?;
        let (media, parameter) = match value.split_once(';') {
            Some((media, parameter)) => (media, Some(parameter)),
            None => (value, None),
        };
        let media = media.trim_ascii();
        let found = TABLE
            .into_iter()
            .find(|c| c.canonical.eq_ignore_ascii_case(media))?;
        match parameter {
            None => Some(found),
            Some(p) if found.json && is_utf8_charset(p) => Some(found),
            Some(_) => None,
        }
    }

    pub(crate) fn header(self) -> HeaderValue {
        HeaderValue::from_static(self.canonical)
    }
}

fn is_utf8_charset(parameter: &str) -> bool {
    let Some((name, value)) = parameter.split_once('=') else {
        return false;
    };
    let value = value.trim_ascii();
    let value = value
        .strip_prefix('"')
        .and_then(|v| v.strip_suffix('"'))
        .unwrap_or(value);
    name.trim_ascii().eq_ignore_ascii_case("charset") && value.eq_ignore_ascii_case("utf-8")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[&str]) -> Option<&'static str> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(CONTENT_TYPE, HeaderValue::from_str(value).unwrap());
        }
        Content::of(&headers).map(|c| c.canonical)
    }

    #[test]
    fn served() {
        for entry in ACCEPT_POST.split(", ") {
            let bare = entry.split(';').next().unwrap();
            assert_eq!(of(&[entry]), Some(bare), "{entry}");
        }
        for (value, canonical) in [
            ("Application/JSON;charset=UTF-8", "application/json"),
            ("application/json ; charset=\"utf-8\"", "application/json"),
            ("APPLICATION/PROTO", "application/proto"),
            (
                "application/grpc-web+JSON; Charset=utf-8",
                "application/grpc-web+json",
            ),
        ] {
            assert_eq!(of(&[value]), Some(canonical), "{value}");
        }
    }

    #[test]
    fn not_served() {
        for value in [
            "",
            "text/plain",
            "application/json; charset=latin1",
            "application/json; x=y",
            "application/json;",
            "application/json; charset=utf-8; x=y",
            "application/proto; charset=utf-8",
            "application/grpc; charset=utf-8",
            "application/connect+json",
            "application/connect+proto",
            "application/grpc-web-text",
            "application/grpc+thrift",
            "application/jsonx",
        ] {
            assert_eq!(of(&[value]), None, "{value}");
        }
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["application/json", "application/json"]), None);
    }

    proptest! {
        /// Whatever is accepted is one of the table, whatever stands around it.
        #[test]
        fn mutations_never_widen_the_table(
            index in 0..TABLE.len(), at in 0_usize..40, byte in 0x21_u8..0x7f,
        ) {
            let mut text = TABLE[index].canonical.as_bytes().to_vec();
            let at = at.min(text.len());
            text.insert(at, byte);
            let text = String::from_utf8(text).unwrap();
            prop_assert_eq!(of(&[&text]), None);
        }
    }
}
