//! `LOAD DATA [LOCAL] INFILE`: loads a CSV file in one load, like a Stream Load of it.
//!
//! A client's file arrives in a second step, after the statement: the statement is checked before the file is requested. A file
//! of the server is read only below the directory of a setting.

use crate::access::Privilege;
use crate::access::interrupt::Interrupt;
use crate::answer::{Answer, Done};
use crate::load::body::reader::{MappedColumn, Mapping, ReadError, RowReader, Value};
use crate::load::body::time::LoadTime;
use crate::load::partial_update::Updates;
use crate::load::{Finished, Load, LoadError, LoadLimits, Tally};
use crate::session::EngineSession;
use crate::session::rows::ignore::Ignoring;
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use sqlparser::ast::Expr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tributary_decode::{FieldNames, LoadFormat};
use tributary_ingest::{Body, LoadTraits, Source};
use tributary_sql::LoadData;
use tributary_types::{ErrorCode, GroupCommitMode, Sealed, SqlError, TableDef};

/// Bytes of a server's file to read at a time.
const READ_BYTES: usize = 256 * 1024;
/// The longest timeout, in seconds (three days), as for Stream Load.
const TIMEOUT_SECONDS_MAX: u64 = 259_200;
/// Doris's properties of LOAD DATA.
const PROPERTIES: [&str; 8] = [
    "max_filter_ratio",
    "timeout",
    "strict_mode",
    "timezone",
    "exec_mem_limit",
    "trim_double_quotes",
    "enclose",
    "escape",
];

/// A statement whose file has not arrived yet.
pub(in crate::session) struct PendingLoad {
    load: Load,
    reader: RowReader,
    max_filter_ratio: f64,
    timeout: Duration,
    /// Rows that exist stay.
    ignoring: Option<Ignoring>,
}

/// A file that a client sends.
#[async_trait]
pub(crate) trait ClientUpload: Send {
    /// The next bytes; `None` at the end. May be dropped while it waits: nothing is lost.
    ///
    /// # Errors
    /// The client has gone, or the file does not arrive whole.
    async fn next(&mut self) -> Result<Option<Bytes>, SqlError>;
}

/// The source of the bytes.
enum File<'a> {
    Client(&'a mut dyn ClientUpload),
    Server(tokio::fs::File, PathBuf),
}

impl File<'_> {
    async fn next(&mut self) -> Result<Option<Bytes>, SqlError> {
        match self {
            Self::Client(file) => file.next().await,
            Self::Server(file, path) => {
                let mut bytes = BytesMut::with_capacity(READ_BYTES);
                let count = file.read_buf(&mut bytes).await.map_err(|error| unreadable(path, &error))?;
                Ok((count > 0).then(|| bytes.freeze()))
            }
        }
    }
}

impl EngineSession {
    /// Runs the statement, or asks for the client's file.
    pub(in crate::session) async fn run_load_data(
        &mut self,
        statement: LoadData,
    ) -> Result<Answer, SqlError> {
        if self.transaction.is_some() {
            let text =
                "This is in a transaction, only insert, update, delete, commit, rollback is acceptable";
            return Err(SqlError::detail(ErrorCode::Unknown, text));
        }
        if statement.is_local {
            let ignoring = self.ignoring_of(&statement).await?;
            self.pending_load = Some(Box::new(self.begin_load_data(&statement, ignoring)?));
            return Ok(Answer::NeedsFile(statement.file));
        }
        let (file, path) = open(self.engine.options.secure_load_dir.clone(), &statement.file).await?;
        let ignoring = self.ignoring_of(&statement).await?;
        let pending = self.begin_load_data(&statement, ignoring)?;
        self.load_file(pending, File::Server(file, path)).await
    }

    /// Goes on with the statement whose file the client sends.
    pub(crate) async fn load_upload(&mut self, file: &mut dyn ClientUpload) -> Result<Answer, SqlError> {
        let Some(pending) = self.pending_load.take() else {
            return Err(SqlError::new(ErrorCode::Unknown, "internal error: no statement waits for a file"));
        };
        self.load_file(*pending, File::Client(file)).await
    }

