//! Finds names that someone may have meant.

/// How alike names must be to be offered, from 0 (not at all) to 1 (the same).
const ALIKE_MIN: f64 = 0.5;

/// The known name that is most like `name`, if it is like it at all.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    ranked(name, known)
        .into_iter()
        .next()
        .filter(|(likeness, _)| *likeness >= ALIKE_MIN)
        .map(|(_, known)| known)
}

/// The known names that are most like `name`, the most alike first.
#[must_use]
pub fn most_alike<'a>(name: &str, known: impl IntoIterator<Item = &'a str>, count: usize) -> Vec<&'a str> {
    ranked(name, known).into_iter().take(count).map(|(_, known)| known).collect()
}

fn ranked<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<(f64, &'a str)> {
    let name = name.to_ascii_lowercase();
    // By pairs of letters and not by edits: a name is more often cut short than mistyped.
    let mut ranked: Vec<_> =
        known.into_iter().map(|known| (strsim::sorensen_dice(&name, known), known)).collect();
    ranked.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    ranked
}
