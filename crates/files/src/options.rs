//! Properties of a statement that say where files are.

use crate::error::FileError;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The secret text.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Properties by their names in lower case, of which each reader takes the ones that it knows.
#[derive(Clone, Default)]
pub struct Properties(BTreeMap<String, String>);

impl fmt::Debug for Properties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl FromIterator<(String, String)> for Properties {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(properties: I) -> Self {
        Self(properties.into_iter().map(|(name, text)| (name.to_ascii_lowercase(), text)).collect())
    }
}

impl Properties {
    /// Takes a property out.
    pub fn take(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    /// Takes the first of these properties that exists and is not empty, and drops the others.
    pub fn take_any<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) -> Option<String> {
        let found: Vec<String> = names.into_iter().filter_map(|name| self.0.remove(name)).collect();
        found.into_iter().find(|text| !text.is_empty())
    }

    pub(crate) fn take_secret<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) -> Option<Secret> {
        self.take_any(names).map(Secret)
    }

    /// Takes a property that is `true` or `false`.
    ///
    /// # Errors
    /// [`FileError::Property`] for any other text.
    pub fn take_flag<'a>(
        &mut self,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<Option<bool>, FileError> {
        let mut flag = None;
        for name in names {
            let Some(text) = self.0.remove(name) else { continue };
            let value = match text.to_ascii_lowercase().as_str() {
                "true" => true,
                "false" => false,
                _ => {
                    return Err(FileError::Property(format!(
                        "Invalid {name}: {text}. It must be true or false"
                    )));
                }
            };
            flag.get_or_insert(value);
        }
        Ok(flag)
    }

    /// Takes a property that is a number of milliseconds.
    pub(crate) fn take_ms<'a>(
        &mut self,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<Option<Duration>, FileError> {
        let mut limit = None;
        for name in names {
            let Some(text) = self.0.remove(name) else { continue };
            let milliseconds = text.parse().ok().filter(|&milliseconds: &u64| milliseconds > 0);
            let milliseconds = milliseconds.ok_or_else(|| {
                FileError::Property(format!("Invalid {name}: {text}. It must be a number of milliseconds"))
            })?;
            limit.get_or_insert(Duration::from_millis(milliseconds));
        }
        Ok(limit)
    }

    /// Takes the properties with this prefix, and returns their names without it.
    pub(crate) fn take_prefixed(&mut self, prefix: &str) -> Vec<(String, Secret)> {
        let names: Vec<String> = self.0.keys().filter(|name| name.starts_with(prefix)).cloned().collect();
        names
            .into_iter()
            .filter_map(|name| Some((name[prefix.len()..].to_owned(), Secret(self.0.remove(&name)?))))
            .collect()
    }

    /// The properties that no reader has taken.
    pub fn rest(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }
}
