//! Crates depend on each other exactly as ARCHITECTURE.md draws it.

use crate::{metadata, read, table, text, words};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Dependencies by crate. The names of our own crates are without their prefix.
pub(crate) type Arrows = BTreeMap<String, BTreeSet<String>>;

const CRATES: &str = "## Which crate may use which";
const LIBRARIES: &str = "## Libraries that belong to one place";

fn short(package: &str) -> &str {
    package.strip_prefix("tributary-").unwrap_or(package)
}

/// The dependencies of all members of every kind, split into our own crates and libraries.
fn found() -> (Arrows, Arrows) {
    let metadata = metadata(&["--no-deps"]);
    let packages: &Vec<Value> = metadata["packages"].as_array().expect("a list of packages");
    let (mut own, mut libraries) = (Arrows::new(), Arrows::new());
    for package in packages {
        let from = short(text(package, "name")).to_owned();
        let dependencies = package["dependencies"].as_array().expect("a list of dependencies");
        // A crate may name itself, to have a feature in its own tests.
        let dependencies = dependencies.iter().filter(|to| to["name"] != package["name"]);
        let (paths, others): (Vec<_>, Vec<_>) = dependencies.partition(|to| to["path"].is_string());
        let names = |of: Vec<&Value>| of.into_iter().map(|to| short(text(to, "name")).to_owned()).collect();
        own.insert(from.clone(), names(paths));
        libraries.insert(from, names(others));
    }
    (own, libraries)
}

/// Reads a table of ARCHITECTURE.md: its first column, and the set in its second one.
pub(crate) fn told(heading: &str) -> Arrows {
    let architecture = read("ARCHITECTURE.md");
    let entry = |row: Vec<&str>| {
        let name = words(row[0]).next().unwrap_or_else(|| panic!("{heading}: no `name` in {row:?}"));
        (name.to_owned(), words(row[1]).map(str::to_owned).collect())
    };
    table(&architecture, heading).into_iter().map(entry).collect()
}

/// Lists the arrows that are in `left` but not in `right`.
pub(crate) fn missing(left: &Arrows, right: &Arrows) -> Vec<String> {
    let none = BTreeSet::new();
    left.iter()
        .flat_map(|(from, all)| {
            let there = right.get(from).unwrap_or(&none);
            all.difference(there).map(move |to| format!("{from} → {to}"))
        })
        .collect()
}

/// The names that lie on circles or lead to one; none if the arrows lead one way.
pub(crate) fn circle(arrows: &Arrows) -> Vec<String> {
    let mut left: BTreeMap<_, _> = arrows.iter().collect();
    // Takes away names that use none of those left, until none is left.
    while let Some((&leaf, _)) = left.iter().find(|(_, uses)| uses.iter().all(|to| !left.contains_key(to))) {
        left.remove(leaf);
    }
    left.into_keys().cloned().collect()
}

#[test]
fn every_crate_is_in_the_table_of_arrows() {
    let (found, told) = (found().0, told(CRATES));
    let names = |arrows: &Arrows| arrows.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&found), names(&told), "the workspace's crates, and those of ARCHITECTURE.md, {CRATES}");
}

#[test]
fn no_crate_has_an_arrow_that_the_architecture_does_not_draw() {
    let (found, told) = (found().0, told(CRATES));
    assert_eq!(missing(&found, &told), [""; 0], "these arrows are not in ARCHITECTURE.md, {CRATES}");
    assert_eq!(missing(&told, &found), [""; 0], "ARCHITECTURE.md draws arrows that no manifest has");
}

#[test]
fn arrows_lead_one_way() {
    assert_eq!(circle(&found().0), [""; 0], "a circle among crates");
}

#[test]
fn libraries_are_used_where_they_belong() {
    let (libraries, homes) = (found().1, told(LIBRARIES));
    for (library, told) in &homes {
        let users: BTreeSet<String> = libraries
            .iter()
            .filter(|(_, uses)| uses.contains(library))
            .map(|(name, _)| name.clone())
            .collect();
        assert_eq!(&users, told, "the crates that use {library}, and those of ARCHITECTURE.md, {LIBRARIES}");
    }
}

#[test]
fn a_circle_is_named() {
    let arrows = |pairs: &[(&str, &str)]| -> Arrows {
        pairs.iter().map(|(from, to)| ((*from).to_owned(), [(*to).to_owned()].into())).collect()
    };
    assert_eq!(circle(&arrows(&[("a", "b"), ("b", "c")])), [""; 0]);
    assert_eq!(circle(&arrows(&[("a", "b"), ("b", "a"), ("c", "d")])), ["a", "b"]);
}

#[test]
fn a_missing_arrow_is_named() {
    let arrows = |pairs: &[(&str, &[&str])]| -> Arrows {
        let set = |to: &[&str]| to.iter().map(ToString::to_string).collect();
        pairs.iter().map(|(from, to)| ((*from).to_owned(), set(to))).collect()
    };
    let found = arrows(&[("wal", &["types", "table"]), ("new", &["wal"])]);
    let told = arrows(&[("wal", &["types"])]);
    assert_eq!(missing(&found, &told), ["new → wal", "wal → table"]);
    assert_eq!(missing(&told, &found), [""; 0]);
}
