//! Rows, as numbers and as text; needs nothing but the standard library, so that the comparison with
//! other servers (`crates/compare`) sends the same ones.

use std::fmt::Write;

/// A small repeatable generator.
pub struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `from` up to and without `to`.
    pub fn range(&mut self, from: u64, to: u64) -> u64 {
        from + self.next() % (to - from)
    }

    pub fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.range(0, of.len() as u64) as usize]
    }
}

pub struct Lineitem {
    pub orderkey: u64,
    pub partkey: u64,
    pub suppkey: u64,
    pub linenumber: u64,
    pub quantity: u64,
    pub price_cents: u64,
    pub discount_cents: u64,
    pub tax_cents: u64,
    pub returnflag: &'static str,
    pub linestatus: &'static str,
    /// Year, month, day of shipping, commitment and receipt.
    pub dates: [(u16, u8, u8); 3],
    pub instruct: &'static str,
    pub mode: &'static str,
    pub comment: String,
}

const WORDS: [&str; 12] = [
    "furiously",
    "regular",
    "deposits",
    "about",
    "the",
    "pending",
    "packages",
    "sleep",
    "carefully",
    "final",
    "ideas",
    "quickly",
];

pub fn lineitem(dice: &mut Dice, row: u64) -> Lineitem {
    let date =
        |dice: &mut Dice| (dice.range(1992, 1999) as u16, dice.range(1, 13) as u8, dice.range(1, 29) as u8);
    let mut comment = String::new();
    let length = dice.range(10, 44) as usize;
    while comment.len() < length {
        comment.push_str(dice.pick(&WORDS));
        comment.push(' ');
    }
    comment.truncate(length);
    let (quantity, partkey) = (dice.range(1, 51), dice.range(1, 200_001));
    Lineitem {
        orderkey: row / 4 + 1,
        partkey,
        suppkey: dice.range(1, 10_001),
        linenumber: row % 4 + 1,
        quantity,
        price_cents: quantity * (90_000 + partkey / 10 % 20_001 + 100 * (partkey % 1000)),
        discount_cents: dice.range(0, 11),
        tax_cents: dice.range(0, 9),
        returnflag: dice.pick(&["R", "A", "N"]),
        linestatus: dice.pick(&["O", "F"]),
        dates: [date(dice), date(dice), date(dice)],
        instruct: dice.pick(&["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"]),
        mode: dice.pick(&["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"]),
        comment,
    }
}

pub fn money(cents: u64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

fn put_lineitem(out: &mut String, item: &Lineitem) {
    let date = |(year, month, day): (u16, u8, u8)| format!("'{year:04}-{month:02}-{day:02}'");
    let [ship, commit, receipt] = item.dates.map(date);
    write!(
        out,
        "({},{},{},{},{}.00,{},{},{},'{}','{}',{ship},{commit},{receipt},'{}','{}','{}')",
        item.orderkey,
        item.partkey,
        item.suppkey,
        item.linenumber,
        item.quantity,
        money(item.price_cents),
        money(item.discount_cents),
        money(item.tax_cents),
        item.returnflag,
        item.linestatus,
        item.instruct,
        item.mode,
        item.comment
    )
    .expect("writing to a String does not fail");
}

/// `VALUES (…),(…)` with `rows` rows of lineitem.
pub fn lineitem_values(rows: u64) -> String {
    let mut dice = Dice(1);
    let mut sql = String::from("VALUES ");
    for row in 0..rows {
        if row > 0 {
            sql.push(',');
        }
        put_lineitem(&mut sql, &lineitem(&mut dice, row));
    }
    sql
}

/// `VALUES (…),(…)` with `rows` rows of the small table.
pub fn small_values(rows: u64) -> String {
    let mut dice = Dice(2);
    let mut sql = String::from("VALUES ");
    for row in 0..rows {
        let comma = if row > 0 { ", " } else { "" };
        write!(sql, "{comma}({row}, 'name{}', {})", dice.range(0, 100_000), dice.range(0, 100))
            .expect("writing to a String does not fail");
    }
    sql
}

/// A request in the log of a site: fifty per second, in May 1998.
pub struct AccessLog {
    pub id: u64,
    pub day: u64,
    pub second_of_day: u64,
    pub client: [u64; 4],
    pub method: &'static str,
    pub url: String,
    pub status: &'static str,
    pub size: u64,
}

impl AccessLog {
    /// Microseconds since 1970-01-01.
    pub fn micros(&self) -> u64 {
        const MAY_1998: u64 = 893_980_800;
        (MAY_1998 + (self.day - 1) * 86_400 + self.second_of_day) * 1_000_000
    }
}

pub fn access_log(dice: &mut Dice, row: u64) -> AccessLog {
    let second = row / 50;
    let part = dice.pick(&["images", "news", "history", "teams", "playing", "competition"]);
    let page = dice.pick(&["team_group_header", "match", "player", "nav_hosts", "logo"]);
    AccessLog {
        id: row,
        day: second / 86_400 % 28 + 1,
        second_of_day: second % 86_400,
        client: [dice.range(1, 224), dice.range(0, 256), dice.range(0, 256), dice.range(1, 255)],
        method: dice.pick(&["GET", "GET", "GET", "GET", "HEAD", "POST"]),
        url: format!("/english/{part}/{page}{}.html", dice.range(1, 9000)),
        status: dice.pick(&["200", "200", "200", "304", "404"]),
        size: dice.range(0, 60_000),
    }
}

/// `rows` lines of the access log from line `first` on, fields apart by `|`.
pub fn access_log_csv(first: u64, rows: u64) -> Vec<u8> {
    let mut dice = Dice(3 + first);
    let mut csv = String::new();
    for row in first..first + rows {
        let log = access_log(&mut dice, row);
        let (second, [a, b, c, d]) = (log.second_of_day, log.client);
        writeln!(
            csv,
            "{}|1998-05-{:02} {:02}:{:02}:{:02}|{a}.{b}.{c}.{d}|{}|{}|{}|{}",
            log.id,
            log.day,
            second / 3600,
            second / 60 % 60,
            second % 60,
            log.method,
            log.url,
            log.status,
            log.size
        )
        .expect("writing to a String does not fail");
    }
    csv.into_bytes()
}

/// The rows of [`access_log_csv`] as a JSON object per line.
pub fn access_log_json(first: u64, rows: u64) -> Vec<u8> {
    let mut dice = Dice(3 + first);
    let mut json = String::new();
    for row in first..first + rows {
        let log = access_log(&mut dice, row);
        let (second, [a, b, c, d]) = (log.second_of_day, log.client);
        writeln!(
            json,
            "{{\"id\":{},\"ts\":\"1998-05-{:02} {:02}:{:02}:{:02}\",\"client\":\"{a}.{b}.{c}.{d}\",\"method\":\"{}\",\"url\":\"{}\",\"status\":{},\"size\":{}}}",
            log.id,
            log.day,
            second / 3600,
            second / 60 % 60,
            second % 60,
            log.method,
            log.url,
            log.status,
            log.size
        )
        .expect("writing to a String does not fail");
    }
    json.into_bytes()
}
