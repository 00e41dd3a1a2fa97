use super::*;
use crate::jobs::ServerJobs;
use crate::jobs::broker_load::BrokerLoadRecord;
use crate::testing::TestEngine;
use std::future::pending;
use tributary_sql::Statement;
use tributary_types::{Label, Principal};

async fn added(jobs: &ServerJobs, label: &str) -> Arc<Job<BrokerLoadRecord>> {
    let sql = format!(
        "LOAD LABEL d.{label} (DATA INFILE('s3://b/f.csv') INTO TABLE t) WITH S3 ('s3.endpoint' = 'http://127.0.0.1:1')"
    );
    let Ok(Statement::BrokerLoad(load)) = tributary_sql::parse(&sql) else { panic!("it is one") };
    let (label, root) = (Label::new(label).expect("a label"), Principal::new("root", "%", 0));
    let record = BrokerLoadRecord::new("d", &label, &root, "UTC", 0, &load);
    let job = Arc::new(Job::new(jobs.broker_loads.next_id().await.expect("an id"), record));
    jobs.broker_loads.add(&job, |_| Ok(())).await.expect("it is kept");
    job
}

async fn kept(jobs: &ServerJobs, job: &Job<BrokerLoadRecord>) -> BrokerLoadRecord {
    let all = jobs
        .broker_loads
        .parts
        .catalog
        .jobs(&jobs.broker_loads.parts.node)
        .await
        .expect("the catalog is read");
    let record = all.into_iter().find(|record| record.id.0 == job.id).expect("it is kept");
    let envelope = Envelope::read(&record).expect("a record");
    envelope.body_of(record.id).expect("its own record")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_panics_is_cancelled_with_the_text_and_nobody_waits_for_it() {
    let test = TestEngine::open(|_| {}).await;
    let engine = &test.engine;
    let (failed, stopped) = (added(&engine.jobs, "failed").await, added(&engine.jobs, "stopped").await);
    spawn(&engine.jobs, |jobs| &jobs.broker_loads, Arc::clone(&failed), async {
        panic!("no such row group")
    });
    failed.ended().await;
    let record = kept(&engine.jobs, &failed).await;
    assert_eq!(Record::state(&record), "CANCELLED");
    assert!(
        record.error.contains("LOAD_RUN_FAIL") && record.error.contains("no such row group"),
        "{}",
        record.error
    );
    assert_eq!(engine.ingest.watcher().panics("broker_load"), 1);
    // Whatever the work does, its end is announced.
    let work = {
        let job = Arc::clone(&stopped);
        async move {
            while !job.is_paused() {
                tokio::task::yield_now().await;
            }
            panic!("while the server stops");
        }
    };
    spawn(&engine.jobs, |jobs| &jobs.broker_loads, Arc::clone(&stopped), work);
    tokio::time::timeout(Duration::from_secs(20), engine.shutdown()).await.expect("the server stops");
    assert!(stopped.has_ended());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_server_ended_three_times_is_not_begun_again() {
    let test = TestEngine::open(|_| {}).await;
    let (jobs, job) = (&test.engine.jobs.broker_loads, added(&test.engine.jobs, "fatal").await);
    assert!(jobs.begins_again(&job).await && jobs.begins_again(&job).await);
    assert_eq!(kept(&test.engine.jobs, &job).await.starts(), &3, "it is kept before the work begins");
    assert!(!jobs.begins_again(&job).await);
    job.ended().await;
    let record = kept(&test.engine.jobs, &job).await;
    assert_eq!(Record::state(&record), "CANCELLED");
    assert!(record.error.contains("the server has ended 3 times while the job ran"), "{}", record.error);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_orderly_stop_is_not_counted_against_a_job() {
    let test = TestEngine::open(|_| {}).await;
    let (jobs, job) = (&test.engine.jobs.broker_loads, added(&test.engine.jobs, "long").await);
    for _ in 0..10 {
        assert!(jobs.begins_again(&job).await);
        let work = {
            let job = Arc::clone(&job);
            async move {
                let _ = Interrupt::by_kill(&job.stop).wait(pending::<()>()).await;
                job.stop.clear();
            }
        };
        spawn(&test.engine.jobs, |jobs| &jobs.broker_loads, Arc::clone(&job), work);
        jobs.pause().await;
        assert_eq!(kept(&test.engine.jobs, &job).await.starts(), &0);
        // As the next start has it.
        job.ended.send_replace(false);
    }
    job.announce();
}
