use super::*;
use std::path::PathBuf;
use tributary_types::GroupCommitMode;

fn error(name: &str, value: &str) -> SqlError {
    Variables::default().set(name, value).unwrap_err()
}

#[test]
fn the_list_is_sorted_and_has_each_name_once() {
    assert!(VARIABLES.is_sorted_by(|a, b| a.name < b.name));
}

#[test]
fn every_default_is_a_legal_value_that_is_shown_as_it_is_set() {
    for variable in VARIABLES.iter().filter(|variable| variable.name != "group_commit") {
        let mut values = Values::default();
        let shown = (variable.show)(&values);
        assert!((variable.set)(&mut values, &shown).is_ok(), "{} = {shown}", variable.name);
        assert_eq!((variable.show)(&values), shown, "{}", variable.name);
    }
}

#[test]
fn a_session_that_never_set_the_mode_has_none() {
    let mut variables = Variables::default();
    let shown = |variables: &Variables| variables.shown()["group_commit"].clone();
    assert_eq!((variables.values().group_commit, shown(&variables)), (None, "off_mode".to_owned()));
    variables.set("group_commit", "ASYNC_MODE").expect("legal");
    assert_eq!(variables.values().group_commit, Some(GroupCommitMode::Async));
    assert_eq!(shown(&variables), "async_mode");
    variables.set("group_commit", "off_mode").expect("legal");
    assert_eq!(variables.values().group_commit, Some(GroupCommitMode::Off));
    variables.reset("group_commit").expect("known");
    assert_eq!(variables.values().group_commit, None);
}

#[test]
fn a_mode_that_does_not_exist_is_refused_in_the_words_of_doris() {
    let error = error("group_commit", "abc");
    assert_eq!(error.code.number(), 1231);
    assert_eq!(
        error.message,
        "errCode = 2, detailMessage = Variable 'group_commit' can't be set to the value of 'abc'"
    );
}

#[test]
fn a_misspelt_variable_is_refused_with_similar_names() {
    let error = error("group_comit", "async_mode");
    assert_eq!(error.code.number(), 1193);
    assert!(
        error
            .message
            .starts_with("Unknown system variable 'group_comit',the similar variables are {group_commit, "),
        "{error}"
    );
}

#[test]
fn variables_of_clients_are_taken_in_any_spelling_of_on() {
    let mut variables = Variables::default();
    for (name, value) in [
        ("AUTOCOMMIT", "0"),
        ("enable_nereids_planner", "false"),
        ("sql_safe_updates", "on"),
        ("experimental_enable_pipeline_engine", "false"),
        ("character_set_results", ""),
        ("sql_mode", "strict_trans_tables, NO_ENGINE_SUBSTITUTION"),
    ] {
        variables.set(name, value).expect(name);
    }
    assert!(!variables.values().autocommit);
    let shown = variables.shown();
    assert_eq!((&*shown["enable_nereids_planner"], &*shown["sql_safe_updates"]), ("false", "ON"));
    assert_eq!(shown["enable_pipeline_engine"], "false");
    assert_eq!(error("version", "8").code.number(), 1238);
}

#[test]
fn a_value_that_would_change_answers_is_refused_unless_it_is_obeyed() {
    for (name, value) in [
        ("sql_mode", "STRICT_TRANS_TABLES,HIGH_NOT_PRECEDENCE"),
        ("div_precision_increment", "8"),
        ("skip_delete_sign", "true"),
        ("enable_strict_cast", "true"),
        ("lc_time_names", "de_DE"),
        ("insert_timeout", "0"),
        ("insert_max_filter_ratio", "1.5"),
    ] {
        let error = error(name, value);
        assert_eq!(error.code.number(), 1231, "{name} = {value}");
        assert!(error.message.contains("; it accepts "), "{error}");
    }
    assert_eq!(error("character_set_results", "gbk").code.number(), 1115);
    assert_eq!(error("time_zone", "Middle/Earth").code.number(), 1105);
    let mut variables = Variables::default();
    for (name, value) in [("skip_delete_sign", "OFF"), ("DIV_PRECISION_INCREMENT", "4"), ("sql_mode", "")] {
        variables.set(name, value).expect(name);
    }
}

