//! Which blocks are kept, and which of them go first.
//!
//! A block that was read once is among the new ones, one that was read again among the proven ones, which have most of the space: a
//! scan of a large table pushes out what other scans have left, and not what is read every minute.

use std::collections::BTreeMap;

/// The proven blocks' part of the space, in tenths.
const PROVEN_TENTHS: u64 = 8;

/// A block of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct BlockId {
    /// The hash of the object's path.
    pub(super) object: u128,
    pub(super) number: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    bytes: u64,
    used: u64,
    is_proven: bool,
}

/// Blocks by the order in which they were used. Its bytes are at most its limit.
#[derive(Debug, Default)]
pub(super) struct Index {
    limit: u64,
    bytes: u64,
    proven_bytes: u64,
    entries: BTreeMap<BlockId, Entry>,
    new: BTreeMap<u64, BlockId>,
    proven: BTreeMap<u64, BlockId>,
    clock: u64,
}

impl Index {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, ..Self::default() }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn blocks(&self) -> usize {
        self.entries.len()
    }

    /// Whether the block is kept. Then this is a use of it.
    pub(super) fn uses(&mut self, id: BlockId) -> bool {
        let Some(entry) = self.take(id) else { return false };
        self.put(id, Entry { is_proven: true, ..entry });
        let most = self.limit / 10 * PROVEN_TENTHS;
        while self.proven_bytes > most
            && let Some(oldest) = self.proven.first_key_value().map(|(_, id)| *id)
            && let Some(entry) = self.take(oldest)
        {
            self.put(oldest, Entry { is_proven: false, ..entry });
        }
        true
    }

    /// Adds a block. Returns the blocks that have to go for it, which may include itself.
    pub(super) fn insert(&mut self, id: BlockId, bytes: u64) -> Vec<BlockId> {
        let before = self.take(id);
        let is_proven = before.is_some_and(|before| before.is_proven);
        self.put(id, Entry { bytes, used: 0, is_proven });
        self.shrink(self.limit)
    }

    /// Removes blocks until no more than this many bytes are left.
    pub(super) fn shrink(&mut self, bytes: u64) -> Vec<BlockId> {
        let mut gone = Vec::new();
        while self.bytes > bytes {
            let oldest = self.new.first_key_value().or_else(|| self.proven.first_key_value());
            let Some(oldest) = oldest.map(|(_, id)| *id) else { break };
            self.take(oldest);
            gone.push(oldest);
        }
        gone
    }

    /// Removes a block. Returns whether it was there.
    pub(super) fn remove(&mut self, id: BlockId) -> bool {
        self.take(id).is_some()
    }

    /// Removes all blocks of an object.
    pub(super) fn remove_object(&mut self, object: u128) -> Vec<BlockId> {
        let all = BlockId { object, number: 0 }..=BlockId { object, number: u32::MAX };
        let ids: Vec<BlockId> = self.entries.range(all).map(|(id, _)| *id).collect();
        for id in &ids {
            self.take(*id);
        }
        ids
    }

    fn take(&mut self, id: BlockId) -> Option<Entry> {
        let entry = self.entries.remove(&id)?;
        self.bytes -= entry.bytes;
        if entry.is_proven {
            self.proven_bytes -= entry.bytes;
            self.proven.remove(&entry.used);
        } else {
            self.new.remove(&entry.used);
        }
        Some(entry)
    }

    /// As the one that was used last.
    fn put(&mut self, id: BlockId, entry: Entry) {
        self.clock += 1;
        let entry = Entry { used: self.clock, ..entry };
        self.bytes += entry.bytes;
        if entry.is_proven {
            self.proven_bytes += entry.bytes;
            self.proven.insert(entry.used, id);
        } else {
            self.new.insert(entry.used, id);
        }
        self.entries.insert(id, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(object: u128, number: u32) -> BlockId {
        BlockId { object, number }
    }

    #[test]
    fn a_scan_pushes_out_what_was_read_once() {
        let mut index = Index::new(100);
        for number in 0..5 {
            assert!(index.insert(id(1, number), 10).is_empty());
            assert!(index.uses(id(1, number)));
        }
        let gone: Vec<BlockId> = (0..1000).flat_map(|number| index.insert(id(2, number), 10)).collect();
        assert_eq!(gone.len(), 995);
        assert_eq!(gone[0], id(2, 0), "the oldest first");
        assert!((0..5).all(|number| index.uses(id(1, number))), "proven blocks stay");
        assert_eq!((index.bytes(), index.blocks()), (100, 10));
        assert!(!index.uses(id(2, 0)));
    }

    #[test]
    fn proven_blocks_make_room_for_one_another_and_for_new_ones() {
        let mut index = Index::new(100);
        for number in 0..10 {
            index.insert(id(1, number), 10);
            assert!(index.uses(id(1, number)));
        }
        assert_eq!(index.proven_bytes, 80);
        assert_eq!(index.insert(id(2, 0), 10), [id(1, 0)], "the one whose last use is longest ago");
        let gone = index.insert(id(3, 0), 1000);
        assert_eq!(
            gone,
            [id(1, 1), id(2, 0), id(3, 0)],
            "one that is too large goes itself, before proven ones"
        );
        assert_eq!((index.bytes(), index.proven_bytes, index.blocks()), (80, 80, 8));
    }

    #[test]
    fn blocks_go_with_their_object() {
        let mut index = Index::new(1000);
        for number in [0, 7, u32::MAX] {
            index.insert(id(5, number), 10);
            index.insert(id(6, number), 10);
        }
        index.uses(id(5, 7));
        assert_eq!(index.remove_object(5), [id(5, 0), id(5, 7), id(5, u32::MAX)]);
        assert!(index.remove(id(6, 0)) && !index.remove(id(6, 0)));
        assert_eq!((index.bytes(), index.blocks()), (20, 2));
        index.insert(id(6, 7), 3);
        assert_eq!((index.bytes(), index.blocks()), (13, 2), "the same block again");
        assert_eq!(index.shrink(5), [id(6, u32::MAX)]);
    }
}
