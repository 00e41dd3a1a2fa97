//! Rows of `hits`: visits of websites, always the same for a scale factor.
//!
//! The rows resemble the 100 million originals in what the queries use: a visitor has six views, 13 % of the views have a search phrase
//! and half of these phrases are different, 0.6 % are of advertisements, 7 % are of mobile devices, URLs and titles are long and share
//! their beginnings, and all are of July 2013, in no order. Three things differ, so that the answers have rows at a million, too: the two
//! largest websites have more than a tenth of the views each, website 62 has 5 % instead of 0.7 %, and more titles name Google.

use super::people::Visitor;
use super::sites::{Page, Sites, hash, mix};
use super::words::{Words, percent_encoded, skewed};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::VecDeque;
use std::fmt::{Display, Write};

/// Rows at scale factor 1.
const ROWS: f64 = 1e6;
/// Search phrases for each row.
const PHRASES: f64 = 0.1;
const PHRASES_SKEW: f64 = 2.0;
/// Share of visits that come from a search engine, by a link, and by an advertisement; no others have a referer.
const SOURCES: [f64; 3] = [0.39, 0.2, 0.019];
/// Share of the largest search engine in all that come from one.
const LARGEST_ENGINE: f64 = 0.85;
/// Share of visits that go on after each view.
const GOES_ON: f64 = 0.67;
const DAY: u32 = 86_400;
/// The month's seconds, but for its last two hours, in which no visit begins.
const BEGINS: u32 = 31 * DAY - 7200;

/// The rows at this scale factor, with a separator behind each value.
pub fn rows(scale: f64) -> impl Iterator<Item = String> {
    let count = ((ROWS * scale) as u64).max(1);
    let mut hits = Hits {
        random: SmallRng::seed_from_u64(2013),
        views: count,
        sites: Sites::new(count),
        words: Words::new(),
        next: 0,
        visit: VecDeque::new(),
    };
    (0..count).map(move |_| hits.row())
}

/// Generator of rows.
struct Hits {
    random: SmallRng,
    /// Number of all rows.
    views: u64,
    sites: Sites,
    words: Words,
    /// Number of the next row.
    next: u64,
    /// Rows of the visit that have not been taken.
    visit: VecDeque<String>,
}

/// Where a view came from.
#[derive(Clone, Default)]
struct Source {
    /// `TraficSourceID`
    kind: i16,
    engine: u16,
    advertiser: u16,
    phrase: String,
    referer: String,
    referer_hash: i64,
}

/// A view, apart from its visitor.
struct View {
    /// Since the month's begin.
    seconds: u32,
    watch: i64,
    site: i32,
    page: Page,
    source: Source,
    is_refresh: bool,
}

impl Hits {
    fn row(&mut self) -> String {
        loop {
            if let Some(row) = self.visit.pop_front() {
                return row;
            }
            self.visit();
        }
    }

    /// Makes the rows of a visit.
    fn visit(&mut self) {
        let visitor = Visitor::choose(&mut self.random, self.views);
        let mut seconds = begin(&mut self.random);
        let mut source = self.source();
        let site = self.sites.choose(&mut self.random);
        let mut page = site.page(&self.words, &mut self.random);
        loop {
            let is_refresh = self.random.random_bool(0.1);
            self.next += 1;
            let watch = (mix(self.next) >> 1) as i64;
            let view = View { seconds, watch, site: site.id, page: page.clone(), source, is_refresh };
            self.visit.push_back(view.row(&visitor, &mut self.random));
            if !self.random.random_bool(GOES_ON) {
                return;
            }
            seconds = (seconds + self.random.random_range(2..180)).min(31 * DAY - 1);
            source = Source {
                kind: -1,
                referer: page.url.clone(),
                referer_hash: page.referer_hash,
                ..Source::default()
            };
            page = site.page(&self.words, &mut self.random);
        }
    }

    /// Chooses where a visit comes from.
    fn source(&mut self) -> Source {
        let mut left = self.random.random::<f64>();
        let mut is_next = |share: f64| {
            left -= share;
            left < 0.0
        };
        let source = if is_next(SOURCES[0]) {
            self.search()
        } else if is_next(SOURCES[1]) {
            let from = self.sites.choose(&mut self.random);
            let page = from.page(&self.words, &mut self.random);
            Source { kind: 1, referer: page.url, ..Source::default() }
        } else if is_next(SOURCES[2]) {
            let advertiser = [2, 2, 2, 27, 13, 45][self.random.random_range(0..6)];
            Source { kind: 3, advertiser, ..Source::default() }
        } else {
            Source { kind: if self.random.random_bool(0.1) { 6 } else { 0 }, ..Source::default() }
        };
        Source { referer_hash: hash(&source.referer), ..source }
    }