    /// With IGNORE, begins to leave out rows that exist, if rows of the table replace others.
    async fn ignoring_of(&mut self, statement: &LoadData) -> Result<Option<Ignoring>, SqlError> {
        let table = self.table(Privilege::Load, statement.table.db.as_deref(), &statement.table.table)?;
        if !statement.ignores_duplicates || !table.with_def(|def| def.keys.is_unique()) {
            return Ok(None);
        }
        let (table, _) = self.engine.ddl.table_of_partitions(table, &statement.partitions)?;
        Box::pin(self.begin_ignoring(&table)).await
    }

    /// Checks the statement and begins its load.
    fn begin_load_data(
        &mut self,
        statement: &LoadData,
        ignoring: Option<Ignoring>,
    ) -> Result<PendingLoad, SqlError> {
        let table = self.table(Privilege::Load, statement.table.db.as_deref(), &statement.table.table)?;
        let (table, partitions) = self.engine.ddl.table_of_partitions(table, &statement.partitions)?;
        let def = table.def();
        let properties = Properties::of(statement)?;
        let format = format(statement, &properties)?;
        if statement.columns.is_none() {
            crate::session::rows::insert::check_order_of_columns(&def)?;
        }
        let columns = mapping(statement, &def)?;
        let mapping = Mapping {
            columns: columns.as_deref(),
            where_expr: None,
            source_where: None,
            deletes: false,
            updates: if ignoring.is_some() { Updates::OfNewRows } else { Updates::Whole },
            unnamed_fields: FieldNames::Numbered,
            partitions: &partitions,
        };
        let time = match properties.text("timezone") {
            Some(zone) => LoadTime::of(&self.engine.loads, Some(zone))?,
            None => LoadTime {
                view: self.view(),
                clock: self.insert_options().clock,
                zone: self.variables.values().time_zone.zone,
            },
        };
        let strict = properties.flag("strict_mode")?;
        let traits = LoadTraits::plain(Source::StreamLoad, Some(GroupCommitMode::Off), Body::Unknown);
        let schema = Arc::clone(&def.schema);
        let reader = RowReader::new(&self.engine.loads, &def, &mapping, &format.body, strict, time)?;
        let reader = reader.in_parallel();
        let loads = &self.engine.loads;
        let admitted = loads.admit(&self.principal, &table, &traits)?;
        let mut load = Load::begin(loads, table, schema, &traits, None.into(), admitted)?;
        load.is_found_in(def.partitioning.partitions());
        let timeout = properties.timeout()?.unwrap_or_else(|| self.insert_timeout());
        load.must_find(ignoring.as_ref().map(|ignoring| Box::new(ignoring.counter())));
        let max_filter_ratio = properties.max_filter_ratio()?;
        Ok(PendingLoad { load, reader, max_filter_ratio, timeout, ignoring })
    }

