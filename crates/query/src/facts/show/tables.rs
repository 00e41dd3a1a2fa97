//! SHOW and DESC of tables and their columns.

use super::Facts;
use super::facts::{self, bucket_count, distribution_key, size_text, table_bytes};
use crate::error::{no_database, no_table};
use crate::facts::info_schema;
use crate::model::SessionView;
use crate::model::{Cell, Grid};
use crate::types::metadata::table_columns;
use std::sync::Arc;
use tributary_sql::{Name, index_properties};
use tributary_table::Table;
use tributary_types::system::is_system_database;
use tributary_types::{ColumnDef, DataType, IndexKind, RollupDef, SqlError, TableDef, TableRef};

const COLLATION: &str = "utf8mb4_0900_bin";

/// The statement that shows columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnsForm {
    /// DESC
    Described,
    /// SHOW COLUMNS
    Plain,
    /// SHOW FULL COLUMNS
    Full,
}

impl Facts<'_> {
    fn resolve(
        &self,
        session: &SessionView,
        name: &Name,
    ) -> Result<(TableRef, Option<Arc<Table>>), SqlError> {
        let name = name.resolve(session.database.as_deref())?;
        let found = match session.temporary(&name.db, &name.table) {
            Some(own) => Some(own),
            None => self.namespace.described_table(&name.db, &name.table)?,
        };
        Ok((name, found))
    }

    fn existing(&self, session: &SessionView, name: &Name) -> Result<Arc<Table>, SqlError> {
        let (name, found) = self.resolve(session, name)?;
        match found {
            Some(table) => Ok(table),
            None if self.namespace.described_view(&name.db, &name.table)?.is_some() => {
                Err(SqlError::wrong_object(&name, "BASE TABLE", ""))
            }
            None => Err(self.missing(&name)),
        }
    }

    fn missing(&self, name: &TableRef) -> SqlError {
        if is_system_database(&name.db) || self.namespace.databases().contains(&name.db) {
            no_table(&name.db, &name.table)
        } else {
            no_database(&name.db)
        }
    }

    pub(super) fn tables(&self, database: &str, full: bool) -> Grid {
        let title = format!("Tables_in_{database}");
        let mut grid = match full {
            true => {
                Grid::new(&[title.as_str(), "Table_type", "Storage_format", "Inverted_index_storage_format"])
            }
            false => Grid::new(&[title.as_str()]),
        };
        let mut push = |name: &str, kind: &str, format: &str| {
            let row: Vec<Cell> = if full {
                vec![name.into(), kind.into(), format.into(), format.into()]
            } else {
                vec![name.into()]
            };
            grid.push(row);
        };
        super::system_tables(database).into_iter().for_each(|name| push(name, "SYSTEM VIEW", "NONE"));
        for (name, is_view) in self.tables_and_views(database) {
            match is_view {
                true => push(&name, "VIEW", "NONE"),
                false => push(&name, "BASE TABLE", "V2"),
            }
        }
        grid
    }

    /// The names of tables and views in order, each with whether it is a view.
    fn tables_and_views(&self, database: &str) -> Vec<(String, bool)> {
        let tables = self.namespace.tables(database);
        let mut names: Vec<_> = tables.iter().map(|table| (table.def().name.clone(), false)).collect();
        let views = self.namespace.views(database);
        names.extend(views.iter().map(|view| (view.name.clone(), true)));
        names.sort_unstable();
        names
    }

    pub(super) fn table_status(&self, database: &str) -> Grid {
        let mut grid = Grid::new(&[
            "Name",
            "Engine",
            "Version#",
            "Row_format",
            "Rows#",
            "Avg_row_length#",
            "Data_length#",
            "Max_data_length#",
            "Index_length#",
            "Data_free#",
            "Auto_increment#",
            "Create_time",
            "Update_time",
            "Check_time",
            "Collation",
            "Checksum#",
            "Create_options",
            "Comment",
        ]);
        for table in self.namespace.tables(database) {
            let snapshot = table.snapshot();
            let (rows, bytes) = (snapshot.rows(), table_bytes(&snapshot));
            let mut row: Vec<Cell> = vec![
                snapshot.def.name.as_str().into(),
                "Doris".into(),
                Cell::Null,
                Cell::Null,
                rows.into(),
                bytes.checked_div(rows).unwrap_or(0).into(),
                bytes.into(),
            ];
            row.extend(vec![Cell::Null; 7]);
            row.extend([COLLATION.into(), Cell::Null, Cell::Null, facts::comment(&table).into()]);
            grid.push(row);
        }
        for view in self.namespace.views(database) {
            let mut row: Vec<Cell> = vec![view.name.as_str().into(), "View".into()];
            row.extend(vec![Cell::Null; 15]);
            row.push(view.shown_comment().into());
            grid.push(row);
        }
        grid
    }

    /// DESC and SHOW [FULL] COLUMNS.
    pub(super) fn columns(
        &self,
        session: &SessionView,
        name: &Name,
        form: ColumnsForm,
    ) -> Result<Grid, SqlError> {
        let full = form == ColumnsForm::Full;
        let mut grid = match full {
            true => Grid::new(&[
                "Field",
                "Type",
                "Collation",
                "Null",
                "Key",
                "Default",
                "Extra",
                "Privileges",
                "Comment",
            ]),
            false => Grid::new(&["Field", "Type", "Null", "Key", "Default", "Extra"]),
        };
        let (name, found) = self.resolve(session, name)?;
        let readable = self.namespace.readable_columns(&name.db, &name.table);
        let is_shown = |column: &ColumnDef| info_schema::is_readable(readable.as_deref(), column);
        if let Some(table) = found {
            let def = table.def();
            for column in table_columns(&def, session.shows_hidden()).filter(|column| is_shown(column)) {
                let collation = column.data_type.is_text().then_some(COLLATION);
                let shown = full.then_some((collation, column.comment.as_str()));
                let mut row = described(column, shown, extra(&def), form);
                if info_schema::shows_keys(session) {
                    as_mysql(&mut row, &def, column, full);
                }
                grid.push(row);
            }
            return Ok(grid);
        }
        if let Some(view) = self.namespace.described_view(&name.db, &name.table)? {
            for column in view.columns.iter().filter(|column| is_shown(column)) {
                let collation = column.data_type.is_text().then_some(COLLATION);
                let shown = full.then_some((collation, column.comment.as_str()));
                grid.push(described(column, shown, "NONE", form));
            }
            return Ok(grid);
        }
        let Some(columns) = info_schema::columns_of(&name.db, &name.table) else {
            return Err(self.missing(&name));
        };
        for (column, data_type) in columns {
            let mut row: Vec<Cell> = vec![column.into(), data_type.into()];
            if full {
                row.push(Cell::Null);
            }
            row.extend(["Yes".into(), "false".into(), Cell::Null, "".into()]);
            if full {
                row.extend(["".into(), "".into()]);
            }
            grid.push(row);
        }
        Ok(grid)
    }

    pub(super) fn describe_all(&self, session: &SessionView, name: &Name) -> Result<Grid, SqlError> {
        let mut grid = Grid::new(&[
            "IndexName",
            "IndexKeysType",
            "Field",
            "Type",
            "InternalType",
            "Null",
            "Key",
            "Default",
            "Extra",
            "Visible",
            "DefineExpr",
            "WhereClause",
        ]);
        let (name, found) = self.resolve(session, name)?;
        let view = self.namespace.described_view(&name.db, &name.table)?;
        let readable = self.namespace.readable_columns(&name.db, &name.table);
        let (model, mut columns): (&str, Vec<ColumnDef>) = match (&found, view) {
            (Some(table), _) => {
                let def = table.def();
                (def.keys.name(), table_columns(&def, session.shows_hidden()).cloned().collect())
            }
            (None, Some(view)) => ("", view.columns.clone()),
            (None, None) => return Err(self.missing(&name)),
        };
        columns.retain(|column| info_schema::is_readable(readable.as_deref(), column));
        let extra = found.as_ref().map_or("NONE", |table| extra(&table.def()));
        push_index(&mut grid, &name.table, model, extra, &columns);
        for rollup in found.iter().flat_map(|table| table.def().rollups.clone()) {
            // As Doris divides them.
            grid.push(vec!["".into(); 12]);
            push_index(&mut grid, &rollup.name, model, extra, &rollup_columns(&rollup, &columns));
        }
        Ok(grid)
    }

    /// Tables have no indexes; the table must exist. A row for each column of each index, with the numbers of MySQL, which Doris
    /// leaves empty: drivers read them.
    pub(super) fn index(&self, session: &SessionView, name: &Name) -> Result<Grid, SqlError> {
        let table = self.existing(session, name)?;
        let def = table.def();
        let mut grid = Grid::new(&[
            "Table",
            "Non_unique#",
            "Key_name",
            "Seq_in_index#",
            "Column_name",
            "Collation",
            "Cardinality",
            "Sub_part",
            "Packed",
            "Null",
            "Index_type",
            "Comment",
            "Properties",
        ]);
        if info_schema::shows_keys(session) && def.keys.is_unique() {
            for (place, column) in (1..).zip(def.schema.columns.iter().filter(|column| column.is_key)) {
                grid.push(vec![
                    def.name.as_str().into(),
                    Cell::Int(0),
                    "PRIMARY".into(),
                    Cell::Int(place),
                    column.name.as_str().into(),
                    "A".into(),
                    "".into(),
                    Cell::Null,
                    Cell::Null,
                    "".into(),
                    "BTREE".into(),
                    "".into(),
                    "".into(),
                ]);
            }
        }
        for index in &def.indexes {
            // One without a kind of Doris's.
            let is_mysql = info_schema::shows_keys(session)
                && index.kind == IndexKind::Inverted
                && index.properties.is_empty();
            let (collation, kind) = if is_mysql { ("A", "BTREE") } else { ("", index.kind.name()) };
            for (place, id) in (1..).zip(&index.columns) {
                let column = def.schema.columns.iter().find(|column| column.id == *id);
                grid.push(vec![
                    def.name.as_str().into(),
                    Cell::Int(1),
                    index.name.as_str().into(),
                    Cell::Int(place),
                    column.map(|column| column.name.as_str()).into(),
                    collation.into(),
                    "".into(),
                    "".into(),
                    "".into(),
                    column.map(|column| if column.nullable { "YES" } else { "" }).into(),
                    kind.into(),
                    index.comment.as_str().into(),
                    index_properties(&index.properties).into(),
                ]);
            }
        }
        Ok(grid)
    }

    /// A table without partitions has one of its own name.
    pub(super) fn partitions(
        &self,
        session: &SessionView,
        name: &Name,
        is_temporary: bool,
    ) -> Result<Grid, SqlError> {
        let mut table = Some(self.existing(session, name)?);
        if is_temporary {
            table = table.and_then(|table| self.namespace.beside(&table.def()));
        }
        let mut grid = Grid::new(&[
            "PartitionId#",
            "PartitionName",
            "VisibleVersion#",
            "VisibleVersionTime",
            "State",
            "PartitionKey",
            "Range",
            "DistributionKey",
            "Buckets#",
            "ReplicationNum#",
            "StorageMedium",
            "CooldownTime",
            "RemoteStoragePolicy",
            "LastConsistencyCheckTime",
            "DataSize",
            "IsInMemory",
            "ReplicaAllocation",
            "IsMutable",
            "SyncWithBaseTables",
            "UnsyncTables",
        ]);
        let Some(snapshot) = table.map(|table| table.snapshot()) else { return Ok(grid) };
        let def = &snapshot.def;
        for partition in facts::partitions(&snapshot) {
            grid.push(vec![
                partition.id.into(),
                partition.name.into(),
                // An empty partition shows 1, as in Doris.
                (partition.facts.version.0 + 1).into(),
                Cell::Null,
                "NORMAL".into(),
                partition.key.into(),
                partition.range.into(),
                distribution_key(def).into(),
                bucket_count(def).into(),
                Cell::Int(1),
                "HDD".into(),
                "9999-12-31 23:59:59".into(),
                "".into(),
                Cell::Null,
                size_text(partition.facts.bytes).into(),
                "false".into(),
                "tag.location.default: 1".into(),
                "true".into(),
                "true".into(),
                Cell::Null,
            ]);
        }
        Ok(grid)
    }

    /// The partitions with that number: each table has its own numbers. An unknown one is not an error, as in Doris.
    pub(super) fn partition(&self, id: u64) -> Grid {
        let mut grid = Grid::new(&["DbName", "TableName", "PartitionName", "DbId#", "TableId#"]);
        let databases = self.namespace.databases();
        for table in databases.iter().flat_map(|database| self.namespace.tables(database)) {
            let def = table.def();
            for (_, name) in facts::partition_names(&def).into_iter().filter(|(known, _)| *known == id) {
                grid.push(vec![
                    def.db.as_str().into(),
                    def.name.as_str().into(),
                    name.into(),
                    def.db_id.0.into(),
                    def.id.0.into(),
                ]);
            }
        }
        grid
    }

    pub(super) fn data(&self, session: &SessionView, name: Option<&Name>) -> Result<Grid, SqlError> {
        let none = || -> Cell { size_text(0).into() };
        let Some(name) = name else { return self.data_of_database(session) };
        let table = self.existing(session, name)?;
        let snapshot = table.snapshot();
        let mut grid = Grid::new(&[
            "TableName",
            "IndexName",
            "Size",
            "ReplicaCount",
            "RowCount",
            "RemoteSize",
            "BinlogSize",
        ]);
        let (size, rows) = (size_text(table_bytes(&snapshot)), snapshot.rows().to_string());
        let name = snapshot.def.name.as_str();
        grid.push(vec![
            name.into(),
            name.into(),
            size.as_str().into(),
            "1".into(),
            rows.into(),
            none(),
            none(),
        ]);
        for rollup in &snapshot.def.rollups {
            // It holds nothing.
            let row = ["", rollup.name.as_str(), &size_text(0), "1", "0"].map(Cell::from);
            grid.push(row.into_iter().chain([none(), none()]).collect());
        }
        grid.push(vec!["".into(), "Total".into(), size.into(), "1".into(), "".into(), none(), none()]);
        Ok(grid)
    }

    fn data_of_database(&self, session: &SessionView) -> Result<Grid, SqlError> {
        let none = || -> Cell { size_text(0).into() };
        let bytes_of = |table: &Arc<Table>| table_bytes(&table.snapshot());
        if session.database.is_none() {
            let mut grid = Grid::new(&[
                "DbId",
                "DbName",
                "Size",
                "RemoteSize",
                "BinlogSize",
                "RecycleSize",
                "RecycleRemoteSize",
            ]);
            for database in self.namespace.databases() {
                let tables = self.namespace.tables(&database);
                let id = tables.first().map(|table| table.def().db_id.to_string());
                let size = size_text(tables.iter().map(bytes_of).sum());
                grid.push(vec![id.into(), database.into(), size.into(), none(), none(), none(), none()]);
            }
            return Ok(grid);
        }
        let database = self.database(session, None)?;
        let mut grid = Grid::new(&["TableName", "Size", "ReplicaCount", "RemoteSize", "BinlogSize"]);
        let tables = self.namespace.tables(&database);
        for table in &tables {
            let name = table.def().name.clone();
            grid.push(vec![name.into(), size_text(bytes_of(table)).into(), "1".into(), none(), none()]);
        }
        let total = size_text(tables.iter().map(bytes_of).sum());
        grid.push(vec!["Total".into(), total.into(), tables.len().to_string().into(), none(), none()]);
        Ok(grid)
    }
}

