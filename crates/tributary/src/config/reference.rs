//! The table of settings in `docs/configuration.md`, which is made from their declarations.

use super::kind::Rule;
use super::settings::{DECLARED, Declared};
use std::path::PathBuf;

const BEGIN: &str = "<!-- The settings: made from their declarations by the command above. -->\n";
const END: &str = "<!-- End of the settings. -->\n";

fn row(setting: &Declared) -> String {
    let default =
        if setting.default.is_empty() { "none".to_owned() } else { format!("`{}`", setting.default) };
    let accepts = match setting.rule {
        Rule::Whole { min, max: u64::MAX, unit } => format!("{min} or more {unit}"),
        Rule::Whole { min, max, unit } => format!("{min} to {max} {unit}"),
        Rule::Text(words) | Rule::Secret(words) | Rule::Url(words) => words.to_owned(),
    };
    let changes = if setting.change.is_some() { "yes" } else { "" };
    format!("| `{}` | {default} | {} | {changes} | {} |\n", setting.name, accepts.trim(), setting.meaning())
}

#[test]
fn the_reference_of_settings_is_what_their_declarations_say() {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md"));
    let page = std::fs::read_to_string(&path).expect("the page is there");
    let (before, rest) = page.split_once(BEGIN).expect("the table's first line is marked");
    let (_, after) = rest.split_once(END).expect("the table's last line is marked");
    let rows: String = DECLARED.iter().map(row).collect();
    let table = format!(
        "\n| setting | default | accepts | at run time | meaning |\n| --- | --- | --- | --- | --- |\n{rows}\n"
    );
    let expected = format!("{before}{BEGIN}{table}{END}{after}");
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::write(&path, expected).expect("the page is written");
    } else {
        assert!(
            page == expected,
            "docs/configuration.md is not what the declarations say; \
             run UPDATE_REFERENCE=1 cargo test -p tributary reference"
        );
    }
}
