//! Patches that plant bugs: reading them, finding their places in the sources, and applying all of them together.
//!
//! A patch is a unified diff, with a sentence above it that describes the bug. Its hunks are found by their text alone: the lines
//! that a hunk retains and removes must occur in the file exactly once, at any position. So a patch survives changes elsewhere in
//! the file, and any set of patches applies in any order as long as no two change the same lines.
//!
//! Invariant: a patch applies as intended or is an error that names it. Not its business: the effect of a bug.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Lines of context around a change in a refreshed patch.
const CONTEXT: usize = 3;

/// The text of a source file by its path from the root of the workspace; `None` if it does not exist.
pub type Source<'a> = &'a dyn Fn(&Path) -> Option<String>;

/// A patch file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// The file's name without its extension.
    pub name: String,
    /// The text above the diff.
    pub about: String,
    hunks: Vec<Hunk>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Hunk {
    file: PathBuf,
    /// The hunk is a new file.
    creates: bool,
    lines: Vec<Line>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Line {
    Kept(String),
    Removed(String),
    Added(String),
}

impl Line {
    /// The line before the change, if it exists.
    fn before(&self) -> Option<&str> {
        match self {
            Self::Kept(text) | Self::Removed(text) => Some(text),
            Self::Added(_) => None,
        }
    }
}

/// Lines of a file that are replaced.
struct Edit<'a> {
    patch: &'a str,
    lines: Range<usize>,
    by: Vec<String>,
}

