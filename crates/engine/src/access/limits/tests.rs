use super::*;
use crate::testing::TestEngine;
use tributary_types::PasswordHash;

struct Case {
    test: TestEngine,
    table: Arc<Table>,
    start: Instant,
}

impl Case {
    async fn with(limits: &[(UserProperty, u64)]) -> Self {
        let test = TestEngine::open(|_| ()).await;
        let table = test.table().await;
        let user = User::new("amy", "%", PasswordHash::EMPTY);
        test.engine.catalog.create_user(user).await.expect("a new user");
        let case = Self { test, table, start: Instant::now() };
        for (property, value) in limits {
            case.set(*property, Some(*value)).await;
        }
        case
    }

    async fn set(&self, property: UserProperty, value: Option<u64>) {
        let limits = vec![(property, value)];
        self.test.engine.catalog.set_limits("amy", "%", limits).await.expect("a known user");
        self.limits().refresh();
    }

    fn limits(&self) -> &Limits {
        self.test.engine.limits()
    }

    /// A load of `bytes` known bytes at a time.
    fn load(&self, bytes: u64, milliseconds: u64) -> Result<LimitedLoad, LimitReached> {
        self.load_into(TableLimits::default(), bytes, milliseconds)
    }

    fn load_into(
        &self,
        rates: TableLimits,
        bytes: u64,
        milliseconds: u64,
    ) -> Result<LimitedLoad, LimitReached> {
        let user = self.limits().user(&amy());
        self.limits().admit_limited(user, &self.table, rates, bytes, self.at(milliseconds))
    }

    fn at(&self, milliseconds: u64) -> Instant {
        self.start + Duration::from_millis(milliseconds)
    }

    /// The error of a load that is refused.
    fn refused(&self, bytes: u64, milliseconds: u64) -> LimitReached {
        self.load(bytes, milliseconds).err().expect("it is one too many")
    }
}

fn amy() -> Principal {
    Principal::new("amy", "10.0.0.1", 0).of_account("%")
}

#[tokio::test]
async fn a_user_without_limits_carries_nothing_whatever_others_have() {
    let case = Case::with(&[]).await;
    let bob = Principal::new("bob", "%", 0);
    for principal in [amy(), bob.clone()] {
        assert!(!case.limits().has_users.load(Ordering::Relaxed));
        let admitted = case.limits().admit_load(&principal, &case.table, Some(1)).expect("no limit");
        assert!(admitted.limited.is_none() && admitted.user() == principal.key());
    }
    case.set(UserProperty::MaxConcurrentLoads, Some(1)).await;
    let admitted = case.limits().admit_load(&bob, &case.table, None).expect("no limit");
    assert!(admitted.limited.is_none());
    case.set(UserProperty::MaxConcurrentLoads, None).await;
    assert!(!case.limits().has_users.load(Ordering::Relaxed));
}

#[tokio::test]
async fn loads_at_a_time_are_counted_until_they_end() {
    let case = Case::with(&[(UserProperty::MaxConcurrentLoads, 2)]).await;
    let (one, other) = (case.load(1, 0).expect("the first"), case.load(1, 0).expect("the second"));
    let reached = case.refused(1, 0);
    assert_eq!((reached.property, reached.value), (UserProperty::MaxConcurrentLoads, 2));
    assert_eq!(
        SqlError::from(reached),
        SqlError::new(
            ErrorCode::UserLimit,
            "User 'amy'@'%' has exceeded the 'max_concurrent_loads' resource (current value: 2); nothing was done, retry it in \
             1.000 s"
        )
    );
    drop(one);
    let third = case.load(1, 0).expect("there is a place");
    // Running loads are known to a limit that is changed.
    case.set(UserProperty::MaxConcurrentLoads, Some(1)).await;
    drop(third);
    case.refused(1, 0);
    drop(other);
    drop(case.load(1, 0).expect("none is left"));
}

