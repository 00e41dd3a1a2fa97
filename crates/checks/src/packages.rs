//! The packages that a build takes from others: their licences, and which of them come in several versions.
//!
//! `deny.toml` has the rules, so that `cargo deny check` and these tests judge by the same list. These need
//! no further program and no network; `cargo deny` knows more (yanked versions, advisories).

use crate::{metadata, read, text};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// The packages that a build for this machine compiles, tests and benchmarks included.
fn packages() -> Vec<Value> {
    let output = Command::new("rustc").arg("-vV").output().expect("rustc starts");
    let version = String::from_utf8(output.stdout).expect("rustc prints UTF-8");
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("rustc names its host");
    let mut metadata = metadata(&["--filter-platform", host]);
    // `packages` has those of all platforms; the resolved graph has those of this one.
    let nodes = metadata["resolve"]["nodes"].as_array().expect("a resolved graph");
    let used: BTreeSet<String> = nodes.iter().map(|node| text(node, "id").to_owned()).collect();
    let Value::Array(packages) = metadata["packages"].take() else { panic!("a list of packages") };
    packages.into_iter().filter(|package| used.contains(text(package, "id"))).collect()
}

fn rules() -> toml::Table {
    read("deny.toml").parse().expect("deny.toml is TOML")
}

fn texts(list: &toml::Value) -> BTreeSet<&str> {
    let list = list.as_array().expect("a list");
    list.iter().map(|value| value.as_str().expect("a text")).collect()
}

/// The texts under a key of each table of a list.
fn fields<'a>(list: &'a toml::Value, key: &str) -> BTreeSet<&'a str> {
    let list = list.as_array().expect("a list");
    list.iter().map(|value| value[key].as_str().expect("a text")).collect()
}

/// Whether an SPDX expression can be met by allowed licences. `OR` binds less than `AND`.
fn is_met(expression: &str, allowed: &mut impl FnMut(&str) -> bool) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut words = spaced.split_whitespace().peekable();
    let met = any(&mut words, allowed);
    assert!(words.peek().is_none(), "`{expression}` is no expression of licences");
    met
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any(words: &mut Words<'_>, allowed: &mut impl FnMut(&str) -> bool) -> bool {
    let mut met = all(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        met |= all(words, allowed);
    }
    met
}

fn all(words: &mut Words<'_>, allowed: &mut impl FnMut(&str) -> bool) -> bool {
    let mut met = one(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        met &= one(words, allowed);
    }
    met
}

fn one(words: &mut Words<'_>, allowed: &mut impl FnMut(&str) -> bool) -> bool {
    match words.next() {
        Some("(") => {
            let met = any(words, allowed);
            assert_eq!(words.next(), Some(")"), "a bracket is not closed");
            met
        }
        Some(name) if words.next_if_eq(&"WITH").is_some() => {
            let exception = words.next().expect("an exception's name");
            allowed(&format!("{name} WITH {exception}"))
        }
        Some(name) => allowed(name),
        None => panic!("an expression of licences ends too soon"),
    }
}

#[test]
fn licences_are_allowed() {
    let rules = rules();
    let allowed = texts(&rules["licenses"]["allow"]);
    let exceptions = rules["licenses"]["exceptions"].as_array().expect("a list");
    let mut excepted = fields(&rules["licenses"]["exceptions"], "crate");
    let mut used = BTreeSet::new();
    let mut refused = Vec::new();
    for package in packages() {
        let name = format!("{} {}", text(&package, "name"), text(&package, "version"));
        let Some(expression) = package["license"].as_str() else {
            refused.push(format!("{name}: names no licence"));
            continue;
        };
        let exception =
            exceptions.iter().find(|exception| exception["crate"].as_str() == package["name"].as_str());
        let special = exception.map(|exception| texts(&exception["allow"])).unwrap_or_default();
        let mut is_allowed = |licence: &str| {
            let found = allowed.get(licence);
            used.extend(found.copied());
            let is_exception = found.is_none() && special.contains(licence);
            if is_exception {
                excepted.remove(text(&package, "name"));
            }
            found.is_some() || is_exception
        };
        if !is_met(expression, &mut is_allowed) {
            refused.push(format!("{name}: {expression}"));
        }
    }
    assert_eq!(refused, [""; 0], "licences that deny.toml does not allow");
    let unused: Vec<_> = allowed.difference(&used).collect();
    assert_eq!(unused, [&""; 0], "deny.toml allows licences that no package has");
    assert_eq!(excepted, BTreeSet::new(), "deny.toml has exceptions that no package needs");
}

#[test]
fn duplicates_are_known() {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in packages() {
        let version = text(&package, "version");
        let name = text(&package, "name");
        // Build metadata is no part of what deny.toml writes.
        let version = version.split('+').next().unwrap_or(version);
        versions.entry(name.to_owned()).or_default().insert(format!("{name}@{version}"));
    }
    let rules = rules();
    let mut skipped = fields(&rules["bans"]["skip"], "crate");
    let banned = fields(&rules["bans"]["deny"], "crate");
    let mut unknown = Vec::new();
    for (name, found) in &versions {
        assert!(!banned.contains(name.as_str()), "deny.toml bans {name}");
        let known = found.iter().filter(|version| skipped.remove(version.as_str())).count();
        if known + 1 < found.len() {
            unknown.push(format!("{found:?}"));
        }
        assert!(
            known == 0 || known < found.len(),
            "{name} is no duplicate any more: take it out of deny.toml"
        );
    }
    assert_eq!(unknown, [""; 0], "duplicates that deny.toml does not have under `skip`");
    assert_eq!(skipped, BTreeSet::new(), "deny.toml skips versions that nothing uses any more");
}

#[test]
fn an_expression_is_met_by_one_of_its_alternatives() {
    let allowed = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"];
    let met = |expression| is_met(expression, &mut |licence| allowed.contains(&licence));
    for expression in [
        "MIT",
        "MIT OR GPL-3.0",
        "MIT/Apache-2.0",
        "(MIT OR X) AND Apache-2.0",
        "Apache-2.0 WITH LLVM-exception",
    ] {
        assert!(met(expression), "{expression}");
    }
    for expression in ["GPL-3.0", "MIT AND GPL-3.0", "MIT AND (X OR Y)", "MIT WITH LLVM-exception"] {
        assert!(!met(expression), "{expression}");
    }
}
