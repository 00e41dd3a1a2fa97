//! Turns request headers into requests: which header means what, its default, its error text.
//!
//! Two steps, because Doris begins the transaction (and so reports a used label) between them: [`Early`] has the checks before,
//! [`stream_load`] and [`http_stream`] do the rest. An empty header is an absent one. Booleans are `true` in any case, anything
//! else is false, unless stated otherwise.

mod columns;
mod error;
mod foreign;
mod names;
pub(crate) mod options;
mod tables;

use crate::code::LoadCode;
use crate::request::{
    HttpStreamRequest, StreamLoadRequest, TIMEOUT_DEFAULT, TIMEOUT_SECONDS_MAX, TwoPhaseOp, TwoPhaseTarget,
    UpdateMode,
};
pub(crate) use error::HeaderError;
use hyper::HeaderMap;
use hyper::header::{CONTENT_ENCODING, CONTENT_LENGTH, TRANSFER_ENCODING};
use std::time::Duration;
use tributary_decode::{BodyFormat, Compression, FormatError, LoadFormat};
use tributary_types::{GroupCommitMode, Label, LoadName, RejectPolicy, Requirement, TraceParent, TxnId};

/// Request headers, read as Doris reads them.
#[derive(Clone, Copy)]
pub(crate) struct Headers<'a>(pub(crate) &'a HeaderMap);

impl<'a> Headers<'a> {
    /// The value of a header, without blanks around it.
    pub(crate) fn text(self, name: &str) -> Result<Option<&'a str>, HeaderError> {
        let Some(value) = self.0.get(name) else { return Ok(None) };
        let text = std::str::from_utf8(value.as_bytes())
            .map_err(|_| HeaderError::invalid(format!("header `{name}` is not UTF-8")))?
            .trim();
        Ok(Some(text).filter(|text| !text.is_empty()))
    }

    /// The value for an answer that reports some other error.
    pub(crate) fn lossy(self, name: &str) -> String {
        self.text(name).ok().flatten().unwrap_or_default().to_owned()
    }

    fn flag(self, name: &str) -> Result<bool, HeaderError> {
        Ok(self.text(name)?.is_some_and(|text| text.eq_ignore_ascii_case("true")))
    }

    fn owned(self, name: &str) -> Result<Option<String>, HeaderError> {
        Ok(self.text(name)?.map(ToOwned::to_owned))
    }

    /// The client's span that has caused the request. An illegal one is none, as the specification has it.
    pub(crate) fn trace_parent(self) -> Option<TraceParent> {
        TraceParent::parse(self.0.get("traceparent")?.to_str().ok()?)
    }

    /// Whether the load requests two-phase commit: exactly `true`.
    pub(crate) fn two_phase_commit(self) -> bool {
        self.0.get("two_phase_commit").is_some_and(|value| value.as_bytes() == b"true")
    }
}

/// The headers that are checked before the label.
#[derive(Clone, Debug)]
pub(crate) struct Early {
    pub(crate) label: Option<Label>,
    name: Option<LoadName>,
    group_commit: Option<GroupCommitMode>,
    required: Option<Requirement>,
    /// A refusal that Doris reports after the label is stored until then.
    format: Result<LoadFormat, HeaderError>,
    compression: Compression,
    content_length: Option<u64>,
    /// `None` if the request has no timeout.
    timeout: Option<Duration>,
    comment: String,
}

