use super::*;
use crate::functions;
use std::collections::HashSet;
use std::fmt::Write;
use std::path::Path;

#[test]
fn a_name_is_declared_once_and_in_order() {
    let mut names = HashSet::new();
    for pair in ALL.windows(2) {
        let [before, after] = pair else { continue };
        assert!(before.family != after.family || before.name < after.name, "{}", after.name);
    }
    for declared in ALL {
        assert!(names.insert(declared.name), "{} is declared twice", declared.name);
        assert!(declared.signature.starts_with('(') && declared.doc.ends_with('.'), "{}", declared.name);
    }
}

#[test]
fn each_declared_name_has_an_implementation() {
    let is_ours = |name: &str| functions::is_ours(name) || functions::aggregates::get(name).is_some();
    for declared in ALL {
        match declared.means {
            Ours => assert!(is_ours(declared.name), "{}", declared.name),
            Alias(_) => assert!(meant(declared.name).is_some(), "{}", declared.name),
            Is(name) if name.starts_with("__") => assert!(is_ours(name), "{name}"),
            DataFusion => assert!(!is_ours(declared.name), "{} is ours", declared.name),
            _ => {}
        }
    }
}

#[test]
fn each_function_that_users_may_call_is_declared() {
    for function in functions::all().iter().filter(|function| !function.name().starts_with("__")) {
        assert!(declared(function.name()).is_some(), "{} is not declared", function.name());
    }
}

#[test]
fn a_refused_name_is_refused_once_and_not_declared() {
    let mut names = HashSet::new();
    for (several, why) in refused::ALL {
        assert!(!why.ends_with('.'), "{why}");
        for name in several.split(' ') {
            assert!(names.insert(name), "{name} is refused twice");
            assert!(declared(name).is_none(), "{name} is declared");
            assert_eq!(super::refused(name), Some(*why));
        }
    }
}

#[test]
fn the_reference_of_functions_is_what_their_declarations_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/functions.md");
    let mut expected = String::from(
        "# Functions\n\nAll functions that a statement may call, by family. [sql.md](sql.md#functions) says where a function \
         differs from Doris's or\nMySQL's. Written from `crates/query/src/functions/declared.rs` by\n\
         `UPDATE_REFERENCE=1 cargo test -p tributary-query reference`.\n",
    );
    let mut family = None;
    for declared in ALL.iter().filter(|declared| declared.family != Grammar) {
        if family.replace(declared.family) != Some(declared.family) {
            let _ = write!(
                expected,
                "\n## {}\n\n| function | result |\n| --- | --- |\n",
                declared.family.title()
            );
        }
        let call = format!("{}{}", declared.name, declared.signature).replace('|', "\\|");
        let _ = writeln!(expected, "| `{call}` | {} |", declared.doc);
    }
    expected.push_str(
        "\n## Functions of Doris that are refused\n\nA call of one of these is an error that says what to use.\n\n\
         | function | reason |\n| --- | --- |\n",
    );
    for (names, why) in refused::ALL {
        let names: Vec<String> = names.split(' ').map(|name| format!("`{name}`")).collect();
        let _ = writeln!(expected, "| {} | {why} |", names.join(" "));
    }
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::write(&path, expected).expect("the page is written");
        return;
    }
    let page = std::fs::read_to_string(&path).expect("the page is there");
    assert!(
        page == expected,
        "docs/functions.md is not what the declarations say; \
         run UPDATE_REFERENCE=1 cargo test -p tributary-query reference"
    );
}
