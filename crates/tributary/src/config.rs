//! Configuration: defaults, one TOML file, `TRIBUTARY_*` variables, command line, and what a running server was told to keep; the
//! later wins.
//!
//! An unknown name or a bad value is an error that names it, with its origin. Not its business: the settings themselves and their
//! legal values ([`settings`]).

mod environment;
mod kind;
#[cfg(test)]
mod reference;
mod running;
mod settings;

pub use kind::LogFormat;
pub use running::RunningConfig;
pub use settings::Settings;

use settings::DECLARED;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use tributary_engine::{SettingView, similar};

/// The prefix of environment variables.
const PREFIX: &str = "TRIBUTARY_";

/// The origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Default,
    File(PathBuf),
    Environment(String),
    CommandLine,
    /// A statement, and the file that has the value for later runs; `None`: this run only.
    Statement(Option<PathBuf>),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::CommandLine => f.write_str("command line"),
            Self::Statement(Some(path)) => write!(f, "ADMIN SET, file {}", path.display()),
            Self::Statement(None) => f.write_str("ADMIN SET, until the next start"),
        }
    }
}

/// A configuration that can't be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ConfigError {
    #[error("configuration file {path}: {reason}")]
    File { path: String, reason: String },
    #[error("unknown setting `{name}` ({origin}){hint}; `tributary config` lists all settings")]
    Unknown { name: String, origin: String, hint: String },
    #[error("setting `{name}` ({origin}): `{value}` is not {expected}")]
    Bad { name: String, origin: String, value: String, expected: String },
    #[error(
        "setting `{name}` can't change while the server runs: set it in the configuration file (--config FILE), or as the \
         environment variable {variable}, and restart the server"
    )]
    NeedsRestart { name: String, variable: String },
    #[error("setting `{name}` is given twice")]
    Twice { name: String },
    #[error("{path} can't be written, and nothing has changed: {reason}")]
    NotKept { path: String, reason: String },
}

/// The text of each setting and its origin.
type Texts = BTreeMap<&'static str, (String, Origin)>;

/// All settings with their values and origins.
#[derive(Clone, Debug)]
pub struct Config {
    pub settings: Settings,
    texts: Texts,
    /// Environment variables set by a container platform, which are not settings.
    pub ignored: Vec<String>,
}

impl Config {
    /// Reads all sources. `environment` and `command_line` are pairs of name and value; the
    /// environment's settings have the prefix `TRIBUTARY_`.
    ///
    /// # Errors
    /// The first unknown name or bad value, with its origin and what would be right.
    pub fn load(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        command_line: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Result<Self, ConfigError> {
        let defaults =
            DECLARED.iter().map(|setting| (setting.name, (setting.default.to_owned(), Origin::Default)));
        let mut texts: Texts = defaults.collect();
        if let Some(path) = file {
            read_file(&mut texts, path)?;
        }
        let mut ignored = Vec::new();
        for (name, value) in environment {
            let Some(name) = name.to_str() else { continue };
            let Some(key) = name.strip_prefix(PREFIX) else { continue };
            let value = value.to_string_lossy().into_owned();
            if environment::is_injected(key, &value) {
                ignored.push(name.to_owned());
            } else {
                set(&mut texts, &key.to_ascii_lowercase(), value, Origin::Environment(name.to_owned()))?;
            }
        }
        for (name, value) in command_line {
            set(&mut texts, name, value, Origin::CommandLine)?;
        }
        running::read_kept(&mut texts)?;
        let settings = Settings::read(|name| &texts[name].0);
        Ok(Self { settings, texts, ignored })
    }

    /// The storage root.
    #[must_use]
    pub fn storage_root(&self) -> PathBuf {
        self.settings.storage_root_path.clone()
    }

    /// The directories of the write-ahead logs.
    #[must_use]
    pub fn wal_dirs(&self) -> Vec<PathBuf> {
        self.settings.wal_dirs()
    }

    /// Every setting as the server shows it.
    #[must_use]
    pub fn views(&self) -> Vec<SettingView> {
        let view = |setting: &settings::Declared| {
            let (value, origin) = &self.texts[setting.name];
            SettingView {
                name: setting.name,
                value: setting.rule.shown(value),
                default: setting.default,
                origin: origin.to_string(),
                accepts: setting.rule.expected(),
                meaning: setting.meaning(),
                type_name: setting.rule.type_name(),
                is_mutable: setting.change.is_some(),
            }
        };
        DECLARED.iter().map(view).collect()
    }

    /// Every setting with its value, origin and meaning, as `tributary config` prints it: a TOML
    /// file that sets the same values.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut out = String::new();
        for setting in DECLARED {
            let (value, origin) = &self.texts[setting.name];
            let shown = setting.rule.shown(value);
            let is_hidden = matches!(setting.rule, kind::Rule::Secret(_)) && !value.is_empty();
            let shown = setting.rule.toml(shown);
            // A line that would set another value is a comment.
            let mark = if is_hidden { "# " } else { "" };
            out.push_str(&format!(
                "# {} [{origin}]\n{mark}{} = {shown}\n\n",
                setting.meaning(),
                setting.name
            ));
        }
        out
    }
}

