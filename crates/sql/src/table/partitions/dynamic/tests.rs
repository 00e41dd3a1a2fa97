use super::*;
use crate::{Statement, apply_alter, parse, show_create_table};
use tributary_types::{DbId, TableId};

fn created(partitions: &str, properties: &str) -> Result<TableDef, SqlError> {
    let sql = format!(
        "CREATE TABLE t (id INT, d DATE, at DATETIME) DUPLICATE KEY(id) PARTITION BY RANGE({partitions}) \
         DISTRIBUTED BY HASH(id) BUCKETS 1 PROPERTIES ({properties})"
    );
    let Statement::CreateTable(create) = parse(&sql).expect(&sql) else { panic!("{sql}") };
    create.to_def("db", DbId(1), TableId(1))
}

const DAYS: &str = r#""dynamic_partition.time_unit" = "day", "dynamic_partition.end" = "2", "dynamic_partition.prefix" = "p""#;

fn days(more: &str) -> String {
    format!("{DAYS}{}{more}", if more.is_empty() { "" } else { ", " })
}

fn at(text: &str) -> NaiveDateTime {
    super::super::value::moment(text).expect(text)
}

/// The partitions at a moment, as `name:lower..upper`.
fn shown(def: &TableDef, now: &str) -> Vec<String> {
    let def = scheduled(def, at(now)).def.unwrap_or_else(|| def.clone());
    let data_type = column(&def).expect("one column").data_type;
    let partitions = def.partitioning.partitions().expect("it is divided");
    let text = |bound: &Bound| bound.show(data_type).trim_end_matches(" 00:00:00").to_owned();
    let show = |partition: &tributary_types::partition::Partition| match &partition.rows {
        PartitionRows::Range { lower, upper } => {
            format!("{}:{}..{}", partition.name, text(&lower[0]), text(&upper[0]))
        }
        _ => partition.name.clone(),
    };
    partitions.list.iter().map(show).collect()
}

