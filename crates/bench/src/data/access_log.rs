//! Web server logs in the shape of the `http_logs` set (the 1998 World Cup's servers): time, client,
//! request line, status and size, with the skew of real logs, as CSV, as a JSON object per line, or as Parquet.

mod columns;

use super::{FIRST_ID, IdForm, Order, Request};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde::Serialize;
use std::fmt;
use std::io::Write;

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    Csv,
    Json,
    Parquet,
}

/// The table that the rows are for, in database `bench`.
pub const TABLE: &str = "CREATE TABLE bench.access_log (
    id INT NOT NULL,
    ts DATETIME NOT NULL,
    clientip VARCHAR(20) NOT NULL,
    request VARCHAR(1024) NOT NULL,
    status SMALLINT NOT NULL,
    size INT NOT NULL
) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 32";

const LANGUAGES: [&str; 4] = ["english", "french", "english", "splash_inet"];
const PLACES: [&str; 12] = [
    "images",
    "images/nav",
    "images/banners",
    "competition",
    "history/history_of",
    "individuals",
    "news",
    "playing",
    "playing/mascot",
    "teams",
    "tickets",
    "venues/images",
];
const FILES: [&str; 16] = [
    "bg_jpg_2",
    "comp_bu_group_off",
    "cal_hm_bg",
    "hist_bg_hdr",
    "home_fr_phrase",
    "index",
    "team_group_header_a",
    "space",
    "news_btn_letter_off",
    "ProductBanner_",
    "s102383",
    "match5186",
    "venue_paris_header",
    "hm_linkf",
    "team_bu_detail_on",
    "player123",
];
/// First day and the seconds of the days that logs are spread over: 1998-04-30 to 1998-07-26.
const DAYS: [(u16, u8, u8); 4] = [(1998, 4, 30), (1998, 5, 1), (1998, 6, 1), (1998, 7, 1)];

/// A stream of rows.
#[derive(Debug)]
pub struct AccessLog {
    format: Format,
    random: SmallRng,
    /// Seconds since the first log.
    second: u32,
    /// Number of random days of the rows; 0: in the order of their times.
    days: u32,
}

/// A row without its number.
struct Row {
    at_second: Second,
    client: String,
    request: String,
    status: i16,
    size: u32,
}

/// A time of the logs.
#[derive(Clone, Copy)]
struct Second {
    year: u16,
    month: u8,
    day: u32,
    of_day: u32,
}

impl fmt::Display for Second {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { year, month, day, of_day } = self;
        write!(
            f,
            "{year}-{month:02}-{day:02} {:02}:{:02}:{:02}",
            of_day / 3600,
            of_day / 60 % 60,
            of_day % 60
        )
    }
}

impl AccessLog {
    #[must_use]
    pub fn new(seed: u64, format: Format) -> Self {
        Self { format, random: SmallRng::seed_from_u64(seed), second: 0, days: 0 }
    }

    /// The same with rows on the given number of random days; 0: in the order of their times.
    #[must_use]
    pub fn over_days(self, days: u32) -> Self {
        Self { days, ..self }
    }

    /// The next row.
    fn row(&mut self) -> Row {
        let random = &mut self.random;
        self.second += u32::from(random.random_range(0..40) == 0);
        let (days, rest) = (self.second / 86_400, self.second % 86_400);
        let (year, month, day) = match self.days {
            0 => {
                let (year, month, first) = DAYS[1 + (days / 30 % 3) as usize];
                (year, month, u32::from(first) + days % 30)
            }
            among => {
                // Months of 28 days, which all have.
                let day = random.random_range(0..among);
                (1998 + (day / 336) as u16, 1 + (day / 28 % 12) as u8, 1 + day % 28)
            }
        };
        // A few clients send most of the requests, as proxies do.
        let client = if random.random_bool(0.3) {
            random.random_range(0..4_000_u32)
        } else {
            random.random_range(0..2_700_000)
        };
        let language = LANGUAGES[random.random_range(0..LANGUAGES.len())];
        let place = PLACES[random.random_range(0..PLACES.len()).min(random.random_range(0..PLACES.len()))];
        let file = FILES[random.random_range(0..FILES.len())];
        let number = random.random_range(0..24_u32).pow(2) / 16;
        let (method, ending) = match random.random_range(0..100) {
            0..75 => ("GET", "gif"),
            75..85 => ("GET", "jpg"),
            85..99 => ("GET", "htm"),
            _ => ("POST", "cgi"),
        };
        let version = if random.random_bool(0.8) { "1.0" } else { "1.1" };
        let status = match random.random_range(0..1000) {
            0..830 => 200,
            830..975 => 304,
            975..990 => 206,
            990..998 => 404,
            998 => 302,
            _ => 500,
        };
        let size = if status == 304 { 0 } else { random.random_range(10..280_u32).pow(2) / 4 };
        let at_second = Second { year, month, day, of_day: rest };
        let client = format!("{}.{}.{}.0", client % 249 + 1, client / 249 % 256, client / 63_744);
        let request = format!("{method} /{language}/{place}/{file}{number}.{ending} HTTP/{version}");
        Row { at_second, client, request, status, size }
    }

