//! The plan of a statement: the files, how each is read, and when a job has failed.

use super::path::{self, PathValues};
use super::refused;
use crate::access::{Object, Privilege, Resource};
use crate::jobs::ServerJobs;
use crate::load::body::reader::{MappedColumn, Value, resolve_derived};
use crate::load::hidden_columns;
use crate::load::partial_update::{self, Updates};
use crate::variables::time_zone;
use sqlparser::ast::Expr;
use std::sync::Arc;
use std::time::Duration;
use tributary_decode::{BodyFormat, Compression, LoadFormat};
use tributary_files::{Place, Properties};
use tributary_http::{MergeHeaders, MergeType};
use tributary_sql::{BrokerLoad, DataInfile, FileFunction, RowsOf};
use tributary_table::Table;
use tributary_types::{ErrorCode, PartitionNames, Principal, Sealed, SqlError, TableDef};

/// How long a job may run if it does not say it, in seconds.
const TIMEOUT_SECONDS_DEFAULT: u64 = 14_400;
/// The longest timeout, in seconds (three days), as for Stream Load.
const TIMEOUT_SECONDS_MAX: u64 = 259_200;
/// Doris's properties of a job. The last five have no effect: there is one node, and memory is counted for all loads together.
const PROPERTIES: [&str; 10] = [
    "timeout",
    "max_filter_ratio",
    "strict_mode",
    "timezone",
    "load_parallelism",
    "exec_mem_limit",
    "priority",
    "send_batch_parallelism",
    "load_to_single_tablet",
    "partial_columns",
];

/// A job that can be run.
pub(super) struct Plan {
    pub table: Arc<Table>,
    /// The table as it was when the job began.
    pub def: Arc<TableDef>,
    pub parts: Vec<Arc<Part>>,
    pub updates: Updates,
    pub max_filter_ratio: f64,
    pub strict: bool,
    /// The zone's name.
    pub zone: String,
    pub timeout: Duration,
    /// How many files are read side by side.
    pub parallel: usize,
}

/// Files that are read alike.
pub(super) struct Part {
    pub places: Vec<Arc<Place>>,
    pub body: BodyFormat,
    compression: Compression,
    columns: Option<Vec<MappedColumn>>,
    filter: Option<Sealed<Expr>>,
    preceding_filter: Option<Sealed<Expr>>,
    /// The rows delete the rows of their keys.
    pub deletes: bool,
    /// Rows of others are rejected.
    pub partitions: PartitionNames,
    /// Columns whose values are in the files' paths.
    path_columns: Vec<String>,
}

/// How the rows of one file become columns.
pub(super) struct FileMapping {
    pub columns: Option<Vec<MappedColumn>>,
    pub filter: Option<Expr>,
    pub preceding_filter: Option<Expr>,
}

impl Part {
    /// How the file of that name is mapped.
    ///
    /// # Errors
    /// Its path does not have a column that it should have.
    pub fn mapping(&self, def: &TableDef, file: &str) -> Result<FileMapping, SqlError> {
        let mut values = path::values(&self.path_columns, file)?;
        let columns = self.columns.as_ref().map(|columns| path::put(&values, columns));
        let with_values = |expr: &Sealed<Expr>, values: &PathValues| path::in_expr(values, expr);
        let preceding_filter = self.preceding_filter.as_ref().map(|expr| with_values(expr, &values));
        // A condition on columns means those of the table.
        values.retain(|name, _| def.schema.index_of(name).is_none());
        let filter = self.filter.as_ref().map(|expr| with_values(expr, &values));
        Ok(FileMapping { columns, filter, preceding_filter })
    }

    /// How a file of that name is packed.
    pub fn compression(&self, name: &str) -> Compression {
        match self.compression {
            Compression::None if !self.body.has_types() => Compression::of_name(name),
            compression => compression,
        }
    }
}