#[test]
fn each_unit_has_its_borders_and_names() {
    let of = |unit: &str, more: &str| {
        let properties = format!(
            r#""dynamic_partition.time_unit" = "{unit}", "dynamic_partition.end" = "1", "dynamic_partition.prefix" = "p"{more}"#
        );
        shown(&created("at) (", &properties).unwrap_or_else(|error| panic!("{error}")), "2024-02-29 13:30:00")
    };
    assert_eq!(
        of("HOUR", ""),
        [
            "p2024022913:2024-02-29 13:00:00..2024-02-29 14:00:00",
            "p2024022914:2024-02-29 14:00:00..2024-02-29 15:00:00"
        ]
    );
    assert_eq!(of("DAY", ""), ["p20240229:2024-02-29..2024-03-01", "p20240301:2024-03-01..2024-03-02"]);
    assert_eq!(of("WEEK", ""), ["p2024_09:2024-02-26..2024-03-04", "p2024_10:2024-03-04..2024-03-11"]);
    let from_sunday = of("WEEK", r#", "dynamic_partition.start_day_of_week" = "7""#);
    assert_eq!(from_sunday, ["p2024_09:2024-02-25..2024-03-03", "p2024_10:2024-03-03..2024-03-10"]);
    assert_eq!(of("MONTH", ""), ["p202402:2024-02-01..2024-03-01", "p202403:2024-03-01..2024-04-01"]);
    let from_28 = of("month", r#", "dynamic_partition.start_day_of_month" = "28""#);
    assert_eq!(from_28, ["p202402:2024-02-28..2024-03-28", "p202403:2024-03-28..2024-04-28"]);
    assert_eq!(of("YEAR", ""), ["p2024:2024-01-01..2025-01-01", "p2025:2025-01-01..2026-01-01"]);
}

#[test]
fn old_partitions_go_and_those_that_meet_others_are_not_made() {
    let by_hand = "d) (PARTITION old VALUES LESS THAN ('2024-01-01'), PARTITION mine VALUES [('2024-02-11'), ('2024-02-12')), \
                   PARTITION kept VALUES [('2024-01-10'), ('2024-01-11'))";
    let properties = days(
        r#""dynamic_partition.start" = "-3", "dynamic_partition.reserved_history_periods" = "[2024-01-10,2024-01-10]""#,
    );
    let def = created(by_hand, &properties).unwrap();
    assert_eq!(
        shown(&def, "2024-02-10"),
        [
            "mine:2024-02-11..2024-02-12",
            "kept:2024-01-10..2024-01-11",
            "p20240210:2024-02-10..2024-02-11",
            "p20240212:2024-02-12..2024-02-13"
        ]
    );
    let later = scheduled(&def, at("2024-02-10")).def.unwrap();
    assert_eq!(scheduled(&later, at("2024-02-10 23:59:59")).def, None, "nothing is to do");
    assert_eq!(
        shown(&later, "2024-02-15"),
        [
            "kept:2024-01-10..2024-01-11",
            "p20240212:2024-02-12..2024-02-13",
            "p20240215:2024-02-15..2024-02-16",
            "p20240216:2024-02-16..2024-02-17",
            "p20240217:2024-02-17..2024-02-18"
        ]
    );
    let off = apply(&later, r#""dynamic_partition.enable" = "false""#).unwrap();
    assert_eq!(scheduled(&off, at("2030-01-01")).def, None);
}

#[test]
fn history_is_made_when_it_is_asked_for() {
    let history = r#""dynamic_partition.create_history_partition" = "true""#;
    let count = |more: &str| {
        let def =
            created("d) (", &days(&format!("{history}{more}"))).unwrap_or_else(|error| panic!("{error}"));
        shown(&def, "2024-02-10").len()
    };
    assert_eq!(count(r#", "dynamic_partition.start" = "-5""#), 8);
    assert_eq!(count(r#", "dynamic_partition.history_partition_num" = "2""#), 5);
    assert_eq!(
        count(r#", "dynamic_partition.start" = "-5", "dynamic_partition.history_partition_num" = "2""#),
        5
    );
    assert_eq!(
        count(r#", "dynamic_partition.start" = "-1", "dynamic_partition.history_partition_num" = "2""#),
        4
    );
    let error = created("d) (", &days(history)).unwrap_err();
    assert!(error.message.contains("Provide start or history_partition_num property"), "{error}");
    let error =
        created("d) (", &days(&format!(r#"{history}, "dynamic_partition.start" = "-600""#))).unwrap_err();
    assert!(error.message.contains("Too many dynamic partitions: 603. Limit: 500"), "{error}");
}

fn apply(def: &TableDef, set: &str) -> Result<TableDef, SqlError> {
    let sql = format!("ALTER TABLE t SET ({set})");
    alter(def, &sql)
}

fn alter(def: &TableDef, sql: &str) -> Result<TableDef, SqlError> {
    let Statement::AlterTable { ops, .. } = parse(sql).expect(sql) else { panic!("{sql}") };
    ops.iter().try_fold(def.clone(), |def, op| apply_alter(&def, op))
}

#[test]
fn wrong_properties_are_refused_in_doris_words() {
    for (key, value, number, text) in [
        ("time_unit", "DECADE", 5065, "Unsupported time unit DECADE. Expect HOUR/DAY/WEEK/MONTH/YEAR."),
        ("start", "0", 5066, "Dynamic partition start must less than 0"),
        ("start", "x", 5066, "Invalid dynamic partition start x"),
        ("end", "0", 5066, "Dynamic partition end must greater than 0"),
        ("end", "1.5", 5066, "Invalid dynamic partition end 1.5"),
        ("end", "", 5066, "Dynamic partition end is empty"),
        ("buckets", "0", 5067, "Dynamic partition buckets must greater than 0"),
        ("buckets", "many", 5067, "Invalid dynamic partition buckets many"),
        ("enable", "yes", 1105, "Invalid dynamic partition enable: yes. Expected true or false"),
        ("prefix", "1p", 1105, "dynamic_partition.prefix"),
        ("history_partition_num", "0", 1105, "Dynamic history partition num must greater than 0"),
        ("hot_partition_num", "-1", 1105, "Dynamic hot_partition_num must greater than 0."),
        ("start_day_of_week", "8", 1105, "dynamic_partition.start_day_of_week should between 1 and 7"),
        ("start_day_of_month", "29", 1105, "dynamic_partition.start_day_of_month should between 1 and 28"),
        ("reserved_history_periods", "[2024]", 1105, "It must be like"),
        ("reserved_history_periods", "[2024-02-01,2024-01-01]", 1105, "The first date is larger"),
        ("speed", "1", 1105, "Unknown properties"),
    ] {
        let written = format!(r#""dynamic_partition.{key}" = "{value}""#);
        let rest: Vec<_> = DAYS.split(", ").filter(|part| !part.contains(&format!(".{key}\""))).collect();
        let properties = format!("{}, {written}", rest.join(", "));
        let error = created("d) (", &properties).expect_err(&properties);
        assert_eq!(error.code.number(), number, "{error}");
        assert!(error.message.contains(text), "{properties}\n{error}");
    }
    for missing in ["time_unit", "end", "prefix"] {
        let rest: Vec<_> = DAYS.split(", ").filter(|part| !part.contains(missing)).collect();
        let error = created("d) (", &rest.join(", ")).unwrap_err();
        assert!(
            error.message.contains(&format!("Must assign dynamic_partition.{missing} properties")),
            "{error}"
        );
    }
    for (columns, properties, text) in [
        ("d, at) (", DAYS.to_owned(), "Dynamic partition only support single-column range partition"),
        ("id) (", DAYS.to_owned(), "DATE or DATETIME"),
        ("d) (", DAYS.replace("day", "hour"), "could not be HOUR when type of partition column d"),
    ] {
        let error = created(columns, &properties).unwrap_err();
        assert!(error.message.contains(text), "{error}");
    }
}

#[test]
fn partitions_are_not_added_or_dropped_by_hand_while_the_clock_does() {
    let def = created("d) (PARTITION p1 VALUES LESS THAN ('2024-01-01')", &days("")).unwrap();
    for sql in
        ["ALTER TABLE t ADD PARTITION p2 VALUES LESS THAN ('2024-02-01')", "ALTER TABLE t DROP PARTITION p1"]
    {
        let error = alter(&def, sql).unwrap_err();
        assert!(error.message.contains("Cannot add/drop partition on a Dynamic Partition Table"), "{error}");
        let off = apply(&def, r#""dynamic_partition.enable" = "false""#).unwrap();
        alter(&off, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    let plain = created("d) (", r#""replication_num" = "1""#).unwrap();
    let error = apply(&plain, r#""dynamic_partition.enable" = "true""#).unwrap_err();
    assert!(error.message.contains("Must assign dynamic_partition.time_unit"), "{error}");
    let on = apply(&plain, DAYS).unwrap();
    assert_eq!(dynamic_time_zone(&on), Some("Etc/UTC"));
}

#[test]
fn a_table_is_shown_as_it_can_be_made_again() {
    let def = created("d) (", &days(r#""dynamic_partition.time_zone" = "Asia/Shanghai""#)).unwrap();
    let text = show_create_table(&def);
    let block = "\"dynamic_partition.enable\" = \"true\",\n\"dynamic_partition.time_unit\" = \"DAY\",\n\
                 \"dynamic_partition.time_zone\" = \"Asia/Shanghai\",\n\"dynamic_partition.start\" = \"-2147483648\",\n\
                 \"dynamic_partition.end\" = \"2\",\n\"dynamic_partition.prefix\" = \"p\",\n\
                 \"dynamic_partition.replication_allocation\" = \"tag.location.default: 1\",\n\
                 \"dynamic_partition.buckets\" = \"10\",\n\"dynamic_partition.create_history_partition\" = \"false\",\n\
                 \"dynamic_partition.history_partition_num\" = \"-1\",\n\"dynamic_partition.hot_partition_num\" = \"0\",\n\
                 \"dynamic_partition.reserved_history_periods\" = \"NULL\",\n\"dynamic_partition.storage_policy\" = \"\",\n";
    assert!(text.contains(block), "{text}");
    let Statement::CreateTable(create) = parse(&text).unwrap() else { panic!("{text}") };
    assert_eq!(create.to_def("db", DbId(1), TableId(1)).unwrap(), def);
}

#[test]
fn a_table_whose_loads_make_its_partitions_keeps_the_newest_of_the_old_ones() {
    use crate::{Statement, parse};
    use tributary_types::{DbId, TableId};
    let table = |partitions: &str, properties: &str| {
        let sql = format!(
            "CREATE TABLE t (d DATETIME NOT NULL, v INT) DUPLICATE KEY(d) {partitions} DISTRIBUTED BY HASH(d) BUCKETS 1 PROPERTIES ({properties})"
        );
        match parse(&sql) {
            Ok(Statement::CreateTable(create)) => create.to_def("d", DbId(1), TableId(7)),
            other => panic!("{other:?}"),
        }
    };
    let days = "AUTO PARTITION BY RANGE (date_trunc(d, 'day')) (FROM ('2024-01-01') TO ('2024-01-09') INTERVAL 1 DAY)";
    let def = table(days, "'partition.retention_count' = '2'").unwrap();
    assert_eq!(dynamic_time_zone(&def), Some("UTC"));
    let at = |text: &str| chrono::NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S").unwrap();
    let left = |moment: &str| {
        let scheduled = scheduled(&def, at(moment));
        let def = scheduled.def.as_ref().unwrap_or(&def);
        let partitions = def.partitioning.partitions().unwrap();
        partitions.list.iter().map(|partition| partition.name.clone()).collect::<Vec<_>>().join(" ")
    };
    // The 5th is not over: the 3rd and the 4th are the newest that are.
    assert_eq!(
        left("2024-01-05 12:00:00"),
        "p_20240103 p_20240104 p_20240105 p_20240106 p_20240107 p_20240108"
    );
    assert_eq!(left("2025-01-01 00:00:00"), "p_20240107 p_20240108");
    assert!(scheduled(&def, at("2024-01-03 00:00:00")).def.is_none(), "there are no more than two");
    for bad in ["0", "-1", "two", ""] {
        let error = table(days, &format!("'partition.retention_count' = '{bad}'")).unwrap_err();
        assert!(error.to_string().contains("should be a positive integer"), "{bad}: {error}");
    }
    for other in ["", "PARTITION BY RANGE(d) ()", "AUTO PARTITION BY LIST(d) ()"] {
        let error = table(other, "'partition.retention_count' = '2'").unwrap_err();
        assert!(error.to_string().contains("AUTO PARTITION BY RANGE only"), "{other}: {error}");
    }
}
