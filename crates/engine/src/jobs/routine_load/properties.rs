//! The meaning of a job's properties. Names are in lower case; unknown ones are refused by name.

use super::kept::{Clauses, Definition};
use crate::load::body::reader::{MappedColumn, Value, resolve_derived};
use crate::load::hidden_columns;
use crate::load::partial_update::{self, Updates};
use sqlparser::ast::Expr;
use std::collections::BTreeMap;
use std::time::Duration;
use tributary_decode::LoadFormat;
use tributary_kafka::{Framing, Offsets, Settings, Shape, SourceError, Topic};
use tributary_types::{ErrorCode, Sealed, SqlError, TableDef};

/// Properties of the body's format, with the same meaning as in a Stream Load.
const FORMAT: [&str; 10] = [
    "format",
    "jsonpaths",
    "json_root",
    "strip_outer_array",
    "num_as_string",
    "fuzzy_parse",
    "enclose",
    "escape",
    "trim_double_quotes",
    "empty_field_as_null",
];
/// The others that a job has.
const OTHERS: [&str; 11] = [
    "desired_concurrent_number",
    "max_batch_interval",
    "max_batch_rows",
    "max_batch_size",
    "max_error_number",
    "max_filter_ratio",
    "strict_mode",
    "timezone",
    "send_batch_parallelism",
    "load_to_single_tablet",
    "exec_mem_limit",
];

/// Properties of the columns that a job updates, and of which rows.
const UPDATES: [&str; 3] = [MODE, "partial_columns", NEW_KEYS];
const MODE: &str = "unique_key_update_mode";
const NEW_KEYS: &str = "partial_update_new_key_behavior";

const BROKERS: &str = "kafka_broker_list";
const TOPIC: &str = "kafka_topic";
const PARTITIONS: &str = "kafka_partitions";
const OFFSETS: &str = "kafka_offsets";
const DEFAULT_OFFSETS: &str = "kafka_default_offsets";
/// The prefix of the client's properties.
const CUSTOM: &str = "property.";

const ROWS_MIN: u64 = 200_000;
const BYTES_MIN: u64 = 100 * 1024 * 1024;
const BYTES_MAX: u64 = 10 * 1024 * 1024 * 1024;

/// When a task of the job ends, and how many bad rows it may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limits {
    pub interval: Duration,
    pub rows: u64,
    pub bytes: u64,
    pub errors: u64,
    pub filter_ratio: f64,
}

pub(super) fn wrong(text: impl Into<String>) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, text.into())
}

/// The properties of a statement by their names in lower case.
pub(super) fn by_name(given: &[(String, String)]) -> Result<BTreeMap<String, String>, SqlError> {
    let mut properties = BTreeMap::new();
    for (name, value) in given {
        if properties.insert(name.to_ascii_lowercase(), value.clone()).is_some() {
            return Err(wrong(format!("the property \"{name}\" is there twice")));
        }
    }
    Ok(properties)
}

fn number<N: std::str::FromStr + PartialOrd>(
    properties: &BTreeMap<String, String>,
    name: &str,
    default: N,
    is_legal: impl Fn(&N) -> bool,
    rule: &str,
) -> Result<N, SqlError> {
    let Some(text) = properties.get(name) else { return Ok(default) };
    let found = text.trim().parse().ok().filter(is_legal);
    found.ok_or_else(|| wrong(format!("{name} should {rule}, and is '{text}'")))
}

fn flag(properties: &BTreeMap<String, String>, name: &str) -> Result<bool, SqlError> {
    match properties.get(name).map(|text| text.to_ascii_lowercase()) {
        None => Ok(false),
        Some(text) if text == "true" => Ok(true),
        Some(text) if text == "false" => Ok(false),
        Some(text) => Err(wrong(format!("{name} should be true or false, and is '{text}'"))),
    }
}

impl Limits {
    pub fn of(properties: &BTreeMap<String, String>) -> Result<Self, SqlError> {
        let seconds = number(
            properties,
            "max_batch_interval",
            10,
            |seconds| (1..=3600).contains(seconds),
            "be 1 to 3600",
        )?;
        Ok(Self {
            interval: Duration::from_secs(seconds),
            rows: number(properties, "max_batch_rows", ROWS_MIN, |rows| *rows >= ROWS_MIN, "> 200000")?,
            bytes: number(
                properties,
                "max_batch_size",
                BYTES_MIN,
                |bytes| (BYTES_MIN..=BYTES_MAX).contains(bytes),
                "between 100MB and 10GB",
            )?,
            errors: number(properties, "max_error_number", 0, |_: &u64| true, ">= 0")?,
            filter_ratio: number(
                properties,
                "max_filter_ratio",
                1.0,
                |ratio: &f64| (0.0..=1.0).contains(ratio),
                "be between 0 and 1",
            )?,
        })
    }
}

