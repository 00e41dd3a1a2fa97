//! Sources that jobs read, each into one table: the rules of their progress.
//!
//! A source is messages with numbers. A job loads the next few of them and names the number after them as its progress. After a
//! crash it continues at the progress that the server returns, so a value below the loaded messages duplicates rows, and one
//! above loses some.

use crate::model::{Fate, LoadId, Violation};
use std::collections::BTreeMap;
use tributary_types::{Attachment, SourceId};

/// The load of a source that has no answer yet.
#[derive(Clone, Copy, Debug)]
struct Running {
    load: LoadId,
    /// The position after it.
    to: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Feed {
    /// After the last load that was acknowledged.
    at: u64,
    running: Option<Running>,
    /// Its table was dropped, and no promise is left.
    is_dropped: bool,
}

/// The jobs of all sources. Each has one load under way at most.
#[derive(Clone, Debug, Default)]
pub struct Feeds(BTreeMap<SourceId, Feed>);

/// A position as a job writes it.
#[must_use]
pub fn written(position: u64) -> Attachment {
    Attachment::new(&position.to_le_bytes()).expect("eight bytes are few")
}

/// The progress that the server returns, 0 if there is none.
#[must_use]
pub fn read(position: Option<&Attachment>) -> u64 {
    position.map_or(0, |kept| u64::from_le_bytes(kept.bytes().try_into().expect("eight bytes were written")))
}

impl Feeds {
    /// Whether the job of the source waits for no answer.
    #[must_use]
    pub fn is_idle(&self, source: SourceId) -> bool {
        self.0.get(&source).is_none_or(|feed| feed.running.is_none())
    }

    /// A load up to the position is about to be sent.
    pub fn begins(&mut self, source: SourceId, load: LoadId, to: u64) {
        self.0.entry(source).or_default().running = Some(Running { load, to });
    }

    /// The load was acknowledged, or refused as a whole.
    pub fn answered(&mut self, source: SourceId, committed: bool) {
        let feed = self.0.entry(source).or_default();
        if let Some(running) = feed.running.take()
            && committed
        {
            feed.at = running.to;
        }
    }

    /// The source's table was dropped, and the source is not read any more.
    pub fn dropped(&mut self, source: SourceId) {
        self.0.entry(source).or_default().is_dropped = true;
    }

    /// Checks the position of a source whose job waits for no answer.
    ///
    /// # Errors
    /// It is not that of the last load that was acknowledged.
    pub fn is_at(&self, source: SourceId, position: u64) -> Result<(), Violation> {
        let feed = self.0.get(&source).copied().unwrap_or_default();
        let at = feed.at;
        if position == at || feed.is_dropped {
            return Ok(());
        }
        let what = if position < at { "would be loaded again" } else { "would be lost" };
        Err(Violation(format!("source {source} was read up to {at} and is at {position}: messages {what}")))
    }

    /// Checks all positions after a recovery, and takes them as they are. `fate` is what became of a load.
    ///
    /// # Errors
    /// A progress that does not match the loaded messages.
    pub fn recovered(
        &mut self,
        position: impl Fn(SourceId) -> u64,
        fate: impl Fn(LoadId) -> Fate,
    ) -> Result<(), Violation> {
        let sources: Vec<SourceId> = self.0.keys().copied().collect();
        for source in sources {
            let found = position(source);
            let feed = self.0.entry(source).or_default();
            let running = feed.running.take();
            match running.map(|running| (running, fate(running.load))) {
                Some((running, Fate::Visible | Fate::Promised)) => feed.at = running.to,
                // Emptied tables can't be checked.
                Some((running, Fate::Removed | Fate::Loose | Fate::Unknown | Fate::Running))
                    if found == running.to =>
                {
                    feed.at = found;
                }
                _ => {}
            }
            self.is_at(source, found)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: SourceId = SourceId(3);

    fn after(found: u64, became: Fate) -> Result<(), Violation> {
        let mut feeds = Feeds::default();
        feeds.begins(SOURCE, 1, 10);
        feeds.answered(SOURCE, true);
        feeds.begins(SOURCE, 2, 15);
        assert!(!feeds.is_idle(SOURCE));
        feeds.recovered(|_| found, |_| became)
    }

    #[test]
    fn a_position_goes_with_the_rows_of_the_load_that_named_it() {
        assert_eq!(after(15, Fate::Visible), Ok(()));
        assert_eq!(after(10, Fate::Never), Ok(()));
        let lost = after(15, Fate::Never).unwrap_err().to_string();
        assert!(lost.ends_with("read up to 10 and is at 15: messages would be lost"), "{lost}");
        let doubled = after(10, Fate::Visible).unwrap_err().to_string();
        assert!(doubled.ends_with("read up to 15 and is at 10: messages would be loaded again"), "{doubled}");
        assert!(after(0, Fate::Removed).is_err(), "an acknowledged load is not read again");
        assert_eq!(after(10, Fate::Removed), Ok(()));
    }
}