    async fn load_file(&mut self, pending: PendingLoad, mut file: File<'_>) -> Result<Answer, SqlError> {
        let PendingLoad { mut load, mut reader, max_filter_ratio, timeout, mut ignoring } = pending;
        let process = Arc::clone(&self.process);
        let interrupt = Interrupt::by_kill(&process.stop).or_after(timeout);
        let engine = Arc::clone(&self.engine);
        let mut named = self.running.named.take();
        let read = async {
            while let Some(chunk) = interrupt.wait(file.next()).await?? {
                if let Some(named) = &mut named {
                    named.add(&chunk);
                }
                reader.feed(&engine.loads, load.sink(), &chunk, interrupt).await?;
            }
            reader.end(&engine.loads, load.sink(), interrupt).await?;
            Ok::<_, SqlError>(())
        };
        let mut read = read.await;
        if let (Ok(()), Some(ignoring)) = (&read, &mut ignoring) {
            read = self.take_turn(ignoring).await;
        }
        if let Err(error) = read {
            load.abort(error.detail_text()).await;
            return Err(error);
        }
        self.running.named = named;
        load = self.name_load(load).await?;
        let (mut counts, rejects) = (reader.counts(), reader.rejects());
        self.keep_warnings(&rejects);
        let label = load.transaction().map(|(_, label)| label.as_str().to_owned()).unwrap_or_default();
        let limits = LoadLimits {
            max_filter_ratio,
            rejected_rows: self.variables.values().rejected_rows,
            timeout,
            interrupt,
            has_details: self.running.begun.is_some(),
        };
        let Finished { error_url, outcome } =
            load.finish(&engine.loads, Tally { counts, rejects: &rejects }, limits).await;
        match outcome {
            Ok(outcome) => {
                self.running.details = outcome.committed.and_then(|committed| committed.details);
                counts = outcome.repeated.map_or(counts, |first| *first);
            }
            Err(LoadError::Filtered) => {
                let reason = rejects.first().map(|reject| reject.reason.as_str()).unwrap_or_default();
                let url = error_url.unwrap_or_default();
                let text = format!(
                    "[DATA_QUALITY_ERROR]too many filtered rows with load id {label}: {} of {}, first_error_msg: {reason}, \
                     url: {url}",
                    counts.filtered, counts.total
                );
                return Err(SqlError::detail(ErrorCode::Unknown, text));
            }
            Err(error) => return Err(error.into()),
        }
        let inserted = ignoring.as_ref().and_then(Ignoring::inserted).unwrap_or(counts.loaded);
        let skipped = counts.filtered + counts.unselected + counts.loaded.saturating_sub(inserted);
        let warnings = counts.filtered;
        let info = format!("Records: {}  Deleted: 0  Skipped: {skipped}  Warnings: {warnings}", counts.total);
        let warnings = u16::try_from(warnings).unwrap_or(u16::MAX);
        Ok(Answer::Done(Done { affected_rows: inserted, warnings, info, ..Done::default() }))
    }
}

/// Opens a file of the server below the directory that the setting allows.
async fn open(allowed: Option<PathBuf>, name: &str) -> Result<(tokio::fs::File, PathBuf), SqlError> {
    let Some(allowed) = allowed else {
        return Err(refused(
            "Load local data from fe local is not enabled. If you want to use it, plz set the \
             `mysql_load_server_secure_path` for FE to be a right path. LOAD DATA LOCAL sends a file of the client.",
        ));
    };
    let name = name.to_owned();
    let opened =
        tokio::task::spawn_blocking(move || tributary_files::local::open_below(&allowed, &name)).await;
    let (file, path) = opened.map_err(|error| SqlError::detail(ErrorCode::Unknown, error.to_string()))??;
    Ok((tokio::fs::File::from_std(file), path))
}

fn refused(text: &str) -> SqlError {
    SqlError::detail(ErrorCode::NotSupported, text)
}

fn unreadable(path: &Path, error: &io::Error) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, format!("the file {} can't be read: {error}", path.display()))
}

/// How the file is written.
fn format(statement: &LoadData, properties: &Properties) -> Result<LoadFormat, SqlError> {
    let LoadData { column_separator, line_delimiter, enclose, escape, skip_lines, .. } = statement;
    let enclose = enclose.as_deref().or(properties.text("enclose")).filter(|text| !text.is_empty());
    let escape = escape.as_deref().or(properties.text("escape")).filter(|text| !text.is_empty());
    if let (Some(_), None) = (escape, enclose) {
        return Err(refused(
            "ESCAPED BY without ENCLOSED BY: fields that are not enclosed are taken as they are, but for \\N, which is \
             NULL; leave it out",
        ));
    }
    let skip_lines = skip_lines.to_string();
    let trim = properties.flag("trim_double_quotes")?.to_string();
    let given = [
        ("column_separator", column_separator.as_deref()),
        ("line_delimiter", line_delimiter.as_deref()),
        ("enclose", enclose),
        ("escape", escape),
        ("skip_lines", Some(skip_lines.as_str())),
        ("trim_double_quotes", Some(trim.as_str())),
    ];
    let format = given.into_iter().filter_map(|(name, text)| Some((name, text?)));
    Ok(LoadFormat::from_properties(format)?)
}

