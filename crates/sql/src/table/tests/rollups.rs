use super::*;

fn shown(def: &TableDef) -> Vec<(String, Vec<String>, usize)> {
    let name = |id: &ColumnId| def.schema.columns[def.schema.index_of_id(*id).unwrap()].name.clone();
    let of = |rollup: &tributary_types::RollupDef| {
        (rollup.name.clone(), rollup.columns.iter().map(name).collect(), rollup.keys)
    };
    def.rollups.iter().map(of).collect()
}

fn is(name: &str, columns: &[&str], keys: usize) -> (String, Vec<String>, usize) {
    (name.to_owned(), columns.iter().map(|column| (*column).to_owned()).collect(), keys)
}

const SITES: &str = "create table t (site int, city varchar(20), user varchar(20), pv bigint) duplicate key(site, city) \
     distributed by hash(site) buckets 1";

#[test]
fn rollups_are_declared_with_the_table_added_renamed_and_dropped() {
    let old = def(&format!(
        "{SITES} rollup (by_city (city, pv), r2 (pv, site) duplicate key (pv) properties('timeout' = '9'))"
    ));
    let both = [is("by_city", &["city", "pv"], 1), is("r2", &["pv", "site"], 1)];
    assert_eq!(shown(&old), both);
    let printed = show_create_table(&old);
    assert!(
        printed.contains(
            "BUCKETS 1\nROLLUP (\n`by_city` (`city`, `pv`) DUPLICATE KEY (`city`),\n\
             `r2` (`pv`, `site`) DUPLICATE KEY (`pv`) PROPERTIES (\"timeout\" = \"9\")\n)\nPROPERTIES ("
        ),
        "{printed}"
    );
    assert_eq!(def(&printed).rollups, old.rollups);
    let more = altered(&old, "add rollup r3 (pv, user) from t, r4 (user), drop rollup by_city");
    assert_eq!(
        shown(&more),
        [both[1].clone(), is("r3", &["pv", "user"], 2), is("r4", &["user"], 1)],
        "keys are derived as those of a table"
    );
    let named = altered(&more, "rename rollup r3 users");
    assert_eq!(shown(&named)[1].0, "users");
    assert_eq!(altered(&named, "drop rollup users, r4").rollups, old.rollups[1..]);
    // The column is known by its id.
    let renamed = altered(&old, "rename column city town");
    assert_eq!(shown(&renamed)[0], is("by_city", &["town", "pv"], 1));
    let dropped = altered(&altered(&old, "add rollup r4 (user)"), "drop column user");
    assert_eq!(shown(&dropped), both, "a rollup of that column alone goes with it");
    let last = try_alter(&old, "drop column pv").unwrap_err();
    assert_eq!(last.detail_text(), "No key column left. index[r2]");
    // A column may be called so.
    assert_eq!(altered(&old, "add column rollup int").schema.columns.last().unwrap().name, "rollup");
}

#[test]
fn a_copy_has_the_rollups_that_it_is_to_have() {
    let source = def(&format!("{SITES} rollup (a (city), b (pv))"));
    let name = tributary_types::TableRef { db: "d".to_owned(), table: "u".to_owned() };
    let copy = |with: Option<&[String]>| like(&source, &name, DbId(3), TableId(8), with);
    assert!(copy(None).unwrap().rollups.is_empty());
    assert_eq!(copy(Some(&[])).unwrap().rollups, source.rollups);
    assert_eq!(copy(Some(&["b".to_owned()])).unwrap().rollups, source.rollups[1..]);
    let error = copy(Some(&["c".to_owned()])).unwrap_err();
    assert_eq!(error.detail_text(), "Rollup index[c] not exists in Table[t]");
    for (sql, rollups) in [
        ("create table u like t", None),
        ("create table u like t with rollup", Some(vec![])),
        ("create table u like t with rollup (a, b)", Some(vec!["a".to_owned(), "b".to_owned()])),
    ] {
        let Ok(Statement::CreateTableLike { rollups: parsed, .. }) = parse(sql) else { panic!("{sql}") };
        assert_eq!(parsed, rollups, "{sql}");
    }
}

#[test]
fn rollups_that_can_not_be_are_refused_in_doriss_words() {
    let duplicate = def(&format!("{SITES} rollup (r (city))"));
    let unique =
        def("create table t (a int, b int, c int, d double) unique key(a, b) distributed by hash(a)");
    let folded = def(
        "create table t (a int, b int, s bigint sum, l int replace) aggregate key(a, b) distributed by hash(a)",
    );
    for (of, clause, text) in [
        (&duplicate, "add rollup r (pv)", "Rollup index[r] already exists"),
        (&duplicate, "add rollup t (pv)", "Rollup index[t] already exists"),
        (&duplicate, "add rollup x (pv) from y", "Base index[y] does not exist"),
        (&duplicate, "add rollup x (gone)", "Column[gone] does not exist in base index"),
        (&duplicate, "add rollup x (gone) duplicate key (gone)", "Column[gone] does not exist"),
        (&duplicate, "add rollup x (pv, PV)", "Duplicate column name 'PV'"),
        (
            &duplicate,
            "add rollup x (pv) duplicate key (site)",
            "Duplicate keys should be the prefix of rollup columns",
        ),
        (
            &duplicate,
            "add rollup x (pv) duplicate key (pv, site)",
            "Num of duplicate keys should less than or equal to num of rollup columns.",
        ),
        (
            &duplicate,
            "add rollup x (site, city)",
            "Rollup contain the columns of the base table in prefix order for duplicate table is useless.",
        ),
        (
            &duplicate,
            "add rollup x (pv) properties ('a' = 'b')",
            "Unknown properties: a is no property of a rollup",
        ),
        (&unique, "add rollup x (a, c)", "Rollup should contains all unique keys in basetable"),
        (&unique, "add rollup x (c, a)", "Invalid column order. value should be after key"),
        (&unique, "add rollup x (c)", "No key column is found"),
        (
            &unique,
            "add rollup x (a, b, c)",
            "Rollup contains all keys in base table with same order for aggregation or unique table is useless.",
        ),
        (&unique, "add rollup x (`__DORIS_DELETE_SIGN__`)", "Column[__DORIS_DELETE_SIGN__] does not exist"),
        (&folded, "add rollup x (a, l)", "Rollup should contains all keys if there is a REPLACE value"),
        (&duplicate, "drop rollup x", "Materialized view [x] does not exist in table [t]"),
        (
            &duplicate,
            "drop rollup t",
            "Cannot drop base index by using DROP ROLLUP or DROP MATERIALIZED VIEW.",
        ),
        (&duplicate, "rename rollup t x", "Using ALTER TABLE RENAME to change table name"),
        (&duplicate, "rename rollup r r", "Same rollup name"),
        (&duplicate, "rename rollup x y", "Rollup index[x] does not exists"),
        (&duplicate, "rename rollup r t", "Rollup name[t] is already used"),
    ] {
        let error = try_alter(of, clause).err().unwrap_or_else(|| panic!("{clause} is fine"));
        assert!(error.detail_text().starts_with(text), "{clause}: {error}");
    }
    let floats = def("create table t (a int, f double) duplicate key(a) distributed by hash(a)");
    let error = try_alter(&floats, "add rollup x (f, a)").unwrap_err();
    assert_eq!(error.detail_text(), "The first column could not be float or double");
    assert_eq!(shown(&altered(&unique, "add rollup x (b, a, d)")), [is("x", &["b", "a", "d"], 2)]);
    assert_eq!(shown(&altered(&folded, "add rollup x (b, s)")), [is("x", &["b", "s"], 1)]);
}
