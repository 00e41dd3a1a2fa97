//! As much of HTTP/1.1 as QuestDB's REST interface and its line protocol need.

use crate::Outcome;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// A request with a body, whole.
pub fn request(line: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head =
        format!("{line} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// The body of the answer to `GET path`.
///
/// # Errors
/// The server cannot be reached, or its answer is not a success.
pub fn get(address: SocketAddr, path: &str) -> Outcome<Vec<u8>> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").as_bytes())?;
    answer(&mut BufReader::new(stream))
}

fn answer(stream: &mut impl BufRead) -> Outcome<Vec<u8>> {
    let status = line(stream)?;
    let (mut length, mut is_chunked) = (0, false);
    loop {
        let header = line(stream)?.to_ascii_lowercase();
        match header.split_once(':').map(|(name, value)| (name, value.trim())) {
            Some(("content-length", value)) => length = value.parse()?,
            Some(("transfer-encoding", value)) => is_chunked = value.ends_with("chunked"),
            Some(_) => (),
            None => break,
        }
    }
    let mut body = Vec::new();
    // A status of 204 has no body, whatever its headers say.
    if status.contains(" 204") {
        return Ok(body);
    }
    if is_chunked {
        loop {
            let size = u64::from_str_radix(&line(stream)?, 16)?;
            stream.by_ref().take(size).read_to_end(&mut body)?;
            line(stream)?;
            if size == 0 {
                break;
            }
        }
    } else {
        stream.by_ref().take(length).read_to_end(&mut body)?;
    }
    if status.contains(" 200") {
        return Ok(body);
    }
    Err(format!("{status}: {}", String::from_utf8_lossy(&body)).into())
}

fn line(stream: &mut impl BufRead) -> Outcome<String> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Err("the server closed the connection".into());
    }
    Ok(line.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Outcome<String> {
        Ok(String::from_utf8(answer(&mut text.as_bytes())?)?)
    }

    #[test]
    fn an_answer_is_read_to_its_end() {
        let sized = read("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc").expect("a success");
        assert_eq!(sized, "ab");
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\nd";
        assert_eq!(read(chunked).expect("a success"), "abc");
        assert_eq!(read("HTTP/1.1 204 OK\r\nTransfer-Encoding: chunked\r\n\r\n").expect("a success"), "");
        let error = read("HTTP/1.1 400 Bad\r\nContent-Length: 2\r\n\r\nno").expect_err("a refusal");
        assert_eq!(error.to_string(), "HTTP/1.1 400 Bad: no");
        assert!(read("HTTP/1.1 200 OK\r\n").is_err());
    }
}