/// The list and SET as the header `columns` of a Stream Load would say them; `None`: the table's columns.
fn mapping(statement: &LoadData, def: &TableDef) -> Result<Option<Vec<MappedColumn>>, SqlError> {
    let is_column = |name: &str| def.schema.index_of(name).is_some();
    let unknown = |name: &str| {
        let text =
            format!("Unknown column '{name}' in 'field list'; write @{name} for a field that is no column");
        SqlError::detail(ErrorCode::UnknownColumn, text)
    };
    // Doris treats a name that is not a column as a field for SET.
    let is_computed = !statement.set.is_empty();
    let names: Vec<String> = match &statement.columns {
        Some(names) => names.clone(),
        None if is_computed => def.schema.visible().map(|column| column.name.clone()).collect(),
        None => return Ok(None),
    };
    if let Some(name) = names.iter().find(|name| !is_computed && !name.starts_with('@') && !is_column(name)) {
        return Err(unknown(name));
    }
    if let Some((name, _)) = statement.set.iter().find(|(name, _)| !is_column(name)) {
        return Err(unknown(name));
    }
    let fields =
        names.iter().map(|name| MappedColumn { name: LoadData::field_name(name), value: Value::Field });
    let computed = statement.set.iter().map(|(name, expr): &(String, Expr)| MappedColumn {
        name: name.clone(),
        value: Value::Expr(Sealed::new(expr.clone())),
    });
    Ok(Some(fields.chain(computed).collect()))
}

/// The PROPERTIES of a statement, in lower case.
struct Properties(Vec<(String, String)>);

impl Properties {
    fn of(statement: &LoadData) -> Result<Self, SqlError> {
        let lower = |(name, text): &(String, String)| (name.to_ascii_lowercase(), text.clone());
        let properties: Vec<_> = statement.properties.iter().map(lower).collect();
        if let Some((name, text)) = properties.iter().find(|(name, _)| !PROPERTIES.contains(&name.as_str())) {
            let known = PROPERTIES.join(", ");
            return Err(wrong(&format!("Unknown properties: {{{name}={text}}}; LOAD DATA has {known}")));
        }
        let properties = Self(properties);
        if let Some(text) = properties.text("exec_mem_limit") {
            text.parse::<u64>()
                .map_err(|_| wrong(&format!("Invalid exec_mem_limit: {text}; give a number of bytes")))?;
        }
        Ok(properties)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, text)| text.as_str())
    }

    fn flag(&self, name: &str) -> Result<bool, SqlError> {
        match self.text(name) {
            None => Ok(false),
            Some(text) if text.eq_ignore_ascii_case("true") => Ok(true),
            Some(text) if text.eq_ignore_ascii_case("false") => Ok(false),
            Some(text) => Err(wrong(&format!("Invalid {name}: {text}. It must be true or false"))),
        }
    }

    fn max_filter_ratio(&self) -> Result<f64, SqlError> {
        let Some(text) = self.text("max_filter_ratio") else { return Ok(0.0) };
        let ratio = text.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
        ratio.ok_or_else(|| {
            wrong(&format!("Invalid max_filter_ratio: {text}. It must be a number from 0 to 1"))
        })
    }

    fn timeout(&self) -> Result<Option<Duration>, SqlError> {
        let Some(text) = self.text("timeout") else { return Ok(None) };
        let seconds = text.parse().ok().filter(|seconds| (1..=TIMEOUT_SECONDS_MAX).contains(seconds));
        let wrong =
            || wrong(&format!("Invalid timeout: {text}. It must be 1 to {TIMEOUT_SECONDS_MAX} seconds"));
        seconds.map(Duration::from_secs).map(Some).ok_or_else(wrong)
    }
}

fn wrong(text: &str) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, text)
}

impl From<ReadError> for SqlError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Rows(error) => error,
            ReadError::Sink(error) => error.into(),
            ReadError::Interrupted(interrupted) => interrupted.into(),
        }
    }
}
