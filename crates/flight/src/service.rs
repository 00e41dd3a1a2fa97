//! The commands of Flight SQL.
//!
//! A statement runs when its command comes, so that a change is made once and its error is the command's; its rows are computed while
//! they are fetched. Not here: what a statement means, and who may run it.

use crate::metadata::Metadata;
use crate::nodes::{self, OfNode};
use crate::put::{first_schema, ipc_stream, parameter_row, parameters};
use crate::session::{Answer, Credentials, LoadRequest, ParameterRow, Rows, Session};
use crate::sessions::{Caller, Connection, Reader, Sessions};
use crate::status::{invalid, status};
use arrow::array::{Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::ipc::writer::IpcWriteOptions;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_server::FlightService;
use arrow_flight::sql::metadata::{SqlInfoData, XdbcTypeInfoData};
use arrow_flight::sql::server::{DoPutError, FlightSqlService, PeekableFlightDataStream};
use arrow_flight::sql::{
    ActionBeginSavepointRequest, ActionBeginSavepointResult, ActionBeginTransactionRequest,
    ActionBeginTransactionResult, ActionCancelQueryRequest, ActionCancelQueryResult,
    ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest,
    ActionCreatePreparedStatementResult, ActionCreatePreparedSubstraitPlanRequest, ActionEndSavepointRequest,
    ActionEndTransactionRequest, Any, CommandGetCatalogs, CommandGetDbSchemas, CommandGetPrimaryKeys,
    CommandGetSqlInfo, CommandGetTableTypes, CommandGetTables, CommandGetXdbcTypeInfo,
    CommandPreparedStatementQuery, CommandPreparedStatementUpdate, CommandStatementIngest,
    CommandStatementQuery, CommandStatementUpdate, DoPutPreparedStatementResult, DoPutUpdateResult,
    ProstMessageExt, SqlInfo, TableExistsOption, TableNotExistOption, TicketStatementQuery,
};
use arrow_flight::{
    Action, ActionType, FlightDescriptor, FlightEndpoint, FlightInfo, HandshakeRequest, HandshakeResponse,
    IpcMessage, PutResult, SchemaAsIpc, Ticket,
};
use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt, TryStreamExt};
use prost::Message;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::metadata::{Ascii, KeyAndValueRef, MetadataMap, MetadataValue};
use tonic::{Request, Response, Status, Streaming};
use tributary_types::{Secret, SqlError};

/// The action that ends a session. Its result says that it is closed: field 1, value 1.
const CLOSE_SESSION: &str = "CloseSession";
const CLOSED: &[u8] = &[0x08, 0x01];

const NO_TRANSACTIONS: &str = "there are no transactions of Flight SQL: send BEGIN, COMMIT and ROLLBACK as statements of the session, whose \
                               other statements then belong to the transaction";

/// The one column of the result of a statement without rows.
static COUNT: LazyLock<SchemaRef> =
    LazyLock::new(|| Arc::new(Schema::new(vec![Field::new("affected_rows", DataType::Int64, false)])));

/// The messages of an answer.
pub(crate) type FlightStream = <FlightSql as FlightService>::DoGetStream;

/// The service of one server.
#[derive(Clone)]
pub(crate) struct FlightSql {
    sessions: Arc<Sessions>,
    metadata: Arc<Metadata>,
    calls: TaskTracker,
}

impl FlightSql {
    pub fn new(sessions: Arc<Sessions>, server_version: &str, calls: TaskTracker) -> Self {
        Self { sessions, metadata: Arc::new(Metadata::new(server_version)), calls }
    }

    /// Runs a call in a task of its own. The token says that its client has left.
    async fn detached<T, F>(&self, call: impl FnOnce(CancellationToken) -> F + Send) -> Result<T, Status>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Status>> + Send + 'static,
    {
        let left = CancellationToken::new();
        let guard = left.clone().drop_guard();
        let answered = self.calls.spawn(call(left)).await;
        drop(guard.disarm());
        answered.unwrap_or_else(|error| {
            tracing::error!(%error, "a Flight SQL call panicked");
            Err(Status::internal("the server failed while it handled this call (a bug, see its log)"))
        })
    }