impl Patch {
    /// Reads a patch file.
    ///
    /// # Errors
    /// The fault of the file, and its line.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        let lines: Vec<&str> = text.lines().collect();
        let (mut about, mut hunks) = (String::new(), Vec::<Hunk>::new());
        let mut target: Option<(PathBuf, bool)> = None;
        let (mut at, mut in_hunk) = (0, false);
        while let Some(&line) = lines.get(at) {
            let failed = |why: &str| Err(format!("planted bug {name}, line {} of its patch: {why}", at + 1));
            let next = lines.get(at + 1).copied().unwrap_or_default();
            if line.starts_with("--- ") && next.starts_with("+++ ") {
                let Some(path) = next.strip_prefix("+++ b/") else {
                    return failed("the new file's name does not begin with b/");
                };
                let path = path.split('\t').next().unwrap_or(path);
                target = Some((PathBuf::from(path), line.starts_with("--- /dev/null")));
                (at, in_hunk) = (at + 2, false);
                continue;
            }
            if line.starts_with("@@ ") {
                let Some((file, creates)) = target.clone() else { return failed("a hunk without a file") };
                hunks.push(Hunk { file, creates, lines: Vec::new() });
                in_hunk = true;
            } else if line.starts_with("diff --git ") {
                in_hunk = false;
            } else if in_hunk && let Some(hunk) = hunks.last_mut() {
                let ends_here = next.is_empty() || next.starts_with("--- ") || next.starts_with("diff ");
                match line.split_at_checked(1) {
                    _ if line.is_empty() && ends_here => {}
                    // An editor may have removed the blank that marks an empty context line.
                    _ if line.is_empty() => hunk.lines.push(Line::Kept(String::new())),
                    Some((" ", text)) => hunk.lines.push(Line::Kept(text.to_owned())),
                    Some(("-", text)) => hunk.lines.push(Line::Removed(text.to_owned())),
                    Some(("+", text)) => hunk.lines.push(Line::Added(text.to_owned())),
                    _ => return failed("a line of a hunk begins with ' ', '-' or '+'"),
                }
            } else if target.is_none() {
                about.push_str(line);
                about.push('\n');
            }
            at += 1;
        }
        if hunks.is_empty() {
            return Err(format!("planted bug {name}: its patch has no hunk"));
        }
        Ok(Self { name: name.to_owned(), about: about.trim().to_owned(), hunks })
    }

    /// Whether the patched code checks the switch of the bug's name, so that it can be switched on.
    #[must_use]
    pub fn asks_for_itself(&self) -> bool {
        let question = format!("bug::is_planted(\"{}\")", self.name);
        self.hunks.iter().flat_map(|hunk| &hunk.lines).any(|line| match line {
            Line::Added(text) => text.contains(&question),
            _ => false,
        })
    }

    /// The same change with the places, the context and, where code has moved to another file, the files of today.
    ///
    /// # Errors
    /// The patch's name and the hunk that cannot be found.
    pub fn refreshed(&self, files: &[PathBuf], source: Source<'_>) -> Result<Self, String> {
        let hunks = self.hunks.iter().map(|hunk| {
            if hunk.creates {
                return Ok(hunk.clone());
            }
            hunk.found_again(files, source).ok_or_else(|| self.lost(hunk, "nothing like it is left"))
        });
        Ok(Self { hunks: hunks.collect::<Result<_, _>>()?, ..self.clone() })
    }

    /// The patch as a file.
    #[must_use]
    pub fn to_text(&self, source: Source<'_>) -> String {
        let mut text = format!("{}\n", self.about);
        let mut shift = 0;
        let mut last: Option<&Path> = None;
        for hunk in &self.hunks {
            if last != Some(&hunk.file) {
                let path = hunk.file.display();
                let old = if hunk.creates { "/dev/null".to_owned() } else { format!("a/{path}") };
                let _ = write!(text, "{}--- {old}\n+++ b/{path}\n", if last.is_none() { "\n" } else { "" });
                shift = 0;
            }
            last = Some(&hunk.file);
            let before = hunk.before().count();
            let after = hunk.lines.iter().filter(|line| !matches!(line, Line::Removed(_))).count();
            let place = source(&hunk.file).and_then(|text| {
                places(&text.lines().collect::<Vec<_>>(), &hunk.before().collect::<Vec<_>>()).first().copied()
            });
            let from = if hunk.creates { 0 } else { place.unwrap_or_default() + 1 };
            let to = if hunk.creates { 1 } else { from.saturating_add_signed(shift) };
            let _ = writeln!(text, "@@ -{from},{before} +{to},{after} @@");
            shift += after as isize - before as isize;
            for line in &hunk.lines {
                let (sign, line) = match line {
                    Line::Kept(line) => (' ', line),
                    Line::Removed(line) => ('-', line),
                    Line::Added(line) => ('+', line),
                };
                let _ = writeln!(text, "{sign}{line}");
            }
        }
        text
    }

    fn lost(&self, hunk: &Hunk, why: &str) -> String {
        let first = hunk.before().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
        format!(
            "planted bug {}: its patch does not apply to {}, at the lines from `{first}` on: {why}. Plant it anew \
             (docs/reliability.md says how) or, if the code has only moved, run `scripts/hunt --refresh`",
            self.name,
            hunk.file.display()
        )
    }

    fn edits<'a>(&'a self, hunk: &'a Hunk, text: &[&str]) -> Result<Vec<Edit<'a>>, String> {
        let before: Vec<&str> = hunk.before().collect();
        let place = match places(text, &before)[..] {
            [place] => place,
            [] => return Err(self.lost(hunk, "they are not there")),
            _ => return Err(self.lost(hunk, "they are there more than once")),
        };
        let mut edits: Vec<Edit<'_>> = Vec::new();
        let mut at = place;
        let mut in_edit = false;
        for line in &hunk.lines {
            if let Line::Kept(_) = line {
                (at, in_edit) = (at + 1, false);
                continue;
            }
            if !in_edit {
                edits.push(Edit { patch: &self.name, lines: at..at, by: Vec::new() });
                in_edit = true;
            }
            let edit = edits.last_mut().expect("one was just pushed, or is being made");
            match line {
                Line::Added(text) => edit.by.push(text.clone()),
                _ => {
                    at += 1;
                    edit.lines.end = at;
                }
            }
        }
        Ok(edits)
    }
}

impl Hunk {
    fn before(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(Line::before)
    }

    /// Looks in its own file, then in all, with ever less context; indentation may differ.
    fn found_again(&self, files: &[PathBuf], source: Source<'_>) -> Option<Self> {
        let trimmed = |lines: &[&str]| lines.iter().map(|line| line.trim().to_owned()).collect::<Vec<_>>();
        let kept = |line: &Line| matches!(line, Line::Kept(_));
        let head = self.lines.iter().take_while(|line| kept(line)).count();
        let tail = self.lines.iter().rev().take_while(|line| kept(line)).count();
        for left in (0..=head.max(tail)).rev() {
            let core = &self.lines[head.saturating_sub(left)..self.lines.len() - tail.saturating_sub(left)];
            let wanted = trimmed(&core.iter().filter_map(Line::before).collect::<Vec<_>>());
            if wanted.iter().all(String::is_empty) {
                return None;
            }
            let own = std::slice::from_ref(&self.file);
            for files in [own, files] {
                let mut found = Vec::new();
                for file in files {
                    let Some(text) = source(file) else { continue };
                    let text = trimmed(&text.lines().collect::<Vec<_>>());
                    found.extend(places(&text, &wanted).into_iter().map(|place| (file, place)));
                }
                if let [(file, place)] = found[..] {
                    return Some(Self::at(file, place, core, &source(file)?));
                }
            }
        }
        None
    }

