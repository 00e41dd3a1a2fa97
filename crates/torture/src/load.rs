//! A load: rows derived from its number, so that they can be written again and recognised.

use rand::Rng;
use std::fmt::Write;

/// The database of all tables.
pub(crate) const DATABASE: &str = "torture";

/// The tables: name and group commit interval in ms. In the last one groups are open at most kills.
pub(crate) const TABLES: [(&str, u64); 4] = [("t0", 10), ("t1", 100), ("t2", 0), ("t3", 5000)];

/// The columns, in the order of the values.
pub(crate) const COLUMNS: &str = "load_id, part, size, round, chk, pad";

/// The most rows of a load that is small.
pub(crate) const SMALL_ROWS_MAX: u32 = 5;
/// Loads that only their numbers decide have rounds of 65,536 numbers.
const NUMBERS_OF_A_ROUND_BITS: u32 = 16;

/// Rows that belong together: all exist or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    pub id: u64,
    pub table: usize,
    pub rows: u32,
    pub round: u32,
    /// Length of each row's padding, in bytes.
    pub pad_bytes: u16,
}

impl Load {
    /// A load of random size.
    pub fn random(id: u64, round: u32, rng: &mut impl Rng) -> Self {
        let rows = match rng.random_range(0..10) {
            0..5 => 1,
            5..9 => rng.random_range(2..20),
            _ => rng.random_range(100..400),
        };
        let table = rng.random_range(0..TABLES.len());
        Self { id, table, rows, round, pad_bytes: rng.random_range(0..120) }
    }

    /// The same in a table that commits soon: who waits for the slow one sends nothing meanwhile.
    pub fn soon(self) -> Self {
        Self { table: self.table % (TABLES.len() - 1), ..self }
    }

    /// A load that the server writes to data files while it arrives, with its small
    /// `large_load_bytes`.
    pub fn large(self, rng: &mut impl Rng) -> Self {
        Self { rows: rng.random_range(2000..4000), pad_bytes: 150, ..self }
    }

    /// A load whose round and padding its number decides, so that they need not be remembered.
    pub fn numbered(id: u64, table: usize, rows: u32) -> Self {
        let mixed = id.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let pad_bytes = if rows > SMALL_ROWS_MAX { 180 } else { (mixed >> 56) as u16 % 60 };
        Self { id, table, rows, round: (id >> NUMBERS_OF_A_ROUND_BITS) as u32, pad_bytes }
    }

    pub fn table_name(&self) -> &'static str {
        TABLES[self.table].0
    }

    /// The number that row `part` carries to show that it is unchanged.
    pub const fn check_of(&self, part: u32) -> u64 {
        let mixed = (self.id << 20 ^ part as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed >> 40
    }

    /// The sum of all rows' checks.
    pub fn check_sum(&self) -> u64 {
        (0..self.rows).map(|part| self.check_of(part)).sum()
    }

    /// The padding of row `part`: letters only.
    pub fn pad(&self, part: u32) -> String {
        let letter = char::from(b'a' + (self.check_of(part) % 26) as u8);
        letter.to_string().repeat(self.pad_bytes.into())
    }

    fn values(&self, part: u32) -> String {
        let Self { id, rows, round, .. } = self;
        format!("{id},{part},{rows},{round},{},", self.check_of(part))
    }

    /// `(…), (…)` for an INSERT.
    pub fn sql_values(&self, parts: std::ops::Range<u32>) -> String {
        let mut text = String::new();
        for part in parts {
            let comma = if text.is_empty() { "" } else { "," };
            // Writing to a String can't fail.
            let _ = write!(text, "{comma}({}'{}')", self.values(part), self.pad(part));
        }
        text
    }

    /// The whole INSERT.
    pub fn insert(&self) -> String {
        format!("INSERT INTO {} ({COLUMNS}) VALUES {}", self.table_name(), self.sql_values(0..self.rows))
    }

    /// Lines with `,` between the columns.
    pub fn csv(&self) -> String {
        let mut text = String::new();
        for part in 0..self.rows {
            let _ = writeln!(text, "{}{}", self.values(part), self.pad(part));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    #[test]
    fn a_load_is_the_same_each_time_it_is_written() {
        let load = Load { id: 7, table: 1, rows: 2, round: 3, pad_bytes: 2 };
        let (first, second) = (load.check_of(0), load.check_of(1));
        let (pad0, pad1) = (load.pad(0), load.pad(1));
        assert_eq!(
            load.insert(),
            format!(
                "INSERT INTO t1 (load_id, part, size, round, chk, pad) VALUES \
                 (7,0,2,3,{first},'{pad0}'),(7,1,2,3,{second},'{pad1}')"
            )
        );
        assert_eq!(load.csv(), format!("7,0,2,3,{first},{pad0}\n7,1,2,3,{second},{pad1}\n"));
        assert_eq!(load.check_sum(), first + second);
        assert_eq!(pad0.len(), 2);
    }

    #[test]
    fn a_seed_makes_the_same_loads() {
        let loads = |seed| {
            let mut rng = StdRng::seed_from_u64(seed);
            (0..20).map(|id| Load::random(id, 1, &mut rng)).collect::<Vec<_>>()
        };
        assert_eq!(loads(1), loads(1));
        assert_ne!(loads(1), loads(2));
    }
}
