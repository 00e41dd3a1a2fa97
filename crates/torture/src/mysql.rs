//! Connections to the server under torture, by MySQL's protocol.

use crate::doors::{Doors, Login};
use crate::writers::PATIENCE;
use tributary_client::{ClientError, Stream};

/// A connection that is logged in.
pub(crate) type Client = tributary_client::Client<Stream>;

/// Connects as a kind of client. An answer that does not arrive in time counts as a broken connection.
pub(crate) fn connect(doors: &Doors, user: &str, database: Option<&str>) -> Result<Client, ClientError> {
    connect_as(doors, &doors.login(user), database)
}

/// The same with any user and password.
pub(crate) fn connect_as(
    doors: &Doors,
    login: &Login,
    database: Option<&str>,
) -> Result<Client, ClientError> {
    let address = ("127.0.0.1", doors.mysql_port);
    let (user, password) = (login.user.as_str(), login.password.as_str());
    Client::connect_trusting(doors.tls.as_ref(), (user, password), address, database, Some(PATIENCE))
}