impl Plan {
    /// Checks a statement. `zone` is the session's, for a statement that names none.
    ///
    /// # Errors
    /// No such table or no privilege, and any reason why it can't run whatever the files are.
    pub async fn new(
        jobs: &Arc<ServerJobs>,
        principal: &Principal,
        db: &str,
        zone: &str,
        load: &BrokerLoad,
    ) -> Result<Self, SqlError> {
        let name = &load.parts.first().ok_or_else(|| refused("LOAD LABEL without DATA INFILE"))?.table;
        if let Some(other) = load.parts.iter().find(|part| part.table != *name) {
            let text = format!(
                "LOAD LABEL loads into one table, not into {name} and {}: a job is one transaction, and a transaction has one \
                 table; write a LOAD LABEL for each",
                other.table
            );
            return Err(SqlError::detail(ErrorCode::NotSupported, text));
        }
        let table = jobs.gate.table(principal, Privilege::Load, None, Some(db), name)?;
        jobs.gate.check(principal, Privilege::Usage, Object::Resource(Resource::S3))?;
        let properties = JobProperties::of(load)?;
        let is_temporary = |part: &DataInfile| matches!(part.partitions, PartitionNames::Temporary(_));
        let fills_temporary = load.parts.iter().any(is_temporary);
        if fills_temporary && !load.parts.iter().all(is_temporary) {
            let text = "LOAD LABEL fills temporary partitions with all of its files or with none: write a LOAD LABEL for each";
            return Err(SqlError::detail(ErrorCode::NotSupported, text));
        }
        let mut table = table;
        let mut partitions = Vec::with_capacity(load.parts.len());
        let of_load = Arc::clone(&table);
        for part in &load.parts {
            let (found, names) = jobs.ddl.table_of_partitions(Arc::clone(&of_load), &part.partitions)?;
            table = found;
            partitions.push(names);
        }
        let updates = updates(jobs, &table, load, &properties).await?;
        let def = table.def();
        let parts = load.parts.iter().zip(partitions);
        let parts = parts.map(|(part, names)| Part::new(jobs, &def, load, part, names).map(Arc::new));
        let parts = parts.collect::<Result<_, SqlError>>()?;
        let cores = jobs.options.query.target_partitions;
        Ok(Self {
            parts,
            table,
            def,
            updates,
            max_filter_ratio: properties
                .number("max_filter_ratio", 0.0, |ratio: &f64| (0.0..=1.0).contains(ratio))?,
            strict: properties.flag("strict_mode")?,
            zone: properties.zone(zone)?,
            timeout: Duration::from_secs(properties.number(
                "timeout",
                TIMEOUT_SECONDS_DEFAULT,
                |seconds| (1..=TIMEOUT_SECONDS_MAX).contains(seconds),
            )?),
            parallel: properties.number("load_parallelism", cores, |&parallel| parallel > 0)?.min(cores),
        })
    }
}

impl Part {
    fn new(
        jobs: &ServerJobs,
        def: &TableDef,
        load: &BrokerLoad,
        part: &DataInfile,
        partitions: PartitionNames,
    ) -> Result<Self, SqlError> {
        let places = part.files.iter().map(|file| place(jobs, load, file).map(Arc::new));
        let LoadFormat { body, compression } = format(part)?;
        partitions.resolve(def)?;
        let columns = hidden_columns::with_hidden(def, columns(def, part)?, &merge(part), body.is_keyed())?;
        Ok(Self {
            places: places.collect::<Result<_, SqlError>>()?,
            body,
            compression,
            columns,
            filter: part.filter.clone(),
            preceding_filter: part.preceding_filter.clone(),
            deletes: part.rows == RowsOf::Delete,
            partitions,
            path_columns: part.path_columns.clone(),
        })
    }
}

