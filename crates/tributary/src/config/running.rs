//! The settings of a running server, some of which change ([ADR 101](../../../../docs/adr/0101-settings-that-change.md)).
//!
//! A change that is to outlive the run is in the file `settings.toml` of the storage root, which the server writes and the next start
//! reads after all other sources. The configuration file is its owner's: the server never writes it.
//!
//! Invariant: a change is made as a whole or not at all, and the file has it before the parts of the server obey it.

use super::settings::{DECLARED, Settings};
use super::{Config, ConfigError, Origin, Texts, check, declared, pairs_of};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tributary_engine::{ServerSettings, SettingChange, SettingView};
use tributary_types::{ErrorCode, SqlError};

/// The file of kept changes, in the storage root.
const FILE: &str = "settings.toml";
const STAGED: &str = "settings.toml.new";
const HEAD: &str = "# What ADMIN SET FRONTEND CONFIG (…, \"persist\" = \"true\") has set. It overrides all other sources of settings. The\n\
    # server writes this file: change it only while the server is stopped, and remove a line to drop a setting.\n";

/// Reads the kept changes of earlier runs.
///
/// # Errors
/// The file can't be read, or has what can't be changed.
pub(super) fn read_kept(texts: &mut Texts) -> Result<(), ConfigError> {
    let path = Path::new(&texts["storage_root_path"].0).join(FILE);
    if !path.try_exists().unwrap_or(true) {
        return Ok(());
    }
    let from = format!("file {}", path.display());
    for (name, text) in pairs_of(&path)? {
        let setting = declared(&name, &from)?;
        if setting.change.is_none() {
            let reason = format!("`{name}` is not a setting that ADMIN SET can change: remove the line");
            return Err(ConfigError::File { path: path.display().to_string(), reason });
        }
        check(setting, &text, &from)?;
        texts.insert(setting.name, (text, Origin::Statement(Some(path.clone()))));
    }
    Ok(())
}

/// The configuration of a running server.
pub struct RunningConfig {
    config: Mutex<Config>,
    /// The storage root.
    directory: PathBuf,
    /// Called after each change, for what has no cell to read.
    changed: Box<dyn Fn(&Settings) + Send + Sync>,
}

impl RunningConfig {
    pub fn new(config: &Config, changed: impl Fn(&Settings) + Send + Sync + 'static) -> Self {
        Self {
            config: Mutex::new(config.clone()),
            directory: config.storage_root(),
            changed: Box::new(changed),
        }
    }

    fn make(&self, change: &SettingChange) -> Result<(), ConfigError> {
        let mut config = self.config.lock();
        let path = self.directory.join(FILE);
        let origin = Origin::Statement(change.persists.then(|| path.clone()));
        let mut wanted = BTreeMap::new();
        for (name, text) in &change.settings {
            let setting = declared(name, &"ADMIN SET")?;
            let Some(change) = setting.change else {
                return Err(ConfigError::NeedsRestart {
                    name: name.clone(),
                    variable: format!("{}{}", super::PREFIX, name.to_ascii_uppercase()),
                });
            };
            check(setting, text, &"ADMIN SET")?;
            if wanted.insert(setting.name, (text, change)).is_some() {
                return Err(ConfigError::Twice { name: name.clone() });
            }
        }
        if change.persists {
            let mut kept = Vec::new();
            for setting in DECLARED {
                let (text, from) = &config.texts[setting.name];
                let before = matches!(from, Origin::Statement(Some(_))) && !change.resets_kept;
                let text = wanted.get(setting.name).map(|(text, _)| *text).or(before.then_some(text));
                kept.extend(text.map(|text| (setting, text)));
            }
            let lines = kept
                .into_iter()
                .map(|(setting, text)| format!("{} = {}\n", setting.name, setting.rule.toml(text.clone())));
            let text: String = std::iter::once(HEAD.to_owned()).chain(lines).collect();
            write_durably(&self.directory, &text).map_err(|error| ConfigError::NotKept {
                path: path.display().to_string(),
                reason: error.to_string(),
            })?;
        }
        if change.resets_kept {
            for (_, from) in config.texts.values_mut() {
                if matches!(from, Origin::Statement(Some(_))) {
                    *from = Origin::Statement(None);
                }
            }
        }
        for (name, (text, change)) in wanted {
            change(&config.settings, text);
            config.texts.insert(name, (text.clone(), origin.clone()));
        }
        (self.changed)(&config.settings);
        Ok(())
    }
}

impl ServerSettings for RunningConfig {
    fn views(&self) -> Vec<SettingView> {
        self.config.lock().views()
    }

    fn change(&self, change: &SettingChange) -> Result<(), SqlError> {
        self.make(change).map_err(|error| SqlError::detail(ErrorCode::Unknown, error.to_string()))?;
        let names: BTreeSet<&str> = change.settings.iter().map(|(name, _)| name.as_str()).collect();
        tracing::info!(?names, persists = change.persists, "settings were changed");
        Ok(())
    }
}

