//! Websites and their pages.
//!
//! A page is always the same: its URL, its title and what they say are derived from its website and its number.

use super::words::{Words, skewed};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Number of websites.
const SITES: u64 = 3000;
/// The website that queries 37 to 43 ask for.
pub const ASKED_SITE: i32 = 62;
/// Shares of the largest websites in all views: the first two have more than 100,000 views in a million, as query 28 wants; the third is
/// [`ASKED_SITE`].
const LARGEST: [f64; 3] = [0.14, 0.11, 0.05];
/// How unevenly the other views are divided among the other websites.
const SITES_SKEW: f64 = 3.0;
/// Pages for each view of a website.
const PAGES_OF_VIEWS: f64 = 0.16;
const PAGES_SKEW: f64 = 2.2;
/// Share of front pages in a website's views.
const FRONT_PAGES: f64 = 0.1;
/// Share of views whose URL has an identifier of its own, such as a session's.
const UNIQUE: f64 = 0.06;
/// Share of views whose URL names Google.
const NAMES_GOOGLE: f64 = 0.000_3;
/// The URL hash of the front page of [`ASKED_SITE`], and its hash as a referer.
const ASKED_HASHES: (i64, i64) = (2_868_770_270_353_813_622, 3_594_120_000_172_545_465);

const SECTIONS: [&str; 16] = [
    "news", "catalog", "forum", "photo", "video", "auto", "board", "search", "users", "sale", "realty",
    "job", "games", "recipes", "weather", "kino",
];
const ZONES: [&str; 5] = ["ru", "ru", "com", "com.ua", "net"];

/// A website.
pub struct Site {
    /// `CounterID`
    pub id: i32,
    pub domain: String,
    number: u64,
    /// Number of pages.
    pages: u64,
}

/// All websites.
pub struct Sites(Vec<Site>);

/// A view's page.
#[derive(Clone, Default)]
pub struct Page {
    pub url: String,
    pub url_hash: i64,
    /// The hash of the URL where it is a referer.
    pub referer_hash: i64,
    pub title: String,
    pub category: u16,
}

impl Sites {
    /// Makes websites for this number of views.
    pub fn new(views: u64) -> Self {
        let others = 1.0 - LARGEST.iter().sum::<f64>();
        let largest = LARGEST.len() as u64;
        // The share of a number in `skewed`.
        let bound = |number: u64| (number as f64 / (SITES - largest) as f64).powf(1.0 / SITES_SKEW);
        let share = |number: u64| match LARGEST.get(number as usize) {
            Some(share) => *share,
            None => others * (bound(number - largest + 1) - bound(number - largest)),
        };
        let site = |number: u64| {
            let mut random = SmallRng::seed_from_u64(0x517e + number);
            let name = latin(&mut random);
            let id = match number {
                2 => ASKED_SITE,
                _ => 100 + (number * 7_919 % 262_139) as i32,
            };
            Site {
                id,
                domain: format!("{name}{id}.{}", ZONES[random.random_range(0..ZONES.len())]),
                number,
                pages: ((views as f64 * share(number) * PAGES_OF_VIEWS) as u64).max(5),
            }
        };
        Self((0..SITES).map(site).collect())
    }

    /// Chooses a website, large ones more often.
    pub fn choose(&self, random: &mut SmallRng) -> &Site {
        let mut left = random.random::<f64>();
        for (number, share) in LARGEST.iter().enumerate() {
            if left < *share {
                return &self.0[number];
            }
            left -= share;
        }
        &self.0[LARGEST.len() + skewed(random, SITES - LARGEST.len() as u64, SITES_SKEW) as usize]
    }
}

impl Site {
    /// Chooses a page.
    pub fn page(&self, words: &Words, random: &mut SmallRng) -> Page {
        let number = match random.random_bool(FRONT_PAGES) {
            true => 0,
            false => skewed(random, self.pages, PAGES_SKEW),
        };
        let seed = mix(self.number << 40 | number);
        let mut of_page = SmallRng::seed_from_u64(seed);
        let mut url = self.url(number, &mut of_page);
        if number > 0 && random.random_bool(UNIQUE) {
            let joined = if url.contains('?') { '&' } else { '?' };
            url = format!("{url}{joined}sid={:016x}", random.random::<u64>());
        }
        if random.random_bool(NAMES_GOOGLE) {
            url = match random.random_bool(0.75) {
                true => format!("http://{}/redirect/?from=google&id={number}", self.domain),
                false => format!("http://images.google.ru/imgres?imgurl={}/{number}.jpg", self.domain),
            };
        }
        let is_asked = self.id == ASKED_SITE && number == 0;
        let hash = hash(&url);
        let (url_hash, referer_hash) = if is_asked { ASKED_HASHES } else { (hash, mix(hash as u64) as i64) };
        let title = self.title(words, number, &mut of_page);
        Page { url, url_hash, referer_hash, title, category: (seed % 50) as u16 }
    }

    fn url(&self, number: u64, random: &mut SmallRng) -> String {
        let domain = &self.domain;
        if number == 0 {
            return format!("http://{domain}/");
        }
        let section = SECTIONS[skewed(random, SECTIONS.len() as u64, 2.0) as usize];
        let shown = random.random_range(1..100);
        match random.random_range(0..4) {
            0 => format!("http://{domain}/{section}/{}-{}-{number}.html", latin(random), latin(random)),
            1 => format!(
                "http://{domain}/{section}/index.php?act=view&showforum={shown}&showtopic={number}&page={}",
                shown % 7
            ),
            2 => {
                let (one, two) = (latin(random), latin(random));
                format!(
                    "http://{domain}/{section}/{one}/{two}/?id={number}&cat={shown}&sort=price&page={}",
                    shown % 7
                )
            }
            _ => {
                let words: Vec<String> = (0..5).map(|_| latin(random)).collect();
                format!("http://{domain}/{section}/{}/{number}/", words.join("-"))
            }
        }
    }

    fn title(&self, words: &Words, number: u64, random: &mut SmallRng) -> String {
        match random.random_range(0..1000) {
            0..150 => String::new(),
            150..152 => format!("Google {} – {}", words.phrase(random.random(), 6), self.domain),
            _ => format!(
                "{} – {} {number} – {}",
                words.phrase(random.random(), 10),
                latin(random),
                self.domain
            ),
        }
    }
}

/// A word of Latin letters.
fn latin(random: &mut SmallRng) -> String {
    const SYLLABLES: [&str; 24] = [
        "ba", "ve", "go", "da", "zhi", "ka", "lo", "ma", "ne", "po", "ra", "si", "to", "fu", "ho", "cha",
        "sha", "ly", "my", "ny", "ro", "ste", "tra", "vo",
    ];
    (0..random.random_range(2..5)).map(|_| SYLLABLES[random.random_range(0..SYLLABLES.len())]).collect()
}

/// Spreads a number over 64 bits: the finalizer of SplitMix64.
pub fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Hashes a text: FNV-1a, spread.
pub fn hash(text: &str) -> i64 {
    let folded = text.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    });
    mix(folded) as i64
}