#[tokio::test]
async fn requests_rows_and_bytes_are_limited_by_the_second_and_debts_are_paid_first() {
    let case = Case::with(&[
        (UserProperty::MaxLoadRequestsPerSecond, 2),
        (UserProperty::MaxLoadRowsPerSecond, 100),
        (UserProperty::MaxLoadBytesPerSecond, 1000),
    ])
    .await;
    let load = case.load(400, 0).expect("the first");
    load.charge(10, 500, case.at(0));
    let load = case.load(400, 0).expect("the second");
    let reached = case.refused(1, 0);
    assert_eq!((reached.property, reached.value), (UserProperty::MaxLoadRequestsPerSecond, 2));
    assert_eq!(reached.retry_after, Some(Duration::from_millis(500)));
    // 1000 bytes are taken by now, and 300 rows, of which 100 were there.
    load.charge(290, 500, case.at(0));
    let reached = case.refused(1, 500);
    assert_eq!((reached.property, reached.value), (UserProperty::MaxLoadRowsPerSecond, 100));
    assert_eq!(reached.retry_after, Some(Duration::from_millis(1510)));
    let load = case.load(1, 2010).expect("the debt is paid");
    load.charge(1, 4001, case.at(2010));
    let reached = case.refused(1, 3010);
    assert_eq!(reached.property, UserProperty::MaxLoadBytesPerSecond);
    // 1000 were there: 3001 are missing, and one more is needed.
    assert_eq!(reached.retry_after, Some(Duration::from_millis(2002)));
    case.set(UserProperty::MaxLoadBytesPerSecond, None).await;
    drop(case.load(1, 3010).expect("the limit is gone"));
}

#[tokio::test]
async fn a_load_that_the_table_refuses_has_taken_nothing_of_its_user() {
    let limits = [(UserProperty::MaxLoadRequestsPerSecond, 2), (UserProperty::MaxLoadBytesPerSecond, 10)];
    let case = Case::with(&limits).await;
    let rates = TableLimits { rows: Some(5), ..TableLimits::default() };
    let load = case.load_into(rates, 1, 0).expect("the first");
    load.charge(10, 1, case.at(0));
    for _ in 0..20 {
        let reached = case.load_into(rates, 5, 0).err().expect("the table is in debt");
        assert_eq!(reached.retry_after, Some(Duration::from_millis(1200)));
        let error = SqlError::from(reached);
        assert_eq!(error.code, ErrorCode::Busy);
        let text =
            "Table 'd.t' has exceeded its property 'max_load_rows_per_second' (current value: 5); nothing";
        assert!(error.message.starts_with(text), "{error}");
    }
    drop(load);
    drop(case.load(1, 0).expect("one request was made"));
    assert_eq!(case.refused(1, 0).property, UserProperty::MaxLoadRequestsPerSecond);
    let user = case.limits().user(&amy()).expect("it has limits");
    assert_eq!(user.state.lock().loads, 0);
}

#[tokio::test]
async fn queries_at_a_time_are_counted_until_they_end() {
    let case = Case::with(&[(UserProperty::MaxConcurrentQueries, 1)]).await;
    let running = case.limits().admit_query(&amy()).expect("the first");
    let reached = case.limits().admit_query(&amy()).err().expect("the second");
    assert_eq!(reached.property, UserProperty::MaxConcurrentQueries);
    drop(running);
    drop(case.limits().admit_query(&amy()).expect("none is left"));
    let counted = "tributary_limit_refusals_total{limit=\"max_concurrent_queries\",of=\"user\"} 1";
    assert!(case.test.engine.metrics_text().contains(counted));
}

#[tokio::test]
async fn a_job_waits_for_its_limit_and_goes_on_when_it_is_raised() {
    let case = Case::with(&[(UserProperty::MaxConcurrentLoads, 1)]).await;
    let running = case.limits().admit_load(&amy(), &case.table, None).expect("the first");
    let (principal, table) = (amy(), Arc::clone(&case.table));
    let engine = Arc::clone(&case.test.engine);
    let waiting =
        tokio::spawn(async move { engine.limits().wait_for_load(&principal, Some(&table)).await.user() });
    crate::testing::wait_until("it waits", || {
        case.test.engine.metrics_text().contains("tributary_limit_job_waits_total 1")
    })
    .await;
    assert!(!waiting.is_finished());
    case.set(UserProperty::MaxConcurrentLoads, Some(2)).await;
    assert_eq!(waiting.await.expect("no panic"), amy().key());
    drop(running);
}

#[tokio::test]
async fn tables_that_have_rested_are_forgotten() {
    let case = Case::with(&[]).await;
    let rates = TableLimits { rows: Some(5), ..TableLimits::default() };
    let load = case.load_into(rates, 1, 0).expect("the first");
    load.charge(5, 1, case.at(0));
    drop(load);
    case.limits().table(TableId(1000), case.at(500));
    assert_eq!(case.limits().tables.lock().len(), 2, "it has a debt to remember");
    case.limits().table(TableId(1001), case.at(1500));
    let known: Vec<u64> = case.limits().tables.lock().keys().map(|id| id.0).collect();
    assert_eq!(known, [1001]);
}