/// Checks all properties of a job, of a table or, without one, of the tables that messages name.
pub(super) fn check(definition: &Definition, table: Option<&TableDef>) -> Result<(), SqlError> {
    let Definition { clauses, properties, source, .. } = definition;
    let known = |name: &str| FORMAT.contains(&name) || OTHERS.contains(&name) || UPDATES.contains(&name);
    if let Some(name) = properties.keys().find(|name| !known(name)) {
        let all = FORMAT.iter().chain(&OTHERS).chain(&UPDATES).copied().collect::<Vec<_>>().join(", ");
        return Err(wrong(format!("{name} is invalid property; a job has {all}")));
    }
    number(properties, "desired_concurrent_number", 5, |tasks: &u32| *tasks > 0, "> 0")?;
    Limits::of(properties)?;
    flag(properties, "strict_mode")?;
    if flag(properties, "load_to_single_tablet")? {
        return Err(wrong("load_to_single_tablet needs a table with RANDOM distribution; leave it out"));
    }
    format(definition)?;
    match table {
        Some(table) => {
            clauses.partitions().resolve(table)?;
            columns(definition, table)?;
            check_updates(definition, table)?;
        }
        None => check_for_many(definition)?,
    }
    let is_known = |name: &str| {
        [BROKERS, TOPIC, PARTITIONS, OFFSETS, DEFAULT_OFFSETS].contains(&name) || name.starts_with(CUSTOM)
    };
    if let Some(name) = source.keys().find(|name| !is_known(name)) {
        return Err(wrong(format!(
            "{name} is invalid kafka property; there are {BROKERS}, {TOPIC}, {PARTITIONS}, {OFFSETS}, {DEFAULT_OFFSETS} and \
             {CUSTOM}<name> for the client's"
        )));
    }
    settings(source).map(drop)
}

/// Checks the properties of a job of several tables: unsupported ones are refused in Doris's words.
fn check_for_many(definition: &Definition) -> Result<(), SqlError> {
    let Definition { clauses, properties, .. } = definition;
    if clauses.columns.is_some() {
        return Err(wrong("Multi-table load does not support setting columns info"));
    }
    if updates(properties)? != Updates::Whole {
        return Err(wrong("Partial update is not supported in multi-table load."));
    }
    rejects_new_keys(properties)?;
    condition(clauses.preceding_filter.as_deref())?;
    condition(clauses.filter.as_deref())?;
    condition(clauses.delete_on.as_deref())?;
    Ok(())
}

/// The columns that the rows of a job give.
pub(super) fn updates(properties: &BTreeMap<String, String>) -> Result<Updates, SqlError> {
    match properties.get(MODE).map(|text| text.to_ascii_uppercase()).as_deref() {
        None if flag(properties, "partial_columns")? => Ok(Updates::Named),
        None | Some("UPSERT") => Ok(Updates::Whole),
        Some("UPDATE_FIXED_COLUMNS") => Ok(Updates::Named),
        Some("UPDATE_FLEXIBLE_COLUMNS") => Ok(Updates::OfRows),
        Some(text) => Err(wrong(format!(
            "Invalid unique_key_partial_mode {text}, must be one of 'UPSERT', 'UPDATE_FIXED_COLUMNS' or \
             'UPDATE_FLEXIBLE_COLUMNS'"
        ))),
    }
}

/// Whether rows with new keys fail a partial update.
pub(super) fn rejects_new_keys(properties: &BTreeMap<String, String>) -> Result<bool, SqlError> {
    match properties.get(NEW_KEYS).map(|text| text.to_ascii_uppercase()).as_deref() {
        None | Some("APPEND") => Ok(false),
        Some("ERROR") => Ok(true),
        Some(text) => Err(wrong(format!(
            "Invalid partial_update_new_key_behavior {text}, must be one of {{'APPEND', 'ERROR'}}"
        ))),
    }
}

