//! Programs of other languages, installed by `scripts/setup-test-clients`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Fails the test because a client is not installed.
pub fn missing(what: &str, problem: &str) -> ! {
    panic!(
        "{what} can't be run ({problem}): run scripts/setup-test-clients, which installs the clients of the tests"
    );
}

/// The repository.
pub fn repository() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("this crate is two folders below the repository").to_owned()
}

/// The directory of the installed clients.
fn installed() -> PathBuf {
    // The program under test is in <target>/<profile>/.
    let program = Path::new(env!("CARGO_BIN_EXE_tributary"));
    let target = program.ancestors().nth(2).expect("the program is two folders below the target directory");
    target.join("test-clients")
}

/// A path below it.
fn part(path: &str) -> PathBuf {
    let path = installed().join(path);
    if !path.exists() {
        missing(&path.display().to_string(), "it does not exist");
    }
    path
}

/// How a program ended.
#[derive(Clone, Debug)]
pub struct Finished {
    name: String,
    pub is_success: bool,
    /// `None`: a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    pub fn of(name: &str, output: &Output) -> Self {
        Self {
            name: name.to_owned(),
            is_success: output.status.success(),
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The output of a program that ended well.
    pub fn success(self) -> String {
        assert!(
            self.is_success,
            "{} failed\n--- stdout\n{}\n--- stderr\n{}",
            self.name, self.stdout, self.stderr
        );
        self.stdout
    }

    /// The error output of a program that failed.
    pub fn failure(self) -> String {
        assert!(!self.is_success, "{} was expected to fail\n--- stdout\n{}", self.name, self.stdout);
        self.stderr
    }
}

/// Runs a command to its end.
pub fn run(name: &str, command: &mut Command) -> Finished {
    let output = command.output().unwrap_or_else(|error| missing(name, &error.to_string()));
    Finished::of(name, &output)
}

/// Runs a Python program of `tests/clients/python`.
pub fn python(program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(part("python/bin/python"));
    command.arg("-B").arg(repository().join("tests/clients/python").join(program)).args(arguments);
    run(program, &mut command).success()
}

/// Runs a Python program of `tests/clients/python` that reads tables in a store.
pub fn python_of_store(program: &str, arguments: &[&str], endpoint: &str) -> String {
    let environment = [
        ("AWS_ENDPOINT_URL", endpoint),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "hush"),
    ];
    python_with(program, arguments, &environment)
}

/// Runs a Python program of `tests/clients/python` with variables of the environment.
pub fn python_with(program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> String {
    let mut command = Command::new(part("python/bin/python"));
    command.arg("-B").arg(repository().join("tests/clients/python").join(program)).args(arguments);
    run(program, command.envs(environment.iter().copied())).success()
}

/// The server that speaks S3's protocol.
pub fn s3_server() -> PathBuf {
    part("s3/bin/moto_server")
}

/// The server that speaks the protocol of Azure's blob storage.
pub fn azure_server() -> PathBuf {
    part("azure/node_modules/.bin/azurite-blob")
}

/// A server that speaks the protocol of Google's cloud storage, with a bucket for a service account.
pub fn google_server(bucket: &str, public_key: &Path) -> Command {
    let mut command = Command::new(part("python/bin/python"));
    command
        .arg("-B")
        .arg(repository().join("tests/clients/python/google_store.py"))
        .arg(bucket)
        .arg(public_key);
    command
}

/// A script of the repository, with the clients of the tests and the program under test.
pub fn script(name: &str, arguments: &[&str]) -> Finished {
    let mut command = Command::new(repository().join("scripts").join(name));
    command.arg("--program").arg(env!("CARGO_BIN_EXE_tributary")).arg("--clients").arg(installed());
    run(name, command.args(arguments))
}

/// Runs a Node program of `tests/clients/node`.
pub fn node(program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new("node");
    command.env("NODE_PATH", part("node/node_modules"));
    command.arg(repository().join("tests/clients/node").join(program)).args(arguments);
    run(program, &mut command).success()
}

/// Runs a Java class of `tests/clients/java`.
pub fn java(class: &str, arguments: &[&str]) -> String {
    let class_path = format!("{}:{}/*", part("java/classes").display(), part("java/lib").display());
    let mut command = Command::new("java");
    // Small and fast to start: many tests run concurrently.
    command.args(["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", &class_path, class]);
    command.args(arguments);
    run(class, &mut command).success()
}

/// A Java class of the broker, or of `tests/clients/kafka`.
pub fn kafka(class: &str) -> Command {
    let class_path = format!("{}:{}/*", part("kafka/classes").display(), part("kafka/lib").display());
    let mut command = Command::new("java");
    command.args(["-Xmx320m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", &class_path, class]);
    command
}

/// A Go program of `tests/clients/go`.
pub fn go(program: &str) -> Command {
    Command::new(part("go").join(program))
}
