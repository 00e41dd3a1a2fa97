//! Words and phrases of an invented language in Cyrillic letters: two bytes each, as in most texts of the original.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::fmt::Write;

const CONSONANTS: [&str; 20] =
    ["б", "в", "г", "д", "ж", "з", "к", "л", "м", "н", "п", "р", "с", "т", "ф", "х", "ц", "ч", "ш", "ст"];
const VOWELS: [&str; 8] = ["а", "е", "и", "о", "у", "ы", "ю", "я"];
/// Number of words.
const WORDS: usize = 20_000;
/// How unevenly words are used; see [`skewed`].
const SKEW: f64 = 2.5;

/// Returns a number below `count`, small ones more often: uniform at a `skew` of 1; at 2, the first hundredth is chosen as often as the
/// first tenth would be at 1.
pub fn skewed(random: &mut SmallRng, count: u64, skew: f64) -> u64 {
    let number = random.random::<f64>().powf(skew) * count as f64;
    (number as u64).min(count.saturating_sub(1))
}

/// A vocabulary.
pub struct Words(Vec<String>);

impl Words {
    pub fn new() -> Self {
        let mut random = SmallRng::seed_from_u64(1);
        Self((0..WORDS).map(|_| word(&mut random)).collect())
    }

    /// Returns a phrase of at most `most` words, the same one for each seed.
    pub fn phrase(&self, seed: u64, most: usize) -> String {
        let mut random = SmallRng::seed_from_u64(seed);
        let count = random.random_range(1..=most);
        let words: Vec<&str> = (0..count)
            .map(|_| self.0[skewed(&mut random, self.0.len() as u64, SKEW) as usize].as_str())
            .collect();
        words.join(" ")
    }
}

fn word(random: &mut SmallRng) -> String {
    let syllables = random.random_range(2..5);
    let mut syllable = || {
        [CONSONANTS[random.random_range(0..CONSONANTS.len())], VOWELS[random.random_range(0..VOWELS.len())]]
            .concat()
    };
    (0..syllables).map(|_| syllable()).collect()
}

/// Encodes a text for the query of a URL.
pub fn percent_encoded(text: &str) -> String {
    text.bytes().fold(String::with_capacity(3 * text.len()), |mut encoded, byte| {
        match byte {
            b' ' => encoded.push('+'),
            b if b.is_ascii_alphanumeric() => encoded.push(char::from(b)),
            b => write!(encoded, "%{b:02X}").expect("a string can always be written to"),
        }
        encoded
    })
}
