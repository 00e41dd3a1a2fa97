//! A Kafka broker for one test, and the program that produces messages.

use super::programs::{kafka, missing};
use super::{Client, PATIENCE, wait_until};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use tempfile::TempDir;

/// A broker that preserves its topics over restarts. Killed when dropped.
pub struct Kafka {
    directory: TempDir,
    port: u16,
    /// Ports of the listeners that ask who somebody is: without and with TLS.
    secured: Option<(u16, u16)>,
    broker: Option<Child>,
    messages: Option<Messages>,
}

struct Messages {
    child: Child,
    commands: ChildStdin,
    answers: Receiver<String>,
}

/// A column of a job's row in SHOW ROUTINE LOAD.
pub fn shown(client: &mut Client, job: &str, column: &str) -> String {
    let table = client.table(&format!("SHOW ALL ROUTINE LOAD FOR {job}"));
    let at = table.columns.iter().position(|name| name == column).expect("one of Doris's columns");
    table.rows[0][at].clone().unwrap_or_default()
}

/// Creates a table for the messages of `Messages.java`.
pub fn create_table(client: &mut Client, name: &str) {
    client.ok(&format!(
        "CREATE TABLE {name} (id BIGINT NOT NULL, text VARCHAR(100)) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1"
    ));
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("it has an address").port()
}

/// The password of the broker's key.
const STORE: &str = "store-of-a-test";

/// Makes a key for 127.0.0.1 and a certificate that it has signed itself: `broker.p12` and `broker.pem`.
fn make_certificate(directory: &Path) {
    let keytool = |arguments: &[&str]| {
        let mut command = Command::new("keytool");
        command.args(arguments).args(["-alias", "broker", "-keystore", "broker.p12", "-storepass", STORE]);
        let output = command.current_dir(directory).output();
        let output = output.unwrap_or_else(|error| missing("keytool", &error.to_string()));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    };
    let name = ["-dname", "CN=127.0.0.1", "-ext", "san=ip:127.0.0.1"];
    keytool(&[&["-genkeypair", "-keyalg", "RSA", "-storetype", "PKCS12"][..], &name].concat());
    keytool(&["-exportcert", "-rfc", "-file", "broker.pem"]);
}

impl Kafka {
    /// Starts a broker without topics.
    pub fn start() -> Self {
        Self::start_with(|_| (String::new(), None))
    }

    /// Starts a broker that also listens for `reader`, who has this password, by SASL/PLAIN without and with TLS.
    pub fn start_secured(password: &str) -> Self {
        Self::start_with(|directory| {
            let (plain, tls) = (free_port(), free_port());
            make_certificate(directory);
            let login = format!(
                "org.apache.kafka.common.security.plain.PlainLoginModule required user_reader=\"{password}\";"
            );
            let settings = format!(
                "listeners=PLAINTEXT://127.0.0.1:@BROKER@,CONTROLLER://127.0.0.1:@CONTROL@,SASL://127.0.0.1:{plain},\
                 TLS://127.0.0.1:{tls}\n\
                 advertised.listeners=PLAINTEXT://127.0.0.1:@BROKER@,SASL://127.0.0.1:{plain},TLS://127.0.0.1:{tls}\n\
                 listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SASL_SSL\n\
                 sasl.enabled.mechanisms=PLAIN\nlistener.name.sasl.plain.sasl.jaas.config={login}\n\
                 listener.name.tls.plain.sasl.jaas.config={login}\nssl.keystore.type=PKCS12\n\
                 ssl.keystore.location={}/broker.p12\nssl.keystore.password={STORE}\nssl.key.password={STORE}\n",
                directory.display()
            );
            (settings, Some((plain, tls)))
        })
    }

