//! Streams of messages that clients send: values of parameters, and rows of loads.
//!
//! Invariant: a message is looked at before it is decoded: Arrow's library allocates what a buffer claims to unpack to. Rows of
//! loads are not decoded here at all.

use crate::session::{LoadStream, ParameterRow};
use crate::status::invalid;
use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use arrow::ipc::root_as_message;
use arrow_flight::FlightData;
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::error::FlightError;
use arrow_flight::sql::server::PeekableFlightDataStream;
use bytes::{BufMut, Bytes, BytesMut};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use tonic::Status;

/// Precedes the length of a message's head.
const CONTINUATION: u32 = u32::MAX;
/// Messages are filled up to a multiple of this many bytes.
const ALIGNMENT: usize = 8;

/// The values of parameters, in batches.
pub(crate) fn parameters(
    messages: PeekableFlightDataStream,
) -> BoxStream<'static, Result<RecordBatch, Status>> {
    let messages = messages.try_filter(|message| std::future::ready(!message.data_header.is_empty()));
    let checked = messages.map(|message| message.and_then(checked).map_err(FlightError::from));
    FlightRecordBatchStream::new_from_flight_data(checked).map_err(undecoded).boxed()
}

/// The only row of the values of a query's parameters; `None` if there are no values.
///
/// # Errors
/// There are more rows, or they can't be read.
pub(crate) async fn parameter_row(
    messages: PeekableFlightDataStream,
) -> Result<Option<ParameterRow>, Status> {
    let mut batches = parameters(messages);
    let mut found = None;
    while let Some(batch) = batches.try_next().await? {
        match batch.num_rows() {
            0 => {}
            1 if found.is_none() => found = Some(ParameterRow { batch, row: 0 }),
            rows => {
                let text = format!(
                    "a query has one row of parameters, and {} were bound: execute it for each row",
                    rows + usize::from(found.is_some())
                );
                return Err(invalid(text));
            }
        }
    }
    Ok(found)
}

fn undecoded(error: FlightError) -> Status {
    match error {
        FlightError::Tonic(status) => *status,
        error => invalid(format!("the parameters can't be read: {error}")),
    }
}

/// Refuses compressed buffers.
fn checked(message: FlightData) -> Result<FlightData, Status> {
    let head = root_as_message(&message.data_header)
        .map_err(|error| invalid(format!("the parameters can't be read: {error}")))?;
    let batch = head.header_as_record_batch();
    let data = head.header_as_dictionary_batch().and_then(|dictionary| dictionary.data());
    let is_packed = [batch, data].into_iter().flatten().any(|batch| batch.compression().is_some());
    if is_packed {
        return Err(invalid("compressed parameters are not supported: send them uncompressed"));
    }
    Ok(message)
}

/// The schema in the first message of a stream, which stays there.
///
/// # Errors
/// There is none, or it can't be read.
pub(crate) async fn first_schema(messages: &mut PeekableFlightDataStream) -> Result<Option<Schema>, Status> {
    let Some(Ok(first)) = messages.peek().await else { return Ok(None) };
    let schema = Schema::try_from(first);
    schema.map(Some).map_err(|error| invalid(format!("the schema of the rows can't be read: {error}")))
}

/// The rows of a load as the bytes of a stream of Arrow's IPC format.
pub(crate) fn ipc_stream(messages: PeekableFlightDataStream) -> LoadStream {
    let pieces = messages.map(|message| match message {
        Ok(message) => stream::iter(pieces(message)).map(Ok).boxed(),
        Err(status) => stream::iter([Err(gone(&status))]).boxed(),
    });
    pieces.flatten().boxed()
}

/// A message in its frame. Without a head it has no rows: it names the command, or brings metadata.
fn pieces(message: FlightData) -> impl Iterator<Item = Bytes> + Send + 'static {
    let FlightData { data_header, data_body, .. } = message;
    let has_rows = !data_header.is_empty();
    let length = data_header.len().next_multiple_of(ALIGNMENT);
    let mut head = BytesMut::with_capacity(if has_rows { ALIGNMENT + length } else { 0 });
    if has_rows {
        head.put_u32_le(CONTINUATION);
        head.put_u32_le(u32::try_from(length).unwrap_or(u32::MAX));
        head.put_slice(&data_header);
        head.put_bytes(0, length - data_header.len());
    }
    let body = if has_rows { data_body } else { Bytes::new() };
    [head.freeze(), body].into_iter().filter(|piece| !piece.is_empty())
}

fn gone(status: &Status) -> String {
    format!("the client's rows ended early: {}", status.message())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Int64Array, StringArray};
    use arrow::ipc::reader::StreamReader;
    use arrow_flight::encode::FlightDataEncoderBuilder;
    use std::sync::Arc;

    #[tokio::test]
    async fn messages_in_their_frames_are_an_ipc_stream() {
        let columns: [(&str, ArrayRef); 2] = [
            ("a", Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]))),
            ("b", Arc::new(StringArray::from(vec!["x", "", "ü"]))),
        ];
        let batch = RecordBatch::try_from_iter(columns).expect("of one length");
        let batches = stream::iter([Ok(batch.clone()), Ok(batch.slice(1, 1))]);
        let messages: Vec<FlightData> =
            FlightDataEncoderBuilder::new().build(batches).try_collect().await.expect("encoded");
        let command = FlightData::default();
        let bytes: Vec<u8> = std::iter::once(command).chain(messages).flat_map(pieces).flatten().collect();
        let read: Vec<RecordBatch> = StreamReader::try_new(bytes.as_slice(), None)
            .expect("a schema")
            .collect::<Result<_, _>>()
            .expect("batches");
        assert_eq!(read, [batch.clone(), batch.slice(1, 1)]);
    }
}
