//! A Kafka broker of one test, and the program that makes messages.

use super::programs::{kafka, missing};
use super::{PATIENCE, wait_until};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use tempfile::TempDir;

/// A broker that keeps its topics over restarts. Killed when dropped.
pub struct Kafka {
    directory: TempDir,
    port: u16,
    broker: Option<Child>,
    messages: Option<Messages>,
}

struct Messages {
    child: Child,
    commands: ChildStdin,
    answers: Receiver<String>,
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("it has an address").port()
}

impl Kafka {
    /// Starts a broker without topics.
    pub fn start() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (port, controller) = (free_port(), free_port());
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
        fs::write(directory.path().join("server.properties"), settings).expect("a file of a few lines");
        let mut broker = Self { directory, port, broker: None, messages: None };
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
