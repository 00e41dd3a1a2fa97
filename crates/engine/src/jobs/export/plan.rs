//! The plan of a statement: the rows, their destination, and how their files are written.

use super::refused;
use crate::access::writing;
use crate::files::outfile::{Form, file_bytes_max, form};
use crate::jobs::ServerJobs;
use serde_json::json;
use std::time::Duration;
use tributary_files::{Output, Properties};
use tributary_query::{QueryResult, SessionView};
use tributary_sql::Export;
use tributary_types::{PartitionNames, Principal, SqlError, TableRef};

/// How long a job may run if it does not say it, in seconds.
const TIMEOUT_SECONDS_DEFAULT: u64 = 7200;
/// The longest timeout, in seconds (three days), as for loads.
const TIMEOUT_SECONDS_MAX: u64 = 259_200;
/// Writers that a job may have at a time.
const PARALLELISM_MAX: u64 = 64;
/// Doris's properties of a job.
const PROPERTIES: [&str; 11] = [
    "label",
    "columns",
    "format",
    "column_separator",
    "line_delimiter",
    "timeout",
    "parallelism",
    "max_file_size",
    "with_bom",
    "compress_type",
    "data_consistency",
];

/// A job that can be run.
pub(crate) struct Plan {
    /// `None`: one is made.
    pub label: Option<String>,
    pub output: Output,
    pub form: Form,
    pub file_bytes_max: u64,
    pub timeout: Duration,
    /// How many files are written side by side.
    pub parallelism: usize,
    db: String,
    zone: String,
    query: String,
    /// Whether all rows of the table are wanted.
    pub is_whole: bool,
    partitions: PartitionNames,
    /// The properties as they were given, without `label`.
    given: Vec<(String, String)>,
}

impl Plan {
    /// Checks a statement. `zone` is that in which it computes.
    ///
    /// # Errors
    /// No privilege, and any reason why it can't run whatever the rows are.
    pub fn new(
        jobs: &ServerJobs,
        principal: &Principal,
        table: &TableRef,
        zone: &str,
        export: &Export,
    ) -> Result<Self, SqlError> {
        let is_local = export.path.starts_with("file://");
        let (privilege, object) = writing(is_local);
        jobs.gate.check(principal, privilege, object)?;
        let lower = |(name, text): &(String, String)| (name.to_ascii_lowercase(), text.clone());
        let mut given: Vec<(String, String)> = export.properties.0.iter().map(lower).collect();
        let mut properties: Properties = given.iter().cloned().collect();
        given.retain(|(name, _)| name != "label");
        let label = properties.take_any(["label"]);
        let columns = properties.take_any(["columns"]);
        let format_name = properties.take_any(["format"]);
        let form = form(format_name.as_deref(), &mut properties, jobs.lines)?;
        let file_bytes_max = file_bytes_max(properties.take_any(["max_file_size"]))?;
        let timeout = number(&mut properties, "timeout", TIMEOUT_SECONDS_DEFAULT, TIMEOUT_SECONDS_MAX)?;
        let parallelism = number(&mut properties, "parallelism", 1, PARALLELISM_MAX)?;
        if let Some(text) = properties.take_any(["data_consistency"])
            && !["none", "partition"].contains(&text.to_ascii_lowercase().as_str())
        {
            return Err(refused(format!(
                "The value of data_consistency is invalid, please use `partition` or `none`. Given: {text}"
            )));
        }
        if let Some((name, _)) = properties.rest().next() {
            return Err(refused(format!("Unknown properties: {name}; EXPORT has {}", PROPERTIES.join(", "))));
        }
        let mut place: Properties = export.place.0.iter().cloned().collect();
        let output = Output::open(
            &export.path,
            &mut place,
            jobs.options.secure_load_dir.as_deref(),
            &jobs.options.egress,
        )?;
        if let Some((name, _)) = place.rest().next() {
            // Without its text, which may be a key under a wrong name.
            return Err(refused(format!("Unknown properties: {name} of WITH S3")));
        }
        Ok(Self {
            label,
            output,
            form,
            file_bytes_max,
            timeout: Duration::from_secs(timeout),
            parallelism: usize::try_from(parallelism).unwrap_or(1),
            db: table.db.clone(),
            zone: zone.to_owned(),
            query: query_text(table, &export.partitions, columns.as_deref(), export.filter.as_deref()),
            is_whole: export.filter.is_none() && export.partitions.is_any(),
            partitions: export.partitions.clone(),
            given,
        })
    }

    /// The rows.
    ///
    /// # Errors
    /// Tables and columns that there are not, or that the principal may not read.
    pub async fn query(
        &self,
        jobs: &ServerJobs,
        principal: &Principal,
        end: &str,
    ) -> Result<QueryResult, SqlError> {
        let view = SessionView {
            database: Some(self.db.clone()),
            time_zone: self.zone.clone(),
            ..SessionView::new(&principal.to_string(), jobs.unix_ms() * 1000)
        };
        let query = tributary_sql::parse_query(&format!("{}{end}", self.query))?;
        jobs.queries.of(principal).query_for_files(&view, &query, &[], self.form.nested()).await
    }

    /// The properties in SHOW EXPORT.
    pub fn task_info(&self, table: &TableRef) -> String {
        let given = |name: &str, default: &str| {
            let found = self.given.iter().find(|(known, _)| known == name);
            found.map_or(default, |(_, text)| text).to_owned()
        };
        json!({
            "partitions": self.partitions.named(),
            "max_file_size": given("max_file_size", ""),
            "delete_existing_files": "",
            "columns": given("columns", ""),
            "format": given("format", "csv"),
            "column_separator": given("column_separator", "\t"),
            "line_delimiter": given("line_delimiter", "\n"),
            "with_bom": given("with_bom", "false"),
            "parallelism": given("parallelism", "1"),
            "data_consistency": given("data_consistency", "partition"),
            "db": table.db,
            "tbl": table.table,
        })
        .to_string()
    }
}

fn query_text(
    table: &TableRef,
    partitions: &PartitionNames,
    columns: Option<&str>,
    filter: Option<&str>,
) -> String {
    let quoted = |name: &str| format!("`{}`", name.trim().trim_matches('`').replace('`', "``"));
    let columns = columns.map(|columns| columns.split(',').map(quoted).collect::<Vec<_>>().join(", "));
    let named = partitions.named().iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
    let within = if named.is_empty() { String::new() } else { format!(" PARTITION ({named})") };
    let condition = filter.map(|filter| format!(" WHERE ({filter}\n)")).unwrap_or_default();
    format!(
        "SELECT {} FROM {}.{}{within}{condition}",
        columns.as_deref().unwrap_or("*"),
        quoted(&table.db),
        quoted(&table.table)
    )
}

fn number(properties: &mut Properties, name: &str, default: u64, max: u64) -> Result<u64, SqlError> {
    let Some(text) = properties.take_any([name]) else { return Ok(default) };
    let number = text.trim().parse().ok().filter(|number| (1..=max).contains(number));
    number.ok_or_else(|| refused(format!("Invalid {name}: {text}. It must be a number from 1 to {max}")))
}
