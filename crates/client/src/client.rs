//! A blocking connection of a user.

use crate::answer::{self, Answer, Form, OkAnswer, Rows};
use crate::command::{self, Statement};
use crate::error::{ClientError, broken, refusal};
use crate::fields::Fields;
use crate::stream::{Stream, Trust};
use crate::value::Value;
use crate::{binary, login, packet};
use std::io::{self, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// A connection of root or another user, over TCP unless another stream is given.
#[derive(Debug)]
pub struct Client<S = TcpStream> {
    stream: BufReader<S>,
}

impl Client {
    /// Connects and logs in as root. `patience` is how long a read or write may take; `None` sets no limit.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses the client.
    pub fn connect(
        address: impl ToSocketAddrs,
        database: Option<&str>,
        patience: Option<Duration>,
    ) -> Result<Self, ClientError> {
        Self::connect_as("root", address, database, patience)
    }

    /// [`Client::connect`] as another user without a password.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses the client.
    pub fn connect_as(
        user: &str,
        address: impl ToSocketAddrs,
        database: Option<&str>,
        patience: Option<Duration>,
    ) -> Result<Self, ClientError> {
        Self::connect_with(user, "", address, database, patience)
    }

    /// [`Client::connect`] as another user with a password, which is proved and never sent.
    ///
    /// # Errors
    /// The server cannot be reached, refuses the client, or wants the password itself.
    pub fn connect_with(
        user: &str,
        password: &str,
        address: impl ToSocketAddrs,
        database: Option<&str>,
        patience: Option<Duration>,
    ) -> Result<Self, ClientError> {
        let mut client = Self::reached(address, patience)?;
        let (sequence, greeting) = client.read()?;
        client.log_in(&login::of_user(user, password, database, &greeting), password, sequence)?;
        Ok(client)
    }

    /// Connects, and waits for a greeting.
    fn reached(address: impl ToSocketAddrs, patience: Option<Duration>) -> io::Result<Self> {
        Ok(Self { stream: BufReader::new(Stream::socket_to(address, patience)?) })
    }
}

impl Client<Stream> {
    /// [`Client::connect_with`], over TLS if there are certificates to trust.
    ///
    /// # Errors
    /// The server cannot be reached, has no TLS or another certificate, refuses the client, or wants the password itself.
    pub fn connect_trusting(
        trust: Option<&Trust>,
        (user, password): (&str, &str),
        address: impl ToSocketAddrs,
        database: Option<&str>,
        patience: Option<Duration>,
    ) -> Result<Self, ClientError> {
        let mut plain = Client::<TcpStream>::reached(address, patience)?;
        let (mut sequence, greeting) = plain.read()?;
        let mut proof = login::of_user(user, password, database, &greeting);
        if trust.is_some() {
            login::ask_for_tls(&mut proof);
            sequence = sequence.wrapping_add(1);
            plain.write(&proof[..login::HEAD_BYTES], sequence)?;
        }
        let mut client = Self { stream: BufReader::new(Stream::with(plain.into_stream(), trust)?) };
        client.log_in(&proof, password, sequence)?;
        Ok(client)
    }
}

impl<S: Read + Write> Client<S> {
    /// Logs in as root over a stream that leads to the server, such as a Unix socket.
    ///
    /// # Errors
    /// No answer arrives, or the server refuses the client.
    pub fn over(stream: S, database: Option<&str>) -> Result<Self, ClientError> {
        let mut client = Self { stream: BufReader::new(stream) };
        let (sequence, greeting) = client.read()?;
        client.log_in(&login::of_user("root", "", database, &greeting), "", sequence)?;
        Ok(client)
    }

    /// Answers the server's packet of this number, and proves the password until the server is content.
    fn log_in(&mut self, answer: &[u8], password: &str, mut sequence: u8) -> Result<(), ClientError> {
        /// Of `caching_sha2_password`: the server knows the password's hash, or doesn't.
        const IS_KNOWN: &[u8] = &[1, 3];
        let mut proof = answer.to_vec();
        loop {
            self.write(&proof, sequence.wrapping_add(1))?;
            let mut answer;
            (sequence, answer) = self.read()?;
            if answer == IS_KNOWN {
                (sequence, answer) = self.read()?;
            }
            match answer.first() {
                Some(0) => return Ok(()),
                Some(0xfe) => {
                    proof = login::of_switch(password, &answer)
                        .ok_or_else(|| broken("the server wants another proof of the password"))?;
                }
                Some(1) => {
                    return Err(broken(
                        "the server wants the password itself, which this client does not send",
                    )
                    .into());
                }
                _ => return Err(broken("an unknown answer to the login").into()),
            }
        }
    }

    /// Runs a statement of any bytes.
    ///
    /// # Errors
    /// The server's error, or no answer arrives.
    pub fn query(&mut self, sql: impl AsRef<[u8]>) -> Result<Answer, ClientError> {
        self.send(sql)?;
        self.answer()
    }

    /// Runs a statement without rows.
    ///
    /// # Errors
    /// See [`Client::query`].
    pub fn run(&mut self, sql: &str) -> Result<OkAnswer, ClientError> {
        match self.query(sql)? {
            Answer::Ok(answer) => Ok(answer),
            Answer::Rows(_) => Err(broken("rows where none belong").into()),
        }
    }

    /// Runs a statement with rows.
    ///
    /// # Errors
    /// See [`Client::query`].
    pub fn rows(&mut self, sql: &str) -> Result<Rows, ClientError> {
        match self.query(sql)? {
            Answer::Rows(rows) => Ok(rows),
            Answer::Ok(_) => Err(broken("no rows where some belong").into()),
        }
    }

    /// Sends a statement and does not wait for its answer.
    ///
    /// # Errors
    /// The socket's.
    pub fn send(&mut self, sql: impl AsRef<[u8]>) -> io::Result<()> {
        self.write(&command::query(sql.as_ref()), 0)
    }

    /// Reads the answer to a statement that was sent.
    ///
    /// # Errors
    /// See [`Client::query`].
    pub fn answer(&mut self) -> Result<Answer, ClientError> {
        self.read_answer(Form::Text)
    }

    fn read_answer(&mut self, form: Form) -> Result<Answer, ClientError> {
        let (_, first) = self.read()?;
        if first.first() == Some(&0) {
            return answer::ok(&first).map(Answer::Ok);
        }
        let count = Fields(&first).number()?.ok_or_else(|| broken("no count of columns"))?;
        self.read_rows(count as usize, form).map(Answer::Rows)
    }

    fn read_rows(&mut self, count: usize, form: Form) -> Result<Rows, ClientError> {
        let mut answer = Rows::default();
        for _ in 0..count {
            let (_, packet) = self.read()?;
            let (name, kind) = answer::column(&packet)?;
            answer.columns.push(name);
            answer.kinds.push(kind);
        }
        self.read_eof()?;
        loop {
            let (_, packet) = self.read()?;
            if answer::is_eof(&packet) {
                return Ok(answer);
            }
            answer.rows.push(match form {
                Form::Text => answer::row(&packet, count)?,
                Form::Binary => binary::row(&packet, &answer.kinds)?,
            });
        }
    }

    /// Prepares a statement.
    ///
    /// # Errors
    /// See [`Client::query`].
    pub fn prepare(&mut self, sql: &str) -> Result<Statement, ClientError> {
        self.write(&command::prepare(sql), 0)?;
        let (_, head) = self.read()?;
        let mut fields = Fields(&head);
        let ([0], id) = (fields.array()?, fields.array()?) else {
            return Err(broken("an unknown answer to a statement to prepare").into());
        };
        let (columns, parameters) = (fields.short()?, fields.short()?);
        for definitions in [parameters, columns] {
            for _ in 0..definitions {
                self.read()?;
            }
            if definitions > 0 {
                self.read_eof()?;
            }
        }
        Ok(Statement(u32::from_le_bytes(id)))
    }

    /// Runs a prepared statement without rows.
    ///
    /// # Errors
    /// See [`Client::query`].
    pub fn execute(&mut self, statement: Statement, values: &[Value]) -> Result<OkAnswer, ClientError> {
        self.write(&command::execute(statement, values, true).0, 0)?;
        let (_, packet) = self.read()?;
        answer::ok(&packet)
    }

    /// Runs a prepared statement with rows, or one without.
    ///
    /// # Errors
    /// See [`Client::query`].
    pub fn execute_query(&mut self, statement: Statement, values: &[Value]) -> Result<Answer, ClientError> {
        self.write(&command::execute(statement, values, true).0, 0)?;
        self.read_answer(Form::Binary)
    }

    /// Forgets a prepared statement. The server does not answer.
    ///
    /// # Errors
    /// The socket's.
    pub fn close(&mut self, statement: Statement) -> io::Result<()> {
        self.write(&command::close(statement), 0)
    }

    /// The socket of a connection that is logged in and has read all its answers.
    #[must_use]
    pub fn into_stream(self) -> S {
        self.stream.into_inner()
    }

    fn write(&mut self, payload: &[u8], sequence: u8) -> io::Result<()> {
        self.stream.get_mut().write_all(&packet::framed(payload, sequence))
    }

    /// Reads the next payload and its sequence number. An error packet is an error at any point.
    fn read(&mut self) -> Result<(u8, Vec<u8>), ClientError> {
        let (sequence, payload) = packet::read(&mut self.stream)?;
        refusal(&payload)?;
        Ok((sequence, payload))
    }

    fn read_eof(&mut self) -> Result<(), ClientError> {
        let (_, packet) = self.read()?;
        if answer::is_eof(&packet) { Ok(()) } else { Err(broken("definitions without an end").into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread::{self, JoinHandle};

    const EOF: &[u8] = b"\xfe\0\0\x02\0";
    const OK: &[u8] = b"\0\0\0\x02\0\0\0";

    /// Runs a server that answers each payload with the next ones of a script; returns what it received.
    fn serve(script: &'static [&'static [&'static [u8]]]) -> (u16, JoinHandle<Vec<Vec<u8>>>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let (mut sequence, mut received) = (0, Vec::new());
            for answers in script {
                for answer in *answers {
                    stream.write_all(&packet::framed(answer, sequence)).expect("the client reads");
                    sequence = sequence.wrapping_add(1);
                }
                let Ok((number, payload)) = packet::read(&mut stream) else { break };
                sequence = number.wrapping_add(1);
                received.push(payload);
            }
            received
        });
        (port, server)
    }

    fn connect(port: u16) -> Result<Client, ClientError> {
        Client::connect(("127.0.0.1", port), Some("db"), Some(Duration::from_secs(60)))
    }

    #[test]
    fn a_client_logs_in_asks_and_reads_rows() {
        const COLUMN: &[u8] = b"\x03def\0\0\0\x01a\x01a\x0c\xff\0\x10\0\0\0\xfd\0\0\0\0\0";
        let (port, server) = serve(&[
            &[b"\x0agreeting"],
            &[b"\xfecaching_sha2_password\0"],
            &[OK],
            &[b"\x01", COLUMN, EOF, b"\x02xy", b"\xfb", EOF],
            &[b"\0\x07\0\0\0\0\0\x01\0\0\0\0", COLUMN, EOF],
            &[OK],
        ]);
        let mut client = connect(port).expect("logged in");
        let rows = client.rows("SELECT a").expect("rows");
        assert_eq!(rows.columns, ["a"]);
        assert_eq!(rows.rows, [[Some("xy".to_owned())], [None]]);
        assert_eq!(client.prepare("INSERT").expect("prepared"), Statement(7));
        client.execute(Statement(7), &[Value::Int(1)]).expect("executed");
        drop(client);
        let received = server.join().expect("the server's end");
        assert_eq!(received[0], login::of_user("root", "", Some("db"), b"\x0agreeting"));
        assert_eq!(received[1], b"");
        assert_eq!(received[2], b"\x03SELECT a");
    }

    #[test]
    fn an_error_leaves_the_connection_in_order() {
        let (port, server) = serve(&[&[b"\x0agreeting"], &[OK], &[b"\xff\x51\x04#HY000no"], &[OK]]);
        let mut client = connect(port).expect("logged in");
        let Err(ClientError::Refused(error)) = client.run("BAD") else { panic!("the server refuses") };
        assert_eq!(error.to_string(), "ERROR 1105 (HY000): no");
        assert_eq!(client.run("GOOD").expect("an answer"), OkAnswer::default());
        drop(client);
        server.join().expect("the server's end");
    }

    #[test]
    fn a_refused_client_learns_the_reason() {
        let (port, server) = serve(&[&[b"\xff\x10\x04Too many connections"]]);
        let error = connect(port).expect_err("refused");
        assert_eq!(error.to_string(), "ERROR 1040 (): Too many connections");
        server.join().expect("the server's end");
    }
}
