//! Pieces of data files, each of which one part of a plan reads: a row group, neighbouring ones, or a whole file.
//!
//! A piece is a range of a file's bytes, and a row group belongs to the piece in which its first page is. Ranges that are cut
//! anywhere would be even in bytes and not in rows: of a file with one row group, the first range has all of them.
//!
//! Invariant: the pieces of a file are next to each other, from its first byte to its last. So each row group belongs to exactly
//! one, whatever its footer says, and pieces are only given away and joined, never cut again.

use super::reader::CheckedReaders;
use datafusion::common::Result;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, ParquetFileReaderFactory};
use datafusion::parquet::file::metadata::ParquetMetaData;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::{StreamExt, TryStreamExt, stream};
use std::cmp::Reverse;

/// Pieces have at least this fraction of the bytes of a scan: a few thousand pieces are still a short plan.
const PIECES: u64 = 1024;
/// Pieces of a task that are joined with their neighbours have at most this fraction of its bytes, so that tasks have even numbers
/// of bytes and few of them open the same file.
const JOINED: u64 = 16;
/// How many footers are read at a time.
const FOOTERS: usize = 16;

/// Cuts files where their row groups begin. Files that are small beside all of them stay whole, and nothing of them is read.
///
/// # Errors
/// A footer cannot be read.
pub(super) async fn cut(
    files: Vec<PartitionedFile>,
    readers: &CheckedReaders,
) -> Result<Vec<PartitionedFile>> {
    let least = bytes(&files) / PIECES;
    let pieces = stream::iter(files).map(|file| pieces_of(file, readers, least));
    let pieces: Vec<Vec<PartitionedFile>> = pieces.buffered(FOOTERS).try_collect().await?;
    Ok(pieces.into_iter().flatten().collect())
}

async fn pieces_of(
    file: PartitionedFile,
    readers: &CheckedReaders,
    least: u64,
) -> Result<Vec<PartitionedFile>> {
    if file.object_meta.size <= least {
        return Ok(vec![file]);
    }
    let metrics = ExecutionPlanMetricsSet::new();
    let footer = readers.create_reader(0, file.clone(), None, &metrics)?.get_metadata(None).await?;
    Ok(cut_at(&file, &starts(&footer), least))
}

fn bytes(pieces: &[PartitionedFile]) -> u64 {
    pieces.iter().map(PartitionedFile::effective_size).sum()
}

/// The positions in a file at which its row groups begin, as the reader sees them.
fn starts(footer: &ParquetMetaData) -> Vec<u64> {
    let first = footer.row_groups().iter().filter_map(|group| group.columns().first());
    let start = first.map(|column| column.dictionary_page_offset().unwrap_or(column.data_page_offset()));
    let mut starts: Vec<u64> = start.filter_map(|start| u64::try_from(start).ok()).collect();
    starts.sort_unstable();
    starts.dedup();
    starts
}

/// A file cut at these positions but the first, in pieces of at least `least` bytes, except for the last.
pub(super) fn cut_at(file: &PartitionedFile, starts: &[u64], least: u64) -> Vec<PartitionedFile> {
    let (mut from, end) = file.range();
    let mut pieces = Vec::new();
    let piece = |from: u64, to: u64| file.clone().with_range(from.cast_signed(), to.cast_signed());
    for &start in starts.iter().skip(1) {
        if start < end && start >= from + least.max(1) {
            pieces.push(piece(from, start));
            from = start;
        }
    }
    if pieces.is_empty() {
        return vec![file.clone()];
    }
    pieces.push(piece(from, end));
    pieces
}

/// Divides pieces among tasks, and those of each task among its parts, evenly by bytes. The order of the pieces does not matter.
pub fn divided(pieces: Vec<PartitionedFile>, tasks: usize, parts: usize) -> Vec<Vec<FileGroup>> {
    let most = bytes(&pieces) / (tasks.max(1) as u64 * JOINED);
    spread(joined(pieces, most), tasks, parts)
}

/// Joins neighbouring pieces to pieces of at most `most` bytes.
fn joined(mut pieces: Vec<PartitionedFile>, most: u64) -> Vec<PartitionedFile> {
    pieces.sort_by(|one, other| (one.path(), one.range()).cmp(&(other.path(), other.range())));
    let mut joined: Vec<PartitionedFile> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let (start, end) = piece.range();
        if let Some(last) = joined.last_mut()
            && last.path() == piece.path()
            && last.range().1 == start
            && end - last.range().0 <= most
        {
            *last = last.clone().with_range(last.range().0.cast_signed(), end.cast_signed());
        } else {
            joined.push(piece);
        }
    }
    joined
}

/// Gives each piece, the largest first, to the task with the fewest bytes, and there to the part with the fewest.
pub(super) fn spread(mut pieces: Vec<PartitionedFile>, tasks: usize, parts: usize) -> Vec<Vec<FileGroup>> {
    pieces.sort_by_key(|piece| Reverse(piece.effective_size()));
    let part = (0_u64, Vec::new());
    let mut shares = vec![(0_u64, vec![part; parts.max(1)]); tasks.max(1)];
    for piece in pieces {
        let size = piece.effective_size();
        if let Some((of_task, parts)) = shares.iter_mut().min_by_key(|(bytes, _)| *bytes)
            && let Some((of_part, pieces)) = parts.iter_mut().min_by_key(|(bytes, _)| *bytes)
        {
            *of_task += size;
            *of_part += size;
            pieces.push(piece);
        }
    }
    let groups = |parts: Vec<(u64, Vec<PartitionedFile>)>| {
        parts.into_iter().map(|(_, pieces)| FileGroup::new(pieces)).collect()
    };
    shares.into_iter().map(|(_, parts)| groups(parts)).collect()
}