/// Replaces the file as a whole.
fn write_durably(directory: &Path, text: &str) -> io::Result<()> {
    let staged = directory.join(STAGED);
    let mut file = File::create(&staged)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&staged, directory.join(FILE))?;
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn change(settings: &[(&str, &str)], persists: bool) -> SettingChange {
        let settings = settings.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        SettingChange { settings, persists, resets_kept: false }
    }

    fn load(directory: &Path) -> Result<Config, ConfigError> {
        let root = ("storage_root_path", directory.display().to_string());
        Config::load(None, [("TRIBUTARY_FLUSH_AGE_MS".into(), "500".into())], [root])
    }

    fn origin(running: &RunningConfig, name: &str) -> String {
        let views = running.views();
        let view = views.iter().find(|view| view.name == name).expect("declared");
        format!("{} {}", view.value, view.origin)
    }

    #[test]
    fn a_change_is_read_by_all_who_hold_the_setting_and_kept_if_wanted() {
        let directory = tempfile::tempdir().expect("a directory");
        let config = load(directory.path()).expect("legal");
        let (age, level) = (config.settings.flush_age_ms.clone(), config.settings.log_level.clone());
        let running = RunningConfig::new(&config, |_| {});
        running.make(&change(&[("flush_age_ms", "7"), ("log_level", "debug")], false)).expect("legal");
        assert_eq!((age.get(), level.get().as_str()), (7, "debug"));
        assert_eq!(origin(&running, "flush_age_ms"), "7 ADMIN SET, until the next start");
        assert_eq!(load(directory.path()).expect("legal").settings.flush_age_ms.get(), 500);
        running.make(&change(&[("flush_age_ms", "8")], true)).expect("legal");
        running.make(&change(&[("verify_interval_seconds", "9")], true)).expect("legal");
        running.make(&change(&[("flush_age_ms", "10")], false)).expect("legal");
        let again = load(directory.path()).expect("the server wrote it");
        assert_eq!(again.settings.flush_age_ms.get(), 8, "what was kept overrides the environment");
        assert_eq!(again.settings.verify_interval_seconds.get(), Duration::from_secs(9));
        let shown = origin(&RunningConfig::new(&again, |_| {}), "flush_age_ms");
        assert!(shown.starts_with("8 ADMIN SET, file ") && shown.ends_with("/settings.toml"), "{shown}");
    }

    #[test]
    fn what_is_kept_can_be_dropped() {
        let directory = tempfile::tempdir().expect("a directory");
        let running = RunningConfig::new(&load(directory.path()).expect("legal"), |_| {});
        running.make(&change(&[("flush_age_ms", "8"), ("flush_bytes", "9")], true)).expect("legal");
        let reset = SettingChange { resets_kept: true, ..change(&[("flush_bytes", "10")], true) };
        running.make(&reset).expect("legal");
        assert_eq!(origin(&running, "flush_age_ms"), "8 ADMIN SET, until the next start");
        let again = load(directory.path()).expect("legal");
        assert_eq!((again.settings.flush_age_ms.get(), again.settings.flush_bytes.get()), (500, 10));
    }

    #[test]
    fn a_refused_change_changes_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let running =
            RunningConfig::new(&load(directory.path()).expect("legal"), |_| panic!("nothing has changed"));
        for (name, value, expected) in [
            ("flush_age", "1", "unknown setting `flush_age` (ADMIN SET), did you mean `flush_age_ms`?"),
            ("flush_bytes", "0", "`0` is not a whole number from 1 to"),
            ("qe_max_connection", "many", "`many` is not a whole number from 1 to 4294967295"),
            ("bind", "0.0.0.0", "setting `bind` can't change while the server runs"),
            ("catalog_password", "hush", "TRIBUTARY_CATALOG_PASSWORD, and restart"),
            ("flush_age_ms", "3", "setting `flush_age_ms` is given twice"),
        ] {
            let error =
                running.make(&change(&[("flush_age_ms", "2"), (name, value)], true)).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains("hush"), "{error}");
        }
        fs::create_dir(directory.path().join(STAGED)).expect("made");
        let error = running.make(&change(&[("flush_age_ms", "2")], true)).unwrap_err().to_string();
        assert!(error.contains("settings.toml can't be written, and nothing has changed"), "{error}");
        assert_eq!(origin(&running, "flush_age_ms"), "500 environment TRIBUTARY_FLUSH_AGE_MS");
    }

    #[test]
    fn a_file_that_was_edited_is_checked() {
        let directory = tempfile::tempdir().expect("a directory");
        for (text, expected) in [
            ("bind = '0.0.0.0'", "`bind` is not a setting that ADMIN SET can change: remove the line"),
            ("flush_age_ms = 'soon'", "settings.toml): `soon` is not a whole number"),
            ("flush_age_sm = 1", "unknown setting `flush_age_sm` (file "),
        ] {
            fs::write(directory.path().join(FILE), text).expect("written");
            let error = load(directory.path()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
