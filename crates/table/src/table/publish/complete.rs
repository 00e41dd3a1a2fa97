//! Settling rows of partial updates: reading the values that they do not give from the rows that they supersede.
//!
//! Invariant: a derived row replaces all rows that it was made of in one swap of the snapshot. Nothing of it is in the
//! write-ahead log, which has the original rows: after a replay they are completed again, in the same order.

use crate::error::{TableError, blocking};
use crate::file::{DataFile, EncodedFile, FileReader, LiveFile, Settled};
use crate::keys::hash::KeyHasher;
use crate::keys::rows::{Sequence, sequence_at};
use crate::keys::{Completion, Folder, GivenInFiles, GivenSets, KeyHash, KeyReader, Keys};
use crate::table::Table;
use crate::table::publish::settle::{Found, on_a_thread};
use crate::view::evolve::{civil_now_micros, default_array};
use crate::view::snapshot::Snapshot;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use std::collections::HashSet;
use std::sync::Arc;
use tributary_types::{ColumnDef, DefaultValue, HiddenColumn, TableSchema};

const DOING: &str = "completing rows of partial updates";

impl Table {
    /// Settles all rows of the snapshot if rows of partial updates are among the unsettled ones. `next_row` is the arrival number
    /// of the next row, at the time of the snapshot.
    pub(in crate::table) async fn complete(
        &self,
        keys: &mut Keys,
        snapshot: &Arc<Snapshot>,
        epoch: u64,
        next_row: u64,
    ) -> Result<Option<Found>, TableError> {
        let schema = &snapshot.def.schema;
        let Some(given) = schema.index_of_hidden(HiddenColumn::Given) else { return Ok(None) };
        let mut sets = GivenSets::new(schema);
        let mut in_files = GivenInFiles::new();
        let is_partial = |live: &&LiveFile| gives_some(&live.file, &schema.columns[given]);
        for live in snapshot.files.iter().filter(|live| live.settled == Settled::No).filter(is_partial) {
            let of_rows = self.given_of(live, &schema.columns[given], &mut sets).await?;
            in_files.insert(live.path().to_owned(), of_rows);
        }
        let in_parts = snapshot.memtable.iter().filter(|part| !part.is_settled).any(|part| {
            let column = part.batch.column(given);
            column.null_count() < column.len()
        });
        if in_files.is_empty() && !in_parts {
            return Ok(None);
        }
        let last = snapshot.memtable.last();
        let first_row = last.map_or(next_row, |part| part.first_row + part.batch.num_rows() as u64);
        let default_sequence = default_sequence(schema)?;
        let work = move |keys: &mut Keys, snapshot: &Snapshot, reader: &KeyReader| {
            let completion =
                keys.complete(snapshot, reader, &mut sets, &in_files, first_row, default_sequence)?;
            Ok((completion, sets))
        };
        let (completion, sets) = on_a_thread(keys, Arc::clone(snapshot), epoch, work).await?;
        let Completion { work, mut marks } = completion;
        let (schema, sets) = (Arc::clone(schema), Arc::new(sets.into_masks()));
        let make = move |slots, limits| Folder::of_layers(&schema, slots, &sets, limits);
        let derived = self.derive(keys, snapshot, work, first_row, &mut marks, make).await?;
        Ok(Some(Found { marks, derived }))
    }

    /// For each row of a file the number of the set of columns that it gives.
    async fn given_of(
        &self,
        live: &LiveFile,
        given: &ColumnDef,
        sets: &mut GivenSets,
    ) -> Result<Vec<u32>, TableError> {
        let schema = Arc::new(TableSchema::new(self.def().schema.version, vec![given.clone()]));
        let file = EncodedFile::open(&self.root, &live.with_deletes(None)).await?;
        let mut reader = FileReader::new(&file, file.row_groups(), &schema, 0)?;
        let mut of_rows = Vec::new();
        while let Some(batch) = reader.next().await? {
            of_rows.extend(sets.of_texts(batch.column(0).as_string::<i32>())?);
        }
        Ok(of_rows)
    }

