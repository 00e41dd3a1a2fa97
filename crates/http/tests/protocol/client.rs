//! A client that sends exactly the given bytes.

use serde_json::Value;
use std::net::SocketAddr;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// `root` without a password.
pub const ROOT: &str = "Authorization: Basic cm9vdDo=";

pub struct Client {
    pub stream: BufReader<TcpStream>,
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: Vec<String>,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head
            .iter()
            .filter_map(|line| line.split_once(": "))
            .find_map(|(key, value)| key.eq_ignore_ascii_case(name).then_some(value))
    }

    pub fn closes(&self) -> bool {
        self.header("connection") == Some("close")
    }

    #[track_caller]
    pub fn fails_with(&self, message: &str) {
        let json = self.json();
        assert_eq!(
            (json["Status"].as_str(), json["Message"].as_str()),
            (Some("Fail"), Some(message)),
            "{self:?}"
        );
    }
}

impl Client {
    pub async fn connect(address: SocketAddr) -> Self {
        Self { stream: BufReader::new(TcpStream::connect(address).await.unwrap()) }
    }

    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Sends a request head; a line per header.
    pub async fn head(&mut self, method_and_path: &str, headers: &[&str]) {
        let mut head = format!("{method_and_path} HTTP/1.1\r\nHost: localhost\r\n");
        for header in headers {
            head.push_str(header);
            head.push_str("\r\n");
        }
        head.push_str("\r\n");
        self.send(head).await;
    }

    /// Sends a load by `root` into `db.{table}` whose length is declared.
    pub async fn load(&mut self, table: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Answer {
        let body = body.as_ref();
        let length = format!("Content-Length: {}", body.len());
        let headers = [&[ROOT, &length], headers].concat();
        self.head(&format!("PUT /api/db/{table}/_stream_load"), &headers).await;
        self.send(body).await;
        self.answer().await
    }

    /// A request by `root` without a body.
    pub async fn ask(&mut self, method_and_path: &str) -> Answer {
        self.head(method_and_path, &[ROOT]).await;
        self.answer().await
    }

    /// The next answer, an interim one (`100 Continue`) included.
    pub async fn answer(&mut self) -> Answer {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            let read = self.stream.read_line(&mut line).await.unwrap();
            assert!(read > 0, "the connection ended before an answer: {head:?}");
            match line.trim_end() {
                "" => break,
                line => head.push(line.to_owned()),
            }
        }
        let status = head[0].split(' ').nth(1).unwrap().parse().unwrap();
        let mut answer = Answer { status, head, body: String::new() };
        if status >= 200 {
            answer.body = self.body(&answer).await;
        }
        answer
    }

    async fn body(&mut self, answer: &Answer) -> String {
        let mut body = Vec::new();
        if let Some(length) = answer.header("content-length") {
            body.resize(length.parse().unwrap(), 0);
            self.stream.read_exact(&mut body).await.unwrap();
        } else {
            assert_eq!(answer.header("transfer-encoding"), Some("chunked"), "{answer:?}");
            while let length @ 1.. = self.chunk_length().await {
                let start = body.len();
                body.resize(start + length, 0);
                self.stream.read_exact(&mut body[start..]).await.unwrap();
                self.chunk_end().await;
            }
            self.chunk_end().await;
        }
        String::from_utf8(body).unwrap()
    }

    async fn chunk_length(&mut self) -> usize {
        let mut line = String::new();
        self.stream.read_line(&mut line).await.unwrap();
        usize::from_str_radix(line.trim_end(), 16).unwrap()
    }

    async fn chunk_end(&mut self) {
        let mut line = String::new();
        self.stream.read_line(&mut line).await.unwrap();
        assert_eq!(line, "\r\n");
    }

    /// Says that nothing more will be sent; answers can still be read.
    pub async fn end_sending(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    /// Waits until the server has closed the connection.
    pub async fn closed(&mut self) {
        let mut rest = Vec::new();
        // A reset is an end too.
        let _ = self.stream.read_to_end(&mut rest).await;
        assert!(rest.is_empty(), "unexpected: {}", String::from_utf8_lossy(&rest));
    }

    /// Whether the server closes the connection instead of answering.
    pub async fn ended(&mut self) -> bool {
        let mut line = String::new();
        // A reset is an end too.
        self.stream.read_line(&mut line).await.map_or(true, |read| read == 0)
    }
}