    /// Runs a statement, and keeps its rows to be fetched.
    async fn started<F>(
        &self,
        request: Request<FlightDescriptor>,
        run: impl FnOnce(Arc<dyn Session>, CancellationToken) -> F + Send + 'static,
    ) -> Result<Response<FlightInfo>, Status>
    where
        F: Future<Output = Result<Answer, SqlError>> + Send + 'static,
    {
        let caller = caller(&request)?;
        let called = caller.clone();
        let answer = self
            .detached(move |left| {
                let session = Arc::clone(called.session());
                async move {
                    let answer = run(session, left).await;
                    drop(called);
                    answer.map_err(|error| status(&error))
                }
            })
            .await?;
        let (records, rows): (i64, Box<dyn Rows>) = match answer {
            Answer::Rows(rows) => (-1, rows),
            Answer::Done { affected_rows } => {
                let count = i64::try_from(affected_rows).unwrap_or(i64::MAX);
                (count, Box::new(Count(Some(count))))
            }
        };
        let schema = rows.schema();
        let number = caller.keep(rows).map_err(|error| status(&error))?;
        let ticket = TicketStatementQuery { statement_handle: number.to_be_bytes().to_vec().into() };
        let info = info(request.into_inner(), &schema, &ticket)?;
        Ok(Response::new(info.with_total_records(records)))
    }

    /// Runs an update for each row of parameters, or once if there are none. Returns the rows that were changed.
    async fn updated(&self, id: u32, request: Request<PeekableFlightDataStream>) -> Result<i64, Status> {
        let caller = caller(&request)?;
        let messages = request.into_inner();
        self.detached(move |left| async move {
            let session = caller.session();
            let mut batches = parameters(messages);
            let (mut rows, mut has_run) = (0, false);
            while let Some(batch) = batches.try_next().await? {
                for row in 0..batch.num_rows() {
                    let parameters = Some(ParameterRow { batch: batch.clone(), row });
                    rows += count(session.execute(id, parameters, left.clone()).await)?;
                    has_run = true;
                }
            }
            if !has_run {
                rows += count(session.execute(id, caller.bound(id), left).await)?;
            }
            Ok(rows)
        })
        .await
    }

    async fn loaded(
        &self,
        load: LoadRequest,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        let caller = caller(&request)?;
        let load = LoadRequest { headers: headers(request.metadata()), ..load };
        let mut messages = request.into_inner();
        self.detached(move |left| async move {
            let schema = first_schema(&mut messages).await?;
            let (load, rows) = (LoadRequest { schema, ..load }, ipc_stream(messages));
            let loaded = caller.session().load(load, rows, left).await.map_err(|error| status(&error))?;
            Ok(i64::try_from(loaded).unwrap_or(i64::MAX))
        })
        .await
    }

    /// Answers a command about names with a batch.
    async fn named<F>(
        &self,
        request: &Request<Ticket>,
        ask: impl FnOnce(Arc<Metadata>, Arc<dyn Session>, CancellationToken) -> F + Send,
    ) -> Result<Response<FlightStream>, Status>
    where
        F: Future<Output = Result<RecordBatch, Status>> + Send + 'static,
    {
        let caller = caller(request)?;
        let (metadata, session) = (Arc::clone(&self.metadata), Arc::clone(caller.session()));
        let batch = self.detached(|left| ask(metadata, session, left)).await?;
        let schema = batch.schema();
        Ok(Response::new(encoded(schema, stream::iter([Ok(batch)]).boxed())))
    }
}

/// The count of a statement without rows, as its row.
struct Count(Option<i64>);

#[async_trait]
impl Rows for Count {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&COUNT)
    }

    async fn next(&mut self) -> Result<Option<RecordBatch>, SqlError> {
        let Some(count) = self.0.take() else { return Ok(None) };
        let rows = Arc::new(Int64Array::from(vec![count]));
        Ok(Some(RecordBatch::try_new(Arc::clone(&COUNT), vec![rows]).expect("one column of that type")))
    }
}

/// The session of a call, which the gate has found.
fn caller<T>(request: &Request<T>) -> Result<Caller, Status> {
    let caller = request.extensions().get::<Caller>().cloned();
    caller.ok_or_else(|| Status::unauthenticated("no token"))
}

/// The rows that a statement has changed.
fn count(answer: Result<Answer, SqlError>) -> Result<i64, Status> {
    match answer.map_err(|error| status(&error))? {
        Answer::Done { affected_rows } => Ok(i64::try_from(affected_rows).unwrap_or(i64::MAX)),
        Answer::Rows(_) => {
            Err(invalid("the statement has rows, which an update does not take: run it as a query"))
        }
    }
}

