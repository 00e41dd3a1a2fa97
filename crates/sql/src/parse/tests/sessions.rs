use super::*;
use tributary_types::{
    AuthPlugin, LockTime, NewPassword, PasswordExpiry, PasswordHash, PolicyChange, Secret, TlsRequirement,
};

fn variable(scope: Scope, name: &str, value: SetValue) -> SetItem {
    SetItem::Variable { scope, name: name.into(), value }
}

fn text(value: &str) -> SetValue {
    SetValue::Text(value.into())
}

#[test]
fn backends_are_decommissioned_by_name() {
    let decommission = |backends: &[&str], cancels| Statement::Decommission {
        backends: backends.iter().map(|&backend| backend.into()).collect(),
        cancels,
    };
    assert_eq!(
        parse("alter system decommission backend 'h:8040', \"10001\"").unwrap(),
        decommission(&["h:8040", "10001"], false)
    );
    assert_eq!(parse("CANCEL DECOMMISSION BACKEND 'h:8040'").unwrap(), decommission(&["h:8040"], true));
    for (sql, expected) in [
        ("alter system decommission", "expected BACKEND"),
        ("alter system decommission backend h:1", "expected 'host:port' or the id of a backend"),
        ("alter system add backend 'h:1'", "ALTER SYSTEM"),
    ] {
        let error = parse(sql).unwrap_err();
        assert!(error.detail_text().contains(expected), "{sql}: {error}");
    }
}

#[test]
fn pipes_concatenate_if_the_session_says_so() {
    let reading = Reading { pipes_concatenate: true, ..Reading::default() };
    for (sql, expected) in [
        ("SELECT a || b || 'c'", "SELECT concat(concat(a, b), 'c')"),
        ("SELECT a * b || c = -d || e AND f", "SELECT a * concat(b, c) = concat(-d, e) AND f"),
        (
            "SELECT '||' FROM t WHERE a AND (b || c) IN (1)",
            "SELECT '||' FROM t WHERE a AND (concat(b, c)) IN (1)",
        ),
    ] {
        let Ok((Statement::Query(query), _)) = parse_as(sql, reading) else { panic!("{sql} is a query") };
        assert_eq!(query.ast.to_string(), expected, "{sql}");
    }
    for kept in
        ["CREATE VIEW v AS SELECT a || b AS c FROM t", "EXPORT TABLE t WHERE a || b = 'x' TO 'file:///x/y_'"]
    {
        let error = parse_as(kept, reading).expect_err("its text is kept");
        assert_eq!(error.code, ErrorCode::NotSupported, "{kept}");
        assert!(error.detail_text().contains("write CONCAT(a, b)"), "{error}");
        parse_as(kept, Reading::default()).expect("legal");
    }
    parse_as("CREATE VIEW v AS SELECT CONCAT(a, '||') AS c FROM t", reading).expect("legal");
}

#[test]
fn set_takes_words_texts_numbers_and_defaults() {
    for (sql, value) in [
        ("set group_commit = async_mode", text("async_mode")),
        ("SET group_commit := 'async_mode'", text("async_mode")),
        ("set group_commit = ON", text("ON")),
        ("set group_commit = 1", SetValue::Number("1".into())),
        ("set group_commit = -1.5", SetValue::Number("-1.5".into())),
        ("set group_commit = default", SetValue::Default),
        ("set group_commit = NULL", SetValue::Null),
        ("set group_commit = @@x", SetValue::Variable { scope: Scope::Session, name: "x".into() }),
        ("set group_commit = @@GLOBAL.X", SetValue::Variable { scope: Scope::Global, name: "x".into() }),
    ] {
        assert_eq!(set_of(sql), [variable(Scope::Session, "group_commit", value)], "{sql}");
    }
}

#[test]
fn set_knows_every_way_to_name_a_variable() {
    for (sql, scope) in [
        ("set SQL_MODE = ''", Scope::Session),
        ("set session sql_mode = ''", Scope::Session),
        ("set local sql_mode = ''", Scope::Session),
        ("set global sql_mode = ''", Scope::Global),
        ("set @@sql_mode = ''", Scope::Session),
        ("set @@session.sql_mode = ''", Scope::Session),
        ("set @@global.`sql_mode` = ''", Scope::Global),
    ] {
        assert_eq!(set_of(sql), [variable(scope, "sql_mode", text(""))], "{sql}");
    }
    assert_eq!(set_of("set @A := 'x'"), [SetItem::UserVariable { name: "a".into(), value: text("x") }]);
}

