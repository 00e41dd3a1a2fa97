//! The rows that sinks send: made in advance, numbered when they are sent.

use crate::data::lineitem::Lineitem;
use crate::data::write_digits;
use std::io::{self, Write};

/// Rows that are made in advance: about 27 MB, much more than a compressor's window.
const LINES: usize = 200_000;
/// Rows that are copied and numbered at a time.
const PIECE: usize = 4096;

/// Lines of CSV, which are sent again and again with other ids.
#[derive(Debug)]
pub struct Lines {
    bytes: Vec<u8>,
    /// The offset of each line, and the end of the last one.
    starts: Vec<usize>,
}

impl Lines {
    pub fn new() -> Self {
        Self::of(LINES)
    }

    fn of(count: usize) -> Self {
        let (mut rows, mut bytes, mut starts) = (Lineitem::new(1), Vec::new(), vec![0]);
        for _ in 0..count {
            rows.push_line(&mut bytes);
            starts.push(bytes.len());
        }
        Self { bytes, starts }
    }

    pub fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// The bytes of a number of lines from a place on; after the last line comes the first one.
    pub fn length(&self, first: usize, rows: usize) -> usize {
        self.parts(first, rows).map(|(from, to)| self.starts[to] - self.starts[from]).sum()
    }

    /// Writes lines whose ids begin with the given one.
    pub fn write(&self, out: &mut impl Write, first: usize, rows: usize, first_id: u32) -> io::Result<()> {
        let (mut piece, mut id) = (Vec::new(), first_id);
        for (from, to) in self.parts(first, rows) {
            let begin = self.starts[from];
            piece.clear();
            piece.extend_from_slice(&self.bytes[begin..self.starts[to]]);
            for start in &self.starts[from..to] {
                write_digits(&mut piece[start - begin..start - begin + 10], id);
                id += 1;
            }
            out.write_all(&piece)?;
        }
        Ok(())
    }

    /// The pieces of lines: from and to.
    fn parts(&self, first: usize, rows: usize) -> impl Iterator<Item = (usize, usize)> {
        let (count, mut at, mut left) = (self.count(), first % self.count(), rows);
        std::iter::from_fn(move || {
            let from = at;
            let to = from + left.min(PIECE).min(count - from);
            (at, left) = (to % count, left - (to - from));
            (to > from).then_some((from, to))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_and_come_round() {
        let lines = Lines::of(10);
        let mut out = Vec::new();
        lines.write(&mut out, 7, 25, 1_999_999_990).unwrap();
        assert_eq!(out.len(), lines.length(7, 25));
        let text = String::from_utf8(out).unwrap();
        let ids: Vec<u32> =
            text.lines().map(|line| line.split('\t').next().unwrap().parse().unwrap()).collect();
        assert_eq!(ids, (1_999_999_990..2_000_000_015).collect::<Vec<_>>());
        let rest = |line: &str| line[10..].to_owned();
        let rests: Vec<String> = text.lines().map(rest).collect();
        assert_eq!(rests[0], rests[10]);
        assert_ne!(rests[0], rests[1]);
    }

    #[test]
    fn a_large_load_is_written_in_pieces() {
        let lines = Lines::of(PIECE * 2);
        let mut out = Vec::new();
        lines.write(&mut out, 1, PIECE * 5, 1_000_000_000).unwrap();
        assert_eq!(out.len(), lines.length(1, PIECE * 5));
        assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), PIECE * 5);
    }
}
