//! The HTTP front end: Stream Load, HTTP Stream, two phase commit, statements and the small inspection APIs.
//!
//! It turns requests into [`StreamLoadRequest`] and [`HttpStreamRequest`] with a streamed
//! [`LoadBody`], hands them to [`Services`], and turns the [`LoadAnswer`] into the JSON that
//! Doris's clients parse (key order, indent and types are theirs).
//!
//! Invariant: every request whose head was understood is answered exactly once. A plain or gzip body never
//! needs more memory than a few hundred KiB, and one that is packed otherwise a few tens of MiB at most,
//! whatever its size and however well it compresses. A handler that panics answers its own request with a
//! failure and harms no other.
//!
//! Not its business: tables, rows, SQL, transactions, storage, disks.
//!
//! The HTTP library is `hyper`. It decides some answers before this crate sees the request: an
//! unparsable head or `Content-Length` is answered 400 with an empty body, a head beyond
//! [`HttpOptions::max_header_bytes`] 431. It hides the `Content-Length` of a request that has
//! `Transfer-Encoding: chunked` too; [`framing`] sees both, and such a load is refused.

mod answer;
mod auth;
mod body;
mod code;
mod deadline;
mod framing;
#[doc(hidden)]
pub mod fuzzing;
mod handler;
mod head_bytes;
mod headers;
mod options;
mod origin;
mod peer;
mod places;
mod reached;
mod reply;
mod request;
mod route;
mod server;
mod service;
mod unpack;

pub use answer::{ExistingJob, LoadAnswer, LoadStages, LoadStatus, LoadTimes};
pub use body::{BodyError, BodyMeter, LoadBody};
pub use code::LoadCode;
pub use headers::options::{ForeignLoad, stream_load_of_options};
pub use options::{HttpOptions, Redirect};
pub use peer::Peer;
pub use request::{
    ColumnMapping, HttpStreamRequest, MergeHeaders, MergeType, StreamLoadRequest, TIMEOUT_DEFAULT,
    TIMEOUT_SECONDS_MAX, TableHeaders, TwoPhaseOp, TwoPhaseTarget, UpdateHeaders, UpdateMode,
};
pub use route::{error_url, file_of_error_url};
pub use server::serve;
pub use service::{
    AnsweredLoad, AskedName, Authenticator, Backend, ErrorLogReader, Health, InspectService, LabelInfo,
    LoadRoute, LoadService, NamedState, QueryAnswer, QueryColumn, QueryRequest, QueryService, ReadPlan,
    Services, StoredLoad, WalCount,
};
pub use tributary_decode::Compression;