    /// The hunk at that line of the file, with its context and indentation.
    fn at(file: &Path, place: usize, core: &[Line], text: &str) -> Self {
        let text: Vec<&str> = text.lines().collect();
        let indent = |line: &str| line.len() - line.trim_start().len();
        let mut at = place;
        let mut deeper = 0;
        let mut lines = Vec::new();
        let kept =
            |lines: &[&str]| lines.iter().map(|line| Line::Kept((*line).to_owned())).collect::<Vec<_>>();
        lines.extend(kept(&text[place.saturating_sub(CONTEXT)..place]));
        // Added lines follow the indentation of the code that they were written for.
        if let Some(line) = core.iter().filter_map(Line::before).find(|line| !line.trim().is_empty()) {
            let here =
                core.iter().filter_map(Line::before).position(|other| other == line).unwrap_or_default();
            deeper = indent(text[place + here]) as isize - indent(line) as isize;
        }
        for line in core {
            lines.push(match line {
                Line::Kept(_) => Line::Kept(text[at].to_owned()),
                Line::Removed(_) => Line::Removed(text[at].to_owned()),
                Line::Added(line) if line.is_empty() => Line::Added(String::new()),
                Line::Added(line) => {
                    let spaces = indent(line).saturating_add_signed(deeper);
                    Line::Added(format!("{}{}", " ".repeat(spaces), line.trim_start()))
                }
            });
            at += usize::from(line.before().is_some());
        }
        lines.extend(kept(&text[at..text.len().min(at + CONTEXT)]));
        let is_change = |line: &Line| !matches!(line, Line::Kept(_));
        let first = lines.iter().position(is_change).unwrap_or_default();
        let last = lines.iter().rposition(is_change).unwrap_or_default();
        let lines = lines[first.saturating_sub(CONTEXT)..lines.len().min(last + 1 + CONTEXT)].to_vec();
        Self { file: file.to_owned(), creates: false, lines }
    }
}

/// The positions of `wanted` in `text`.
fn places<S: PartialEq>(text: &[S], wanted: &[S]) -> Vec<usize> {
    if wanted.is_empty() {
        return Vec::new();
    }
    text.windows(wanted.len()).enumerate().filter(|(_, window)| *window == wanted).map(|(at, _)| at).collect()
}

/// The files that the patches change or create, all applied together.
///
/// # Errors
/// A sentence for each hunk that has no place, or whose lines another patch changes too.
pub fn apply(patches: &[Patch], source: Source<'_>) -> Result<BTreeMap<PathBuf, String>, Vec<String>> {
    let mut problems = Vec::new();
    let mut files: BTreeMap<PathBuf, String> = BTreeMap::new();
    let mut edits: BTreeMap<&Path, Vec<Edit<'_>>> = BTreeMap::new();
    for patch in patches {
        for hunk in &patch.hunks {
            let text = source(&hunk.file);
            match (hunk.creates, text) {
                (true, None) => {
                    let added = hunk.lines.iter().map(|line| match line {
                        Line::Added(text) | Line::Kept(text) | Line::Removed(text) => text.as_str(),
                    });
                    let text = added.flat_map(|line| [line, "\n"]).collect();
                    files.insert(hunk.file.clone(), text);
                }
                (true, Some(_)) => problems.push(patch.lost(hunk, "the file is there already")),
                (false, None) => problems.push(patch.lost(hunk, "there is no such file")),
                (false, Some(text)) => match patch.edits(hunk, &text.lines().collect::<Vec<_>>()) {
                    Ok(found) => edits.entry(&hunk.file).or_default().extend(found),
                    Err(problem) => problems.push(problem),
                },
            }
        }
    }
    for (file, mut edits) in edits {
        edits.sort_by_key(|edit| (edit.lines.start, edit.lines.end));
        for pair in edits.windows(2) {
            if pair[1].lines.start < pair[0].lines.end || pair[1].lines.start == pair[0].lines.start {
                let (one, other) = (pair[0].patch, pair[1].patch);
                let line = pair[1].lines.start + 1;
                problems.push(format!(
                    "planted bugs {one} and {other} both change {} at line {line}; let one keep its distance",
                    file.display()
                ));
            }
        }
        let text = source(file).unwrap_or_default();
        let mut lines: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
        if problems.is_empty() {
            for edit in edits.into_iter().rev() {
                lines.splice(edit.lines, edit.by);
            }
            files.insert(file.to_owned(), lines.join("\n") + "\n");
        }
    }
    if problems.is_empty() { Ok(files) } else { Err(problems) }
}
