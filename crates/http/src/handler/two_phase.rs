//! The second phase of two phase commit.

use super::Handler;
use crate::headers::{self, Headers, TwoPhaseRefusal};
use crate::peer::Peer;
use crate::reply::{self, ReplyBody};
use crate::request::{TwoPhaseOp, TwoPhaseTarget};
use crate::{LoadAnswer, LoadCode};
use hyper::Response;
use hyper::http::request::Parts;
use tributary_types::Retry;

impl Handler {
    pub(super) async fn two_phase(&self, head: &Parts, peer: &Peer, db: &str) -> Response<ReplyBody> {
        let user = match self.user(head, peer).await {
            Ok(user) => user,
            Err(text) => {
                let refusal =
                    reply::two_phase_failure("Fail", &LoadCode::NotAuthorized.message(text), Retry::Never);
                return reply::unauthorized(refusal);
            }
        };
        let (op, target) = match headers::two_phase(Headers(&head.headers)) {
            Ok(asked) => asked,
            Err(TwoPhaseRefusal::Missing(text)) => {
                return reply::two_phase_failure("FAILED", text, Retry::Never);
            }
            Err(TwoPhaseRefusal::Illegal(error)) => {
                return reply::two_phase_failure("Fail", &error.to_string(), Retry::Never);
            }
        };
        match self.services.loads.two_phase(&user, db, op, target.clone()).await {
            Ok(()) => reply::status_and_message("Success", &done(op, &target)),
            Err(error) => {
                let answer = LoadAnswer::from_sql_error(&error);
                reply::two_phase_failure("Fail", &answer.message, answer.retry)
            }
        }
    }
}

/// `label [l] transaction [7] commit successfully.`, with the given identifiers.
fn done(op: TwoPhaseOp, target: &TwoPhaseTarget) -> String {
    let label = target.label.as_ref().map(|label| format!("label [{label}] ")).unwrap_or_default();
    let transaction = target.txn_id.map(|id| format!("transaction [{id}] ")).unwrap_or_default();
    format!("{label}{transaction}{} successfully.", op.as_str())
}
