//! Several tables get other names in one step, also names of each other.

use crate::access::interrupt::Interrupt;
use crate::ddl::Ddl;
use crate::ddl::change::turns::TableTurn;
use crate::ddl::tables::table_error;
use std::collections::HashMap;
use std::sync::Arc;
use tributary_sql::AlterOp;
use tributary_table::Table;
use tributary_types::{ErrorCode, SqlError, TableDef, TableId, TableRef};

/// A table whose name changes: its definition before and after.
struct Renamed {
    table: Arc<Table>,
    old: Arc<TableDef>,
    new: TableDef,
}

impl Ddl {
    /// Renames tables one after the other, as seen by everyone in one step. Each stays in its database.
    ///
    /// # Errors
    /// A table does not exist, a name is taken, or a table is being changed: then no name has changed.
    pub(crate) async fn rename_tables(
        &self,
        interrupt: Interrupt<'_>,
        steps: &[(TableRef, TableRef)],
    ) -> Result<(), SqlError> {
        // The table that each step renames, by its name before all of them.
        let mut present: HashMap<TableRef, TableRef> = HashMap::new();
        let mut last: Vec<(TableRef, TableRef)> = Vec::new();
        for (from, to) in steps {
            let origin = present.remove(from).unwrap_or_else(|| from.clone());
            let is_gone = last.iter().any(|(before, now)| *before == *from && now != from) && origin == *from;
            if is_gone {
                return self.table_called(&from.db, &from.table).and(Err(unknown(from)));
            }
            match last.iter_mut().find(|(before, _)| *before == origin) {
                Some((_, now)) => now.clone_from(to),
                None => last.push((origin.clone(), to.clone())),
            }
            if present.insert(to.clone(), origin).is_some() {
                return Err(SqlError::new(
                    ErrorCode::TableExists,
                    format!("Table '{}' already exists", to.table),
                ));
            }
        }
        last.retain(|(before, now)| before != now);
        self.rename_at_once(interrupt, &last).await
    }

    /// The two tables get each other's names.
    ///
    /// # Errors
    /// As [`Ddl::rename_tables`].
    pub(crate) async fn swap_tables(
        &self,
        interrupt: Interrupt<'_>,
        one: &TableRef,
        other: &TableRef,
    ) -> Result<(), SqlError> {
        let swapped = [(one.clone(), other.clone()), (other.clone(), one.clone())];
        self.rename_at_once(interrupt, &swapped).await
    }

    async fn rename_at_once(
        &self,
        interrupt: Interrupt<'_>,
        names: &[(TableRef, TableRef)],
    ) -> Result<(), SqlError> {
        let (renamed, _turns) = self.turns_to_rename(interrupt, names).await?;
        for it in &renamed {
            self.follow_catalog(&it.table).await?;
        }
        self.rename_in_catalog(renamed.iter().map(|it| (Arc::clone(&it.old), it.new.clone())).collect())
            .await?;
        for (index, it) in renamed.iter().enumerate() {
            if let Err(error) = it.table.alter(Arc::new(it.new.clone())).await {
                return Err(self.rename_back(&renamed, index, table_error(error)).await);
            }
        }
        self.names.changed();
        Ok(())
    }

    /// The tables with their turns, which are taken in the order of the tables' ids.
    async fn turns_to_rename(
        &self,
        interrupt: Interrupt<'_>,
        names: &[(TableRef, TableRef)],
    ) -> Result<(Vec<Renamed>, Vec<TableTurn>), SqlError> {
        loop {
            let mut tables: Vec<(Arc<Table>, &TableRef, &TableRef)> = Vec::with_capacity(names.len());
            for (from, to) in names {
                tables.push((self.table_called(&from.db, &from.table)?, from, to));
            }
            tables.sort_by_key(|(table, ..)| table.id());
            let (mut renamed, mut turns) = (Vec::with_capacity(names.len()), Vec::with_capacity(names.len()));
            for (table, from, to) in &tables {
                self.refuse_while_changing(&table.def())?;
                turns.push(interrupt.wait(self.turn_of(&table.def())).await??);
                if !self.names.has(from, table) {
                    break;
                }
                self.refuse_while_changing(&table.def())?;
                let old = table.def();
                let new = tributary_sql::apply_alter(&old, &AlterOp::RenameTable { to: to.table.clone() })?;
                self.refuse_for_temporary(&old, &new)?;
                renamed.push(Renamed { table: Arc::clone(table), old, new });
            }
            if renamed.len() == names.len() {
                return Ok((renamed, turns));
            }
        }
    }

    async fn rename_in_catalog(&self, renamed: Vec<(Arc<TableDef>, TableDef)>) -> Result<(), SqlError> {
        let of_names: Vec<(TableRef, String)> =
            renamed.iter().map(|(old, new)| (old.table_ref(), new.name.clone())).collect();
        let ids: Vec<TableId> = renamed.iter().map(|(old, _)| old.id).collect();
        let _changing = self.changing().await;
        for (_, new) in &renamed {
            // A temporary partition may have the name, which no statement can see.
            let holder = self.names.find_of_any_role(&new.db, &new.name);
            if holder.is_some_and(|holder| !ids.contains(&holder.id())) {
                return Err(SqlError::new(
                    ErrorCode::TableExists,
                    format!("Table '{}' already exists", new.name),
                ));
            }
        }
        self.catalog.rename_tables(renamed).await?;
        self.names.rename_tables(&of_names);
        Ok(())
    }

    /// Gives all tables their old names, the first `followed` of which had taken the new ones over; returns the answer.
    async fn rename_back(&self, renamed: &[Renamed], followed: usize, error: SqlError) -> SqlError {
        let back = renamed.iter().map(|it| (Arc::new(it.new.clone()), TableDef::clone(&it.old))).collect();
        let mut failed = self.rename_in_catalog(back).await.err();
        if failed.is_none() {
            for it in &renamed[..followed] {
                failed = it.table.alter(Arc::clone(&it.old)).await.err().map(table_error).or(failed);
            }
        }
        let Some(failed) = failed else { return error };
        let (error, failed) = (error.detail_text().to_owned(), failed.detail_text().to_owned());
        tracing::error!(
            error,
            failed,
            "the catalog and renamed tables differ; they follow it with their next change or the next start"
        );
        let text = format!(
            "the tables could not follow their new names ({error}), and giving the old ones back has failed ({failed}). The next change of \
             each, or the next start, completes it"
        );
        SqlError::detail(ErrorCode::Unknown, text)
    }
}

fn unknown(name: &TableRef) -> SqlError {
    let text = format!("Table [{}] does not exist in database [{}].", name.table, name.db);
    SqlError::detail(ErrorCode::NoSuchTable, text)
}
