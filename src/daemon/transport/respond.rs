//! What stands behind a connection.

use std::{future::Future, sync::Arc};

use http::{Request, Response};
use hyper::body::Incoming;

use super::{body::AnswerBody, pulse::Exchange};

/// Answers the requests of a listener. It must answer at once when it does not
/// read the body, and end its exchange only with the answer's body.
pub(crate) trait Respond: Send + Sync + 'static {
    /// The answer to one request.
    fn respond(
        self: Arc<Self>,
        request: Request<Incoming>,
        exchange: Exchange,
    ) -> impl Future<Output = Response<AnswerBody>> + Send;
}
