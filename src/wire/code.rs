//! Status codes of the RPC layer in their three forms.

use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident $name:literal $grpc:literal $http:literal;)*) => {
        /// A status code, as Connect names it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code { $($(#[$doc])* $variant,)* }

        impl Code {
            /// All sixteen codes in gRPC order.
            pub const ALL: [Code; 16] = [$(Code::$variant,)*];

            /// The Connect name, also used in records of unanswered calls.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Code::$variant => $name,)* }
            }

            /// The gRPC number, 1 to 16.
            #[must_use]
            pub const fn grpc_number(self) -> u32 {
                match self { $(Code::$variant => $grpc,)* }
            }

            /// The HTTP status of a Connect unary error with this code.
            #[must_use]
            pub const fn http_status(self) -> u16 {
                match self { $(Code::$variant => $http,)* }
            }
        }
    };
}

codes! {
    /// The caller gave up.
    Canceled "canceled" 1 499;
    /// No better code is known.
    Unknown "unknown" 2 500;
    /// The request is malformed or out of bounds.
    InvalidArgument "invalid_argument" 3 400;
    /// A deadline passed.
    DeadlineExceeded "deadline_exceeded" 4 504;
    /// No such session.
    NotFound "not_found" 5 404;
    /// Not used by this service.
    AlreadyExists "already_exists" 6 409;
    /// The caller may not do this.
    PermissionDenied "permission_denied" 7 403;
    /// A limit, a rate or an allowance is used up.
    ResourceExhausted "resource_exhausted" 8 429;
    /// The daemon's state does not allow the call.
    FailedPrecondition "failed_precondition" 9 400;
    /// Not used by this service.
    Aborted "aborted" 10 409;
    /// Not used by this service.
    OutOfRange "out_of_range" 11 400;
    /// The provider or this protocol has no such operation.
    Unimplemented "unimplemented" 12 501;
    /// A fault of the daemon or its provider.
    Internal "internal" 13 500;
    /// The daemon cannot be reached or is not ready.
    Unavailable "unavailable" 14 503;
    /// Assigned by clients to answers that do not check.
    DataLoss "data_loss" 15 500;
    /// The credential is missing or unknown.
    Unauthenticated "unauthenticated" 16 401;
}

impl Code {
    /// The code of exactly this Connect name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Code> {
        Self::ALL.into_iter().find(|c| c.name() == name)
    }

    /// The code of a non-200 answer that carries no Connect error.
    #[must_use]
    pub const fn of_http_status(status: u16) -> Code {
        match status {
            400 => Code::Internal,
            401 => Code::Unauthenticated,
            403 => Code::PermissionDenied,
            404 => Code::Unimplemented,
            429 | 502 | 503 | 504 => Code::Unavailable,
            _ => Code::Unknown,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_a_bijection() {
        for (i, code) in Code::ALL.into_iter().enumerate() {
            assert_eq!(code.grpc_number() as usize, i + 1);
            assert_eq!(Code::parse(code.name()), Some(code));
        }
        assert_eq!(Code::parse("ok"), None);
        assert_eq!(Code::parse("INTERNAL"), None);
    }
}
