//! The record of a load that had an idempotency key: the answer that its repetitions get.
//!
//! Its 80 bytes are the body of an entry of the log and a row of the files of keys. They are little-endian:
//!
//! | bytes | field |
//! | --- | --- |
//! | 0–15 | the key's identity |
//! | 16–23 | table |
//! | 24–31 | fingerprint of the load's bytes |
//! | 32–39 | transaction |
//! | 40–55 | the number in its label |
//! | 56–61 | when it was answered, in Unix milliseconds |
//! | 62 | the form of its label |
//! | 63 | how it was answered |
//! | 64–71 | loaded rows |
//! | 72–75 | rejected rows, at most 2³² − 1 |
//! | 76–79 | rows that its condition left out, at most 2³² − 1 |
//!
//! The record of a channel has its last load in these bytes, then the load's offset, the next one, and the channel's name.

use tributary_decode::Counts;
use tributary_types::{ChannelOffset, Label, LoadKey, LoadKeyId, TableId, TxnId};

/// Bytes of a record.
pub(crate) const RECORD_BYTES: usize = 80;

/// A label that was made for a load or a group: a form and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MadeLabel {
    form: u8,
    number: u128,
}

impl MadeLabel {
    /// The label's parts. `None`: a client chose it.
    pub fn of(label: &Label) -> Option<Self> {
        let hex: String = label.as_str().chars().filter(char::is_ascii_hexdigit).collect();
        let number = u128::from_str_radix(hex.get(hex.len().checked_sub(32)?..)?, 16).ok()?;
        (0..=3).map(|form| Self { form, number }).find(|made| made.label() == *label)
    }

    /// In place of a label that was not made.
    pub fn of_transaction(txn: TxnId) -> Self {
        Self { form: 0, number: u128::from(txn.0) }
    }

    pub fn label(self) -> Label {
        match self.form {
            0 => Label::of_group(self.number),
            1 => Label::of_insert(self.number),
            2 => Label::of_stream_load(self.number),
            _ => Label::of_explicit_transaction(self.number),
        }
    }
}

/// How the load was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnsweredAs {
    /// Its rows were durable.
    GroupAsync,
    /// Its rows were visible.
    GroupSync,
    /// Its rows were visible, by a transaction of its own.
    Own,
}

impl AnsweredAs {
    const ALL: [Self; 3] = [Self::GroupAsync, Self::GroupSync, Self::Own];
}

/// A load that had a key, and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyRecord {
    pub id: LoadKeyId,
    pub table: TableId,
    /// Of the load's bytes.
    pub fingerprint: u64,
    pub txn: TxnId,
    pub label: MadeLabel,
    pub answered_as: AnsweredAs,
    pub at_ms: i64,
    pub counts: Counts,
}

impl KeyRecord {
    pub fn to_bytes(self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        let short = |count: u64| u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes();
        put(0, &self.id.0);
        put(16, &self.table.0.to_le_bytes());
        put(24, &self.fingerprint.to_le_bytes());
        put(32, &self.txn.0.to_le_bytes());
        put(40, &self.label.number.to_le_bytes());
        put(56, &self.at_ms.max(0).to_le_bytes()[..6]);
        put(62, &[self.label.form, self.answered_as as u8]);
        put(64, &self.counts.loaded.to_le_bytes());
        put(72, &short(self.counts.filtered));
        put(76, &short(self.counts.unselected));
        bytes
    }

    /// Reads a record. `None`: these are no bytes of one.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; RECORD_BYTES] = bytes.try_into().ok()?;
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let short = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let number = u128::from(long(40)) | u128::from(long(48)) << 64;
        let label = MadeLabel { form: bytes[62], number };
        let (loaded, filtered, unselected) = (long(64), u64::from(short(72)), u64::from(short(76)));
        Some(Self {
            id: LoadKeyId(bytes[..16].try_into().expect("sixteen bytes")),
            table: TableId(long(16)),
            fingerprint: long(24),
            txn: TxnId(long(32)),
            label: (label.form <= 3).then_some(label)?,
            answered_as: *AnsweredAs::ALL.get(usize::from(bytes[63]))?,
            at_ms: (long(56) & 0xFFFF_FFFF_FFFF) as i64,
            counts: Counts { total: loaded + filtered + unselected, loaded, filtered, unselected },
        })
    }
}

/// A channel: its last load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChannelRecord {
    pub last: KeyRecord,
    pub at: ChannelOffset,
}

impl ChannelRecord {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.last.to_bytes().to_vec();
        bytes.extend_from_slice(&self.at.offset.to_le_bytes());
        bytes.extend_from_slice(&self.at.next.to_le_bytes());
        bytes.extend_from_slice(self.at.channel.as_str().as_bytes());
        bytes
    }

    /// Reads a record. `None`: these are no bytes of one.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (last, rest) = bytes.split_at_checked(RECORD_BYTES)?;
        let (offset, rest) = rest.split_first_chunk::<8>()?;
        let (next, name) = rest.split_first_chunk::<8>()?;
        let channel = LoadKey::new(std::str::from_utf8(name).ok()?).ok()?;
        let at = ChannelOffset::new(channel, u64::from_le_bytes(*offset), Some(u64::from_le_bytes(*next)));
        Some(Self { last: KeyRecord::from_bytes(last)?, at: at.ok()? })
    }
}

/// The kept part of a load with a name: its key, or its place in a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Key(KeyRecord),
    Channel(Box<ChannelRecord>),
}

impl Kept {
    pub fn record(&self) -> &KeyRecord {
        match self {
            Self::Key(record) => record,
            Self::Channel(channel) => &channel.last,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        for (form, answered_as) in [0, 1, 2, 3].into_iter().zip(AnsweredAs::ALL.iter().cycle()) {
            let record = KeyRecord {
                id: LoadKeyId([7; 16]),
                table: TableId(1 << 40),
                fingerprint: u64::MAX - 1,
                txn: TxnId(99),
                label: MadeLabel { form, number: 0xFEDC_BA98_7654_3210_0123_4567_89AB_CDEF },
                answered_as: *answered_as,
                at_ms: 1_795_000_000_123,
                counts: Counts { total: (1 << 33) + 11, loaded: 1 << 33, filtered: 5, unselected: 6 },
            };
            assert_eq!(KeyRecord::from_bytes(&record.to_bytes()), Some(record));
            let channel = LoadKey::new("sensor 7").expect("legal");
            let at = ChannelOffset { channel, offset: 5, next: u64::MAX };
            let of_channel = ChannelRecord { last: record, at };
            assert_eq!(ChannelRecord::from_bytes(&of_channel.to_bytes()), Some(of_channel));
            assert_eq!(MadeLabel::of(&record.label.label()), Some(record.label));
        }
        assert_eq!(ChannelRecord::from_bytes(&[0; 100]), None);
        assert_eq!(KeyRecord::from_bytes(&[0; 79]), None);
        assert_eq!(KeyRecord::from_bytes(&[255; RECORD_BYTES]), None);
        assert_eq!(MadeLabel::of(&Label::new("mine").expect("legal")), None);
    }
}