fn check_updates(definition: &Definition, table: &TableDef) -> Result<(), SqlError> {
    let Definition { clauses, properties, .. } = definition;
    rejects_new_keys(properties)?;
    match updates(properties)? {
        Updates::Whole | Updates::OfNewRows => Ok(()),
        Updates::Named => {
            partial_update::check_possible(table)?;
            let names = clauses.columns.iter().flatten().map(|(name, _)| name.as_str());
            partial_update::check_named(table, names)
        }
        Updates::OfRows => {
            if !is_json(properties) {
                return Err(wrong(
                    "flexible partial update only support json format as input file currently",
                ));
            }
            let given = [
                ("columns", clauses.columns.is_some()),
                ("jsonpaths", properties.contains_key("jsonpaths")),
                ("where", clauses.filter.is_some() || clauses.preceding_filter.is_some()),
                ("merge_type", clauses.merge_type() != "APPEND"),
                ("function_column.sequence_col", clauses.sequence.is_some()),
            ];
            if let Some((name, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
                return Err(wrong(format!(
                    "Don't support flexible partial update when '{name}' is specified"
                )));
            }
            if flag(properties, "fuzzy_parse")? {
                return Err(wrong("Don't support flexible partial update when 'fuzzy_parse' is enabled"));
            }
            partial_update::check_flexible(table)
        }
    }
}

/// How the bytes of messages are rows.
pub(super) fn format(definition: &Definition) -> Result<LoadFormat, SqlError> {
    let Definition { clauses, properties, .. } = definition;
    let is_json = is_json(properties);
    let name = properties.get("format").map_or("csv", String::as_str);
    if !is_json && !name.eq_ignore_ascii_case("csv") {
        return Err(wrong(format!("Format type is invalid. format=`{name}`; a message is csv or json")));
    }
    let mut given: Vec<(&str, &str)> = properties
        .iter()
        .filter(|(name, _)| FORMAT.contains(&name.as_str()))
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    if let Some(separator) = &clauses.column_separator {
        given.push(("column_separator", separator));
    }
    if is_json {
        // A message is a line, whatever is in it.
        given.push(("read_json_by_line", "true"));
    }
    Ok(LoadFormat::from_properties(given)?)
}

fn is_json(properties: &BTreeMap<String, String>) -> bool {
    properties.get("format").is_some_and(|format| format.eq_ignore_ascii_case("json"))
}

/// How messages are combined.
pub(super) fn shape(definition: &Definition) -> Shape {
    let framing = if is_json(&definition.properties) { Framing::OneLine } else { Framing::Lines };
    Shape { framing, has_places: definition.is_of_many() }
}

pub(super) fn is_strict(properties: &BTreeMap<String, String>) -> bool {
    flag(properties, "strict_mode").unwrap_or(false)
}

/// COLUMNS, MERGE and ORDER BY as headers of a Stream Load; `None`: the table's columns, in order.
pub(super) fn columns(
    definition: &Definition,
    table: &TableDef,
) -> Result<Option<Vec<MappedColumn>>, SqlError> {
    let Definition { clauses, properties, .. } = definition;
    let given = given_columns(clauses, table)?;
    hidden_columns::with_hidden(table, given, &clauses.merge(), is_json(properties))
}

fn given_columns(clauses: &Clauses, table: &TableDef) -> Result<Option<Vec<MappedColumn>>, SqlError> {
    let field = |name: &str| MappedColumn { name: name.to_owned(), value: Value::Field };
    let has_filter = clauses.preceding_filter.is_some();
    let mut mapped = match &clauses.columns {
        None if !has_filter => return Ok(None),
        // A condition on fields needs their names.
        None => table.schema.visible().map(|column| field(&column.name)).collect(),
        Some(columns) => {
            let mapped = |(name, value): &(String, Option<String>)| {
                let Some(text) = value else { return Ok(field(name)) };
                let expr = Sealed::new(tributary_sql::parse_expression(text)?);
                Ok(MappedColumn { name: name.clone(), value: Value::Expr(expr) })
            };
            let mut columns = columns.iter().map(mapped).collect::<Result<Vec<_>, SqlError>>()?;
            resolve_derived(&mut columns);
            columns
        }
    };
    if has_filter && mapped.iter().all(|column| matches!(column.value, Value::Field)) {
        // Fields are filtered where something is computed of them: so one column is computed of its own field.
        let first = mapped.iter().find(|column| table.schema.index_of(&column.name).is_some());
        if let Some(name) = first.map(|column| column.name.clone()) {
            let expr = Expr::Identifier(sqlparser::ast::Ident::with_quote('`', &name));
            mapped.push(MappedColumn { name, value: Value::Expr(Sealed::new(expr)) });
        }
    }
    Ok(Some(mapped))
}

pub(super) fn condition(text: Option<&str>) -> Result<Option<Expr>, SqlError> {
    text.map(tributary_sql::parse_expression).transpose()
}

/// The source that a job names.
pub(super) fn settings(source: &BTreeMap<String, String>) -> Result<Settings, SqlError> {
    let needed = |name: &str| {
        let found = source.get(name).map(|text| text.trim()).filter(|text| !text.is_empty());
        found.map(str::to_owned).ok_or_else(|| wrong(format!("{name} is a required property")))
    };
    let brokers = needed(BROKERS)?;
    for broker in brokers.split(',').map(str::trim) {
        let port = broker.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        if port.is_none() {
            return Err(wrong(format!("{BROKERS}: '{broker}' is not host:port")));
        }
    }
    let is_own = |name: &str| name == DEFAULT_OFFSETS;
    let custom = source.iter().filter_map(|(name, value)| Some((name.strip_prefix(CUSTOM)?, value)));
    let properties = custom
        .filter(|(name, _)| !is_own(name))
        .map(|(name, value)| (name.to_owned(), value.clone()))
        .collect();
    Ok(Settings { brokers, topic: needed(TOPIC)?, properties })
}

/// The partitions that the job reads; `None`: all, including future ones.
pub(super) fn partitions(source: &BTreeMap<String, String>) -> Result<Option<Vec<i32>>, SqlError> {
    let Some(text) = source.get(PARTITIONS).filter(|text| !text.trim().is_empty()) else { return Ok(None) };
    let read = |part: &str| part.trim().parse().ok().filter(|partition: &i32| *partition >= 0);
    let all: Option<Vec<i32>> = text.split(',').map(read).collect();
    all.map(Some)
        .ok_or_else(|| wrong(format!("Invalid kafka partition: {text}; write numbers, divided by commas")))
}

/// The start of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Begin {
    First,
    End,
    At(i64),
    /// ms since 1970
    Time(i64),
}

