//! The workspace's sources, its patches, and the patched copy that a hunt builds.
//!
//! Invariant: a file of the copy is written only when its contents change, so that a build of the copy compiles only the changes
//! since the last one.

use super::patch::{self, Patch};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The patch that is not a bug: it adds the switch that the others check.
pub const SWITCH: &str = "switch";

const PATCHES: &str = "crates/sim/planted";
/// Directories that no build of the copy needs.
const LEFT_OUT: [&str; 4] = ["target", "node_modules", "__pycache__", "tributary-data"];

/// The directory of the workspace that this program was built from.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").components().collect()
}

/// The patches in the order of their names.
///
/// # Errors
/// The fault of the first invalid patch.
pub fn patches(root: &Path) -> Result<Vec<Patch>, String> {
    let dir = root.join(PATCHES);
    let mut patches = Vec::new();
    for path in listed(&dir).map_err(|error| format!("cannot list {}: {error}", dir.display()))? {
        let Some(name) = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".patch")) else {
            return Err(format!("{} is no patch: its name does not end in .patch", path.display()));
        };
        let text =
            fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let patch = Patch::parse(name, &text)?;
        if patch.about.is_empty() {
            return Err(format!(
                "planted bug {name}: its patch does not begin with a sentence that says what is wrong"
            ));
        }
        if name != SWITCH && !patch.asks_for_itself() {
            return Err(format!(
                "planted bug {name}: its patch does not ask `tributary_types::bug::is_planted(\"{name}\")`"
            ));
        }
        patches.push(patch);
    }
    Ok(patches)
}

/// The text of a source file.
pub fn source(root: &Path) -> impl Fn(&Path) -> Option<String> {
    move |path| fs::read_to_string(root.join(path)).ok()
}

/// Rewrites the patches of the workspace after the code around them has changed or moved. Returns the names of the rewritten
/// ones.
///
/// # Errors
/// The patches whose code cannot be found, or a file that cannot be written.
pub fn refresh(root: &Path) -> Result<Vec<String>, Vec<String>> {
    let one = |problem: String| vec![problem];
    let files = files_below(root, Path::new("crates")).map_err(|error| one(error.to_string()))?;
    let files: Vec<PathBuf> = files
        .into_iter()
        .filter(|file| file.extension().is_some_and(|extension| extension == "rs"))
        .collect();
    let (mut written, mut problems) = (Vec::new(), Vec::new());
    for patch in patches(root).map_err(one)? {
        match patch.refreshed(&files, &source(root)) {
            Ok(fresh) => {
                let path = root.join(PATCHES).join(format!("{}.patch", fresh.name));
                let changed = write_if_changed(&path, fresh.to_text(&source(root)).as_bytes());
                if changed.map_err(|error| one(format!("cannot write {}: {error}", path.display())))? {
                    written.push(fresh.name);
                }
            }
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(written) } else { Err(problems) }
}

/// Copies the workspace below its target directory, applies all patches to the copy and builds the simulation there.
/// Returns the program.
///
/// # Errors
/// Patches that do not apply, each with its name; files that cannot be copied; a build that fails.
pub fn build_patched(root: &Path, is_release: bool) -> Result<PathBuf, Vec<String>> {
    let one = |problem: String| vec![problem];
    let changed = patch::apply(&patches(root).map_err(one)?, &source(root))?;
    let copy = root.join("target/hunt/workspace");
    let failed = |error: io::Error| one(format!("cannot copy the workspace to {}: {error}", copy.display()));
    let mut files: BTreeSet<PathBuf> =
        files_below(root, Path::new("")).map_err(failed)?.into_iter().collect();
    files.extend(changed.keys().cloned());
    for file in &files {
        let contents = match changed.get(file) {
            Some(text) => text.clone().into_bytes(),
            None => fs::read(root.join(file)).map_err(failed)?,
        };
        write_if_changed(&copy.join(file), &contents).map_err(failed)?;
    }
    for file in files_below(&copy, Path::new("")).map_err(failed)? {
        if !files.contains(&file) {
            fs::remove_file(copy.join(file)).map_err(failed)?;
        }
    }
    let target = root.join("target/hunt/build");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let (profile, directory) = if is_release { ("release", "release") } else { ("dev", "debug") };
    // Naming the server's package, too, builds the dependencies with the features that they have in the whole workspace.
    let built = Command::new(cargo)
        .args(["build", "--package", "tributary", "--package", "tributary-sim", "--bin", "tributary-sim"])
        .args(["--profile", profile, "--target-dir"])
        .arg(&target)
        .current_dir(&copy)
        .status()
        .map_err(|error| one(format!("cannot run cargo: {error}")))?;
    if !built.success() {
        return Err(one(format!("the patched copy in {} does not build", copy.display())));
    }
    Ok(target.join(directory).join("tributary-sim"))
}

/// All files below a directory of `root`, by their paths from `root`.
fn files_below(root: &Path, dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in listed(&root.join(dir))? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_hidden = name.starts_with('.') && name != ".cargo";
        if is_hidden || LEFT_OUT.contains(&name.as_str()) {
            continue;
        }
        let inside = dir.join(&name);
        if path.is_dir() {
            files.extend(files_below(root, &inside)?);
        } else {
            files.push(inside);
        }
    }
    Ok(files)
}

/// The entries of a directory in order of their names; empty if it does not exist.
fn listed(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

fn write_if_changed(path: &Path, contents: &[u8]) -> io::Result<bool> {
    if fs::read(path).is_ok_and(|old| old == contents) {
        return Ok(false);
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, contents)?;
    Ok(true)
}
