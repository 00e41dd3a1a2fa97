//! Settings over HTTP, as Doris's front and back ends have them: they become statements, which check the rights, and which the audit
//! log records.
//!
//! Not its business: which settings there are.

use super::Handler;
use crate::peer::Peer;
use crate::reply::{self, EnvelopeCode, ReplyBody};
use crate::route::{parameter, parameters};
use hyper::http::request::Parts;
use hyper::{Response, StatusCode};
use serde_json::{Map, Value, json};

type Reply = Response<ReplyBody>;

/// Parameters that are not settings.
const FLAGS: [&str; 2] = ["persist", "reset_persist"];

impl Handler {
    /// `GET /api/show_config[?conf_item=name]`: name, type, value and whether it may change.
    pub(super) async fn show_config(&self, head: &Parts, peer: &Peer) -> Reply {
        let user = match self.user(head, peer).await {
            Ok(user) => user,
            Err(text) => return reply::unauthorized(reply::envelope(EnvelopeCode::Unauthorized, text)),
        };
        let rows = match self.few_rows(&user, peer, "SHOW FRONTEND CONFIG".to_owned()).await {
            Ok(found) => found.rows,
            Err(error) => return reply::envelope(EnvelopeCode::Error, error.detail_text()),
        };
        let wanted = parameter(head.uri.query(), "conf_item");
        let rows = rows.into_iter().filter_map(|row| match &row[..] {
            [name, value, type_name, is_mutable, ..] => {
                let is_wanted = wanted.as_ref().is_none_or(|wanted| name == wanted.as_str());
                is_wanted.then(|| json!([name, type_name, value, is_mutable]))
            }
            _ => None,
        });
        reply::json(StatusCode::OK, Value::Array(rows.collect()).to_string())
    }

    /// `POST /api/_set_config?name=value&persist=true`, and `/api/update_config`. All settings are changed, or none.
    pub(super) async fn set_config(&self, head: &Parts, peer: &Peer) -> Reply {
        let user = match self.user(head, peer).await {
            Ok(user) => user,
            Err(text) => return reply::unauthorized(reply::envelope(EnvelopeCode::Unauthorized, text)),
        };
        let Some(pairs) = parameters(head.uri.query()) else {
            return reply::envelope(EnvelopeCode::BadRequest, "a parameter is not UTF-8 after decoding");
        };
        if pairs.is_empty() {
            return reply::envelope(
                EnvelopeCode::BadRequest,
                "no setting is named: ?name=value&persist=true",
            );
        }
        match self.few_rows(&user, peer, statement(&pairs)).await {
            Ok(_) => {
                let is_flag = |name: &str| FLAGS.contains(&name);
                let persist =
                    pairs.iter().find(|(name, _)| name == FLAGS[0]).map(|(_, value)| value.as_str());
                let set: Map<_, _> =
                    pairs.iter().filter(|(name, _)| !is_flag(name)).cloned().map(text).collect();
                let data = json!({ "set": set, "err": [], "persist": persist.unwrap_or_default() });
                reply::envelope(EnvelopeCode::Success, data)
            }
            Err(error) => reply::envelope(EnvelopeCode::Error, error.detail_text()),
        }
    }
}

fn text((name, value): (String, String)) -> (String, Value) {
    (name, Value::String(value))
}

/// The statement that sets these settings.
fn statement(pairs: &[(String, String)]) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\"\""));
    let pairs: Vec<_> =
        pairs.iter().map(|(name, value)| format!("{} = {}", quoted(name), quoted(value))).collect();
    format!("ADMIN SET FRONTEND CONFIG ({})", pairs.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_can_not_leave_its_quotes() {
        let pairs = [("a".to_owned(), "1".to_owned()), ("b\"".to_owned(), "\\\") OR (\"".to_owned())];
        assert_eq!(statement(&pairs), r#"ADMIN SET FRONTEND CONFIG ("a" = "1", "b""" = "\\"") OR (""")"#);
    }
}