impl Early {
    /// Sets the timeout of a request that has none.
    pub(crate) fn or_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = self.timeout.or(Some(timeout));
        self
    }

    /// # Errors
    /// The first header in Doris's order (mode, format, size, timeout, label) that is illegal.
    pub(crate) fn of_stream_load(headers: Headers<'_>, max_bytes: u64) -> Result<Self, HeaderError> {
        let group_commit = group_commit(headers)?;
        let format = match load_format(headers, &LoadFormat::PROPERTIES)? {
            Err(error @ (FormatError::Unknown(_) | FormatError::NotSupported(_))) => return Err(error.into()),
            format => format.map_err(HeaderError::from),
        };
        Self::parse(headers, group_commit, format, max_bytes)
    }

    /// # Errors
    /// As [`Early::of_stream_load`]. The format is the statement's to say, but for `compress_type`.
    pub(crate) fn of_http_stream(headers: Headers<'_>, max_bytes: u64) -> Result<Self, HeaderError> {
        let group_commit = group_commit(headers)?;
        let format = load_format(headers, &["compress_type"])??;
        Self::parse(headers, group_commit, Ok(format), max_bytes)
    }

    fn parse(
        headers: Headers<'_>,
        group_commit: Option<GroupCommitMode>,
        format: Result<LoadFormat, HeaderError>,
        max_bytes: u64,
    ) -> Result<Self, HeaderError> {
        let compress_type = format.as_ref().map_or(Compression::None, |format| format.compression);
        Ok(Self {
            group_commit,
            required: requirement(headers)?,
            format,
            compression: compression(headers, compress_type)?,
            content_length: content_length(headers, max_bytes)?,
            timeout: timeout(headers)?,
            comment: headers.owned("comment")?.unwrap_or_default(),
            label: headers.text("label")?.map(Label::new).transpose()?,
            name: names::of(headers)?,
        })
    }
}

/// The Stream Load that the headers describe.
///
/// # Errors
/// The first illegal header of those Doris checks after the label.
pub(crate) fn stream_load(
    headers: Headers<'_>,
    early: Early,
    (db, table): (String, String),
    user: String,
) -> Result<StreamLoadRequest, HeaderError> {
    let format = early.format?.body;
    let columns = headers.text("columns")?.map(columns::parse).transpose()?;
    let strict_mode = strict_mode(headers)?;
    foreign::check(headers)?;
    foreign::check_no_statement(headers)?;
    let merge = tables::merge_headers(headers)?;
    let update = tables::update_headers(headers, matches!(format, BodyFormat::Json(_)))?;
    let table_headers = tables::table_headers(headers, None)?;
    Ok(StreamLoadRequest {
        db,
        table,
        user,
        label: early.label,
        name: early.name,
        format,
        compression: early.compression,
        columns,
        where_expr: headers.owned("where")?,
        max_filter_ratio: max_filter_ratio(headers)?,
        rejected_rows: reject_policy(headers)?,
        strict_mode,
        timeout: early.timeout.unwrap_or(TIMEOUT_DEFAULT),
        timezone: timezone(headers)?,
        two_phase_commit: headers.two_phase_commit(),
        group_commit: early.group_commit,
        required: early.required,
        update,
        merge,
        table_headers,
        comment: early.comment,
        content_length: early.content_length,
        chunked: early.content_length.is_none(),
        trace_parent: headers.trace_parent(),
    })
}

/// The HTTP Stream that the headers describe.
///
/// # Errors
/// As [`stream_load`], or no `sql`.
pub(crate) fn http_stream(
    headers: Headers<'_>,
    early: Early,
    user: String,
) -> Result<HttpStreamRequest, HeaderError> {
    let sql = headers.owned("sql")?.ok_or_else(|| {
        HeaderError::invalid(
            "the header `sql` is empty: give the statement, e.g. sql: insert into db.t select * from \
             http_stream(\"format\" = \"csv\")",
        )
    })?;
    check_left_to_statement(headers, &sql)?;
    foreign::check(headers)?;
    let (merge, update) = (tables::merge_headers(headers)?, tables::update_headers(headers, true)?);
    Ok(HttpStreamRequest {
        sql,
        user,
        label: early.label,
        name: early.name,
        // The statement determines the format of the body.
        table_headers: tables::table_headers(headers, Some((&merge, update)))?,
        strict_mode: strict_mode(headers)?,
        max_filter_ratio: max_filter_ratio(headers)?,
        rejected_rows: reject_policy(headers)?,
        timeout: early.timeout.unwrap_or(TIMEOUT_DEFAULT),
        timezone: timezone(headers)?,
        two_phase_commit: headers.two_phase_commit(),
        group_commit: early.group_commit,
        required: early.required,
        partial_columns: update.mode != UpdateMode::Upsert,
        compression: early.compression,
        comment: early.comment,
        content_length: early.content_length,
        chunked: early.content_length.is_none(),
        trace_parent: headers.trace_parent(),
    })
}

