//! HTTP/1.1 over one connection that is kept.

use crate::Outcome;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

pub struct Http {
    sender: SendRequest<Full<Bytes>>,
}

impl Http {
    pub async fn connect(port: u16) -> Outcome<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        // Its end is seen by the sender's next call.
        drop(tokio::spawn(connection));
        Ok(Self { sender })
    }

    pub async fn get(&mut self, path: &str) -> Outcome<Bytes> {
        self.send(Method::GET, path, &[], Bytes::new()).await
    }

    /// Sends a request; the answer's body, if its status is a success.
    pub async fn send(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Outcome<Bytes> {
        let mut request = Request::builder().method(method).uri(path).header("Host", "127.0.0.1");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.sender.ready().await?;
        let response = self.sender.send_request(request.body(Full::new(body))?).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        if status.is_success() {
            return Ok(body);
        }
        Err(format!("HTTP {status}: {}", String::from_utf8_lossy(&body)).into())
    }
}