/// The headers of a call that are texts, but for the one with the token.
fn headers(metadata: &MetadataMap) -> Vec<(String, String)> {
    let texts = metadata.iter().filter_map(|pair| match pair {
        KeyAndValueRef::Ascii(name, value) => {
            let value = std::str::from_utf8(value.as_encoded_bytes()).ok()?;
            Some((name.as_str().to_owned(), value.to_owned()))
        }
        KeyAndValueRef::Binary(..) => None,
    });
    texts.filter(|(name, _)| name != "authorization").collect()
}

/// The identity that a login claims.
fn credentials(metadata: &MetadataMap) -> Option<Credentials> {
    let (scheme, text) = metadata.get("authorization")?.to_str().ok()?.trim().split_once(' ')?;
    let text = text.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(Credentials { user: String::new(), password: Secret::new(text) });
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = STANDARD.decode(text).or_else(|_| STANDARD_NO_PAD.decode(text)).ok()?;
    let decoded = String::from_utf8(decoded).ok()?;
    let (user, password) = decoded.split_once(':')?;
    Some(Credentials { user: user.to_owned(), password: Secret::new(password) })
}

/// The answer to a command whose rows are fetched with this ticket.
fn info(
    descriptor: FlightDescriptor,
    schema: &Schema,
    ticket: &impl ProstMessageExt,
) -> Result<FlightInfo, Status> {
    let ticket = Ticket::new(ticket.as_any().encode_to_vec());
    let info = FlightInfo::new().try_with_schema(schema).map_err(unencoded)?;
    let endpoint = FlightEndpoint::new().with_ticket(ticket);
    Ok(info.with_descriptor(descriptor).with_endpoint(endpoint).with_ordered(true))
}

fn unencoded(error: arrow::error::ArrowError) -> Status {
    Status::internal(format!("the rows can't be sent: {error}"))
}

/// The bytes of a schema, as prepared statements have them.
fn schema_bytes(schema: &Schema) -> Result<Bytes, Status> {
    let options = IpcWriteOptions::default();
    let message = IpcMessage::try_from(SchemaAsIpc::new(schema, &options)).map_err(unencoded)?;
    Ok(message.0)
}

/// The id of a prepared statement.
fn prepared_id(handle: &[u8]) -> Result<u32, Status> {
    let bytes: [u8; 4] = handle.try_into().map_err(|_| invalid("the handle is of no prepared statement"))?;
    Ok(u32::from_be_bytes(bytes))
}

/// Batches as messages; each is encoded when the client has taken the one before.
fn encoded(schema: SchemaRef, batches: BoxStream<'static, Result<RecordBatch, FlightError>>) -> FlightStream {
    Box::pin(FlightDataEncoderBuilder::new().with_schema(schema).build(batches).map_err(Status::from))
}

/// A result and the call that reads it.
struct Reading {
    reader: Arc<Reader>,
    _caller: Caller,
}

impl Reading {
    fn batches(self) -> BoxStream<'static, Result<RecordBatch, FlightError>> {
        let next = |this: Self| async move {
            let batch = this.reader.next().await.map_err(FlightError::from)?;
            Ok::<_, FlightError>(batch.map(|batch| (batch, this)))
        };
        stream::try_unfold(self, next).boxed()
    }
}

/// The parameters of a statement, of which nothing is known but their number.
fn parameter_schema(count: usize) -> Schema {
    let fields = (1..=count).map(|number| Field::new(number.to_string(), DataType::Utf8, true));
    Schema::new(fields.collect::<Vec<_>>())
}

/// Refuses a transaction of the protocol: those of SQL are the session's.
fn no_transaction(id: Option<&Bytes>) -> Result<(), Status> {
    match id {
        Some(id) if !id.is_empty() => Err(invalid(NO_TRANSACTIONS)),
        _ => Ok(()),
    }
}

/// The error of an action of the protocol that the server does not have.
fn refused(action: &str, instead: &str) -> Status {
    Status::unimplemented(format!("{action} is not supported: {instead}"))
}

#[async_trait]
impl FlightSqlService for FlightSql {
    type FlightService = Self;