/// A row of DESC, or of SHOW FULL COLUMNS with collation and comment.
/// What DESC says of a value column without an aggregation: in a table with UNIQUE KEY that merges on read, the last value
/// replaces the others.
fn extra(def: &TableDef) -> &'static str {
    let merges = def.properties.others.get("enable_unique_key_merge_on_write");
    let merges_on_read = def.keys.is_unique() && merges.is_some_and(|value| value == "false");
    if merges_on_read { "REPLACE" } else { "NONE" }
}

/// Further properties of a column in DESC.
fn extras(column: &ColumnDef, plain: &'static str) -> Vec<&'static str> {
    let aggregation = match column.aggregation {
        _ if column.is_key => None,
        Some(aggregation) => Some(aggregation.name()),
        None => Some(plain),
    };
    let increment = column.auto_increment.map(|_| "AUTO_INCREMENT");
    let generated = column.generated.as_ref().map(|_| "STORED GENERATED");
    aggregation.into_iter().chain(increment).chain(generated).collect()
}

/// The columns of a rollup, as it has them.
fn rollup_columns(rollup: &RollupDef, columns: &[ColumnDef]) -> Vec<ColumnDef> {
    let of_rollup = rollup.columns.iter().enumerate().filter_map(|(place, id)| {
        let column = columns.iter().find(|column| column.id == *id)?;
        Some(ColumnDef { is_key: place < rollup.keys, ..column.clone() })
    });
    of_rollup.collect()
}

/// The rows of DESC … ALL for one index.
fn push_index(grid: &mut Grid, name: &str, model: &str, extra: &'static str, columns: &[ColumnDef]) {
    for (place, column) in columns.iter().enumerate() {
        let shown = described(column, None, extra, ColumnsForm::Described);
        let first = place == 0;
        let mut row: Vec<Cell> = vec![
            if first { name } else { "" }.into(),
            if first { model } else { "" }.into(),
            shown[0].clone(),
            shown[1].clone(),
            shown[1].clone(),
        ];
        row.extend(shown[2..].iter().cloned());
        row.extend(["true".into(), "".into(), "".into()]);
        grid.push(row);
    }
}

/// Changes a row of DESC or SHOW COLUMNS to what MySQL's clients read.
fn as_mysql(row: &mut [Cell], def: &TableDef, column: &ColumnDef, full: bool) {
    let null = 2 + usize::from(full);
    row[null] = if column.nullable { "YES" } else { "NO" }.into();
    row[null + 1] = if column.is_key && def.keys.is_unique() { "PRI" } else { "" }.into();
    if column.data_type == DataType::Boolean {
        row[1] = "tinyint(1)".into();
    }
    if let Some(name) = column.data_type.blob_name() {
        row[1] = name.into();
    }
    row[null + 3] = if column.auto_increment.is_some() { "auto_increment" } else { "" }.into();
}

fn described(
    column: &ColumnDef,
    full: Option<(Option<&str>, &str)>,
    plain: &'static str,
    form: ColumnsForm,
) -> Vec<Cell> {
    let mut row: Vec<Cell> = vec![column.name.as_str().into(), column.data_type.to_string().into()];
    if let Some((collation, _)) = full {
        row.push(collation.into());
    }
    row.extend([
        // Doris writes them so in SHOW COLUMNS, and otherwise in DESC.
        match (column.nullable, form) {
            (true, ColumnsForm::Described) => "Yes",
            (false, ColumnsForm::Described) => "No",
            (true, _) => "YES",
            (false, _) => "NO",
        }
        .into(),
        match (column.is_key, form) {
            (true, ColumnsForm::Described) => "true",
            (false, ColumnsForm::Described) => "false",
            (true, _) => "YES",
            (false, _) => "NO",
        }
        .into(),
        info_schema::default_text(column).into(),
        extras(column, plain).join(",").into(),
    ]);
    if let Some((_, comment)) = full {
        row.extend(["".into(), comment.into()]);
    }
    row
}