    /// `make` returns settings that are appended and therefore override others, with @BROKER@ and @CONTROL@ for the ports.
    fn start_with(make: impl FnOnce(&Path) -> (String, Option<(u16, u16)>)) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (port, controller) = (free_port(), free_port());
        let (more, secured) = make(directory.path());
        let logs = directory.path().join("logs");
        let settings = format!(
            "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:{controller}\n\
             listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n\
             advertised.listeners=PLAINTEXT://127.0.0.1:{port}\ncontroller.listener.names=CONTROLLER\n\
             listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\nlog.dirs={}\n\
             offsets.topic.replication.factor=1\ntransaction.state.log.replication.factor=1\n\
             transaction.state.log.min.isr=1\nauto.create.topics.enable=false\n",
            logs.display()
        );
        let more = more.replace("@BROKER@", &port.to_string()).replace("@CONTROL@", &controller.to_string());
        fs::write(directory.path().join("server.properties"), settings + &more)
            .expect("a file of a few lines");
        let mut broker = Self { directory, port, secured, broker: None, messages: None };
        let format =
            broker.java("kafka.tools.StorageTool", &["format", "-t", "8XUwXa9qSyi9tSOquGtauQ", "-c"]);
        let mut format = format;
        let output = format.arg(broker.directory.path().join("server.properties")).output();
        let output = output.unwrap_or_else(|error| missing("java", &error.to_string()));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        broker.start_again();
        broker
    }

    /// `host:port` of the broker.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// `host:port` of the broker for `reader`, without and with TLS.
    pub fn secured_addresses(&self) -> (String, String) {
        let (plain, tls) = self.secured.expect("it was started secured");
        (format!("127.0.0.1:{plain}"), format!("127.0.0.1:{tls}"))
    }

    /// The file with the broker's certificate.
    pub fn certificate(&self) -> PathBuf {
        self.directory.path().join("broker.pem")
    }

    fn java(&self, class: &str, arguments: &[&str]) -> Command {
        let mut command = kafka(class);
        command.args(arguments).current_dir(self.directory.path()).stdin(Stdio::null());
        command
    }

    /// Ends the broker as a crash would.
    pub fn kill(&mut self) {
        if let Some(mut broker) = self.broker.take() {
            drop(broker.kill());
            drop(broker.wait());
        }
    }

    /// Starts the broker on the topics that it has, and waits until it answers.
    pub fn start_again(&mut self) {
        let log = File::create(self.directory.path().join("broker.log")).expect("a file for the log");
        let errors = log.try_clone().expect("another handle of the log");
        let mut command = self.java("kafka.Kafka", &["server.properties"]);
        let broker = command.stdout(log).stderr(errors).spawn();
        self.broker = Some(broker.unwrap_or_else(|error| missing("java", &error.to_string())));
        let address = self.address();
        wait_until("the broker listens", || TcpStream::connect(&address).is_ok());
    }

    fn messages(&mut self) -> &mut Messages {
        if self.messages.is_none() {
            let mut command = self.java("Messages", &[&self.address()]);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
            let mut child = command.spawn().unwrap_or_else(|error| missing("java", &error.to_string()));
            let commands = child.stdin.take().expect("standard input is piped");
            let stdout = child.stdout.take().expect("standard output is piped");
            let (sender, answers) = mpsc::channel();
            std::thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    drop(sender.send(line));
                }
            });
            self.messages = Some(Messages { child, commands, answers });
        }
        self.messages.as_mut().expect("it was started")
    }

    /// Sends a command of `Messages.java` without waiting for its end.
    pub fn begin(&mut self, command: &str) {
        let messages = self.messages();
        writeln!(messages.commands, "{command}").expect("the program reads");
        messages.commands.flush().expect("the program reads");
    }

    /// Waits until the oldest command without an answer is done.
    pub fn ended(&mut self) {
        let answer = self.messages().answers.recv_timeout(PATIENCE).expect("an answer");
        assert_eq!(answer, "ok");
    }

    /// The FROM of a job that reads a topic from its beginning on.
    pub fn source(&self, topic: &str) -> String {
        format!(
            "FROM KAFKA (\"kafka_broker_list\" = \"{}\", \"kafka_topic\" = \"{topic}\", \
             \"property.kafka_default_offsets\" = \"OFFSET_BEGINNING\")",
            self.address()
        )
    }

    /// Runs a command of `Messages.java`.
    pub fn run(&mut self, command: &str) {
        self.begin(command);
        self.ended();
    }
}

impl Drop for Kafka {
    fn drop(&mut self) {
        self.kill();
        if let Some(mut messages) = self.messages.take() {
            drop(messages.child.kill());
            drop(messages.child.wait());
        }
        if std::thread::panicking() {
            let log = fs::read_to_string(self.directory.path().join("broker.log")).unwrap_or_default();
            let lines: Vec<&str> = log.lines().rev().take(30).collect();
            eprintln!("--- end of the broker's log, the last line first ---\n{}", lines.join("\n"));
        }
    }
}