#[test]
fn set_takes_several_assignments_and_expressions() {
    let items = set_of(
        "SET character_set_results = NULL, autocommit=1, sql_mode = CONCAT(@@sql_mode, ',X'), GLOBAL y = 2",
    );
    assert_eq!(items[0], variable(Scope::Session, "character_set_results", SetValue::Null));
    assert_eq!(items[1], variable(Scope::Session, "autocommit", SetValue::Number("1".into())));
    assert!(
        matches!(&items[2], SetItem::Variable { value: SetValue::Expr(expr), .. } if expr.to_string().starts_with("CONCAT("))
    );
    assert_eq!(items[3], variable(Scope::Global, "y", SetValue::Number("2".into())));
    assert!(matches!(&set_of("set x = @@y + 1")[0], SetItem::Variable { value: SetValue::Expr(_), .. }));
}

#[test]
fn set_takes_names_character_sets_and_transactions() {
    let names = |charset: Option<&str>, collation: Option<&str>| SetItem::Names {
        charset: charset.map(Into::into),
        collation: collation.map(Into::into),
    };
    assert_eq!(set_of("SET NAMES utf8mb4"), [names(Some("utf8mb4"), None)]);
    assert_eq!(set_of("set names 'utf8' collate 'utf8_bin'"), [names(Some("utf8"), Some("utf8_bin"))]);
    assert_eq!(set_of("set names default"), [names(None, None)]);
    assert_eq!(set_of("set character set utf8"), [SetItem::CharacterSet { charset: Some("utf8".into()) }]);
    let transaction = |scope, isolation: Option<&str>, read_only| SetItem::Transaction {
        scope,
        isolation: isolation.map(Into::into),
        read_only,
    };
    assert_eq!(
        set_of("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY"),
        [transaction(Some(Scope::Session), Some("READ COMMITTED"), Some(true))]
    );
    assert_eq!(set_of("set transaction read write"), [transaction(None, None, Some(false))]);
    assert_eq!(set_of("/*!40101 SET NAMES utf8 */;"), [names(Some("utf8"), None)]);
}

#[test]
fn passwords_are_set_as_text_or_hash() {
    let clear = NewPassword::Clear { text: Secret::new("x"), plugin: None };
    let plain = SetItem::Password { user: None, password: clear };
    assert_eq!(set_of("set password = password('x')"), [plain]);
    let items = set_of("SET PASSWORD FOR 'u'@'%' = '*81F5E21E35407D884A6CD4A731AEBFB6AF209E1B'");
    let SetItem::Password { user: Some(user), password: NewPassword::Hash(PasswordHash(Some(hash))) } =
        &items[0]
    else {
        panic!()
    };
    assert_eq!((user.name.as_str(), user.host.as_str()), ("u", "%"));
    assert_eq!((hash[0], hash[19]), (0x81, 0x1b));
    assert!(error("set password = 'secret'").message.contains("write PASSWORD('…')"));
    assert!(!format!("{items:?}").contains("81F5"), "a password's hash is never printed");
}

#[test]
fn users_are_named_with_and_without_hosts() {
    for (text, name, host) in [
        ("u", "u", "%"),
        ("'u'", "u", "%"),
        ("'u'@'10.%'", "u", "10.%"),
        ("'u'@localhost", "u", "localhost"),
        ("u@localhost", "u", "localhost"),
        ("u@'localhost'", "u", "localhost"),
        ("`u`@`h`", "u", "h"),
        ("u@example.org", "u", "example.org"),
    ] {
        let user = UserName { name: name.into(), host: host.into() };
        assert_eq!(
            ok(&format!("drop user if exists {text}")),
            Statement::DropUser { user, if_exists: true },
            "{text}"
        );
    }
    assert!(error("create user '1u'").message.contains("User name regex"));
}

