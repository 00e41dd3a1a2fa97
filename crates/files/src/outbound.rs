//! The one factory of HTTP clients for servers that statements name.
//!
//! Invariant: no connection goes to an address that [`Egress`] forbids: names are checked when they are resolved, by the very
//! look-up that the connection uses; addresses in URLs before a request and before each redirect is followed.
//!
//! Not its business: the requests. A proxy of the environment resolves names itself.

use crate::error::{FileError, cause};
use object_store::client::{HttpClient, HttpConnector};
use object_store::{ClientOptions, Error};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::{Action, Attempt, Policy};
use reqwest::{Client, Url};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tributary_types::egress::{Egress, Forbidden};

/// The maximum redirects of one request.
const REDIRECTS_MAX: usize = 10;

/// The redirects that a client follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Redirects {
    /// To any permitted server.
    Anywhere,
    /// Within the server that the statement names; others are answers.
    SameServer,
}

/// The access to a statement's servers.
#[derive(Clone, Debug)]
pub(crate) struct Outbound {
    pub egress: Arc<Egress>,
    pub connect_max: Duration,
    /// The time limit of an answer's next bytes; `None` if its reader has one.
    pub idle_max: Option<Duration>,
    pub redirects: Redirects,
}

impl Outbound {
    /// A client.
    ///
    /// # Errors
    /// [`FileError::NotSupported`] if HTTP is not available on this machine.
    pub fn client(&self) -> Result<Client, FileError> {
        let mut builder = Client::builder()
            .connect_timeout(self.connect_max)
            .dns_resolver(Arc::new(Checked(Arc::clone(&self.egress))))
            .redirect(self.policy());
        if let Some(idle_max) = self.idle_max {
            builder = builder.read_timeout(idle_max);
        }
        builder.build().map_err(|error| {
            FileError::NotSupported(format!("HTTP can't be spoken on this machine: {}", cause(&error)))
        })
    }

    /// Checks a URL whose host is an address.
    ///
    /// # Errors
    /// [`FileError::Forbidden`].
    pub fn check(&self, url: &Url) -> Result<(), FileError> {
        check(&self.egress, url).map_err(FileError::Forbidden)
    }

    fn policy(&self) -> Policy {
        let (egress, redirects) = (Arc::clone(&self.egress), self.redirects);
        Policy::custom(move |attempt| follow(attempt, &egress, redirects))
    }
}

fn check(egress: &Egress, url: &Url) -> Result<(), Forbidden> {
    url.host_str().map_or(Ok(()), |host| egress.check_host(host))
}

fn follow(attempt: Attempt<'_>, egress: &Egress, redirects: Redirects) -> Action {
    let is_same = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
    if attempt.previous().len() > REDIRECTS_MAX {
        attempt.error("too many redirects")
    } else if redirects == Redirects::SameServer && !is_same {
        attempt.stop()
    } else {
        match check(egress, attempt.url()) {
            Ok(()) => attempt.follow(),
            Err(forbidden) => attempt.error(forbidden),
        }
    }
}

/// Resolves names to the permitted addresses.
struct Checked(Arc<Egress>);

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let egress = Arc::clone(&self.0);
        Box::pin(async move {
            let mut found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let mut forbidden = None;
            found.retain(|address| match egress.check(address.ip()) {
                Ok(()) => true,
                Err(error) => {
                    forbidden = Some(error);
                    false
                }
            });
            match forbidden {
                Some(error) if found.is_empty() => Err(error.into()),
                _ => Ok(Box::new(found.into_iter()) as Addrs),
            }
        })
    }
}

/// The clients of stores are created here, too.
impl HttpConnector for Outbound {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = self.client();
        client.map(HttpClient::new).map_err(|error| Error::Generic { store: "S3", source: error.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    fn outbound(egress: &str) -> Outbound {
        Outbound {
            egress: Arc::new(Egress::parse(egress).expect("legal rules")),
            connect_max: Duration::from_secs(10),
            idle_max: Some(Duration::from_secs(10)),
            redirects: Redirects::Anywhere,
        }
    }

    /// A server that gives each of these answers.
    async fn server(answers: Vec<String>) -> u16 {
        server_on("127.0.0.1", answers).await
    }

    async fn server_on(address: &str, answers: Vec<String>) -> u16 {
        let listener = TcpListener::bind((address, 0)).await.expect("a port");
        let port = listener.local_addr().expect("it is bound").port();
        tokio::spawn(async move {
            for answer in answers {
                let (mut stream, _) = listener.accept().await.expect("a client");
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.expect("a head"));
                }
                stream.write_all(answer.as_bytes()).await.expect("the client reads");
            }
        });
        port
    }

    const FOUND: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";

    fn redirect(to: &str) -> String {
        format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
    }

    async fn get(egress: &str, url: &str) -> Result<String, String> {
        let answer = outbound(egress).client().expect("a client").get(url).send().await;
        let answer = answer.map_err(|error| cause(&error))?;
        answer.text().await.map_err(|error| cause(&error))
    }

    #[tokio::test]
    async fn a_name_is_checked_by_what_it_resolves_to() {
        let port = server(vec![FOUND.to_owned()]).await;
        let url = format!("http://localhost:{port}/a");
        let refused = get("", &url).await.unwrap_err();
        assert!(refused.contains("of this machine itself") && refused.contains("egress="), "{refused}");
        assert_eq!(get("127.0.0.0/8;::1/128", &url).await.as_deref(), Ok("ok"));
    }

    #[tokio::test]
    async fn a_redirect_is_checked_before_it_is_followed() {
        let answers = vec![
            redirect("http://127.0.0.2:1/secret"),
            redirect("http://169.254.169.254/latest"),
            redirect("http://[::1]:1/x"),
        ];
        let port = server(answers).await;
        for address in ["127.0.0.2", "169.254.169.254", "::1"] {
            let refused = get("127.0.0.1/32", &format!("http://127.0.0.1:{port}/a")).await.unwrap_err();
            assert!(refused.contains(&format!("may not reach the address {address}")), "{refused}");
        }
    }

    #[tokio::test]
    async fn a_redirect_to_a_name_is_checked_when_the_name_is_resolved() {
        let port = server_on("127.0.0.3", vec![redirect("http://localhost:1/x")]).await;
        let refused = get("127.0.0.3/32", &format!("http://127.0.0.3:{port}/a")).await.unwrap_err();
        assert!(refused.contains("of this machine itself"), "{refused}");
        let url = Url::parse("http://127.0.0.1:1/").expect("a URL");
        assert!(matches!(outbound("").check(&url), Err(FileError::Forbidden(_))));
        assert!(outbound("127.0.0.0/8").check(&url).is_ok());
    }
}