/// Determines the columns that the rows of a job give. The table is ready for them then.
async fn updates(
    jobs: &ServerJobs,
    table: &Arc<Table>,
    load: &BrokerLoad,
    properties: &JobProperties,
) -> Result<Updates, SqlError> {
    if !properties.flag("partial_columns")? {
        return Ok(Updates::Whole);
    }
    if load.parts.iter().any(|part| part.rows != RowsOf::Append || !part.path_columns.is_empty()) {
        let text =
            "partial_columns with MERGE, DELETE or COLUMNS FROM PATH is not supported yet; load whole rows";
        return Err(SqlError::detail(ErrorCode::NotSupported, text));
    }
    let def = table.def();
    partial_update::check_possible(&def)?;
    let named = load.parts.iter().flat_map(|part| part.columns.iter().flatten());
    let computed = load.parts.iter().flat_map(|part| part.set.iter().map(|(name, _)| name));
    partial_update::check_named(&def, named.chain(computed).map(String::as_str))?;
    jobs.loads.ready_for_partial(table).await?;
    Ok(Updates::Named)
}

/// The location of the files with one name.
fn place(jobs: &ServerJobs, load: &BrokerLoad, file: &str) -> Result<Place, SqlError> {
    let properties = load.place.properties.iter().map(|(name, text)| (name.clone(), text.clone()));
    let name = if load.place.function == FileFunction::Local { "file_path" } else { "uri" };
    let mut properties: Properties = properties.chain([(name.to_owned(), file.to_owned())]).collect();
    let place = match load.place.function {
        FileFunction::S3 => Place::s3(&mut properties, &jobs.options.egress)?,
        FileFunction::Local => {
            properties.take_any(["backend_id"]);
            properties.take_flag(["shared_storage"])?;
            Place::local(&mut properties, jobs.options.secure_load_dir.as_deref())?
        }
        FileFunction::Http => Place::http(&mut properties, &jobs.options.egress)?,
    };
    match properties.rest().next() {
        None => Ok(place),
        // Without its text, which may be a key under a wrong name.
        Some((name, _)) => {
            Err(refused(format!("Unknown properties: {name} of WITH {}", load.place.function.name())))
        }
    }
}

/// How the files of a part are written: as it says, else as the name of the first one does.
fn format(part: &DataInfile) -> Result<LoadFormat, SqlError> {
    let mut given: Vec<(String, String)> =
        part.format.iter().map(|(name, text)| (name.to_ascii_lowercase(), text.clone())).collect();
    if !given.iter().any(|(name, _)| name == "format") {
        let ending = part.files.first().and_then(|file| file.rsplit_once('.')).map(|(_, ending)| ending);
        if let Some(ending @ ("parquet" | "orc" | "json")) = ending {
            given.push(("format".to_owned(), ending.to_owned()));
        }
    }
    Ok(LoadFormat::from_properties(given.iter().map(|(name, text)| (name.as_str(), text.as_str())))?)
}

/// The effect of rows, as the headers of a Stream Load express it.
fn merge(part: &DataInfile) -> MergeHeaders {
    let (merge_type, delete) = match &part.rows {
        RowsOf::Append => (MergeType::Append, None),
        RowsOf::Delete => (MergeType::Delete, None),
        RowsOf::Merge { delete_on } => (MergeType::Merge, Some(delete_on.clone())),
    };
    MergeHeaders {
        merge_type,
        delete,
        hidden_columns: Vec::new(),
        sequence_col: part.sequence.clone(),
        negative: part.negative,
    }
}

