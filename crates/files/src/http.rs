//! Files of HTTP servers. A server has no listing, so a name means the files that its braces spell out.

use crate::error::{FileError, cause};
use crate::options::Properties;
use crate::outbound::{Outbound, Redirects};
use crate::pattern::alternatives;
use crate::place::{CONNECT_MAX, Chunks, FoundFile, IDLE_MAX};
use futures::{StreamExt, TryStreamExt, stream};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, StatusCode, Url};
use std::sync::Arc;
use tributary_types::Egress;

/// Files of HTTP servers.
pub struct HttpFiles {
    client: Client,
    urls: Vec<Url>,
    headers: HeaderMap,
}

impl std::fmt::Debug for HttpFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.urls.iter().map(shown)).finish()
    }
}

impl HttpFiles {
    pub(crate) fn new(
        uri: &str,
        properties: &mut Properties,
        egress: &Arc<Egress>,
    ) -> Result<Self, FileError> {
        // Files are read from front to back, in whatever way the server sends them.
        properties.take_flag(["http.enable.range.request"])?;
        properties.take_flag(["http.enable.chunk.response"])?;
        let headers = headers(properties)?;
        let connect_max = properties.take_ms(["http.connect.timeout.ms"])?.unwrap_or(CONNECT_MAX);
        let urls = alternatives(uri)?.iter().map(|text| url(text)).collect::<Result<Vec<_>, _>>()?;
        let outbound = Outbound {
            egress: Arc::clone(egress),
            connect_max,
            idle_max: Some(IDLE_MAX),
            // Headers are for the server that the statement names.
            redirects: if headers.is_empty() { Redirects::Anywhere } else { Redirects::SameServer },
        };
        urls.iter().try_for_each(|url| outbound.check(url))?;
        let client = outbound.client()?;
        Ok(Self { client, urls, headers })
    }

    pub(crate) fn find(&self) -> Vec<FoundFile> {
        let file = |url: &Url| FoundFile { name: shown(url), key: url.to_string(), size_bytes: None };
        self.urls.iter().map(file).collect()
    }

    pub(crate) fn open(&self, file: &FoundFile) -> Chunks {
        let request = self.client.get(&file.key).headers(self.headers.clone());
        let name = file.name.clone();
        let unreadable = |name: &str, error: reqwest::Error| {
            // Without the URL, which may have a password or a signature.
            let error = error.without_url();
            let reason = match error.is_timeout() {
                true => format!("the server did not answer in time ({})", cause(&error)),
                false => cause(&error),
            };
            FileError::Unreadable { file: name.to_owned(), reason }
        };
        let opened = async move {
            let response = request.send().await.map_err(|error| unreadable(&name, error))?;
            let status = response.status();
            if status != StatusCode::OK {
                let more = match status.is_redirection() {
                    true => {
                        ", and http.header properties are not sent to another server; name the file's own"
                    }
                    false => "",
                };
                let reason = format!("the server answers {status}{more}");
                return Err(FileError::Unreadable { file: name, reason });
            }
            let bytes = response.bytes_stream();
            Ok(bytes.map_err(move |error| unreadable(&name, error)))
        };
        stream::once(opened).try_flatten().boxed()
    }
}

/// The properties `http.header.*`.
fn headers(properties: &mut Properties) -> Result<HeaderMap, FileError> {
    let mut headers = HeaderMap::new();
    for (name, value) in properties.take_prefixed("http.header.") {
        let wrong = || FileError::Property(format!("http.header.{name} is no header of a request"));
        let header = HeaderName::try_from(&name).map_err(|_| wrong())?;
        let mut value = HeaderValue::try_from(value.reveal()).map_err(|_| wrong())?;
        value.set_sensitive(true);
        headers.append(header, value);
    }
    Ok(headers)
}

fn url(text: &str) -> Result<Url, FileError> {
    let wrong = |what: &str| {
        FileError::Property(format!("the property 'uri' of HTTP {what}; write http://host:port/path"))
    };
    let url = Url::parse(text).map_err(|error| wrong(&format!("is no URL ({error})")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong(&format!("has the scheme '{}'", url.scheme())));
    }
    if url.path().contains('*') {
        return Err(wrong(
            "has a *, and a server has no listing of its files; {a,b} and {1..3} name several",
        ));
    }
    Ok(url)
}