fn read_file(texts: &mut Texts, path: &Path) -> Result<(), ConfigError> {
    for (name, text) in pairs_of(path)? {
        set(texts, &name, text, Origin::File(path.to_owned()))?;
    }
    Ok(())
}

/// The names and values in a file.
fn pairs_of(path: &Path) -> Result<Vec<(String, String)>, ConfigError> {
    let failed = |reason: String| ConfigError::File { path: path.display().to_string(), reason };
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| failed(error.to_string()))?;
    let mut pairs = Vec::new();
    for (name, value) in table {
        let text = match value {
            toml::Value::String(text) => text,
            toml::Value::Integer(number) => number.to_string(),
            toml::Value::Boolean(flag) => flag.to_string(),
            other => {
                return Err(failed(format!(
                    "`{name}` is a {}; settings are strings, whole numbers or booleans",
                    other.type_str()
                )));
            }
        };
        pairs.push((name, text));
    }
    Ok(pairs)
}

fn set(texts: &mut Texts, name: &str, value: String, origin: Origin) -> Result<(), ConfigError> {
    let setting = declared(name, &origin)?;
    check(setting, &value, &origin)?;
    texts.insert(setting.name, (value, origin));
    Ok(())
}

fn declared(name: &str, origin: &dyn fmt::Display) -> Result<&'static settings::Declared, ConfigError> {
    DECLARED.iter().find(|setting| setting.name == name).ok_or_else(|| {
        let near = similar::nearest(name, DECLARED.iter().map(|setting| setting.name));
        ConfigError::Unknown {
            name: name.to_owned(),
            origin: origin.to_string(),
            hint: near.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default(),
        }
    })
}

