//! SHOW and DESC, as rows that are made from names and facts.
//!
//! Statements about the session, the catalog or loads (SHOW CREATE, WARNINGS, LAST INSERT, TRANSACTION, GRANTS …) are answered by
//! the engine and refused here.

mod alters;
pub mod facts;
mod filter;
mod functions;
pub mod nodes;
mod tables;
mod unused;

use crate::error::no_database;
use crate::facts::info_schema;
use crate::model::SessionView;
use crate::model::{Cell, Grid};
use crate::namespace::Namespace;
use arrow::array::{BooleanArray, RecordBatch};
use sqlparser::ast::Expr;
use tables::ColumnsForm;
use tributary_sql::{Name, Scope, Show};
use tributary_types::system::{SYSTEM_DATABASES, is_system_database};
use tributary_types::{ErrorCode, SqlError};

/// Columns that WHERE of SHOW PARTITIONS may name, as in Doris.
const PARTITION_FILTERS: [&str; 6] =
    ["PartitionId", "PartitionName", "State", "Buckets", "ReplicationNum", "LastConsistencyCheckTime"];

/// Evaluates the conditions that statements put on facts.
pub trait Conditions {
    /// Returns for each row of the batch whether the condition is true.
    ///
    /// # Errors
    /// Unknown columns, and anything that is not a condition over one row.
    fn holds(
        &self,
        session: &SessionView,
        batch: &RecordBatch,
        condition: &Expr,
    ) -> Result<BooleanArray, SqlError>;
}

/// The facts that SHOW and DESC show, as one user may see them.
pub struct Facts<'a> {
    pub namespace: &'a dyn Namespace,
    pub conditions: &'a dyn Conditions,
}