/// The list, COLUMNS FROM PATH and SET as the header `columns` of a Stream Load would say them; `None`: the table's columns.
fn columns(def: &TableDef, part: &DataInfile) -> Result<Option<Vec<MappedColumn>>, SqlError> {
    let is_in_path = |name: &str| part.path_columns.iter().any(|known| known.eq_ignore_ascii_case(name));
    let names: Vec<String> = match &part.columns {
        Some(names) => names.clone(),
        None if part.set.is_empty() && part.preceding_filter.is_none() && part.path_columns.is_empty() => {
            return Ok(None);
        }
        None => {
            let names = def.schema.visible().map(|column| column.name.clone());
            names.filter(|name| !is_in_path(name)).collect()
        }
    };
    let unknown = |text: String| SqlError::detail(ErrorCode::UnknownColumn, text);
    if let Some(name) = names.iter().find(|name| is_in_path(name)) {
        return Err(refused(format!(
            "Duplicate column '{name}': it is in the list of columns and in COLUMNS FROM PATH"
        )));
    }
    if let Some((name, _)) = part.set.iter().find(|(name, _)| def.schema.index_of(name).is_none()) {
        let text = format!("Unknown column '{name}' in SET: {} has no such column", part.table);
        return Err(unknown(text));
    }
    let is_set = |name: &str| part.set.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    let (of_table, others): (Vec<_>, Vec<_>) =
        part.path_columns.iter().partition(|name| def.schema.index_of(name).is_some());
    let conditions = [&part.filter, &part.preceding_filter].into_iter().flatten();
    let exprs: Vec<&Expr> =
        part.set.iter().map(|(_, expr)| expr).chain(conditions.map(|condition| &**condition)).collect();
    if let Some(name) = others.iter().find(|name| !exprs.iter().any(|expr| path::uses(expr, name))) {
        return Err(unknown(format!(
            "Unknown column '{name}' in COLUMNS FROM PATH: {} has no such column, and no expression uses it",
            part.table
        )));
    }
    let fields = names.iter().map(|name| MappedColumn { name: name.clone(), value: Value::Field });
    let of_paths = of_table.into_iter().filter(|name| !is_set(name)).map(|name| path::unknown(name));
    let computed = part.set.iter().map(|(name, expr): &(String, Expr)| MappedColumn {
        name: name.clone(),
        value: Value::Expr(Sealed::new(expr.clone())),
    });
    let mut all: Vec<MappedColumn> = fields.chain(of_paths).chain(computed).collect();
    resolve_derived(&mut all);
    // A condition on fields needs them as columns of the query engine, which only computed columns are made from.
    if part.preceding_filter.is_some() && all.iter().all(|column| matches!(column.value, Value::Field)) {
        let of_table = names.iter().filter(|name| def.schema.index_of(name).is_some());
        all.extend(of_table.map(|name| path::unknown(name)));
    }
    Ok(Some(all))
}

/// The PROPERTIES of a job, in lower case.
struct JobProperties(Vec<(String, String)>);

impl JobProperties {
    fn of(load: &BrokerLoad) -> Result<Self, SqlError> {
        let lower = |(name, text): &(String, String)| (name.to_ascii_lowercase(), text.clone());
        let properties: Vec<_> = load.properties.iter().map(lower).collect();
        if let Some((name, _)) = properties.iter().find(|(name, _)| !PROPERTIES.contains(&name.as_str())) {
            return Err(refused(format!(
                "Unknown properties: {name}; LOAD LABEL has {}",
                PROPERTIES.join(", ")
            )));
        }
        let properties = Self(properties);
        Ok(properties)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, text)| text.as_str())
    }

    fn flag(&self, name: &str) -> Result<bool, SqlError> {
        match self.text(name).map(str::to_ascii_lowercase).as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(text) => Err(refused(format!("Invalid {name}: {text}. It must be true or false"))),
        }
    }

    fn number<N: std::str::FromStr>(
        &self,
        name: &str,
        default: N,
        is_legal: impl Fn(&N) -> bool,
    ) -> Result<N, SqlError> {
        let Some(text) = self.text(name) else { return Ok(default) };
        let number = text.parse().ok().filter(is_legal);
        number.ok_or_else(|| refused(format!("Invalid {name}: {text}. It is no number, or out of its range")))
    }

    fn zone(&self, default: &str) -> Result<String, SqlError> {
        let zone = self.text("timezone").unwrap_or(default);
        if time_zone::is_known(zone) {
            return Ok(zone.to_owned());
        }
        Err(refused(format!(
            "Unknown or incorrect time zone: '{zone}'; use an offset like +08:00 or a name like Asia/Shanghai"
        )))
    }
}
