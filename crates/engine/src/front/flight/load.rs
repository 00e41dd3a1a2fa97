//! Rows that clients put into a table: a Stream Load of Arrow's IPC format, of which only the way is another.

use super::session::{Shared, Statement};
use crate::access::Privilege;
use crate::front::http::HttpLoads;
use arrow::datatypes::Schema;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tributary_flight::{LoadRequest, LoadStream};
use tributary_http::{
    AnsweredLoad, ForeignLoad, LoadAnswer, LoadBody, LoadCode, LoadRoute, LoadService, stream_load_of_options,
};
use tributary_types::{ErrorCode, HiddenColumn, SqlError, TableRef};

/// A load without a new row for this long fails.
const IDLE: Duration = Duration::from_secs(60);
const STRICT: &str = "strict_mode";
/// Options that say what becomes of columns that the table does not have.
const MAPPINGS: [&str; 3] = ["columns", "hidden_columns", "function_column.sequence_col"];

/// Loads rows. Returns the number of rows that are stored.
pub(super) async fn load(
    shared: &Arc<Shared>,
    request: LoadRequest,
    rows: LoadStream,
    left: CancellationToken,
) -> Result<u64, SqlError> {
    let LoadRequest { db, table, creates, is_new, schema, mut options, headers } = request;
    let Some(db) = db.or_else(|| shared.database()) else {
        return Err(SqlError::new(ErrorCode::NoDbSelected, "No database selected"));
    };
    let named = TableRef { db: db.clone(), table: table.clone() };
    if let Some(schema) = schema.as_ref().filter(|_| creates) {
        create(shared, &named, schema, is_new, left).await?;
    } else if is_new {
        let text =
            format!("the load says both that {named} exists and that it must not: use mode append or create");
        return Err(SqlError::detail(ErrorCode::WrongArguments, text));
    }
    // As an INSERT: a value that does not fit is an error, and neither NULL nor cut.
    if !options.iter().chain(&headers).any(|(name, _)| name.eq_ignore_ascii_case(STRICT)) {
        options.push((STRICT.to_owned(), "true".to_owned()));
    }
    let is_mapping = |name: &str| MAPPINGS.iter().any(|mapping| mapping.eq_ignore_ascii_case(name));
    let maps_columns = options.iter().chain(&headers).any(|(name, _)| is_mapping(name));
    let unknown = schema.filter(|_| !maps_columns).and_then(|schema| unknown_column(shared, &named, &schema));
    let (principal, loads) = (&shared.client.principal, HttpLoads(Arc::clone(&shared.engine)));
    let described = ForeignLoad {
        options: &options,
        headers: &headers,
        format: "arrow",
        max_bytes: shared.loads.max_bytes(),
        timeout: shared.loads.timeout.get(),
    };
    let request = match unknown {
        Some(error) => Err(Box::new(LoadAnswer::from_sql_error(&error))),
        None => stream_load_of_options(described, (db, table), principal.user()),
    };
    let (has_begun, mut answer) = match request {
        Ok(request) => {
            let body = LoadBody::from_client(rows, shared.loads.max_bytes(), IDLE);
            (true, Box::pin(loads.load_by(LoadRoute::Flight, principal, request, body)).await)
        }
        Err(refusal) => (false, *refusal),
    };
    answer.table.get_or_insert(named);
    let outcome = if answer.is_loaded() { Ok(answer.loaded_rows) } else { Err(error_of(&answer)) };
    let (principal, peer) = (principal.clone(), shared.client.address.ip());
    loads.answered(AnsweredLoad { principal, peer, answer, route: LoadRoute::Flight, has_begun });
    outcome
}

/// The error of a column that the table does not have: a Stream Load would leave it out, and the client means it to be stored.
fn unknown_column(shared: &Shared, named: &TableRef, schema: &Schema) -> Option<SqlError> {
    let (gate, principal) = (&shared.engine.gate, &shared.client.principal);
    // What is missing or forbidden is the load's to say.
    let table = gate.table(principal, Privilege::Load, None, Some(&named.db), &named.table).ok()?;
    let def = table.def();
    let is_known = |name: &str| {
        [HiddenColumn::DeleteSign, HiddenColumn::Sequence]
            .iter()
            .any(|it| it.name().eq_ignore_ascii_case(name))
            || def.schema.columns.iter().any(|column| column.name.eq_ignore_ascii_case(name))
    };
    let field = schema.fields().iter().find(|field| !is_known(field.name()))?;
    let text = format!(
        "Unknown column '{}' in '{named}'; leave it out, or say by the option columns what becomes of it",
        field.name()
    );
    Some(SqlError::new(ErrorCode::UnknownColumn, text))
}

/// Creates the table of a load, unless it is there and may be.
async fn create(
    shared: &Arc<Shared>,
    table: &TableRef,
    schema: &Schema,
    is_new: bool,
    left: CancellationToken,
) -> Result<(), SqlError> {
    let (gate, principal) = (&shared.engine.gate, &shared.client.principal);
    let is_there = || gate.table(principal, Privilege::Load, None, Some(&table.db), &table.table).is_ok();
    if !is_new && is_there() {
        return Ok(());
    }
    let text = super::create::statement(table, schema, !is_new);
    let received_bytes = text.len() as u64;
    shared.run(Statement::Text(text), received_bytes, None, left).await.map(drop)
}

/// The error of a load that stored nothing.
fn error_of(answer: &LoadAnswer) -> SqlError {
    let code = answer.sql_code.unwrap_or(match answer.code {
        _ if answer.is_limited => ErrorCode::UserLimit,
        Some(LoadCode::NotAuthorized) => ErrorCode::PrivilegeDenied,
        Some(LoadCode::InvalidArgument) => ErrorCode::WrongArguments,
        Some(LoadCode::NotImplemented) => ErrorCode::NotSupported,
        Some(LoadCode::Timeout) => ErrorCode::ExecuteTimeout,
        Some(LoadCode::ServiceUnavailable) => ErrorCode::Busy,
        Some(LoadCode::Cancelled) => ErrorCode::QueryInterrupted,
        Some(LoadCode::DataQuality | LoadCode::LabelAlreadyExists | LoadCode::OffsetAlreadyExists) => {
            ErrorCode::InsertFailed
        }
        _ => ErrorCode::Unknown,
    });
    let mut text = answer.message.clone();
    for more in [&answer.first_error_msg, &answer.error_url].into_iter().flatten() {
        text.push_str(". ");
        text.push_str(more);
    }
    SqlError::new(code, text).with_retry(answer.retry)
}