impl Facts<'_> {
    /// The rows of a SHOW statement, with the columns of Doris.
    ///
    /// # Errors
    /// Unknown databases, tables and columns; [`ErrorCode::NotSupported`] for what only the session knows.
    pub fn show(&self, session: &SessionView, show: &Show) -> Result<Grid, SqlError> {
        let namespace = self.namespace;
        Ok(match show {
            Show::Databases { filter } => {
                let mut grid = Grid::new(&["Database"]);
                let mut names = namespace.databases();
                names.extend(SYSTEM_DATABASES.map(str::to_owned));
                names.sort_unstable();
                names.into_iter().for_each(|name| grid.push(vec![name.into()]));
                self.filtered(session, grid, filter.as_ref(), 0)?
            }
            Show::Tables { full, db, filter } => {
                let grid = self.tables(&self.database(session, db.as_deref())?, *full);
                self.filtered(session, grid, filter.as_ref(), 0)?
            }
            Show::TableStatus { db, filter } => {
                let grid = self.table_status(&self.database(session, db.as_deref())?);
                self.filtered(session, grid, filter.as_ref(), 0)?
            }
            Show::Columns { full, table, filter } => {
                let form = if *full { ColumnsForm::Full } else { ColumnsForm::Plain };
                self.filtered(session, self.columns(session, table, form)?, filter.as_ref(), 0)?
            }
            Show::Variables { scope, filter } => {
                self.filtered(session, self.variables(session, *scope), filter.as_ref(), 0)?
            }
            Show::Status { filter, .. } => {
                self.filtered(session, status(namespace, session), filter.as_ref(), 0)?
            }
            Show::Unused(part) => unused::grid(*part)?,
            Show::DataTypes => filled(&["TypeName", "Size#"], facts::data_types()),
            Show::Functions { is_builtin, full, filter } => {
                self.filtered(session, functions::grid(*is_builtin, *full), filter.as_ref(), 0)?
            }
            Show::Engines => filled(
                &["Engine", "Support", "Comment", "Transactions", "XA", "Savepoints"],
                facts::engines(),
            ),
            Show::Charset { filter } => {
                let grid = filled(
                    &["Charset", "Default collation", "Description", "Maxlen#"],
                    facts::character_sets(),
                );
                // MySQL's order of columns has the description second.
                self.filtered(session, grid, filter.as_ref(), 0)?
            }
            Show::Collation { filter } => {
                let names = ["Collation", "Charset", "Id#", "Default", "Compiled", "Sortlen#"];
                self.filtered(session, filled(&names, facts::collations()), filter.as_ref(), 0)?
            }
            Show::ProcessList { full } => {
                let is_mysql = info_schema::shows_keys(session);
                process_list(facts::processes(namespace, session), *full, is_mysql)
            }
            Show::Index { table } => self.index(session, table)?,
            Show::Backends => nodes::backends(namespace),
            Show::Frontends => nodes::frontends(namespace),
            Show::FrontendConfig { filter } => {
                self.filtered(session, nodes::config(namespace), filter.as_ref(), 0)?
            }
            Show::BackendConfig { filter } => {
                self.filtered(session, nodes::backend_config(namespace), filter.as_ref(), 2)?
            }
            Show::Partitions { table, is_temporary, tail } => {
                filter::check_columns(tail.filter.as_ref(), &PARTITION_FILTERS)?;
                self.tailed(session, self.partitions(session, table, *is_temporary)?, tail, 1)?
            }
            Show::Partition { id } => self.partition(*id),
            Show::Data { table, tail } => {
                self.tailed(session, self.data(session, table.as_ref())?, tail, 0)?
            }
            Show::AlterTableColumn { db, tail } => {
                let grid = self.column_changes(&self.database(session, db.as_deref())?);
                self.tailed(session, grid, tail, 1)?
            }
            Show::AlterTableRollup { db, tail } => {
                let grid = self.rollups(&self.database(session, db.as_deref())?);
                self.tailed(session, grid, tail, 1)?
            }
            Show::Catalogs { filter } => {
                let mut grid = Grid::new(&[
                    "CatalogId#",
                    "CatalogName",
                    "Type",
                    "IsCurrent",
                    "CreateTime",
                    "LastUpdateTime",
                    "Comment",
                ]);
                grid.push(vec![
                    Cell::Int(0),
                    "internal".into(),
                    "internal".into(),
                    "Yes".into(),
                    "UNRECORDED".into(),
                    Cell::Null,
                    "Tributary's own catalog".into(),
                ]);
                self.filtered(session, grid, filter.as_ref(), 1)?
            }
            other => empty(other)?,
        })
    }

    /// The rows of `DESC t` and, with `all`, of `DESC t ALL`.
    ///
    /// # Errors
    /// No database selected, or no such table.
    pub fn describe(&self, session: &SessionView, table: &Name, all: bool) -> Result<Grid, SqlError> {
        if all {
            self.describe_all(session, table)
        } else {
            self.columns(session, table, ColumnsForm::Described)
        }
    }

    /// The database that a statement means, which must exist.
    fn database(&self, session: &SessionView, named: Option<&str>) -> Result<String, SqlError> {
        let Some(name) = named.or(session.database.as_deref()) else {
            return Err(SqlError::new(ErrorCode::NoDbSelected, "No database selected"));
        };
        if is_system_database(name) {
            return Ok(name.to_lowercase());
        }
        let exists = is_system_database(name) || self.namespace.databases().iter().any(|known| known == name);
        if exists {
            return Ok(name.to_owned());
        }
        Err(match named {
            Some(_) => SqlError::new(ErrorCode::UnknownDatabase, format!("Unknown database '{name}'")),
            None => no_database(name),
        })
    }

    fn variables(&self, session: &SessionView, scope: Scope) -> Grid {
        let mut all: Vec<(String, String)> = match scope {
            Scope::Global => self.namespace.global_variables(),
            Scope::Session => {
                session.variables.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
            }
        };
        all.sort();
        let mut grid = Grid::new(&["Variable_name", "Value"]);
        for (name, value) in all {
            grid.push(vec![name.into(), value.as_str().into()]);
        }
        grid
    }
}