    async fn do_handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Pin<Box<dyn Stream<Item = Result<HandshakeResponse, Status>> + Send>>>, Status> {
        let connection = request.extensions().get::<Arc<Connection>>().cloned();
        let (Some(connection), Some(claimed)) = (connection, credentials(request.metadata())) else {
            return Err(Status::unauthenticated(
                "no user: log in with the header `authorization: Basic …` (authenticate_basic_token, or username and \
                 password), or with an access token as `authorization: Bearer …`",
            ));
        };
        let sessions = Arc::clone(&self.sessions);
        let token = self
            .detached(|_| async move {
                sessions.log_in(&claimed, &connection).await.map_err(|error| status(&error))
            })
            .await?;
        let header: MetadataValue<Ascii> =
            format!("Bearer {token}").parse().map_err(|_| Status::internal("the token is no header"))?;
        let answer = HandshakeResponse { protocol_version: 0, payload: token.into() };
        let answers: Pin<Box<dyn Stream<Item = _> + Send>> = Box::pin(stream::iter([Ok(answer)]));
        let mut response = Response::new(answers);
        response.metadata_mut().insert("authorization", header);
        Ok(response)
    }

    async fn get_flight_info_statement(
        &self,
        query: CommandStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        no_transaction(query.transaction_id.as_ref())?;
        self.started(request, move |session, left| async move { session.query(query.query, left).await })
            .await
    }

    async fn get_flight_info_prepared_statement(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let id = prepared_id(&query.prepared_statement_handle)?;
        let parameters = caller(&request)?.bound(id);
        self.started(request, move |session, left| async move { session.execute(id, parameters, left).await })
            .await
    }

    async fn do_get_statement(
        &self,
        ticket: TicketStatementQuery,
        request: Request<Ticket>,
    ) -> Result<Response<FlightStream>, Status> {
        let caller = caller(&request)?;
        let number = ticket.statement_handle[..].try_into().ok().map(u64::from_be_bytes);
        let Some(rows) = number.and_then(|number| caller.take(number)) else {
            let text = "there is no such result in this session: it was fetched, or was not fetched in time";
            return Err(Status::not_found(text));
        };
        let schema = rows.schema();
        Ok(Response::new(encoded(schema, Reading { reader: caller.read(rows), _caller: caller }.batches())))
    }

    async fn do_get_fallback(
        &self,
        request: Request<Ticket>,
        message: Any,
    ) -> Result<Response<FlightStream>, Status> {
        match request.extensions().get::<OfNode>().cloned() {
            Some(node) => self.detached(|left| nodes::answer(node, message, left)).await,
            None => Err(invalid(format!("the ticket is of no command that there is: {}", message.type_url))),
        }
    }

    async fn do_put_statement_update(
        &self,
        command: CommandStatementUpdate,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        no_transaction(command.transaction_id.as_ref())?;
        let caller = caller(&request)?;
        self.detached(move |left| async move { count(caller.session().query(command.query, left).await) })
            .await
    }

    async fn do_action_create_prepared_statement(
        &self,
        query: ActionCreatePreparedStatementRequest,
        request: Request<Action>,
    ) -> Result<ActionCreatePreparedStatementResult, Status> {
        no_transaction(query.transaction_id.as_ref())?;
        let caller = caller(&request)?;
        let prepared = self
            .detached(move |_| async move {
                caller.session().prepare(query.query).await.map_err(|error| status(&error))
            })
            .await?;
        Ok(ActionCreatePreparedStatementResult {
            prepared_statement_handle: prepared.id.to_be_bytes().to_vec().into(),
            dataset_schema: prepared.schema.as_ref().map(schema_bytes).transpose()?.unwrap_or_default(),
            parameter_schema: schema_bytes(&parameter_schema(prepared.parameter_count))?,
        })
    }

    async fn do_action_close_prepared_statement(
        &self,
        query: ActionClosePreparedStatementRequest,
        request: Request<Action>,
    ) -> Result<(), Status> {
        let (caller, id) = (caller(&request)?, prepared_id(&query.prepared_statement_handle)?);
        caller.unbind(id);
        caller.session().forget(id).await;
        Ok(())
    }