    /// The key columns of the first of these rows that is of a partial update and whose key no row of the table has; rows that
    /// were published before the call count. `files` are not published yet. With a column, by its index in the schema, rows that
    /// give it do not count.
    ///
    /// # Errors
    /// The errors of [`Table::settled`], and [`TableError::Arrow`] for rows of another schema.
    pub async fn first_new_key(
        &self,
        schema: &Arc<TableSchema>,
        batches: &[RecordBatch],
        files: &[DataFile],
        lacked: Option<usize>,
    ) -> Result<Option<Vec<ArrayRef>>, TableError> {
        let given = schema.index_of_hidden(HiddenColumn::Given);
        let (Some(given), Some(_)) = (given, &self.unique) else { return Ok(None) };
        let keys_of = |batch: &RecordBatch| -> Vec<ArrayRef> {
            schema.key_indices().into_iter().map(|key| Arc::clone(batch.column(key))).collect()
        };
        let mut sets = GivenSets::new(schema);
        let hasher = KeyHasher::new(schema)?;
        for batch in batches {
            let Some(of_rows) = sets.of_batch(batch)? else { continue };
            let columns = keys_of(batch);
            let hashes = hasher.of_columns(&columns)?.into_iter().zip(0..);
            if let Some(row) = self.first_unknown(of_partial(hashes, &of_rows, &sets, lacked)).await? {
                return Ok(Some(columns.iter().map(|column| column.slice(row as usize, 1)).collect()));
            }
        }
        for file in files {
            let live = LiveFile::from(file.clone());
            let of_rows = self.given_of(&live, &schema.columns[given], &mut sets).await?;
            let of_file = self.keys_of(&live).await?;
            let keyed = blocking(DOING, move || {
                let mut keyed: Vec<(KeyHash, u32)> = Vec::new();
                of_file.for_each_key(|of_key| keyed.extend(of_key.iter().map(|it| (it.hash, it.row))))?;
                Ok(keyed)
            });
            let keyed = of_partial(keyed.await?.into_iter(), &of_rows, &sets, lacked);
            let Some(row) = self.first_unknown(keyed).await? else { continue };
            let encoded = EncodedFile::open(&self.root, &live).await?;
            let mut reader = FileReader::of_rows(&encoded, &[row], schema, civil_now_micros())?;
            let batch = reader.next().await?;
            return Ok(batch.map(|batch| keys_of(&batch)));
        }
        Ok(None)
    }

    /// How many keys these rows have that no row of the table has; rows that were published before the call count. `files` are
    /// not published yet.
    ///
    /// # Errors
    /// The errors of [`Table::settled`], and [`TableError::Arrow`] for rows of another schema.
    pub async fn count_new_keys(
        &self,
        schema: &Arc<TableSchema>,
        batches: &[RecordBatch],
        files: &[DataFile],
    ) -> Result<u64, TableError> {
        let reader = KeyReader::new(schema)?;
        let mut keys: Vec<KeyHash> = Vec::new();
        for batch in batches {
            keys.extend(reader.read(batch)?.hashes);
        }
        for file in files {
            let of_file = self.keys_of(&LiveFile::from(file.clone())).await?;
            let of_file = blocking(DOING, move || {
                let mut keys: Vec<KeyHash> = Vec::new();
                of_file.for_each_key(|of_key| keys.extend(of_key.first().map(|keyed| keyed.hash)))?;
                Ok(keys)
            });
            keys.extend(of_file.await?);
        }
        keys.sort_unstable();
        keys.dedup();
        let keyed = keys.into_iter().zip(0..).collect();
        Ok(self.unknown(keyed).await?.len() as u64)
    }