    fn search(&mut self) -> Source {
        let phrases = ((self.views as f64 * PHRASES) as u64).max(1);
        let phrase = self.words.phrase(mix(skewed(&mut self.random, phrases, PHRASES_SKEW)), 6);
        let (engine, host) = match self.random.random_bool(LARGEST_ENGINE) {
            true => (2, "www.poisk.ru".to_owned()),
            false => match skewed(&mut self.random, 40, 2.0) {
                0 => (3, "www.google.ru".to_owned()),
                other => (4 + other as u16, format!("find{other}.com")),
            },
        };
        let referer = format!(
            "http://{host}/find?text={}&lr={}",
            percent_encoded(&phrase),
            self.random.random_range(1..200)
        );
        Source { kind: 2, engine, phrase, referer, ..Source::default() }
    }
}

/// Chooses when a visit begins: less often at night.
fn begin(random: &mut SmallRng) -> u32 {
    loop {
        let seconds = random.random_range(0..BEGINS);
        if seconds % DAY >= 6 * 3600 || random.random_bool(0.3) {
            return seconds;
        }
    }
}

/// A row, value by value.
struct Row(String);

impl Row {
    fn put(&mut self, value: impl Display) {
        write!(self.0, "{value}|").expect("a string can always be written to");
    }

    fn put_all<T: Display>(&mut self, values: impl IntoIterator<Item = T>) {
        values.into_iter().for_each(|value| self.put(value));
    }

    /// Puts the same value several times.
    fn repeat(&mut self, value: impl Display, times: usize) {
        (0..times).for_each(|_| self.put(&value));
    }
}

/// A number that is `value` in this share of the rows, and 0 in all others.
fn at_times(random: &mut SmallRng, share: f64, value: u16) -> u16 {
    if random.random_bool(share) { value } else { 0 }
}

impl View {
    /// The whole row, in the order of the table's columns.
    fn row(&self, visitor: &Visitor, random: &mut SmallRng) -> String {
        let mut row = Row(String::with_capacity(1024));
        self.put_page(visitor, random, &mut row);
        put_machine(visitor, random, &mut row);
        self.put_source(visitor, random, &mut row);
        self.put_event(visitor, random, &mut row);
        put_timing(visitor, random, &mut row);
        self.put_marks(random, &mut row);
        row.0
    }

    /// From `CounterID` to `URLRegionID`.
    fn put_page(&self, visitor: &Visitor, random: &mut SmallRng, row: &mut Row) {
        row.put(self.site);
        row.put(&time(self.seconds)[..10]);
        row.put(visitor.id);
        row.put(time(self.seconds));
        row.put(self.watch);
        row.put(u8::from(random.random_bool(0.8)));
        row.put(&self.page.title);
        row.put(1);
        row.put(visitor.ip);
        row.put(visitor.region);
        row.put(at_times(random, 0.2, 1));
        row.put_all([visitor.os, visitor.agent]);
        row.put(&self.page.url);
        row.put(&self.source.referer);
        row.put(u8::from(self.is_refresh));
        let is_known = !self.source.referer.is_empty();
        row.put(if is_known { self.source.referer_hash.unsigned_abs() % 40 } else { 0 });
        row.put(if is_known { visitor.region } else { 0 });
        row.put(self.page.category);
        row.put(self.site % 1000);
    }

    /// From `IPNetworkID` to `ClientEventTime`.
    fn put_source(&self, visitor: &Visitor, random: &mut SmallRng, row: &mut Row) {
        row.put(visitor.ip.unsigned_abs() >> 10);
        row.put(self.source.kind);
        row.put(self.source.engine);
        row.put(&self.source.phrase);
        row.put(self.source.advertiser);
        row.put(at_times(random, 0.02, 1));
        row.put_all([visitor.window.0, visitor.window.1]);
        row.put(60 * u16::from(visitor.zone_hours));
        row.put(time((self.seconds + random.random_range(0..40)).min(31 * DAY - 1)));
    }

