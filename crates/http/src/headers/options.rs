//! A Stream Load as a client of another protocol describes it: with options that have the names of the headers.

use super::{Early, HeaderError, Headers};
use crate::answer::LoadAnswer;
use crate::request::StreamLoadRequest;
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue, TRANSFER_ENCODING};
use std::time::Duration;

/// The headers that such a load may have. The body's format and size are the protocol's, and a second phase needs HTTP.
const NAMES: [&str; 29] = [
    "channel",
    "channel_next_offset",
    "channel_offset",
    "columns",
    "comment",
    "delete",
    "function_column.sequence_col",
    "group_commit",
    "group_commit_require",
    "hidden_columns",
    "idempotency-key",
    "label",
    "load_to_single_tablet",
    "max_filter_ratio",
    "merge_type",
    "negative",
    "partial_columns",
    "partial_update_new_key_behavior",
    "partitions",
    "rejected_rows",
    "strict_mode",
    "temporary_partitions",
    "time_zone",
    "timeout",
    "timezone",
    "unique_key_update_mode",
    "where",
    "exec_mem_limit",
    "send_batch_parallelism",
];

/// A load by another protocol.
#[derive(Clone, Copy, Debug)]
pub struct ForeignLoad<'a> {
    /// Options of the load, by name; each is known.
    pub options: &'a [(String, String)],
    /// Headers of the call, of which those with the name of an option are options. A name in `options` comes first.
    pub headers: &'a [(String, String)],
    /// The value of the header `format`.
    pub format: &'static str,
    /// The largest body, in bytes.
    pub max_bytes: u64,
    /// The timeout of a load without one.
    pub timeout: Duration,
}

/// The Stream Load that options describe.
///
/// # Errors
/// An option that is unknown or illegal; the answer says which.
pub fn stream_load_of_options(
    load: ForeignLoad<'_>,
    target: (String, String),
    user: &str,
) -> Result<StreamLoadRequest, Box<LoadAnswer>> {
    let refused = |error: HeaderError| Box::new(LoadAnswer::fail(error.code, error.text));
    let headers = headers_of(load).map_err(refused)?;
    let headers = Headers(&headers);
    let early = Early::of_stream_load(headers, load.max_bytes).map_err(refused)?.or_timeout(load.timeout);
    super::stream_load(headers, early, target, user.to_owned()).map_err(refused)
}

fn headers_of(load: ForeignLoad<'_>) -> Result<HeaderMap, HeaderError> {
    let mut headers = HeaderMap::new();
    headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    headers.insert("format", HeaderValue::from_static(load.format));
    let known = |name: &str| NAMES.iter().find(|known| name.eq_ignore_ascii_case(known)).copied();
    for (name, value) in load.headers {
        if let Some(name) = known(name) {
            headers.insert(HeaderName::from_static(name), of_text(name, value)?);
        }
    }
    for (name, value) in load.options {
        let Some(name) = known(name) else {
            let known = NAMES.join(", ");
            return Err(HeaderError::invalid(format!(
                "there is no option {name} of a load: it may be one of {known}"
            )));
        };
        headers.insert(HeaderName::from_static(name), of_text(name, value)?);
    }
    Ok(headers)
}

fn of_text(name: &str, value: &str) -> Result<HeaderValue, HeaderError> {
    HeaderValue::from_bytes(value.as_bytes()).map_err(|_| {
        HeaderError::invalid(format!("option {name} has a line break or another control character"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_types::GroupCommitMode;
    use tributary_types::Label;

    fn request(options: &[(&str, &str)], headers: &[(&str, &str)]) -> Result<StreamLoadRequest, String> {
        let owned = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let (options, headers) = (owned(options), owned(headers));
        let load = ForeignLoad {
            options: &options,
            headers: &headers,
            format: "arrow",
            max_bytes: 1 << 20,
            timeout: Duration::from_secs(7),
        };
        let target = ("d".to_owned(), "t".to_owned());
        stream_load_of_options(load, target, "amy").map_err(|answer| answer.message)
    }

    #[test]
    fn options_are_headers_and_come_before_those_of_the_call() {
        let options = [("group_commit", "sync_mode"), ("LABEL", "l1"), ("where", "a > 'ü'")];
        let headers = [("group_commit", "async_mode"), ("user-agent", "x"), ("max_filter_ratio", "0.5")];
        let request = request(&options, &headers).expect("legal");
        assert_eq!(request.group_commit, Some(GroupCommitMode::Sync));
        assert_eq!(request.label.as_ref().map(Label::as_str), Some("l1"));
        assert_eq!((request.where_expr.as_deref(), request.max_filter_ratio), (Some("a > 'ü'"), 0.5));
        assert_eq!((request.timeout, request.format.name()), (Duration::from_secs(7), "arrow"));
        assert!(request.chunked && request.user == "amy" && request.table == "t");
    }

    #[test]
    fn an_unknown_option_is_refused_and_an_unknown_header_is_not() {
        let error = request(&[("grup_commit", "x")], &[]).expect_err("it is misspelt");
        assert!(error.contains("no option grup_commit"), "{error}");
        let error = request(&[("group_commit", "x")], &[]).expect_err("no such mode");
        assert!(error.contains("async_mode, sync_mode, off_mode"), "{error}");
        let error = request(&[("label", "a\nb")], &[]).expect_err("a line break");
        assert!(error.contains("option label has a line break"), "{error}");
        request(&[], &[("grup_commit", "x"), ("format", "csv")]).expect("headers of others");
    }
}
