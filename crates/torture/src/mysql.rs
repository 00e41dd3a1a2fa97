//! Connections to the server under torture.

use crate::writers::PATIENCE;
use tributary_client::{Client, ClientError};

/// Connects as root. An answer that does not arrive in time counts as a broken connection.
pub(crate) fn connect(port: u16, database: Option<&str>) -> Result<Client, ClientError> {
    Client::connect(("127.0.0.1", port), database, Some(PATIENCE))
}
