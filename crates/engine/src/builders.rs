//! Block builders between loads: their buffers have grown to what loads need.

use parking_lot::Mutex;
use tributary_decode::BlockBuilder;

/// Builders that are kept; as many loads at once need no new one.
const KEPT_MAX: usize = 32;

/// Builders that no load uses now.
#[derive(Debug, Default)]
pub(crate) struct Builders {
    idle: Mutex<Vec<BlockBuilder>>,
}

impl Builders {
    pub fn take(&self) -> Option<BlockBuilder> {
        self.idle.lock().pop()
    }

    pub fn give_back(&self, builder: BlockBuilder) {
        let mut idle = self.idle.lock();
        if idle.len() < KEPT_MAX {
            idle.push(builder);
        }
    }
}
