//! The server's answers, as what to do next.

use crate::http::Answer;
use serde_json::Value;

/// The consequence of an answer for its chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Its rows are stored.
    Done { rows: Option<u64>, filtered: Option<u64>, error_url: Option<String> },
    /// Too many of its rows were rejected: nothing is stored.
    Rejected { message: String, filtered: u64, error_url: Option<String> },
    /// Nothing is stored, and the same request would be refused again.
    Refused(String),
    /// Nothing is stored, and the server may take it later.
    Later { message: String, after_ms: Option<u64>, is_busy: bool },
    /// A load of that name exists: ask for its state.
    Exists,
    /// The rows may be stored: ask for the state of the name.
    Unknown(String),
}

/// The server's knowledge of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    Stored,
    Running,
    /// A load of that name has failed, or there is none.
    Nothing,
}

pub(crate) fn of_load(answer: &Answer) -> Verdict {
    let text = || String::from_utf8_lossy(&answer.body).trim().chars().take(500).collect::<String>();
    let Some(json) = answer.json().filter(Value::is_object) else {
        return match answer.status {
            400..=428 | 430..=499 => Verdict::Refused(format!("HTTP {}: {}", answer.status, text())),
            429 | 503 => Verdict::Later {
                message: format!("HTTP {}: {}", answer.status, text()),
                after_ms: None,
                is_busy: true,
            },
            _ => Verdict::Unknown(format!("HTTP {} and no answer of a load: {}", answer.status, text())),
        };
    };
    let field = |name: &str| json.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let number = |name: &str| json.get(name).and_then(Value::as_u64);
    let error_url = Some(field("ErrorURL")).filter(|url| !url.is_empty());
    let status = if field("Status").is_empty() { field("status") } else { field("Status") };
    let mut message =
        [field("Message"), field("msg")].into_iter().find(|text| !text.is_empty()).unwrap_or_else(text);
    if !field("FirstErrorMsg").is_empty() {
        message = format!("{message}: {}", field("FirstErrorMsg"));
    }
    match status.as_str() {
        "Success" | "Publish Timeout" => Verdict::Done {
            rows: number("NumberLoadedRows"),
            filtered: number("NumberFilteredRows"),
            error_url,
        },
        "Label Already Exists" => Verdict::Exists,
        _ if number("NumberFilteredRows").unwrap_or_default() > 0 && message.contains("filtered") => {
            Verdict::Rejected {
                message,
                filtered: number("NumberFilteredRows").unwrap_or_default(),
                error_url,
            }
        }
        _ => match field("Retry").as_str() {
            "never" => Verdict::Refused(message),
            "safe" | "after_ms" => {
                Verdict::Later { message, after_ms: number("RetryAfterMs"), is_busy: true }
            }
            _ if answer.status == 429 || answer.status == 503 => {
                Verdict::Later { message, after_ms: None, is_busy: true }
            }
            _ if matches!(answer.status, 400..=499) || is_final(&message) => Verdict::Refused(message),
            _ if answer.status >= 500 => Verdict::Unknown(message),
            _ => Verdict::Later { message, after_ms: None, is_busy: false },
        },
    }
}

/// Whether a message of a server without verdicts says that a repetition would fail, too.
fn is_final(message: &str) -> bool {
    let signs = [
        "NOT_AUTHORIZED",
        "Access denied",
        "ANALYSIS_ERROR",
        "INVALID_ARGUMENT",
        "unknown table",
        "does not exist",
    ];
    signs.iter().any(|sign| message.contains(sign))
}

/// Reads the state of a label or a key. `None` is an answer without one.
pub(crate) fn of_state(answer: &Answer) -> Option<Known> {
    let json = answer.json()?;
    let data = json.get("data")?;
    let state =
        data.as_str().or_else(|| data.get("state")?.as_str()).or_else(|| json.get("state")?.as_str())?;
    match state {
        "VISIBLE" | "COMMITTED" | "FINISHED" | "DURABLE" => Some(Known::Stored),
        "PREPARE" | "PRECOMMITTED" | "RUNNING" | "PREPARED" => Some(Known::Running),
        "UNKNOWN" | "ABORTED" | "CANCELLED" | "NONE" => Some(Known::Nothing),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    /// Brings an answer over a socket, as a server would send it.
    fn answer(status: u16, body: &'static str) -> Answer {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut seen = Vec::new();
            while !seen.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).expect("a request");
                seen.extend(byte);
            }
            write!(stream, "HTTP/1.1 {status} X\r\n\r\n{body}").expect("the client reads");
        });
        let address = crate::http::Address::parse(&format!("http://127.0.0.1:{port}")).expect("a URL");
        let patience = std::time::Duration::from_secs(60);
        let asked = crate::http::Server { address, user: "u".to_owned(), password: String::new(), patience };
        let answer = asked.get("/").expect("an answer");
        server.join().expect("the server's end");
        answer
    }

    #[test]
    fn answers_say_what_to_do() {
        let done = Verdict::Done { rows: Some(3), filtered: Some(0), error_url: None };
        for status in ["Success", "Publish Timeout"] {
            let body = format!("{{\"Status\":\"{status}\",\"NumberLoadedRows\":3,\"NumberFilteredRows\":0}}");
            assert_eq!(of_load(&answer(200, body.leak())), done);
        }
        assert_eq!(of_load(&answer(200, r#"{"Status":"Label Already Exists"}"#)), Verdict::Exists);
        let rejected = r#"{"Status":"Fail","Message":"[DATA_QUALITY_ERROR]too many filtered rows","NumberFilteredRows":2,"Retry":"never"}"#;
        assert!(matches!(of_load(&answer(200, rejected)), Verdict::Rejected { filtered: 2, .. }));
        assert!(matches!(
            of_load(&answer(200, r#"{"Status":"Fail","Message":"x","Retry":"never"}"#)),
            Verdict::Refused(_)
        ));
        let later = r#"{"Status":"Fail","Message":"x","Retry":"after_ms","RetryAfterMs":7}"#;
        assert!(matches!(of_load(&answer(429, later)), Verdict::Later { after_ms: Some(7), .. }));
        assert!(matches!(
            of_load(&answer(200, r#"{"status":"FAILED","msg":"Access denied"}"#)),
            Verdict::Refused(_)
        ));
        assert!(matches!(of_load(&answer(502, "bad gateway")), Verdict::Unknown(_)));
        assert!(matches!(of_load(&answer(404, "no")), Verdict::Refused(_)));
    }

    #[test]
    fn states_of_labels_and_keys_are_known() {
        for (body, known) in [
            (r#"{"code":0,"data":"VISIBLE"}"#, Some(Known::Stored)),
            (r#"{"code":0,"data":"ABORTED"}"#, Some(Known::Nothing)),
            (r#"{"code":0,"data":"PREPARE"}"#, Some(Known::Running)),
            (r#"{"code":0,"data":{"state":"DURABLE"}}"#, Some(Known::Stored)),
            (r#"{"code":0,"data":{"state":"NONE"}}"#, Some(Known::Nothing)),
            (r#"{"code":1,"data":"Access denied"}"#, None),
        ] {
            assert_eq!(of_state(&answer(200, body)), known, "{body}");
        }
    }
}