fn begin(text: &str) -> Result<Begin, SqlError> {
    let text = text.trim();
    match text.to_ascii_uppercase().as_str() {
        "OFFSET_BEGINNING" => return Ok(Begin::First),
        "OFFSET_END" => return Ok(Begin::End),
        _ => {}
    }
    if let Ok(offset) = text.parse::<i64>()
        && offset >= 0
    {
        return Ok(Begin::At(offset));
    }
    let time = chrono::NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S");
    time.map(|time| Begin::Time(time.and_utc().timestamp_millis())).map_err(|_| {
        wrong(format!(
            "Invalid kafka offset: {text}; write a number, OFFSET_BEGINNING, OFFSET_END or a time like 2026-01-31 12:00:00 (UTC)"
        ))
    })
}

/// The start of a job according to its properties, before the source was queried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Beginning {
    /// Partitions that are named.
    named: Option<Vec<i32>>,
    /// The start of each of them, in the same order, or nothing.
    offsets: Vec<Begin>,
    default: Begin,
}

impl Beginning {
    pub fn of(source: &BTreeMap<String, String>) -> Result<Self, SqlError> {
        let named = partitions(source)?;
        let given = source.get(OFFSETS).filter(|text| !text.trim().is_empty());
        let offsets = given
            .map(|text| text.split(',').map(begin).collect::<Result<Vec<_>, _>>())
            .transpose()?
            .unwrap_or_default();
        let custom = format!("{CUSTOM}{DEFAULT_OFFSETS}");
        let default =
            source.get(DEFAULT_OFFSETS).or(source.get(&custom)).map(|text| begin(text)).transpose()?;
        match (&named, offsets.len()) {
            (_, 0) => {}
            (None, _) => return Err(wrong(format!("{OFFSETS} needs {PARTITIONS}, one offset for each"))),
            (Some(named), count) if named.len() != count => {
                return Err(wrong(format!(
                    "Partitions number should be equals to offsets number: {} and {count}",
                    named.len()
                )));
            }
            _ => {}
        }
        Ok(Self { named, offsets, default: default.unwrap_or(Begin::End) })
    }

    /// Whether it states where to start.
    pub fn is_given(&self) -> bool {
        self.named.is_some() && !self.offsets.is_empty()
    }