    /// From `SilverlightVersion1` to `RemoteIP`.
    fn put_event(&self, visitor: &Visitor, random: &mut SmallRng, row: &mut Row) {
        let silverlight = at_times(random, 0.3, 5);
        row.put_all([silverlight, u16::from(silverlight > 0), 10_411 * u16::from(silverlight > 0), 0]);
        row.put(if random.random_bool(0.6) { "windows-1251;charset" } else { "utf-8" });
        row.put(random.random_range(200..1800));
        // IsLink, IsDownload, IsNotBounce
        row.put_all([0.1, 0.01, 0.2].map(|share| at_times(random, share, 1)));
        row.put(mix(visitor.id.unsigned_abs()) >> 1);
        row.put(if random.random_bool(0.1) { &self.page.url } else { "" });
        row.put(random.random_range(0..i32::MAX));
        // IsOldCounter, IsEvent, IsParameter, DontCountHits, WithHash
        row.put_all([0.0, 0.05, 0.03, 0.04, 0.02].map(|share| at_times(random, share, 1)));
        row.put(["5", "g", "Y", "E", "S"][random.random_range(0..5)]);
        row.put(time((self.seconds + 3600 * u32::from(visitor.zone_hours)).min(31 * DAY - 1)));
        row.put_all([visitor.age, visitor.sex, visitor.income, visitor.interests]);
        row.put(at_times(random, 0.05, 10));
        row.put(visitor.ip);
    }

    /// From `SocialSourceNetworkID` to `CLID`.
    fn put_marks(&self, random: &mut SmallRng, row: &mut Row) {
        row.put(at_times(random, 0.01, 3));
        row.put("");
        row.put(if random.random_bool(0.002) { 100 * random.random_range(1..900) } else { 0 });
        row.put("");
        row.put("NHR");
        row.put(at_times(random, 0.01, 1));
        // Openstat and UTM.
        row.repeat("", 4);
        let campaign = skewed(random, 40, 2.0);
        match random.random_bool(0.03) {
            true => row.put_all([
                "market".to_owned(),
                "cpc".to_owned(),
                format!("c{campaign}"),
                String::new(),
                String::new(),
            ]),
            false => row.repeat("", 5),
        }
        row.put("");
        row.put(u8::from(self.source.advertiser > 0 && random.random_bool(0.2)));
        row.put_all([self.source.referer_hash, self.page.url_hash]);
        row.put(at_times(random, 0.01, 7));
    }
}

/// From `ResolutionWidth` to `Params`.
fn put_machine(visitor: &Visitor, random: &mut SmallRng, row: &mut Row) {
    row.put_all([visitor.screen.0, visitor.screen.1, 24]);
    row.put_all([visitor.flash, 7 * u16::from(visitor.flash > 0)]);
    row.put(if visitor.flash > 0 { "700" } else { "0" });
    row.put_all([0, 0, visitor.agent_major]);
    row.put(["D", "0", "4", "s"][usize::from(visitor.agent_major) % 4]);
    row.put_all([1, 1, u16::from(visitor.is_mobile), visitor.phone]);
    row.put(&visitor.phone_model);
    row.put(if random.random_bool(0.01) { "params" } else { "" });
}

/// From `WindowName` to `FetchTiming`.
fn put_timing(visitor: &Visitor, random: &mut SmallRng, row: &mut Row) {
    row.put_all([-1, if random.random_bool(0.3) { random.random_range(0..10_000) } else { -1 }]);
    row.put(at_times(random, 0.7, 1) * random.random_range(1..30));
    row.put(visitor.language);
    row.put(visitor.country);
    row.put(if random.random_bool(0.001) { "vk" } else { "" });
    row.put("");
    row.put(at_times(random, 0.01, 404));
    // Send, DNS, connect, response's start and end, fetch.
    let is_timed = random.random_bool(0.4);
    let most = if is_timed { [300, 60, 120, 900, 1500, 2000] } else { [1; 6] };
    row.put_all(most.map(|most| random.random_range(0..most)));
}

/// A point in time of July 2013.
fn time(seconds: u32) -> String {
    let (day, of_day) = (1 + seconds / DAY, seconds % DAY);
    format!("2013-07-{day:02} {:02}:{:02}:{:02}", of_day / 3600, of_day / 60 % 60, of_day % 60)
}

#[cfg(test)]
mod tests {
    use super::super::people::ASKED_VISITOR;
    use super::super::table::TABLES;
    use super::*;
    use std::collections::{HashMap, HashSet};
    use std::sync::LazyLock;