/// A URL without what may be secret: user, password and query.
fn shown(url: &Url) -> String {
    let mut shown = url.clone();
    // They fail for URLs without a host, which were refused.
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    shown.set_query(None);
    shown.set_fragment(None);
    shown.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    fn files(uri: &str, properties: &[(&str, &str)]) -> Result<HttpFiles, String> {
        let mut properties: Properties =
            properties.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        let egress = Arc::new(Egress::parse("127.0.0.0/8").expect("a network"));
        HttpFiles::new(uri, &mut properties, &egress).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_is_shown_without_what_is_secret() {
        let files = files("https://u:p@host:81/a{1,2}.csv?signature=s#f", &[]).expect("legal");
        let shown: Vec<String> = files.find().into_iter().map(|file| file.name).collect();
        assert_eq!(shown, ["https://host:81/a1.csv", "https://host:81/a2.csv"]);
        assert_eq!(format!("{files:?}"), r#"["https://host:81/a1.csv", "https://host:81/a2.csv"]"#);
    }

    /// A server that gives each of these answers to one connection, and then returns the requests.
    async fn server(answers: Vec<String>) -> (u16, tokio::task::JoinHandle<Vec<String>>) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("it is bound").port();
        let serve = async move {
            let mut asked = Vec::new();
            for answer in answers {
                let (mut stream, _) = listener.accept().await.expect("a client");
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.expect("a head"));
                }
                stream.write_all(answer.as_bytes()).await.expect("the client reads");
                asked.push(String::from_utf8(head).expect("ASCII").to_ascii_lowercase());
            }
            asked
        };
        (port, tokio::spawn(serve))
    }

    fn redirect(to: &str) -> String {
        format!(
            "HTTP/1.1 307 Temporary Redirect\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        )
    }

    const FILE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\nconnection: close\r\n\r\n1,a";

    async fn read(port: u16, header: &[(&str, &str)]) -> Result<String, String> {
        let files = files(&format!("http://127.0.0.1:{port}/a.csv"), header)?;
        let file = files.find().remove(0);
        let chunks: Result<Vec<_>, _> = files.open(&file).try_collect().await;
        chunks
            .map(|chunks| String::from_utf8_lossy(&chunks.concat()).into_owned())
            .map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn headers_do_not_follow_a_redirect_to_another_server() {
        let key = [("http.header.x-api-key", "hush")];
        let (other, asked_other) = server(vec![FILE.to_owned()]).await;
        let away = redirect(&format!("http://127.0.0.1:{other}/b.csv"));
        let (port, asked) = server(vec![away.clone(), away, redirect("/c.csv"), FILE.to_owned()]).await;
        let refused = read(port, &key).await.unwrap_err();
        assert!(
            refused.contains("answers 307") && refused.contains("not sent to another server"),
            "{refused}"
        );
        assert_eq!(read(port, &[]).await, Ok("1,a".to_owned()), "without headers there is nothing to keep");
        assert!(!asked_other.await.expect("it ended")[0].contains("x-api-key"));
        assert_eq!(read(port, &key).await, Ok("1,a".to_owned()), "the same server");
        let asked = asked.await.expect("it ended");
        assert!(asked[0].contains("x-api-key: hush") && asked[3].contains("x-api-key: hush"), "{asked:?}");
    }

    #[test]
    fn what_is_no_url_or_no_header_is_refused() {
        for (uri, text) in [
            ("ftp://host/a", "has the scheme 'ftp'"),
            ("a.csv", "is no URL"),
            ("http://host/*.csv", "has no listing"),
        ] {
            assert!(files(uri, &[]).unwrap_err().contains(text), "{uri}");
        }
        let error = files("http://host/a", &[("http.header.a b", "secret")]).unwrap_err();
        assert!(error.contains("http.header.a b is no header") && !error.contains("secret"), "{error}");
    }
}
