//! HTTP Stream: the statement in the header `sql` says where the rows of the body go.
//!
//! A plain `SELECT *` is a Stream Load with the statement's column list. Anything else runs in the query
//! engine, over the fields of the body as texts: `c1`, `c2`, …, or as the body's header line or the keys of its first
//! object call them.

use super::{LoadRequest, body_size, check_tablets, refused_header};
use crate::access::Privilege;
use crate::front::http::HttpLoads;
use crate::load::Loads;
use crate::load::body::reader::{MappedColumn, Mapping, RowReader, Value};
use crate::load::body::time::LoadTime;
use crate::load::partial_update::Updates;
use sqlparser::ast::{Expr, Ident};
use std::sync::Arc;
use tributary_decode::{BodyFormat, Compression, FieldNames, LoadFormat, Target};
use tributary_http::{HttpStreamRequest, LoadAnswer, LoadBody, LoadCode};
use tributary_ingest::Source;
use tributary_sql::{HttpStream, parse_http_stream};
use tributary_types::{Label, PartitionNames, Principal, Sealed, SqlError, TableDef};

impl HttpLoads {
    pub(super) async fn load_http_stream(
        &self,
        principal: &Principal,
        request: HttpStreamRequest,
        body: LoadBody,
    ) -> LoadAnswer {
        if let Some(refusal) = refused_header(&request.table_headers) {
            return refusal;
        }
        let statement = match parse_http_stream(&request.sql) {
            Ok(statement) => statement,
            Err(error) => return LoadAnswer::from_sql_error(&error),
        };
        let name = &statement.insert.table;
        let table = match self.0.gate.table(principal, Privilege::Load, None, name.db.as_deref(), &name.table)
        {
            Ok(table) => table,
            Err(error) => return LoadAnswer::from_sql_error(&error),
        };
        let label = match &statement.insert.label {
            Some(label) => match Label::new(label) {
                Ok(label) => Some(label),
                Err(error) => return LoadAnswer::from_sql_error(&error),
            },
            None => request.label.clone(),
        };
        // The statement says it for the load, as a header would.
        let partitions = match &statement.insert.partitions {
            PartitionNames::Any => request.table_headers.partitions.clone(),
            named => named.clone(),
        };
        let is_taken = check_tablets(&table, &request.table_headers);
        let (table, partitions) =
            match is_taken.and_then(|()| self.0.ddl.table_of_partitions(table, &partitions)) {
                Ok(found) => found,
                Err(error) => return LoadAnswer::from_sql_error(&error),
            };
        let mut load = LoadRequest {
            partitions: !partitions.is_any(),
            source: Source::HttpStream,
            label,
            statement: request.name.as_ref().map(|_| request.sql.clone()),
            name: request.name.clone(),
            group_commit: request.group_commit,
            required: request.required,
            two_phase_commit: request.two_phase_commit,
            partial_update: request.partial_columns,
            rejects_new_keys: false,
            max_filter_ratio: request.max_filter_ratio,
            rejected_rows: request.rejected_rows,
            timeout: request.timeout,
            body: body_size(request.content_length, request.chunked),
            is_packed: request.compression != Compression::None,
        };
        let properties = statement.properties.iter().map(|(name, text)| (name.as_str(), text.as_str()));
        let format = match LoadFormat::from_properties(properties) {
            Ok(format) => format,
            Err(error) => return LoadAnswer::from_sql_error(&error.into()),
        };
        if let Some(refusal) = conflict(request.compression, format.compression) {
            return refusal;
        }
        let time = match LoadTime::of(&self.0.loads, request.timezone.as_deref()) {
            Ok(time) => time,
            Err(error) => return LoadAnswer::from_sql_error(&error),
        };
        let body = body.decompress(format.compression);
        load.is_packed |= format.compression != Compression::None;
        let plan = |loads: &Arc<Loads>, def: &Arc<TableDef>| {
            let columns = mapping(&statement, &format.body, def)?;
            let mapping = Mapping {
                columns: columns.as_deref(),
                where_expr: None,
                source_where: statement.where_expr.as_deref(),
                deletes: false,
                updates: Updates::Whole,
                unnamed_fields: FieldNames::OfBody,
                partitions: &partitions,
            };
            RowReader::new(loads, def, &mapping, &format.body, request.strict_mode, time)
                .map(RowReader::in_parallel)
        };
        self.run_load(principal, table, load, body, plan).await
    }
}

/// The refusal of a body that the headers and the statement would unpack differently.
fn conflict(by_header: Compression, by_statement: Compression) -> Option<LoadAnswer> {
    let is_told = by_header != Compression::None && by_statement != Compression::None;
    (is_told && by_header != by_statement).then(|| {
        let text = format!(
            "the headers say that the body is {}, the statement says compress_type {}; a body is unpacked once, give \
             one of them",
            by_header.name(),
            by_statement.name()
        );
        LoadAnswer::fail(LoadCode::InvalidArgument, text)
    })
}

/// The statement's select list as the header `columns` would say it: the body's fields and one expression for
/// each target column.
fn mapping(
    statement: &HttpStream,
    format: &BodyFormat,
    def: &TableDef,
) -> Result<Option<Vec<MappedColumn>>, SqlError> {
    let targets: Vec<String> = match &statement.insert.columns {
        Some(names) => names.clone(),
        None => def.schema.visible().map(|column| column.name.clone()).collect(),
    };
    let is_named = |name: &str| targets.iter().any(|target| target.eq_ignore_ascii_case(name));
    if let Some((_, column, _)) = def.schema.generated().find(|(_, column, _)| is_named(&column.name)) {
        return Err(Target::not_to_be_given(def, column));
    }
    let column = |name: &str, value: Value| MappedColumn { name: name.to_owned(), value };
    let Some(items) = &statement.items else {
        // A statement gives values by their places, which only a row's keys do not have.
        if statement.where_expr.is_none() && !format.is_keyed() {
            let is_whole = statement.insert.columns.is_none();
            return Ok((!is_whole).then(|| targets.iter().map(|name| column(name, Value::Field)).collect()));
        }
        // The fields are known by the names that the body has for them.
        if format.names_fields() {
            let fields = targets.iter().enumerate().map(|(at, name)| column(name, Value::FieldAt(at)));
            return Ok(Some(fields.collect()));
        }
        let number = |at: usize| format!("c{}", at + 1);
        let fields = (0..targets.len()).map(|at| column(&number(at), Value::Field));
        let computed = targets.iter().enumerate().map(|(at, name)| {
            column(name, Value::Expr(Sealed::new(Expr::Identifier(Ident::new(number(at))))))
        });
        return Ok(Some(fields.chain(computed).collect()));
    };
    if items.len() != targets.len() {
        return Err(crate::load::body::reader::wrong_width(targets.len(), items.len()));
    }
    let computed = targets
        .iter()
        .zip(items.iter())
        .map(|(name, expr)| column(name, Value::Expr(Sealed::new(expr.clone()))));
    Ok(Some(computed.collect()))
}