fn check(setting: &settings::Declared, value: &str, origin: &dyn fmt::Display) -> Result<(), ConfigError> {
    if (setting.is_legal)(value) {
        return Ok(());
    }
    Err(ConfigError::Bad {
        name: setting.name.to_owned(),
        origin: origin.to_string(),
        value: setting.rule.shown(value),
        expected: setting.rule.expected(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(name: &str, value: &str) -> (OsString, OsString) {
        (name.into(), value.into())
    }

    #[test]
    fn every_default_is_a_legal_value() {
        for setting in DECLARED {
            assert!((setting.is_legal)(setting.default), "{}", setting.name);
        }
    }

    #[test]
    fn the_command_line_beats_the_environment_which_beats_the_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("tributary.toml");
        std::fs::write(&path, "query_port = 1\nhttp_port = 2\nwebserver_port = 3\n").expect("written");
        let environment =
            [pair("TRIBUTARY_HTTP_PORT", "20"), pair("TRIBUTARY_WEBSERVER_PORT", "30"), pair("HOME", "/")];
        let config =
            Config::load(Some(&path), environment, [("webserver_port", "300".to_owned())]).expect("legal");
        let Settings { query_port, http_port, webserver_port, .. } = config.settings;
        assert_eq!((query_port, http_port, webserver_port), (1, 20, 300));
        let described = config.describe();
        assert!(described.contains("[environment TRIBUTARY_HTTP_PORT]\nhttp_port = 20\n"), "{described}");
        assert!(described.contains("[command line]\nwebserver_port = 300\n"), "{described}");
        std::fs::write(&path, &described).expect("written");
        let again = Config::load(Some(&path), [], []).expect("what `config` prints is a configuration file");
        assert_eq!(format!("{:?}", again.settings), format!("{:?}", config.settings));
    }

    #[test]
    fn an_unknown_setting_is_named_with_its_origin_and_a_near_name() {
        for (name, near) in [
            ("TRIBUTARY_STORAGE_ROOT", "storage_root_path"),
            ("TRIBUTARY_FLUSH_AGE", "flush_age_ms"),
            ("TRIBUTARY_QEURY_PORT", "query_port"),
            ("TRIBUTARY_MAX_CONNECTION", "qe_max_connection"),
            ("TRIBUTARY_GROUP_COMMIT_INTERVAL_MS", "group_commit_interval_ms_default_value"),
        ] {
            let text = Config::load(None, [pair(name, "x")], []).unwrap_err().to_string();
            assert!(text.contains(&format!("(environment {name})")), "{text}");
            assert!(text.contains(&format!("did you mean `{near}`?")), "{text}");
        }
        let text = Config::load(None, [pair("TRIBUTARY_ZZZ", "x")], []).unwrap_err().to_string();
        assert!(!text.contains("did you mean"), "{text}");
    }

    #[test]
    fn a_bad_value_is_named_with_what_would_be_right() {
        for (name, value, expected) in [
            ("query_port", "high", "is not a whole number from 0 to 65535"),
            ("query_port", "65536", "is not a whole number from 0 to 65535"),
            ("bind", "localhost", "is not an IP address like `127.0.0.1`"),
            ("log_format", "xml", "is not one of text, json"),
            (
                "group_commit_wal_max_disk_limit",
                "0%",
                "is not a percentage like `10%` (1 to 100) or a number of bytes",
            ),
        ] {
            let error = Config::load(None, [], [(name, value.to_owned())]).unwrap_err();
            assert_eq!(error.to_string(), format!("setting `{name}` (command line): `{value}` {expected}"));
        }
    }

    #[test]
    fn a_key_is_read_and_not_shown() {
        let given = [
            ("table_storage", "s3://bucket/a".to_owned()),
            ("table_storage_access_key", "key".to_owned()),
            ("table_storage_secret_key", "hush".to_owned()),
        ];
        let config = Config::load(None, [], given).expect("legal");
        let s3 = config.settings.remote().expect("a store");
        assert_eq!((s3.location.to_string().as_str(), s3.secret_key.reveal()), ("s3://bucket/a", "hush"));
        let views: Vec<_> = config.views().into_iter().map(|view| (view.name, view.value)).collect();
        for shown in [config.describe(), format!("{:?}", config.settings), format!("{views:?}")] {
            assert!(!shown.contains("hush"), "{shown}");
        }
        assert!(
            config.describe().contains("\n# table_storage_secret_key = \"***\"\n"),
            "{}",
            config.describe()
        );
        assert!(config.describe().contains("\ntable_storage_session_token = \"\"\n"));
        assert!(Config::load(None, [], []).expect("legal").settings.remote().is_none());
        for other in ["hdfs://bucket/a", "/data"] {
            let refused =
                Config::load(None, [], [("table_storage", other.to_owned())]).unwrap_err().to_string();
            assert!(refused.contains(other) && refused.contains("s3://bucket/prefix"), "{refused}");
        }
    }

    #[test]
    fn a_password_in_a_url_is_refused_and_not_shown() {
        let given = |url: &str| Config::load(None, [], [("catalog_url", url.to_owned())]);
        for url in ["postgres://u:hush@host/db", "postgres://u:hush@me@host/db", "mysql://u:hush@host/db"] {
            let refused = given(url).unwrap_err().to_string();
            assert!(
                refused.contains("catalog_password") && refused.contains("://u:***@host/db"),
                "{refused}"
            );
            assert!(!refused.contains("hush"), "{refused}");
        }
        let password = ("catalog_password", "hush".to_owned());
        let url = ("catalog_url", "postgres://u@host/db".to_owned());
        let config = Config::load(None, [], [url, password]).expect("legal");
        let database = config.settings.catalog_database().expect("a database");
        assert_eq!(
            (database.url.to_string().as_str(), database.password.reveal()),
            ("postgres://u@host:5432/db", "hush")
        );
        let views: Vec<_> = config.views().into_iter().map(|view| (view.name, view.value)).collect();
        for shown in [config.describe(), format!("{:?}", config.settings), format!("{views:?}")] {
            assert!(!shown.contains("hush"), "{shown}");
        }
        assert!(Config::load(None, [], []).expect("legal").settings.catalog_database().is_none());
    }

    #[test]
    fn what_a_container_platform_sets_is_no_setting() {
        let environment = [
            pair("TRIBUTARY_PORT", "tcp://10.0.0.11:9030"),
            pair("TRIBUTARY_HTTP_PORT", "tcp://10.0.0.12:8030"),
            pair("TRIBUTARY_QUERY_PORT", "19030"),
        ];
        let config = Config::load(None, environment, []).expect("legal");
        assert_eq!(config.ignored, ["TRIBUTARY_PORT", "TRIBUTARY_HTTP_PORT"]);
        assert_eq!((config.settings.http_port, config.settings.query_port), (8030, 19030));
    }

    #[test]
    fn wal_directories_are_separated_by_semicolons() {
        let config =
            Config::load(None, [], [("group_commit_wal_path", "/a/wal; /b/wal;".to_owned())]).expect("legal");
        assert_eq!(config.wal_dirs(), [PathBuf::from("/a/wal"), PathBuf::from("/b/wal")]);
        let default = Config::load(None, [], [("storage_root_path", "/data".to_owned())]).expect("legal");
        assert_eq!(default.wal_dirs(), [PathBuf::from("/data/wal")]);
    }
}