    const SCALE: f64 = 0.02;
    const COUNT: usize = 20_000;
    static ALL: LazyLock<Vec<String>> = LazyLock::new(|| rows(SCALE).collect());

    /// The values of some columns, row by row.
    fn columns<const N: usize>(names: [&str; N]) -> Vec<[String; N]> {
        let all: Vec<&str> =
            TABLES[0].columns.split(", ").filter_map(|column| column.split(' ').next()).collect();
        assert_eq!(all.len(), 105);
        let places =
            names.map(|name| all.iter().position(|column| *column == name).expect("a column of this name"));
        let row = |row: &String| {
            let values: Vec<&str> = row.strip_suffix('|').expect("a last separator").split('|').collect();
            assert_eq!(values.len(), all.len(), "{row}");
            places.map(|place| values[place].to_owned())
        };
        ALL.iter().map(row).collect()
    }

    fn share(rows: &[[String; 1]], is_counted: impl Fn(&str) -> bool) -> f64 {
        rows.iter().filter(|[value]| is_counted(value)).count() as f64 / rows.len() as f64
    }

    #[test]
    fn rows_are_always_the_same() {
        assert!(rows(0.001).eq(rows(0.001)));
        assert_eq!((rows(0.001).count(), ALL.len()), (1000, COUNT));
    }

    #[test]
    fn shares_are_those_of_the_original() {
        let is_near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.2;
        for (column, nothing, expected) in [
            ("SearchPhrase", "", 0.13),
            ("AdvEngineID", "0", 0.006),
            ("MobilePhoneModel", "", 0.07),
            ("Title", "", 0.85),
        ] {
            let found = share(&columns([column]), |value| value != nothing);
            assert!(is_near(found, expected), "{column}: {found} instead of {expected}");
        }
        for (column, nothing, expected) in
            [("UserID", "", 0.18), ("URL", "", 0.3), ("SearchPhrase", "", 0.5), ("WatchID", "", 1.0)]
        {
            let values = columns([column]);
            let asked: Vec<&String> = values.iter().flatten().filter(|value| *value != nothing).collect();
            let different = asked.iter().collect::<HashSet<_>>().len() as f64 / asked.len() as f64;
            assert!(is_near(different, expected), "{column}: {different} instead of {expected}");
        }
    }

    #[test]
    fn two_websites_have_a_tenth_of_the_views_each() {
        let mut counts = HashMap::<String, usize>::new();
        columns(["CounterID"]).into_iter().flatten().for_each(|site| *counts.entry(site).or_default() += 1);
        assert_eq!(counts.values().filter(|count| **count > COUNT / 10).count(), 2);
        assert!(counts["62"] > COUNT / 25, "{}", counts["62"]);
        assert!(counts.len() > 1000, "{}", counts.len());
    }

    #[test]
    fn rows_that_queries_ask_for_exist() {
        let visitors = columns(["UserID"]);
        let found = visitors.iter().filter(|[id]| *id == ASKED_VISITOR.to_string()).count();
        assert!((1..100).contains(&found), "{found} views of the visitor of query 20");
        let views = columns(["CounterID", "TraficSourceID", "RefererHash", "URLHash"]);
        let of_site = |place: usize, hash: &str| {
            views.iter().filter(|view| view[0] == "62" && view[place] == hash).count()
        };
        assert!(of_site(2, "3594120000172545465") > 100);
        assert!(of_site(3, "2868770270353813622") > 100);
        assert!(views.iter().any(|view| view[0] == "62" && view[1] == "6"));
        let texts = columns(["URL", "Title", "SearchPhrase"]);
        let names_google = |[url, title, phrase]: &&[String; 3]| {
            title.contains("Google") && !url.contains(".google.") && !phrase.is_empty()
        };
        assert!(texts.iter().any(|[url, ..]| url.contains("google")));
        assert!(texts.iter().filter(names_google).count() > 0);
    }

    #[test]
    fn all_views_are_of_one_month() {
        for [date, time, client, local] in
            columns(["EventDate", "EventTime", "ClientEventTime", "LocalEventTime"])
        {
            assert!(("2013-07-01".."2013-08-01").contains(&date.as_str()), "{date}");
            assert!(time.starts_with(&date) && client >= time && local >= time, "{time} {client} {local}");
            assert!(local.as_str() < "2013-08-01", "{local}");
        }
    }
}