/// The rows of SHOW STATUS.
fn status(namespace: &dyn Namespace, session: &SessionView) -> Grid {
    let mut grid = Grid::new(&["Variable_name", "Value"]);
    let (cipher, version) = match &session.tls {
        Some(tls) => (tls.cipher.clone(), tls.version.clone()),
        None => Default::default(),
    };
    let of_session = [("Ssl_cipher", cipher), ("Ssl_version", version)];
    let of_session = of_session.map(|(name, value)| (name.to_owned(), value));
    for (name, value) in namespace.server_facts().status.into_iter().chain(of_session) {
        grid.push(vec![name.into(), value.into()]);
    }
    grid
}

fn filled(names: &[&str], rows: Vec<Vec<Cell>>) -> Grid {
    let mut grid = Grid::new(names);
    rows.into_iter().for_each(|row| grid.push(row));
    grid
}

/// Statements are cut to this many characters without FULL.
const INFO_CHARACTERS: usize = 100;

/// The columns of a list of processes, as Doris has them.
const PROCESS_COLUMNS: [&str; 13] = [
    "CurrentConnected",
    "Id#",
    "User",
    "Host",
    "LoginTime",
    "Catalog",
    "Db",
    "Command",
    "Time#",
    "State",
    "QueryId",
    "Info",
    "FE",
];
/// The columns that MySQL's list has, by their places in that of Doris: drivers read them by their places in MySQL's.
const OF_MYSQL: [(usize, &str); 8] = [
    (1, "Id#"),
    (2, "User"),
    (3, "Host"),
    (6, "db"),
    (7, "Command"),
    (8, "Time#"),
    (9, "State"),
    (11, "Info"),
];

fn process_list(rows: Vec<Vec<Cell>>, full: bool, is_mysql: bool) -> Grid {
    let mut grid = match is_mysql {
        true => Grid::new(&OF_MYSQL.map(|(_, name)| name)),
        false => Grid::new(&PROCESS_COLUMNS),
    };
    for mut row in rows {
        if let Cell::Text(info) = &mut row[11]
            && !full
            && let Some((end, _)) = info.char_indices().nth(INFO_CHARACTERS)
        {
            info.truncate(end);
        }
        grid.push(match is_mysql {
            true => OF_MYSQL.iter().map(|(place, _)| row[*place].clone()).collect(),
            false => row,
        });
    }
    grid
}

/// The SHOW statements that have nothing to show; the rest are not for the query engine.
fn empty(show: &Show) -> Result<Grid, SqlError> {
    let names: &[&str] = match show {
        Show::Triggers { .. } => &[
            "Trigger",
            "Event",
            "Table",
            "Statement",
            "Timing",
            "Created",
            "sql_mode",
            "Definer",
            "character_set_client",
            "collation_connection",
            "Database Collation",
        ],
        Show::Events { .. } => &[
            "Db",
            "Name",
            "Definer",
            "Time",
            "Type",
            "Execute at",
            "Interval value",
            "Interval field",
            "Status",
            "Ends",
            "Originator",
            "character_set_client",
            "collation_connection",
            "Database Collation",
        ],
        Show::ProcedureStatus { .. } | Show::FunctionStatus { .. } => &[
            "Db",
            "Name",
            "Type",
            "Definer",
            "Modified",
            "Created",
            "Security_type",
            "Comment",
            "character_set_client",
            "collation_connection",
            "Database Collation",
        ],
        Show::Plugins => &["Name", "Status", "Type", "Library", "License"],
        Show::Privileges => &["Privilege", "Context", "Comment"],
        Show::Delete { .. } => &["TableName", "PartitionName", "CreateTime", "DeleteCondition", "State"],
        _ => {
            return Err(SqlError::detail(
                ErrorCode::NotSupported,
                "this SHOW statement is answered by the session, not by the query engine",
            ));
        }
    };
    Ok(Grid::new(names))
}

/// The names of the tables of a database of the server's.
fn system_tables(database: &str) -> Vec<&'static str> {
    info_schema::names(database)
}