#[test]
fn users_are_created_and_altered_with_passwords() {
    let user = || UserName { name: "u".into(), host: "%".into() };
    let altered = |password, policy| Statement::AlterUser {
        user: user(),
        if_exists: false,
        password,
        require: None,
        policy,
        unlocks: false,
    };
    let clear = |text: &str, plugin| Some(NewPassword::Clear { text: Secret::new(text), plugin });
    let created = Statement::CreateUser {
        user: user(),
        if_not_exists: true,
        password: clear("p", None),
        role: None,
        require: None,
        policy: PolicyChange::default(),
        comment: String::new(),
    };
    assert_eq!(ok("create user if not exists u identified by 'p'"), created);
    for plugin in AuthPlugin::ALL {
        let password = clear("q", Some(plugin));
        let altered = altered(password, PolicyChange::default());
        assert_eq!(ok(&format!("alter user u identified with {} by 'q'", plugin.name())), altered);
    }
    let created = Statement::CreateUser {
        user: user(),
        if_not_exists: false,
        password: clear("p", None),
        role: Some("r".into()),
        require: Some(TlsRequirement::Ssl),
        policy: PolicyChange::default(),
        comment: "c".into(),
    };
    let sql = "create user u identified by 'p' default role 'r' require ssl comment 'c'";
    assert_eq!(ok(sql), created);
    assert!(!format!("{:?}", ok("create user u identified by 'hush'")).contains("hush"));
    let hash = PasswordHash::of("p");
    for words in ["by password", "with mysql_native_password as"] {
        let password = Some(NewPassword::Hash(hash));
        let altered = altered(password, PolicyChange::default());
        assert_eq!(ok(&format!("alter user u identified {words} '{hash}'")), altered);
    }
    for sql in [
        "create user u identified with sha256_password by 'p'",
        "create user u identified with caching_sha2_password as '$A$005$x'",
        "create user u require subject 'x'",
    ] {
        assert_eq!(error(sql).code, ErrorCode::NotSupported, "{sql}");
    }
    let policy = PolicyChange {
        history: Some(None),
        expiry: Some(PasswordExpiry::Seconds(7200)),
        failed_logins: Some(3),
        lock: Some(LockTime::Unbounded),
    };
    let sql = "alter user u password_history default failed_login_attempts 3 password_expire interval 2 hour password_lock_time unbounded";
    assert_eq!(ok(sql), altered(None, policy));
    let policy = PolicyChange {
        history: Some(Some(5)),
        expiry: Some(PasswordExpiry::Never),
        failed_logins: None,
        lock: Some(LockTime::Seconds(86_400)),
    };
    assert_eq!(
        ok("alter user u password_history 5 password_lock_time 1 day password_expire never"),
        altered(None, policy)
    );
    assert_eq!(error("create user u identified by 'p' account_lock").code, ErrorCode::NotSupported);
}

#[test]
fn transactions_begin_and_end_in_all_their_words() {
    let begin = |label: Option<&str>| Statement::Begin { label: label.map(Into::into), only_reads: None };
    for sql in ["begin", "BEGIN WORK;", "start transaction", "START TRANSACTION WITH CONSISTENT SNAPSHOT"] {
        assert_eq!(ok(sql), begin(None), "{sql}");
    }
    for (sql, only_reads) in [
        ("start transaction read only", Some(true)),
        ("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ WRITE", Some(false)),
    ] {
        assert_eq!(ok(sql), Statement::Begin { label: None, only_reads }, "{sql}");
    }
    assert_eq!(ok("begin with label l1"), begin(Some("l1")));
    assert_eq!(ok("commit and no chain no release"), Statement::Commit);
    assert_eq!(ok("rollback work"), Statement::Rollback);
    assert_eq!(ok("SYNC"), Statement::Sync { receipt: None });
    for sql in ["SYNC 17", "sync '17'"] {
        assert_eq!(ok(sql), Statement::Sync { receipt: Some(17) });
    }
    for sql in ["SYNC '17x'", "SYNC x", "SYNC -1", "SYNC 1 2"] {
        assert_eq!(error(sql).code, ErrorCode::Syntax, "{sql}");
    }
    let savepoint = |verb| Statement::Savepoint { verb, name: "s".into() };
    assert_eq!(ok("savepoint s"), savepoint(SavepointVerb::Set));
    assert_eq!(ok("release savepoint s"), savepoint(SavepointVerb::Release));
    for sql in ["rollback to savepoint s", "ROLLBACK WORK TO `s`"] {
        assert_eq!(ok(sql), savepoint(SavepointVerb::RollBackTo), "{sql}");
    }
    assert_eq!(error("commit and chain").code, ErrorCode::NotSupported);
}

