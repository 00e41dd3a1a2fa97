//! Handles one request, once its head is read.
//!
//! A handler receives the head and the wire, and returns a response and, if possible, the wire: the server discards the rest of
//! the body.

mod config;
mod console;
mod few_rows;
mod inspect;
mod load;
mod nodes;
mod query;
mod read_plan;
mod redirect;
mod two_phase;

use crate::answer::LoadAnswer;
use crate::auth;
use crate::body::Wire;
use crate::code::LoadCode;
use crate::options::HttpOptions;
use crate::origin;
use crate::peer::Peer;
use crate::reached;
use crate::reply::{self, EnvelopeCode, ReplyBody};
use crate::route::{NoRoute, Route};
use crate::service::Services;
use hyper::http::request::Parts;
use hyper::{Response, StatusCode};
use std::sync::Arc;
use tokio::sync::Semaphore;
use tributary_admission::Refusal;
use tributary_types::Principal;

/// State that every handler needs.
#[derive(Clone)]
pub(crate) struct Handler {
    pub(crate) services: Services,
    pub(crate) options: Arc<HttpOptions>,
    /// KiB of the statements that are being read and run, of all requests together.
    pub(crate) statements: Arc<Semaphore>,
}

/// A response and the body's rest; `None` when the rest is not at hand.
pub(crate) struct Handled {
    pub(crate) response: Response<ReplyBody>,
    pub(crate) rest: Option<Wire>,
}

impl Handled {
    fn new(response: Response<ReplyBody>, wire: Wire) -> Self {
        Self { response, rest: Some(wire) }
    }

    /// The answer to a request whose handler panicked.
    pub(crate) fn panicked(is_load: bool) -> Self {
        let text = "the server failed while it handled this request (a bug, see its log)";
        let response = if is_load {
            reply::load(&LoadAnswer::fail(LoadCode::Internal, text))
        } else {
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            reply::envelope_with_status(status, EnvelopeCode::Internal, text)
        };
        Self { response, rest: None }
    }
}

impl Handler {
    pub(crate) fn new(services: Services, options: HttpOptions) -> Self {
        let statements = Arc::new(Semaphore::new(query::STATEMENTS_KIB_MAX));
        Self { services, options: Arc::new(options), statements }
    }

    /// Handles one request of this client.
    pub(crate) async fn handle(
        self,
        route: Result<Route, NoRoute>,
        head: Parts,
        wire: Wire,
        peer: Arc<Peer>,
    ) -> Handled {
        let (shared, peer) = (&peer, &*peer);
        let at = peer.local.map(|local| local.ip());
        if let Some(reason) = origin::refusal(&head, at, &self.options.host_names) {
            let response =
                reply::envelope_with_status(StatusCode::FORBIDDEN, EnvelopeCode::Forbidden, reason);
            return Handled::new(response, wire);
        }
        if self.options.requires_tls && peer.tls.is_none() && !route.as_ref().is_ok_and(Route::is_public) {
            let reason = "connections without TLS are refused (require_secure_transport): use https";
            let response =
                reply::envelope_with_status(StatusCode::FORBIDDEN, EnvelopeCode::Forbidden, reason);
            return Handled::new(response, wire);
        }
        if let Ok(route) = &route
            && let Some(response) = self.redirected(route, &head, peer).await
        {
            return Handled::new(response, wire);
        }
        match route {
            Err(no_route) => Handled::new(refuse(&no_route, &head), wire),
            Ok(Route::StreamLoad { db, table }) => self.stream_load(&head, wire, peer, (db, table)).await,
            Ok(Route::HttpStream) => self.http_stream(&head, wire, peer).await,
            Ok(Route::Query { db }) => self.query(&head, wire, shared, db).await,
            Ok(Route::ReadPlan { db, table }) => self.read_plan(&head, wire, peer, (db, table)).await,
            Ok(Route::ShowConfig) => Handled::new(self.show_config(&head, peer).await, wire),
            Ok(Route::SetConfig) => Handled::new(self.set_config(&head, peer).await, wire),
            Ok(Route::ConsolePage) => Handled::new(reply::moved("ui/"), wire),
            Ok(Route::Console(file)) => Handled::new(console::answer(&file, &head.headers), wire),
            Ok(Route::TwoPhase { db }) => Handled::new(self.two_phase(&head, peer, &db).await, wire),
            Ok(route) => Handled::new(self.inspect(route, &head, peer).await, wire),
        }
    }

    /// The host that an answer to this request names; `None`: the server's own.
    fn reached_as(&self, head: &Parts, peer: &Peer) -> Option<String> {
        if self.options.answers_as_reached { reached::host(head, peer) } else { None }
    }

    /// The user who sent this request.
    ///
    /// # Errors
    /// An error text for the client, without a code.
    async fn user(&self, head: &Parts, peer: &Peer) -> Result<Principal, String> {
        let Some(credentials) = auth::credentials(&head.headers) else {
            return Err("no valid Basic authorization".to_owned());
        };
        let authenticator = &self.services.authenticator;
        match authenticator.authenticate(&credentials.user, &credentials.password, peer).await {
            Ok(principal) => {
                peer.logged_in();
                Ok(principal)
            }
            Err(error) => {
                Refusal::HttpLogin.log(|left_out| {
                    tracing::info!(peer = %peer.ip, %error, left_out, "an HTTP client was refused");
                });
                Err(error.message)
            }
        }
    }
}

fn refuse(no_route: &NoRoute, head: &Parts) -> Response<ReplyBody> {
    let path = head.uri.path();
    match no_route {
        NoRoute::WrongMethod(allowed) => reply::wrong_method(head.method.as_str(), path, allowed),
        NoRoute::UnknownPath => reply::envelope_with_status(
            StatusCode::NOT_FOUND,
            EnvelopeCode::NotFound,
            format!("no such path: {path}; a load goes to /api/{{db}}/{{table}}/_stream_load"),
        ),
        NoRoute::GarbledPath => reply::envelope_with_status(
            StatusCode::BAD_REQUEST,
            EnvelopeCode::BadRequest,
            format!("the path {path} is not UTF-8 after decoding"),
        ),
    }
}
