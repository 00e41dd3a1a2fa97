//! Visitors and their machines.

use super::sites::mix;
use super::words::skewed;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Visitors for each view.
const OF_VIEWS: f64 = 0.23;
/// How unevenly views are divided among visitors.
const SKEW: f64 = 1.5;
/// The visitor that query 20 asks for.
pub const ASKED_VISITOR: i64 = 435_090_932_899_640_449;
const REGIONS: u64 = 5000;
const REGIONS_SKEW: f64 = 5.0;
/// Share of visitors with a known mobile phone or tablet.
const MOBILE: f64 = 0.07;
/// Share of tablets of one kind in these.
const TABLETS: f64 = 0.6;
/// Number of models of phones.
const MODELS: u64 = 160;

const SCREENS: [(u16, u16); 12] = [
    (1366, 768),
    (1280, 1024),
    (1920, 1080),
    (1280, 800),
    (1024, 768),
    (1440, 900),
    (1600, 900),
    (1680, 1050),
    (1360, 768),
    (320, 480),
    (1152, 864),
    (0, 0),
];
const MAKERS: [&str; 6] = ["iPhone", "GT-I", "N8-", "Lumia ", "LG-P", "A"];
const LANGUAGES: [&str; 6] = ["ru", "ru", "ru", "en", "uk", "kk"];
const COUNTRIES: [&str; 6] = ["RU", "RU", "UA", "US", "BY", "KZ"];

/// A visitor.
#[derive(Clone)]
pub struct Visitor {
    pub id: i64,
    pub ip: i32,
    pub region: i32,
    pub os: u16,
    pub agent: u16,
    pub agent_major: u16,
    pub screen: (u16, u16),
    /// Width and height of the browser's window.
    pub window: (u16, u16),
    pub flash: u16,
    pub is_mobile: bool,
    pub phone: u16,
    pub phone_model: String,
    /// Offset of the clock at home, in hours.
    pub zone_hours: u8,
    pub age: u16,
    pub sex: u16,
    pub income: u16,
    pub interests: u16,
    pub language: &'static str,
    pub country: &'static str,
}

impl Visitor {
    /// Chooses one of the visitors that there are for this number of views.
    pub fn choose(random: &mut SmallRng, views: u64) -> Self {
        let visitors = ((views as f64 * OF_VIEWS) as u64).max(2);
        let number = skewed(random, visitors, SKEW);
        let visitor = Self::numbered(number);
        if number == visitors / 50 { Self { id: ASKED_VISITOR, ..visitor } } else { visitor }
    }

    fn numbered(number: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(number);
        let is_mobile = random.random_bool(MOBILE);
        let (phone, phone_model) = if is_mobile { phone(&mut random) } else { (0, String::new()) };
        let screen = SCREENS[skewed(&mut random, SCREENS.len() as u64, 1.6) as usize];
        let window = (
            screen.0.saturating_sub(random.random_range(0..60)),
            screen.1.saturating_sub(random.random_range(60..260)),
        );
        let is_known = random.random_bool(0.4);
        Self {
            // Positive, as most are in the original.
            id: (mix(number) >> 1) as i64,
            ip: random.random(),
            region: region(&mut random),
            os: skewed(&mut random, 90, 3.0) as u16,
            agent: skewed(&mut random, 80, 2.5) as u16,
            agent_major: random.random_range(5..30),
            screen,
            window,
            flash: if random.random_bool(0.8) { 11 } else { 0 },
            is_mobile,
            phone,
            phone_model,
            zone_hours: skewed(&mut random, 8, 3.0) as u8,
            age: if is_known { [16, 22, 31, 39, 50, 55][random.random_range(0..6)] } else { 0 },
            sex: if is_known { random.random_range(1..3) } else { 0 },
            income: if is_known { random.random_range(0..4) } else { 0 },
            interests: if is_known { random.random_range(0..16_000) } else { 0 },
            language: LANGUAGES[random.random_range(0..LANGUAGES.len())],
            country: COUNTRIES[random.random_range(0..COUNTRIES.len())],
        }
    }
}

fn region(random: &mut SmallRng) -> i32 {
    match skewed(random, REGIONS, REGIONS_SKEW) {
        // The largest city and the one after it.
        0 => 229,
        1 => 2,
        other => 3 + (other * 37 % 65_521) as i32,
    }
}

/// The code and the model of a phone.
fn phone(random: &mut SmallRng) -> (u16, String) {
    if random.random_bool(TABLETS) {
        return (1, "iPad".to_owned());
    }
    let number = skewed(random, MODELS, 2.5);
    let maker = (number % MAKERS.len() as u64) as usize;
    (2 + maker as u16, format!("{}{}", MAKERS[maker], 500 + 10 * number))
}