#[test]
fn a_global_variable_is_set_for_all_or_not_at_all() {
    let mut variables = Variables::default();
    assert_eq!(variables.set("max_prepared_stmt_count", "5").unwrap_err().code.number(), 1229);
    variables.set_global("max_prepared_stmt_count", "5").expect("legal");
    assert_eq!(variables.set_global("idempotency_key", "k").unwrap_err().code.number(), 1228);
    assert_eq!(variables.values().max_prepared_stmt_count, 5);
}

#[test]
fn sessions_share_what_is_shown_until_one_of_them_sets_a_variable() {
    let globals = Variables::default();
    let (one, mut other) = (globals.clone(), globals.clone());
    assert!(Arc::ptr_eq(&one.shown(), &globals.shown()));
    other.set("query_timeout", "5").expect("legal");
    assert_eq!((&*other.shown()["query_timeout"], &*one.shown()["query_timeout"]), ("5", "900"));
    assert!(Arc::ptr_eq(&other.shown(), &other.shown()));
    assert!(Arc::ptr_eq(&one.shown(), &globals.shown()));
}

const BEGIN: &str = "<!-- The variables: made from their declarations by the command above. -->\n";

fn row(variable: &Variable) -> String {
    let default = (variable.show)(&Values::default());
    let default = match (variable.name, default.as_str()) {
        (_, "") => "empty".to_owned(),
        ("version_comment" | "version_compile_machine" | "version_compile_os", _) => "its own".to_owned(),
        (_, text) => format!("`{}`", text.replace(',', ", ")),
    };
    let accepts = match (variable.effect, variable.accepts) {
        (Effect::ReadOnly, _) => "read only".to_owned(),
        (Effect::Fixed, _) => "this value only".to_owned(),
        (_, (_, Some((i64::MIN, _)))) => "a whole number".to_owned(),
        (_, (_, Some((min, i64::MAX)))) => format!("{min} or more"),
        (_, (_, Some((min, max)))) => format!("{min} to {max}"),
        (_, (words, None)) => words.to_owned(),
    };
    let accepts = match variable.effect {
        Effect::Global => format!("{accepts}, SET GLOBAL"),
        Effect::Session => format!("{accepts}, of a session"),
        _ => accepts,
    };
    format!("| `{}` | {default} | {accepts} | {} |\n", variable.name, variable.meaning.trim())
}

#[test]
fn the_reference_of_variables_is_what_their_declarations_say() {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/variables.md"));
    let page = std::fs::read_to_string(&path).expect("the page is there");
    let (before, _) = page.split_once(BEGIN).expect("the tables' beginning is marked");
    let mut expected = format!("{before}{BEGIN}");
    for (title, effects) in [
        ("Obeyed", &[Effect::Obeyed, Effect::Global, Effect::Session][..]),
        ("With one value", &[Effect::Fixed]),
        ("Read only", &[Effect::ReadOnly]),
        ("Accepted and shown", &[Effect::Kept]),
    ] {
        let rows = VARIABLES.iter().filter(|variable| effects.contains(&variable.effect)).map(row);
        expected += &format!(
            "\n## {title}\n\n| variable | default | accepts | meaning |\n| --- | --- | --- | --- |\n"
        );
        expected.extend(rows);
    }
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::write(&path, expected).expect("the page is written");
    } else {
        assert!(
            page == expected,
            "docs/variables.md is not what the declarations say; \
             run UPDATE_REFERENCE=1 cargo test -p tributary-engine reference"
        );
    }
}

#[test]
fn what_is_shown_follows_a_reset_of_one_variable_or_of_all() {
    let mut variables = Variables::default();
    let defaults = variables.shown();
    variables.set("query_timeout", "7").expect("legal");
    variables.set("group_commit", "sync_mode").expect("legal");
    let shown = |variables: &Variables| {
        let shown = variables.shown();
        (shown["query_timeout"].clone(), shown["group_commit"].clone())
    };
    assert_eq!(shown(&variables), ("7".to_owned(), "sync_mode".to_owned()));
    assert_eq!(variables.changed(), ["group_commit", "query_timeout"]);
    variables.reset("query_timeout").expect("known");
    assert_eq!(shown(&variables), (defaults["query_timeout"].clone(), "sync_mode".to_owned()));
    variables.set("query_timeout", "7").expect("legal");
    variables.reset_all();
    assert_eq!(variables.shown(), defaults);
}