    /// The key of a row that a row of the table has, or an earlier one of these rows. `files` are not published yet.
    ///
    /// # Errors
    /// As [`Table::count_new_keys`].
    pub async fn first_known_key(
        &self,
        schema: &Arc<TableSchema>,
        batches: &[RecordBatch],
        files: &[DataFile],
    ) -> Result<Option<Vec<ArrayRef>>, TableError> {
        let hasher = KeyHasher::new(schema)?;
        let mut before: HashSet<KeyHash> = HashSet::new();
        for batch in batches {
            let keys = schema.key_indices();
            let columns: Vec<ArrayRef> = keys.into_iter().map(|key| Arc::clone(batch.column(key))).collect();
            let hashes = hasher.of_columns(&columns)?;
            let unknown = self.unknown(hashes.iter().copied().zip(0..).collect()).await?;
            let unknown: HashSet<u32> = unknown.into_iter().collect();
            let known = hashes
                .iter()
                .zip(0_u32..)
                .find(|(hash, row)| !before.insert(**hash) || !unknown.contains(row));
            if let Some((_, row)) = known {
                return Ok(Some(columns.iter().map(|column| column.slice(row as usize, 1)).collect()));
            }
        }
        for file in files {
            let live = LiveFile::from(file.clone());
            let of_file = self.keys_of(&live).await?;
            let keyed = blocking(DOING, move || {
                let mut keyed: Vec<(KeyHash, u32)> = Vec::new();
                of_file.for_each_key(|of_key| keyed.extend(of_key.iter().map(|it| (it.hash, it.row))))?;
                Ok(keyed)
            });
            let keyed = keyed.await?;
            let unknown: HashSet<u32> = self.unknown(keyed.clone()).await?.into_iter().collect();
            let known = keyed.iter().find(|(hash, row)| !before.insert(*hash) || !unknown.contains(row));
            let Some((_, row)) = known else { continue };
            let encoded = EncodedFile::open(&self.root, &live).await?;
            let mut reader = FileReader::of_rows(&encoded, &[*row], schema, civil_now_micros())?;
            let batch = reader.next().await?;
            let keys = schema.key_indices();
            return Ok(batch.map(|batch| keys.into_iter().map(|key| Arc::clone(batch.column(key))).collect()));
        }
        Ok(None)
    }

    /// The first row whose key no live row of the table has.
    async fn first_unknown(&self, keyed: Vec<(KeyHash, u32)>) -> Result<Option<u32>, TableError> {
        Ok(self.unknown(keyed).await?.into_iter().min())
    }

    /// The rows whose keys no live row of the table has.
    async fn unknown(&self, mut sorted: Vec<(KeyHash, u32)>) -> Result<Vec<u32>, TableError> {
        let snapshot = self.settled().await?;
        let mut files = Vec::with_capacity(snapshot.files.len());
        for live in snapshot.files.iter() {
            files.push((live.clone(), self.known_keys_of(live).await?));
        }
        blocking("looking for keys", move || {
            sorted.sort_unstable();
            let mut is_known = vec![false; sorted.len()];
            for (live, of_file) in &files {
                of_file.find(sorted.iter().map(|(hash, _)| *hash), |place, keyed| {
                    is_known[place] |= live.is_live(keyed.row);
                })?;
            }
            let reader = KeyReader::new(&snapshot.def.schema)?;
            for part in &snapshot.memtable {
                for hash in reader.read(&part.live_batch()?)?.hashes {
                    let first = sorted.partition_point(|(known, _)| *known < hash);
                    let same = sorted[first..].iter().take_while(|(known, _)| *known == hash).count();
                    is_known[first..first + same].fill(true);
                }
            }
            let unknown = sorted.iter().zip(is_known).filter(|(_, is_known)| !is_known);
            Ok(unknown.map(|((_, row), _)| *row).collect())
        })
        .await
    }
}

/// The sequence of a new key whose row gives none. A default that is a time is NULL here: a replay must decide the same.
fn default_sequence(schema: &TableSchema) -> Result<Sequence, TableError> {
    let Some(index) = schema.sequence_index() else { return Ok(None) };
    let column = &schema.columns[index];
    match column.default {
        // Where NULL is not allowed, rows that give none have the default themselves.
        Some(DefaultValue::Literal(_)) if column.nullable => {
            Ok(sequence_at(&default_array(column, 1, civil_now_micros())?, 0))
        }
        _ => Ok(None),
    }
}

/// The rows that are of partial updates and do not give the column, if there is one.
fn of_partial(
    rows: impl Iterator<Item = (KeyHash, u32)>,
    of_rows: &[u32],
    sets: &GivenSets,
    lacked: Option<usize>,
) -> Vec<(KeyHash, u32)> {
    let counts = |set: u32| set != GivenSets::ALL && lacked.is_none_or(|column| !sets.has(set, column));
    rows.filter(|(_, row)| counts(of_rows[*row as usize])).collect()
}

/// Whether some rows of a file may be of partial updates.
fn gives_some(file: &DataFile, given: &ColumnDef) -> bool {
    let nulls = file.stats.columns.get(&given.physical_name).and_then(|stats| stats.null_count);
    given.id < file.columns_below && nulls != Some(file.rows)
}
