//! Generated rows, always the same for the same seed, and the requests that carry them.
//!
//! Requests are made before the clock runs. Each row has an id of ten digits or four bytes at a
//! known place, which is all that is written when the request is sent, so that every row of a run is
//! different and can be counted by SQL. Nothing here talks to a server.

pub mod access_log;
pub mod events;
pub mod lineitem;

/// The id of a run's first row. Ids have ten digits and fit a signed 32-bit integer.
pub const FIRST_ID: u32 = 1_000_000_000;
/// The most rows that one run can number.
pub const ROWS_MAX: u64 = i32::MAX as u64 - FIRST_ID as u64;

/// How the ids of a request's rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdForm {
    /// Ten decimal digits.
    Text,
    /// Four bytes, little endian.
    Binary,
    /// They stay as they are, each time the request is sent.
    Fixed,
}

/// The ids of a run's rows, by row number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Their numbers: each is new.
    #[default]
    New,
    /// Random ids below this number.
    Random(u32),
    /// All ids below this number, scattered: each occurs once before any occurs again.
    Scattered(u32),
}

/// The bytes of one request, whole but for the ids of its rows.
#[derive(Clone, Debug)]
pub struct Request {
    pub bytes: Vec<u8>,
    pub form: IdForm,
    /// The offset of each row's id in `bytes`; one per row.
    pub ids: Vec<u32>,
    /// The offset of ten digits of the head that are the first row's id: of the load's own key.
    pub key: Option<u32>,
    /// Bytes of rows, without the protocol's head.
    pub payload_bytes: u64,
    pub order: Order,
}

impl Request {
    /// A request of `rows` rows that are the same each time it is sent.
    #[must_use]
    pub fn unnumbered(bytes: Vec<u8>, rows: usize) -> Self {
        let payload_bytes = bytes.len() as u64;
        Self { bytes, form: IdForm::Fixed, ids: vec![0; rows], key: None, payload_bytes, order: Order::New }
    }

    /// Makes a request of about `bytes` bytes of rows, at least one. `push_row` appends a line and returns the offset of its id.
    pub fn of_lines(
        head: impl Fn(usize) -> String,
        bytes: usize,
        mut push_row: impl FnMut(&mut Vec<u8>) -> usize,
    ) -> Self {
        let (mut body, mut ids) = (Vec::with_capacity(bytes + 128), Vec::new());
        while ids.is_empty() || body.len() + 50 < bytes {
            ids.push(push_row(&mut body) as u32);
        }
        let head = head(body.len());
        ids.iter_mut().for_each(|at| *at += head.len() as u32);
        let payload_bytes = body.len() as u64;
        let bytes = [head.as_bytes(), &body].concat();
        let key = key_place(&head);
        Self { bytes, form: IdForm::Text, ids, key, payload_bytes, order: Order::New }
    }

    /// Numbers the rows from `first` on, in the request's order.
    pub fn number(&mut self, first: u32) {
        if self.form == IdForm::Fixed {
            return;
        }
        if let Some(at) = self.key {
            write_digits(&mut self.bytes[at as usize..at as usize + 10], first);
        }
        for (number, &at) in (first..).zip(&self.ids) {
            let (at, id) = (at as usize, self.order.id(number));
            match self.form {
                IdForm::Text => write_digits(&mut self.bytes[at..at + 10], id),
                IdForm::Binary => self.bytes[at..at + 4].copy_from_slice(&id.to_le_bytes()),
                IdForm::Fixed => (),
            }
        }
    }
}

/// The header of a load's key, whose digits are written with the load.
pub const KEY_HEADER: &str = "Idempotency-Key: 0000000000";

/// The place of the key's digits in a head.
fn key_place(head: &str) -> Option<u32> {
    Some((head.find(KEY_HEADER)? + KEY_HEADER.len() - 10) as u32)
}

/// A prime larger than any number of ids, so that its multiples meet each id equally often; its ratio to 2³² is the golden one,
/// so that consecutive rows are far apart.
const STRIDE: u64 = 2_654_435_761;

impl Order {
    /// The id of the row with that number.
    pub(crate) fn id(self, number: u32) -> u32 {
        match self {
            Self::New => number,
            Self::Random(among) => {
                // The finalizer of SplitMix64.
                let mut mixed = u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
                mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
                FIRST_ID + ((mixed ^ (mixed >> 31)) % u64::from(among)) as u32
            }
            Self::Scattered(among) => FIRST_ID + (u64::from(number) * STRIDE % u64::from(among)) as u32,
        }
    }
}

/// Writes an id of ten digits.
pub(crate) fn write_digits(place: &mut [u8], mut id: u32) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (id % 10) as u8;
        id /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_numbered_in_their_places() {
        let mut request = Request {
            bytes: b"[..........],[..........]".to_vec(),
            form: IdForm::Text,
            ids: vec![1, 14],
            key: None,
            payload_bytes: 25,
            order: Order::New,
        };
        request.number(1_999_999_999);
        assert_eq!(request.bytes, b"[1999999999],[2000000000]");
    }

    #[test]
    fn each_load_has_a_key_of_its_own() {
        let head = |_| format!("PUT\r\n{KEY_HEADER}\r\n\r\n");
        let mut request = Request::of_lines(head, 10, |body| {
            body.extend_from_slice(b"0000000000\n");
            0
        });
        request.number(1_000_000_007);
        assert_eq!(request.bytes, b"PUT\r\nIdempotency-Key: 1000000007\r\n\r\n1000000007\n");
    }

    #[test]
    fn random_ids_are_among_the_first_and_hit_most_of_them() {
        let ids: std::collections::HashSet<u32> =
            (FIRST_ID..FIRST_ID + 10_000).map(|number| Order::Random(1000).id(number)).collect();
        assert!(ids.iter().all(|id| (FIRST_ID..FIRST_ID + 1000).contains(id)));
        assert_eq!(ids.len(), 1000);
    }

    #[test]
    fn scattered_ids_come_once_each_round() {
        for round in 0..2 {
            let first = FIRST_ID + round * 1000;
            let ids: std::collections::HashSet<u32> =
                (first..first + 1000).map(|number| Order::Scattered(1000).id(number)).collect();
            assert_eq!(ids, (FIRST_ID..FIRST_ID + 1000).collect());
        }
    }

    #[test]
    fn rows_without_numbers_stay_as_they_are() {
        let mut request = Request::unnumbered(b"(1),(2)".to_vec(), 2);
        request.number(1_999_999_999);
        assert_eq!((&request.bytes[..], request.ids.len()), (&b"(1),(2)"[..], 2));
    }
}