#[test]
fn statements_of_dumps_have_nothing_to_do() {
    use WithoutEffect::{Flush, LockTables, UnlockTables};
    for (sql, what) in [
        ("unlock tables", UnlockTables),
        ("LOCK TABLES `t` READ /*!32311 LOCAL */", LockTables),
        ("lock table d.t as a low_priority write, u write", LockTables),
        ("FLUSH PRIVILEGES", Flush),
        ("flush local tables t, u with read lock", Flush),
        ("FLUSH BINARY LOGS, STATUS", Flush),
        ("ALTER DATABASE `d` DEFAULT CHARACTER SET = utf8mb4 COLLATE utf8mb4_bin", WithoutEffect::LeftOut),
    ] {
        assert_eq!(ok(sql), Statement::WithoutEffect(what), "{sql}");
    }
    for sql in ["LOCK t READ", "LOCK TABLES t", "FLUSH everything", "UNLOCK t"] {
        assert_eq!(error(sql).code, ErrorCode::Syntax, "{sql}");
    }
}

#[test]
fn kill_names_a_connection_or_a_query() {
    assert_eq!(ok("kill 5"), Statement::Kill(Kill::Connection(5)));
    assert_eq!(ok("kill connection 5"), Statement::Kill(Kill::Connection(5)));
    assert_eq!(ok("kill query 5"), Statement::Kill(Kill::Query(5)));
    assert_eq!(ok("kill query 'ab-c'"), Statement::Kill(Kill::QueryId("ab-c".into())));
}

#[test]
fn use_takes_the_catalog_too() {
    assert_eq!(ok("use d"), Statement::Use { db: "d".into() });
    assert_eq!(ok("use internal.`d`"), Statement::Use { db: "d".into() });
}

