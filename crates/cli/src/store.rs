//! The properties of an object store, as options of a command.

use clap::Args;

/// Properties of a store, as in `S3()`.
#[derive(Args, Clone, Debug)]
pub struct StoreProperties {
    /// A property of the store, as in `S3()`: `s3.endpoint=…`
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    property: Vec<(String, String)>,
    /// A property of the store whose value is in an environment variable: `s3.secret_key=MY_SECRET`
    #[arg(long, value_name = "NAME=VARIABLE", value_parser = pair)]
    property_env: Vec<(String, String)>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("`{text}` is not NAME=VALUE"))?;
    Ok((name.to_owned(), value.to_owned()))
}

impl StoreProperties {
    /// The names and values, those of the environment last.
    ///
    /// # Errors
    /// A variable is not set; the text names it.
    pub fn resolve(&self) -> Result<Vec<(String, String)>, String> {
        let mut properties = self.property.clone();
        for (name, variable) in &self.property_env {
            let value =
                std::env::var(variable).map_err(|error| format!("the variable {variable}: {error}"))?;
            properties.push((name.clone(), value));
        }
        Ok(properties)
    }
}