    /// Appends one row of text, numbered from the run's first row, and returns the offset of its id.
    pub fn push_row(&mut self, out: &mut Vec<u8>) -> usize {
        let at = out.len();
        let Row { at_second, client, request, status, size } = self.row();
        let written = match self.format {
            Format::Csv | Format::Parquet => {
                writeln!(out, "{FIRST_ID},{at_second},{client},{request},{status},{size}")
            }
            Format::Json => writeln!(
                out,
                "{{\"id\":{FIRST_ID},\"ts\":\"{at_second}\",\"clientip\":\"{client}\",\"request\":\"{request}\",\"status\":{status},\"size\":{size}}}"
            ),
        };
        written.expect("a vector takes every write");
        match self.format {
            Format::Csv | Format::Parquet => at,
            Format::Json => at + "{\"id\":".len(),
        }
    }

    /// A Stream Load request of about `bytes` bytes of rows, at least one.
    pub fn stream_load(&mut self, head: impl Fn(usize) -> String, bytes: usize) -> Request {
        if self.format == Format::Parquet {
            let (body, mut ids) = columns::file(self, bytes);
            let (head, payload_bytes) = (head(body.len()), body.len() as u64);
            ids.iter_mut().for_each(|at| *at += head.len() as u32);
            return Request {
                bytes: [head.as_bytes(), &body].concat(),
                form: IdForm::Binary,
                ids,
                key: None,
                payload_bytes,
                order: Order::New,
            };
        }
        Request::of_lines(head, bytes, |body| self.push_row(body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_the_same_for_the_same_seed_and_have_the_shape_of_the_table() {
        let body = |seed| {
            let mut out = Vec::new();
            let mut log = AccessLog::new(seed, Format::Csv);
            let ids: Vec<_> = (0..1000).map(|_| log.push_row(&mut out)).collect();
            assert!(ids.iter().all(|&at| out[at..].starts_with(b"1000000000,")));
            String::from_utf8(out).unwrap()
        };
        assert_eq!(body(1), body(1));
        assert_ne!(body(1), body(2));
        assert!(body(1).lines().all(|line| line.split(',').count() == 6), "{}", body(1));
        let mean = body(1).len() / 1000;
        assert!((80..120).contains(&mean), "{mean} bytes per row");
    }

    #[test]
    fn rows_may_be_of_many_days() {
        let mut out = Vec::new();
        let mut log = AccessLog::new(1, Format::Csv).over_days(1000);
        for _ in 0..20_000 {
            log.push_row(&mut out);
        }
        let text = String::from_utf8(out).unwrap();
        let days: std::collections::BTreeSet<&str> =
            text.lines().map(|line| &line.split(',').nth(1).unwrap()[..10]).collect();
        assert_eq!(days.len(), 1000);
        assert_eq!((days.first(), days.last()), (Some(&"1998-01-01"), Some(&"2000-12-20")));
    }

    #[test]
    fn json_has_the_same_rows() {
        let (mut csv, mut json) = (Vec::new(), Vec::new());
        let (mut one, mut other) = (AccessLog::new(1, Format::Csv), AccessLog::new(1, Format::Json));
        for _ in 0..100 {
            one.push_row(&mut csv);
            let at = other.push_row(&mut json);
            assert!(json[at..].starts_with(b"1000000000,"));
        }
        let csv = String::from_utf8(csv).unwrap();
        for (row, line) in csv.lines().zip(String::from_utf8(json).unwrap().lines()) {
            let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line).unwrap();
            assert_eq!(
                object.keys().collect::<Vec<_>>(),
                ["id", "ts", "clientip", "request", "status", "size"]
            );
            let text = |value: &serde_json::Value| value.as_str().map_or(value.to_string(), str::to_owned);
            assert_eq!(object.values().map(text).collect::<Vec<_>>().join(","), row);
        }
    }

    #[test]
    fn a_request_has_its_ids_behind_the_head() {
        let request =
            AccessLog::new(1, Format::Csv).stream_load(|length| format!("PUT {length}\r\n\r\n"), 10_000);
        assert!(request.ids.len() > 80);
        assert!(request.ids.iter().all(|&at| request.bytes[at as usize..].starts_with(b"1000000000,")));
    }
}