    async fn do_put_prepared_statement_query(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<DoPutPreparedStatementResult, Status> {
        let (caller, id) = (caller(&request)?, prepared_id(&query.prepared_statement_handle)?);
        let messages = request.into_inner();
        match self.detached(|_| parameter_row(messages)).await? {
            Some(row) => caller.bind(id, row),
            None => caller.unbind(id),
        }
        let handle = query.prepared_statement_handle;
        Ok(DoPutPreparedStatementResult { prepared_statement_handle: Some(handle) })
    }

    async fn do_put_prepared_statement_update(
        &self,
        query: CommandPreparedStatementUpdate,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        self.updated(prepared_id(&query.prepared_statement_handle)?, request).await
    }

    async fn do_put_statement_ingest(
        &self,
        command: CommandStatementIngest,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        no_transaction(command.transaction_id.as_ref())?;
        if command.temporary {
            return Err(invalid("rows can't be loaded into a temporary table: leave `temporary` out"));
        }
        let options = command.table_definition_options.unwrap_or_default();
        if options.if_exists() == TableExistsOption::Replace {
            let text =
                "a table can't be replaced by a load: send TRUNCATE TABLE or DROP TABLE before, and append";
            return Err(Status::unimplemented(text));
        }
        let load = LoadRequest {
            db: command.schema.filter(|db| !db.is_empty()),
            table: command.table,
            creates: options.if_not_exist() == TableNotExistOption::Create,
            is_new: options.if_exists() == TableExistsOption::Fail,
            options: command.options.into_iter().collect(),
            ..LoadRequest::default()
        };
        self.loaded(load, request).await
    }

    async fn do_put_fallback(
        &self,
        mut request: Request<PeekableFlightDataStream>,
        message: Any,
    ) -> Result<Response<<Self as FlightService>::DoPutStream>, Status> {
        let path = match request.get_mut().peek().await {
            Some(Ok(first)) => first.flight_descriptor.as_ref().map(|told| told.path.clone()),
            _ => None,
        };
        let (db, table) = match path.unwrap_or_default().as_slice() {
            [table] => (None, table.clone()),
            [db, table] => (Some(db.clone()), table.clone()),
            _ => {
                let text = format!(
                    "DoPut takes commands of Flight SQL, or rows for a path of a database and a table, and not {}",
                    message.type_url
                );
                return Err(invalid(text));
            }
        };
        let load = LoadRequest { db, table, ..LoadRequest::default() };
        let record_count = self.loaded(load, request).await?;
        let app_metadata = DoPutUpdateResult { record_count }.encode_to_vec().into();
        Ok(Response::new(stream::iter([Ok(PutResult { app_metadata })]).boxed()))
    }

    async fn do_put_error_callback(
        &self,
        _request: Request<PeekableFlightDataStream>,
        error: DoPutError,
    ) -> Result<Response<<Self as FlightService>::DoPutStream>, Status> {
        Err(invalid(error.to_string()))
    }

    async fn do_action_begin_transaction(
        &self,
        _query: ActionBeginTransactionRequest,
        _request: Request<Action>,
    ) -> Result<ActionBeginTransactionResult, Status> {
        Err(refused("BeginTransaction", NO_TRANSACTIONS))
    }

    async fn do_action_end_transaction(
        &self,
        _query: ActionEndTransactionRequest,
        _request: Request<Action>,
    ) -> Result<(), Status> {
        Err(refused("EndTransaction", NO_TRANSACTIONS))
    }

    async fn do_action_begin_savepoint(
        &self,
        _query: ActionBeginSavepointRequest,
        _request: Request<Action>,
    ) -> Result<ActionBeginSavepointResult, Status> {
        Err(refused("BeginSavepoint", "send SAVEPOINT as a statement of the session"))
    }

    async fn do_action_end_savepoint(
        &self,
        _query: ActionEndSavepointRequest,
        _request: Request<Action>,
    ) -> Result<(), Status> {
        Err(refused("EndSavepoint", "send RELEASE SAVEPOINT or ROLLBACK TO as statements of the session"))
    }

    async fn do_action_cancel_query(
        &self,
        _query: ActionCancelQueryRequest,
        _request: Request<Action>,
    ) -> Result<ActionCancelQueryResult, Status> {
        Err(refused("CancelQuery", "cancel the call, or send KILL QUERY"))
    }

    async fn do_action_create_prepared_substrait_plan(
        &self,
        _query: ActionCreatePreparedSubstraitPlanRequest,
        _request: Request<Action>,
    ) -> Result<ActionCreatePreparedStatementResult, Status> {
        Err(refused("CreatePreparedSubstraitPlan", "send SQL"))
    }

    async fn list_custom_actions(&self) -> Option<Vec<Result<ActionType, Status>>> {
        let description = "Ends the session of the token.".to_owned();
        Some(vec![Ok(ActionType { r#type: CLOSE_SESSION.to_owned(), description })])
    }

    async fn do_action_fallback(
        &self,
        request: Request<Action>,
    ) -> Result<Response<<Self as FlightService>::DoActionStream>, Status> {
        let caller = caller(&request)?;
        let action = &request.get_ref().r#type;
        if action != CLOSE_SESSION {
            return Err(Status::unimplemented(format!("there is no action {action}")));
        }
        caller.log_out();
        let closed = arrow_flight::Result { body: Bytes::from_static(CLOSED) };
        Ok(Response::new(stream::iter([Ok(closed)]).boxed()))
    }

    async fn get_flight_info_catalogs(
        &self,
        query: CommandGetCatalogs,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let schema = query.into_builder().schema();
        Ok(Response::new(info(request.into_inner(), &schema, &query)?))
    }

    async fn do_get_catalogs(
        &self,
        query: CommandGetCatalogs,
        request: Request<Ticket>,
    ) -> Result<Response<FlightStream>, Status> {
        self.named(&request, |metadata, _, _| async move { metadata.catalogs(query) }).await
    }

    async fn get_flight_info_schemas(
        &self,
        query: CommandGetDbSchemas,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let schema = query.clone().into_builder().schema();
        Ok(Response::new(info(request.into_inner(), &schema, &query)?))
    }

    async fn do_get_schemas(
        &self,
        query: CommandGetDbSchemas,
        request: Request<Ticket>,
    ) -> Result<Response<FlightStream>, Status> {
        self.named(&request, |metadata, session, left| async move {
            metadata.schemas(query, &*session, left).await
        })
        .await
    }

    async fn get_flight_info_tables(
        &self,
        query: CommandGetTables,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let schema = query.clone().into_builder().schema();
        Ok(Response::new(info(request.into_inner(), &schema, &query)?))
    }

    async fn do_get_tables(
        &self,
        query: CommandGetTables,
        request: Request<Ticket>,
    ) -> Result<Response<FlightStream>, Status> {
        self.named(&request, |metadata, session, left| async move {
            metadata.tables(query, &*session, left).await
        })
        .await
    }

    async fn get_flight_info_table_types(
        &self,
        query: CommandGetTableTypes,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let schema = query.into_builder().schema();
        Ok(Response::new(info(request.into_inner(), &schema, &query)?))
    }

    async fn do_get_table_types(
        &self,
        query: CommandGetTableTypes,
        request: Request<Ticket>,
    ) -> Result<Response<FlightStream>, Status> {
        self.named(&request, |metadata, _, _| async move { metadata.table_types(query) }).await
    }

    async fn get_flight_info_sql_info(
        &self,
        query: CommandGetSqlInfo,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let abilities: &SqlInfoData = self.metadata.abilities();
        let schema = query.clone().into_builder(abilities).schema();
        Ok(Response::new(info(request.into_inner(), &schema, &query)?))
    }

    async fn do_get_sql_info(
        &self,
        query: CommandGetSqlInfo,
        request: Request<Ticket>,
    ) -> Result<Response<FlightStream>, Status> {
        self.named(&request, |metadata, _, _| async move { metadata.sql_info(query) }).await
    }

    async fn get_flight_info_primary_keys(
        &self,
        query: CommandGetPrimaryKeys,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let schema = crate::metadata::primary_key_schema();
        Ok(Response::new(info(request.into_inner(), &schema, &query)?))
    }

    async fn do_get_primary_keys(
        &self,
        query: CommandGetPrimaryKeys,
        request: Request<Ticket>,
    ) -> Result<Response<FlightStream>, Status> {
        self.named(&request, |metadata, session, left| async move {
            metadata.primary_keys(query, &*session, left).await
        })
        .await
    }

    async fn get_flight_info_xdbc_type_info(
        &self,
        query: CommandGetXdbcTypeInfo,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let types: &XdbcTypeInfoData = self.metadata.types();
        let schema = query.into_builder(types).schema();
        Ok(Response::new(info(request.into_inner(), &schema, &query)?))
    }

    async fn do_get_xdbc_type_info(
        &self,
        query: CommandGetXdbcTypeInfo,
        request: Request<Ticket>,
    ) -> Result<Response<FlightStream>, Status> {
        self.named(&request, |metadata, _, _| async move { metadata.type_info(query) }).await
    }

    async fn register_sql_info(&self, _id: i32, _result: &SqlInfo) {}
}