/// Why a second phase is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TwoPhaseRefusal {
    /// A header that must be there is not.
    #[error("{0}")]
    Missing(&'static str),
    #[error(transparent)]
    Illegal(#[from] HeaderError),
}

/// The second phase that the headers ask for.
///
/// # Errors
/// Neither `txn_id` nor `label`, a bad number or label, a missing or unknown `txn_operation`.
pub(crate) fn two_phase(headers: Headers<'_>) -> Result<(TwoPhaseOp, TwoPhaseTarget), TwoPhaseRefusal> {
    let (txn_id, label) = (headers.text("txn_id")?, headers.text("label")?);
    if txn_id.is_none() && label.is_none() {
        return Err(TwoPhaseRefusal::Missing("No transaction id or label selected."));
    }
    let Some(operation) = headers.text("txn_operation")? else {
        return Err(TwoPhaseRefusal::Missing("No transaction operation('commit' or 'abort') selected."));
    };
    let op = two_phase_op(operation)?;
    let txn_id = txn_id.map(parse_txn_id).transpose()?;
    let label = label.map(Label::new).transpose().map_err(HeaderError::from)?;
    Ok((op, TwoPhaseTarget { txn_id, label }))
}

fn two_phase_op(text: &str) -> Result<TwoPhaseOp, HeaderError> {
    [TwoPhaseOp::Commit, TwoPhaseOp::Abort]
        .into_iter()
        .find(|op| text.eq_ignore_ascii_case(op.as_str()))
        .ok_or_else(|| HeaderError::invalid("transaction operation should be 'commit' or 'abort'"))
}

fn parse_txn_id(text: &str) -> Result<TxnId, HeaderError> {
    text.parse()
        .map(TxnId)
        .map_err(|what| HeaderError::invalid(format!("convert txn_id [{text}] failed, reason={what}")))
}

fn group_commit(headers: Headers<'_>) -> Result<Option<GroupCommitMode>, HeaderError> {
    let Some(text) = headers.text("group_commit")? else { return Ok(None) };
    GroupCommitMode::parse(text)
        .map(Some)
        .ok_or_else(|| HeaderError::invalid("group_commit can only be [async_mode, sync_mode, off_mode]"))
}

fn requirement(headers: Headers<'_>) -> Result<Option<Requirement>, HeaderError> {
    let Some(text) = headers.text("group_commit_require")? else { return Ok(None) };
    Requirement::parse(text)
        .map(Some)
        .ok_or_else(|| HeaderError::invalid("group_commit_require can only be [durable, visible, grouped]"))
}

fn reject_policy(headers: Headers<'_>) -> Result<Option<RejectPolicy>, HeaderError> {
    let Some(text) = headers.text("rejected_rows")? else { return Ok(None) };
    RejectPolicy::parse(text)
        .map(Some)
        .ok_or_else(|| HeaderError::invalid("rejected_rows can only be [fail, keep]"))
}

/// The format that the headers in `names` describe.
fn load_format(
    headers: Headers<'_>,
    names: &[&'static str],
) -> Result<Result<LoadFormat, FormatError>, HeaderError> {
    let mut properties = Vec::new();
    for name in names {
        properties.extend(headers.text(name)?.map(|text| (*name, text)));
    }
    Ok(LoadFormat::from_properties(properties))
}

/// Refuses headers that belong in the statement of an HTTP Stream if the statement does not set them: the rows would not be what
/// the client meant.
fn check_left_to_statement(headers: Headers<'_>, sql: &str) -> Result<(), HeaderError> {
    let sql = sql.to_ascii_lowercase();
    for name in LoadFormat::PROPERTIES.iter().filter(|name| **name != "compress_type") {
        let Some(text) = headers.text(name)? else { continue };
        let is_default = *name == "format" && text.eq_ignore_ascii_case("csv");
        if !is_default && !sql.contains(name) {
            return Err(HeaderError::invalid(format!(
                "header {name} has no effect on an HTTP Stream; give it in the statement: http_stream(\"{name}\" = \"…\")"
            )));
        }
    }
    for (name, clause) in [("columns", "the column list and the select list"), ("where", "WHERE")] {
        if headers.text(name)?.is_some() {
            return Err(HeaderError::invalid(format!(
                "header {name} has no effect on an HTTP Stream; write {clause} in the statement"
            )));
        }
    }
    Ok(())
}

/// How the body is packed: as `Content-Encoding` says, or as `compress_type` does.
fn compression(headers: Headers<'_>, compress_type: Compression) -> Result<Compression, HeaderError> {
    let Some(text) = headers.text(CONTENT_ENCODING.as_str())? else { return Ok(compress_type) };
    let encoding = match text.to_ascii_lowercase().as_str() {
        "identity" => return Ok(compress_type),
        "gzip" | "x-gzip" => Compression::Gzip,
        "deflate" => Compression::Deflate,
        "zstd" => Compression::Zstd,
        _ => {
            return Err(HeaderError::new(
                LoadCode::NotImplemented,
                format!(
                    "Content-Encoding: {text} is not supported; use gzip, deflate, zstd, or send the body uncompressed"
                ),
            ));
        }
    };
    if compress_type != Compression::None && compress_type != encoding {
        return Err(HeaderError::invalid(format!(
            "Content-Encoding: {text} and compress_type={} are both given; a body is unpacked once, give one of them",
            compress_type.name()
        )));
    }
    Ok(encoding)
}

/// The declared length; `None` for a chunked body.
fn content_length(headers: Headers<'_>, max_bytes: u64) -> Result<Option<u64>, HeaderError> {
    let chunked = headers.text(TRANSFER_ENCODING.as_str())?.is_some_and(|text| {
        text.rsplit(',').next().is_some_and(|last| last.trim().eq_ignore_ascii_case("chunked"))
    });
    let Some(text) = headers.text(CONTENT_LENGTH.as_str())? else {
        return if chunked {
            Ok(None)
        } else {
            Err(HeaderError::invalid(
                "content_length is empty and transfer-encoding!=chunked, please set content_length or \
                 transfer-encoding=chunked",
            ))
        };
    };
    if chunked {
        return Err(HeaderError::invalid("please do not set both content_length and transfer-encoding"));
    }
    let bytes = text
        .parse::<u64>()
        .map_err(|what| HeaderError::invalid(format!("invalid HTTP header CONTENT_LENGTH={text}: {what}")))?;
    if bytes > max_bytes {
        let limit_mb = max_bytes / (1024 * 1024);
        return Err(HeaderError::new(
            LoadCode::ExceededLimit,
            format!(
                "body size {bytes} exceed BE's conf `streaming_load_max_mb` {limit_mb}. increase it if you are sure \
                 this load is reasonable"
            ),
        ));
    }
    Ok(Some(bytes))
}

fn timeout(headers: Headers<'_>) -> Result<Option<Duration>, HeaderError> {
    let Some(text) = headers.text("timeout")? else { return Ok(None) };
    let seconds = text
        .parse::<i64>()
        .map_err(|what| HeaderError::invalid(format!("Invalid timeout format, timeout={text}: {what}")))?;
    match u64::try_from(seconds) {
        Ok(seconds @ 1..=TIMEOUT_SECONDS_MAX) => Ok(Some(Duration::from_secs(seconds))),
        _ => Err(HeaderError::invalid(format!(
            "Invalid timeout: {seconds}. Timeout should between 1 and {TIMEOUT_SECONDS_MAX} seconds"
        ))),
    }
}

fn strict_mode(headers: Headers<'_>) -> Result<bool, HeaderError> {
    match headers.text("strict_mode")? {
        None => Ok(false),
        Some(text) if text.eq_ignore_ascii_case("true") => Ok(true),
        Some(text) if text.eq_ignore_ascii_case("false") => Ok(false),
        Some(_) => Err(HeaderError::invalid("Invalid strict mode format. Must be bool type")),
    }
}

fn max_filter_ratio(headers: Headers<'_>) -> Result<f64, HeaderError> {
    let Some(text) = headers.text("max_filter_ratio")? else { return Ok(0.0) };
    match text.parse::<f64>() {
        Ok(ratio) if (0.0..=1.0).contains(&ratio) => Ok(ratio),
        _ => Err(HeaderError::invalid(format!(
            "Invalid max_filter_ratio: {text}. It must be a number from 0 to 1"
        ))),
    }
}

fn timezone(headers: Headers<'_>) -> Result<Option<String>, HeaderError> {
    match headers.owned("timezone")? {
        None => headers.owned("time_zone"),
        zone => Ok(zone),
    }
}

#[cfg(test)]
mod tests;