#[test]
fn every_show_is_known_by_its_words() {
    let db = || Some("d".to_owned());
    let like = || Some(ShowFilter::Like("a%".into()));
    let session = Scope::Session;
    for (sql, show) in [
        ("show databases", Show::Databases { filter: None }),
        ("SHOW SCHEMAS LIKE 'a%'", Show::Databases { filter: like() }),
        ("show tables", Show::Tables { full: false, db: None, filter: None }),
        ("show full tables from d like 'a%'", Show::Tables { full: true, db: db(), filter: like() }),
        ("show table status in d", Show::TableStatus { db: db(), filter: None }),
        ("show columns from t", Show::Columns { full: false, table: name(None, "t"), filter: None }),
        (
            "show full fields in t from d like 'a%'",
            Show::Columns { full: true, table: name(Some("d"), "t"), filter: like() },
        ),
        ("show create table d.t", Show::CreateTable { table: name(Some("d"), "t") }),
        ("show create schema d", Show::CreateDatabase { db: "d".into() }),
        ("show variables like 'a%'", Show::Variables { scope: session, filter: like() }),
        ("show global variables", Show::Variables { scope: Scope::Global, filter: None }),
        ("show session status", Show::Status { scope: session, filter: None }),
        ("show warnings limit 5", Show::Warnings { count: false }),
        ("show count(*) warnings", Show::Warnings { count: true }),
        ("show errors", Show::Errors { count: false }),
        ("show storage engines", Show::Engines),
        ("show charset", Show::Charset { filter: None }),
        ("show character set like 'a%'", Show::Charset { filter: like() }),
        ("show collation", Show::Collation { filter: None }),
        ("show processlist", Show::ProcessList { full: false }),
        ("show full processlist", Show::ProcessList { full: true }),
        ("show keys from d.t", Show::Index { table: name(Some("d"), "t") }),
        ("show grants", Show::Grants { user: None, all: false }),
        ("show grants for current_user", Show::Grants { user: None, all: false }),
        ("show grants for current_user()", Show::Grants { user: None, all: false }),
        ("show all grants", Show::Grants { user: None, all: true }),
        ("show roles", Show::Roles),
        ("show backends", Show::Backends),
        ("show data types", Show::DataTypes),
        ("show functions", Show::Functions { is_builtin: false, full: false, filter: None }),
        (
            "show full builtin functions in d like 'a%'",
            Show::Functions { is_builtin: true, full: true, filter: Some(ShowFilter::Like("a%".to_owned())) },
        ),
        ("show frontends", Show::Frontends),
        ("show last insert", Show::LastInsert),
        ("show transaction where id = 7", Show::Transaction { db: None, by: TransactionBy::Id(7) }),
        (
            "show transaction from d where LABEL = 'l'",
            Show::Transaction { db: db(), by: TransactionBy::Label("l".into()) },
        ),
        ("show stream load", Show::StreamLoad { db: None, tail: ShowTail::default() }),
        ("show data from d.t", Show::Data { table: Some(name(Some("d"), "t")), tail: ShowTail::default() }),
        (
            "show partitions from t",
            Show::Partitions { table: name(None, "t"), is_temporary: false, tail: ShowTail::default() },
        ),
        ("show partition 13004", Show::Partition { id: 13_004 }),
        ("show alter table column", Show::AlterTableColumn { db: None, tail: ShowTail::default() }),
        ("show triggers from d", Show::Triggers { db: db(), filter: None }),
        ("show events", Show::Events { db: None, filter: None }),
        ("show procedure status", Show::ProcedureStatus { filter: None }),
        ("show function status", Show::FunctionStatus { filter: None }),
        ("show plugins", Show::Plugins),
        ("show slave status", Show::Unused(UnusedPart::SlaveStatus)),
        ("SHOW REPLICA STATUS FOR CHANNEL 'c'", Show::Unused(UnusedPart::ReplicaStatus)),
        ("show slave hosts", Show::Unused(UnusedPart::SlaveHosts)),
        ("show replicas", Show::Unused(UnusedPart::Replicas)),
        ("show master status", Show::Unused(UnusedPart::BinaryLogStatus)),
        ("show binary logs", Show::Unused(UnusedPart::BinaryLogs)),
        ("show master logs", Show::Unused(UnusedPart::BinaryLogs)),
        ("show profiles", Show::Unused(UnusedPart::Profiles)),
        ("show open tables from d where In_use > 0", Show::Unused(UnusedPart::OpenTables)),
        ("SHOW ENGINE INNODB STATUS", Show::Unused(UnusedPart::EngineStatus)),
        (
            "desc t a_b",
            Show::Columns {
                full: false,
                table: name(None, "t"),
                filter: Some(ShowFilter::Like("a\\_b".to_owned())),
            },
        ),
        (
            "describe t 'a%'",
            Show::Columns {
                full: false,
                table: name(None, "t"),
                filter: Some(ShowFilter::Like("a%".to_owned())),
            },
        ),
        ("show privileges", Show::Privileges),
        ("show catalogs", Show::Catalogs { filter: None }),
        ("show delete from d", Show::Delete { db: db() }),
        ("admin show frontend config like 'a%'", Show::FrontendConfig { filter: like() }),
    ] {
        assert_eq!(show_of(sql), show, "{sql}");
    }
}

#[test]
fn a_list_of_loads_can_be_filtered_ordered_and_cut() {
    let Show::Load { db, tail } =
        show_of("show load from d where label = 'x' order by CreateTime desc, Label limit 5, 10")
    else {
        panic!()
    };
    assert_eq!(db.as_deref(), Some("d"));
    assert!(matches!(tail.filter, Some(ShowFilter::Where(_))));
    assert_eq!(tail.order_by, [("CreateTime".to_owned(), true), ("Label".to_owned(), false)]);
    assert_eq!((tail.limit, tail.offset), (Some(10), 5));
}
