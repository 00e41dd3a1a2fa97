//! Questions of one node to another, and the rows of the answers, as a `DoGet` of Arrow Flight.
//!
//! The ticket has the question. The answer's schema message carries everything but the rows. Not here: who may ask, which the gate
//! decides, and the meaning of questions.

use crate::service::FlightStream;
use crate::session::NodeCalls;
use crate::status::status;
use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use arrow_flight::Ticket;
use arrow_flight::decode::{DecodedPayload, FlightDataDecoder};
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::sql::Any;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use prost::Message;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::codegen::{Body as HttpBody, StdError};
use tonic::{Code, Response, Status};

/// The type of a ticket with a question.
const QUESTION: &str = "tributary/question";

/// The answer to a question.
#[derive(Clone, Debug)]
pub struct NodeAnswer {
    /// Everything but the rows.
    pub head: Bytes,
    /// The schema of the batches.
    pub schema: SchemaRef,
    /// Each may arrive as several smaller ones.
    pub batches: Vec<RecordBatch>,
}

impl NodeAnswer {
    /// An answer without rows.
    #[must_use]
    pub fn without_rows(head: Vec<u8>) -> Self {
        Self { head: head.into(), schema: Arc::new(Schema::empty()), batches: Vec::new() }
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeFailure {
    /// The node does not want to answer this question.
    Refused(String),
    /// It did not say anything in time.
    Silent(String),
    /// The connection is gone, or is not to the node that was meant.
    Lost(String),
}

impl From<Status> for NodeFailure {
    fn from(status: Status) -> Self {
        let text = status.message().to_owned();
        match status.code() {
            Code::DeadlineExceeded => Self::Silent(text),
            Code::Unavailable | Code::Unauthenticated | Code::Unimplemented | Code::Cancelled => {
                Self::Lost(text)
            }
            // The library's for a connection that breaks.
            Code::Unknown | Code::Internal if status.source().is_some() => Self::Lost(text),
            _ => Self::Refused(text),
        }
    }
}

/// The node that has sent a call, which the gate has let in.
#[derive(Clone)]
pub(crate) struct OfNode(pub Arc<dyn NodeCalls>);

/// Answers a question.
pub(crate) async fn answer(
    OfNode(nodes): OfNode,
    question: Any,
    left: CancellationToken,
) -> Result<Response<FlightStream>, Status> {
    if question.type_url != QUESTION {
        return Err(Status::invalid_argument("the ticket has no question of a node"));
    }
    let answer = tokio::select! {
        answer = nodes.ask(question.value) => answer.map_err(|error| status(&error))?,
        () = left.cancelled() => return Err(Status::cancelled("the node has left")),
    };
    let NodeAnswer { head, schema, batches } = answer;
    let batches = stream::iter(batches.into_iter().map(Ok));
    let messages = FlightDataEncoderBuilder::new().with_schema(schema).with_metadata(head).build(batches);
    Ok(Response::new(Box::pin(messages.map_err(Status::from))))
}

/// Asks another node on a channel that shows it the node's token. `silence` is the longest time without a message; `None`: any.
///
/// # Errors
/// The node refuses, is silent, or the connection fails.
pub async fn ask_node<C>(
    channel: C,
    question: Vec<u8>,
    silence: Option<Duration>,
) -> Result<NodeAnswer, NodeFailure>
where
    C: GrpcService<Body>,
    C::Error: Into<StdError>,
    C::ResponseBody: HttpBody<Data = Bytes> + Send + 'static,
    <C::ResponseBody as HttpBody>::Error: Into<StdError> + Send,
{
    let question = Any { type_url: QUESTION.to_owned(), value: question.into() };
    let ticket = Ticket::new(question.encode_to_vec());
    // A head is as long as the list of a table's files, and a row as its values.
    let mut client = FlightServiceClient::new(channel).max_decoding_message_size(usize::MAX);
    let messages = heard(silence, client.do_get(ticket)).await??.into_inner();
    let mut messages = FlightDataDecoder::new(messages.map_err(FlightError::from));
    let (mut first, mut batches) = (None, Vec::new());
    while let Some(message) = heard(silence, messages.next()).await? {
        let message = message.map_err(|error| NodeFailure::from(Status::from(error)))?;
        match message.payload {
            DecodedPayload::Schema(schema) => first = Some((message.inner.app_metadata, schema)),
            DecodedPayload::RecordBatch(batch) => batches.push(batch),
            DecodedPayload::None => {}
        }
    }
    let (head, schema) = first.ok_or_else(|| NodeFailure::Refused("its answer has no head".to_owned()))?;
    Ok(NodeAnswer { head, schema, batches })
}

/// Waits for something from a node.
async fn heard<T>(silence: Option<Duration>, work: impl Future<Output = T>) -> Result<T, Status> {
    let Some(silence) = silence else { return Ok(work.await) };
    let silent = |_| Status::deadline_exceeded(format!("it was silent for {} s", silence.as_secs()));
    timeout(silence, work).await.map_err(silent)
}