    /// The offsets to start at. Queries the source, so that "the end" is now and not when the job first runs.
    pub fn resolve(&self, topic: &dyn Topic) -> Result<Offsets, SourceError> {
        let there = topic.partitions()?;
        let wanted = self.named.as_ref().unwrap_or(&there);
        if let Some(gone) = wanted.iter().find(|partition| !there.contains(partition)) {
            return Err(SourceError::Wrong(format!("the topic has no partition {gone}, it has {there:?}")));
        }
        let mut begins = self.offsets.iter();
        let resolved = wanted.iter().map(|&partition| {
            let offset = match begins.next().unwrap_or(&self.default) {
                Begin::First => topic.extent(partition)?.first,
                Begin::End => topic.extent(partition)?.end,
                Begin::At(offset) => *offset,
                Begin::Time(unix_ms) => topic.offset_at(partition, *unix_ms)?,
            };
            Ok((partition, offset))
        });
        resolved.collect()
    }
}

/// Whether a property's value is secret.
pub(super) fn is_secret(name: &str) -> bool {
    ["password", "secret", "key.pem", "token", "sasl.jaas"]
        .iter()
        .any(|part| name.to_ascii_lowercase().contains(part))
}

/// The properties of the client, as SHOW has them.
pub(super) fn custom(source: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let custom =
        source.iter().filter_map(|(name, value)| Some((name.strip_prefix(CUSTOM)?.to_owned(), value)));
    custom
        .map(|(name, value)| {
            let value = if is_secret(&name) { "******".to_owned() } else { value.clone() };
            (name, value)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn limits_are_those_of_doris_and_others_are_refused() {
        let limits = Limits::of(&map(&[])).unwrap();
        assert_eq!(
            limits,
            Limits {
                interval: Duration::from_secs(10),
                rows: 200_000,
                bytes: 104_857_600,
                errors: 0,
                filter_ratio: 1.0
            }
        );
        for (name, value, text) in [
            ("max_batch_rows", "199999", "max_batch_rows should > 200000"),
            ("max_batch_interval", "0", "max_batch_interval should be 1 to 3600"),
            ("max_filter_ratio", "1.5", "max_filter_ratio should be between 0 and 1"),
            ("max_error_number", "-1", "max_error_number should >= 0"),
        ] {
            let error = Limits::of(&map(&[(name, value)])).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }

    #[test]
    fn a_beginning_names_partitions_and_an_offset_for_each() {
        let beginning = Beginning::of(&map(&[(PARTITIONS, "0, 2"), (OFFSETS, "7,OFFSET_END")])).unwrap();
        assert_eq!(beginning.named, Some(vec![0, 2]));
        assert_eq!(beginning.offsets, [Begin::At(7), Begin::End]);
        let time = Beginning::of(&map(&[(DEFAULT_OFFSETS, "1970-01-01 00:00:02")])).unwrap();
        assert_eq!(time.default, Begin::Time(2000));
        let custom = Beginning::of(&map(&[("property.kafka_default_offsets", "offset_beginning")])).unwrap();
        assert_eq!(custom.default, Begin::First);
        for pairs in [
            &[(PARTITIONS, "0,1"), (OFFSETS, "7")][..],
            &[(OFFSETS, "7")],
            &[(PARTITIONS, "x")],
            &[(DEFAULT_OFFSETS, "soon")],
        ] {
            assert!(Beginning::of(&map(pairs)).is_err(), "{pairs:?}");
        }
    }

    #[test]
    fn a_source_needs_brokers_and_a_topic_and_secrets_are_not_shown() {
        let source = [
            (BROKERS, "h:9092,i:9093"),
            (TOPIC, "t"),
            ("property.sasl.password", "x"),
            ("property.client.id", "me"),
        ];
        let found = settings(&map(&source)).unwrap();
        assert_eq!((found.brokers.as_str(), found.topic.as_str()), ("h:9092,i:9093", "t"));
        assert_eq!(found.properties.len(), 2);
        assert_eq!(custom(&map(&source)), map(&[("sasl.password", "******"), ("client.id", "me")]));
        assert!(
            settings(&map(&[(TOPIC, "t")]))
                .unwrap_err()
                .to_string()
                .contains("kafka_broker_list is a required")
        );
        assert!(
            settings(&map(&[(BROKERS, "h"), (TOPIC, "t")]))
                .unwrap_err()
                .to_string()
                .contains("'h' is not host:port")
        );
    }
}
