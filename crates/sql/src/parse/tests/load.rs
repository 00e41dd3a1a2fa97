use super::*;
use crate::ast::{LoadData, Name};

fn load(sql: &str) -> LoadData {
    match parse(sql).unwrap_or_else(|error| panic!("{sql}: {error}")) {
        Statement::LoadData(load) => *load,
        other => panic!("{sql}: {other:?}"),
    }
}

#[test]
fn every_clause_of_load_data_is_read() {
    let plain = load("load data infile '/f.csv' into table t");
    assert_eq!((plain.is_local, plain.file.as_str(), plain.skip_lines), (false, "/f.csv", 0));
    assert_eq!(plain.table, Name { db: None, table: "t".into() });
    assert_eq!((&plain.columns, plain.set.len(), plain.properties.len()), (&None, 0, 0));
    let all = load(
        r#"LOAD DATA LOW_PRIORITY LOCAL INFILE 'a b.csv' IGNORE INTO TABLE internal.d.`t` PARTITION (p) CHARACTER SET utf8mb4
           FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '"' ESCAPED BY '\\'
           LINES STARTING BY '' TERMINATED BY '\r\n' IGNORE 2 LINES (a, `b c`, @x, @Y)
           SET c = @x + 1, d = concat(@y, @other, a) PROPERTIES ("strict_mode" = "true", "timeout" = 30);"#,
    );
    assert!(all.is_local && !all.partitions.is_any() && all.ignores_duplicates && !plain.ignores_duplicates);
    assert_eq!(all.table, Name { db: Some("d".into()), table: "t".into() });
    let texts = [&all.column_separator, &all.enclose, &all.escape, &all.line_delimiter];
    assert_eq!(texts.map(|text| text.as_deref()), [Some(","), Some("\""), Some("\\"), Some("\r\n")]);
    assert_eq!(all.skip_lines, 2);
    assert_eq!(all.columns.as_deref(), Some(&["a", "b c", "@x", "@Y"].map(str::to_owned)[..]));
    let set: Vec<String> = all.set.iter().map(|(name, expr)| format!("{name} = {expr}")).collect();
    assert_eq!(set, ["c = ` x` + 1", "d = concat(` y`, @other, a)"], "names of the list are fields");
    let properties = [("strict_mode", "true"), ("timeout", "30")];
    assert_eq!(all.properties, properties.map(|(name, text)| (name.to_owned(), text.to_owned())));
    let doris = load(
        "LOAD DATA LOCAL INFILE 'f' INTO TABLE t COLUMNS TERMINATED BY '|' LINES TERMINATED BY ';' IGNORE 1 ROWS",
    );
    assert_eq!((doris.column_separator.as_deref(), doris.line_delimiter.as_deref()), (Some("|"), Some(";")));
}

#[test]
fn what_load_data_has_not_is_refused_by_name() {
    for (sql, what) in [
        ("load data infile 'f' replace into table t", "LOAD DATA … REPLACE is not supported yet"),
        ("load data infile 'f' into table t character set latin1", "LOAD DATA … CHARACTER SET latin1 is not"),
        ("load data infile 'f' into table t lines starting by 'x'", "LOAD DATA … LINES STARTING BY is not"),
        ("load data local 'f' into table t", "INFILE"),
        ("load data infile f into table t", "the name of a file in quotes"),
        ("load data infile 'f' into table t fields", "TERMINATED BY, ENCLOSED BY or ESCAPED BY"),
        ("load data infile 'f' into table t ignore 2", "LINES"),
        ("load data infile 'f' into table t set a", "'='"),
        ("load data infile 'f' into table t where a = 1", "the end of the statement"),
    ] {
        let refused = error(sql).to_string();
        assert!(refused.contains(what), "{sql}: {refused}");
    }
}
